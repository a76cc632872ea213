"""Our cassettes: recording long ones, and replay through both fronts."""

from __future__ import annotations

import functools
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.corpus import (
    DESCRIPTIONS,
    MAX_TOKENS,
    SCHEMAS,
    SYSTEM,
    TOOL_NAMES,
    TURNS,
    VENDORS,
    Vendor,
    conversation_order,
    step,
    task,
)
from benchmarks.replay import OTHER_BYTES
from benchmarks.sdk import HOST, asker
from benchmarks.timing import Effort, Recorder, ThroughSdk, measure
from harness.cassette.direct import DirectProvider
from harness.cassette.file.tape import Origin
from harness.cassette.replay.session import Session
from harness.cassette.replay.store import Store
from harness.cassette.request.canonical import canonical_request, sent_digest
from harness.cassette.response.body import store_response
from harness.cassette.using import use
from harness.protocols import Dialect, Provider
from harness.providers.anthropic_messages import AnthropicMessages
from harness.providers.openai_chat import OpenAIChat
from harness.redaction import Redactor
from harness.schema.messages import Message, Text, ToolCall, ToolResult, ToolSpec
from harness.schema.results import RecordMode
from harness.values import ModelRequest

DIALECTS: dict[str, Dialect] = {"openai": OpenAIChat(), "anthropic": AnthropicMessages()}
TOOLS = tuple(
    ToolSpec(name=name, description=DESCRIPTIONS[name], parameters=SCHEMAS[name])
    for name in TOOL_NAMES
)


@contextmanager
def session(path: Path, mode: RecordMode) -> Iterator[Session]:
    """A trial, as the runner opens it: no HTTP client is changed."""
    redactor = Redactor({"BENCH_API_KEY": "a-key-that-no-call-holds"})
    with Store.open(
        path, mode, origin=Origin("bench", "bench", 0, "-"), redactor=redactor
    ) as store:
        trial = store.session("default")
        yield trial
        trial.finish()


def record(vendor: Vendor, numbers: Sequence[int], path: Path) -> float:
    """Record calls without an SDK and a server; CPU seconds of a call."""
    headers = {"content-type": "application/json"}
    started = time.process_time()
    with session(path, "all") as trial:
        for number in numbers:
            body = vendor.request_bytes(number)
            url = f"{HOST}{vendor.path}"
            request = replace(canonical_request("POST", url, body), sent=sent_digest(url, body))
            trial.claim(request)
            answer = store_response(200, headers, vendor.answer_bytes(number), trial.redactor)
            trial.append(request, answer, latency_s=1.0)
    return (time.process_time() - started) / len(numbers)


class HttpFront(ThroughSdk):
    """The vendor's SDK, its requests answered from the cassette."""

    def __init__(self, vendor: Vendor, base_url: str = HOST) -> None:
        super().__init__(vendor)
        self._ask = asker(vendor, base_url=base_url)

    @contextmanager
    def opened(self, path: Path) -> Iterator[Callable[[Any], Any]]:
        with use(path):
            yield self._ask


class DirectFront:
    """The neutral request to the neutral answer, with no SDK in between."""

    def __init__(self, vendor: Vendor) -> None:
        self._vendor = vendor
        self._dialect = DIALECTS[vendor.name]

    def order(self, calls: int, sample: int) -> Iterable[int]:
        return conversation_order(calls, sample)

    def requests(self, numbers: Sequence[int]) -> list[Any]:
        # As in a loop, the turns of one conversation hold the same messages.
        said = functools.lru_cache(maxsize=None)(_messages_of)
        return [self._request(number, said) for number in numbers]

    def _request(
        self, number: int, said: Callable[[int, int], tuple[Message, ...]]
    ) -> ModelRequest:
        conversation, turn = divmod(number, TURNS)
        messages = [m for earlier in range(turn + 1) for m in said(conversation, earlier)]
        return ModelRequest(
            self._vendor.model, SYSTEM, messages, TOOLS, max_output_tokens=MAX_TOKENS
        )

    @contextmanager
    def opened(self, path: Path) -> Iterator[Callable[[Any], Any]]:
        with session(path, "none") as trial:
            yield DirectProvider(self._dialect, trial, _no_sdk).complete

    def is_answer(self, number: int, answer: Any) -> bool:
        one = step(*divmod(number, TURNS))
        text, call = answer.content
        called = (call.id, call.name, json.loads(call.arguments))
        return (text.text, called) == (one.says, (one.call_id, one.tool, one.arguments))


def _no_sdk() -> Provider:
    raise AssertionError("an answer that is a plain success needs no SDK")


def _messages_of(conversation: int, turn: int) -> tuple[Message, ...]:
    """What a conversation gets before its k-th call."""
    if turn == 0:
        return (Message(role="user", content=(Text(text=task(conversation)),)),)
    one = step(conversation, turn - 1)
    call = ToolCall(id=one.call_id, name=one.tool, arguments=one.raw_arguments)
    result = ToolResult(call_id=one.call_id, name=one.tool, content=one.result)
    return (
        Message(role="assistant", content=(Text(text=one.says), call)),
        Message(role="user", content=(result,)),
    )


FRONTS: dict[str, Callable[[Vendor], Recorder]] = {"http": HttpFront, "direct": DirectFront}


def _other_bytes(vendor: Vendor) -> Recorder:
    """Asks below another path: what was recorded is not found by its bytes, but by its meaning."""
    return HttpFront(vendor, f"{HOST}/other")


def main(action: str, vendor_name: str, calls: int, path: str, **effort: Any) -> dict[str, Any]:
    """Record a cassette, or replay it through a front."""
    vendor = VENDORS[vendor_name]
    if action == "record":
        return {"record_ms": record(vendor, range(calls), Path(path)) * 1e3}
    front = {**FRONTS, OTHER_BYTES: _other_bytes}[action](vendor)
    return measure(action, front, vendor, calls, Path(path), Effort(**effort)).as_json()


if __name__ == "__main__":
    positional, named = json.loads(sys.argv[1])
    print(json.dumps(main(*positional, **named)))

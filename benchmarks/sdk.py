"""The vendors' SDKs, and their own cost: the limit of whatever answers below them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import anthropic
import httpx2
import openai

from benchmarks.corpus import Body, Vendor

HOST = "http://bench.invalid"
"""Never asked: a request that gets this far fails."""

Ask = Callable[[Body], Any]


def asker(vendor: Vendor, *, base_url: str = HOST, http_client: Any = None) -> Ask:
    """What sends a request through a vendor's SDK and gives its answer object."""
    # The method is looked up at each call: some recorders put another one in its place.
    if vendor.name == "openai":
        chat = openai.OpenAI(
            api_key="sk-bench", base_url=f"{base_url}/v1", max_retries=0, http_client=http_client
        ).chat.completions
        return lambda body: chat.create(**body)
    messages = anthropic.Anthropic(
        api_key="sk-ant-bench", base_url=base_url, max_retries=0, http_client=http_client
    ).messages
    return lambda body: messages.create(**body)


def mocked(vendor: Vendor, answer: Callable[[Any], bytes] | None = None) -> Ask:
    """The SDK on a mock transport, which looks nothing up."""
    same = vendor.answer_bytes(0)
    headers = {"content-type": "application/json"}

    def handle(request: httpx2.Request) -> httpx2.Response:
        content = same if answer is None else answer(request)
        return httpx2.Response(200, headers=headers, content=content)

    transport = httpx2.MockTransport(handle)
    return asker(vendor, http_client=httpx2.Client(transport=transport))


def answer_id(answer: Any) -> str:
    """Which answer it is."""
    return str(answer.id)


def is_answer(vendor: Vendor, number: int, answer: Any) -> bool:
    """Whether an SDK's answer object says what was recorded for a call."""
    want = vendor.answer(number)
    got = answer.model_dump(mode="json")
    return bool(_without_absent(got) == _without_absent(want))


def _without_absent(value: Any) -> Any:
    """The SDKs' objects name fields that the vendor did not send."""
    if isinstance(value, dict):
        return {key: _without_absent(v) for key, v in value.items() if v is not None}
    if isinstance(value, list):
        return [_without_absent(v) for v in value]
    return value


def cpu_seconds(ask: Ask, bodies: Sequence[Any]) -> tuple[float, list[Any]]:
    """CPU time of some calls, and their answers."""
    started = time.process_time()
    answers = [ask(body) for body in bodies]
    return time.process_time() - started, answers

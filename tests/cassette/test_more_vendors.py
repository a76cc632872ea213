"""Record and replay through the SDKs of Google and Ollama: other HTTP libraries, other streams."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from harness.cassette.http import use
from harness.cassette.replay.session import Session
from harness.errors import ReplayMissError
from harness.providers import google_client, ollama_client
from harness.providers.google_generate import GoogleGenerate
from harness.providers.ollama_chat import OllamaChat
from harness.providers.sdk_client import SdkClient
from harness.schema.messages import Message, ModelTurn, Text, ToolCall, ToolResult, ToolSpec
from harness.values import ModelDelta, ModelRequest
from tests.cassette.cells import open_store
from tests.providers.lookalikes import google, ollama
from tests.providers.lookalikes.server import Answer, Endpoint, Lookalike, serving

DIALECTS = (GoogleGenerate(), OllamaChat())
KEY = "key-that-must-reach-no-file"
NOWHERE = "http://127.0.0.1:1"

GOOGLE_CALL = {
    "candidates": [
        {
            "content": {
                "role": "model",
                "parts": [
                    {"text": "I look ☃."},
                    {
                        "functionCall": {"name": "shell", "args": {"x": 1}},
                        "thoughtSignature": "c2ln",
                    },
                ],
            },
            "finishReason": "STOP",
        }
    ],
    "usageMetadata": {"promptTokenCount": 7, "candidatesTokenCount": 2},
    "modelVersion": "gemini-test-2026",
    "responseId": "response-1",
}
OLLAMA_CALL = {
    "model": "m",
    "created_at": "2026-11-22T00:00:00Z",
    "message": {
        "role": "assistant",
        "content": "I look ☃.",
        "tool_calls": [{"function": {"name": "shell", "arguments": {"x": 1}}}],
    },
    "done": True,
    "done_reason": "stop",
    "prompt_eval_count": 7,
    "eval_count": 2,
}


@dataclass(frozen=True)
class Vendor:
    client: Callable[..., SdkClient]
    endpoint: Endpoint
    answer: dict[str, Any]
    streamed: Callable[[dict[str, Any]], Answer]


VENDORS = {
    "google": Vendor(google_client.client, google.GOOGLE, GOOGLE_CALL, google.streamed),
    "ollama": Vendor(
        ollama_client.client,
        ollama.ENDPOINT,
        OLLAMA_CALL,
        lambda answer: ollama.streamed(list(ollama.lines(answer))),
    ),
}
vendors = pytest.mark.parametrize("vendor", VENDORS.values(), ids=VENDORS)
both_ways = pytest.mark.parametrize("on_delta", [None, lambda _: None], ids=["whole", "streamed"])

REQUEST = ModelRequest(
    model="m",
    system="Be brief.",
    messages=(Message(role="user", content=(Text(text="List ☃ files."),)),),
    tools=(ToolSpec(name="shell", description="Run.", parameters={"type": "object"}),),
)


def converse(client: SdkClient, on_delta: Any) -> list[ModelTurn]:
    """A call, its result, and an answer."""
    first = client.complete(REQUEST, on_delta)
    results = tuple(
        ToolResult(call_id=block.id, name=block.name, content="a.txt")
        for block in first.content
        if isinstance(block, ToolCall)
    )
    assert len(results) == 1
    more = (
        Message(role="assistant", content=first.content),
        Message(role="user", content=results),
    )
    last = client.complete(replace(REQUEST, messages=(*REQUEST.messages, *more)), on_delta)
    return [first, last]


def record(path: Path, vendor: Vendor, on_delta: Any) -> tuple[list[ModelTurn], Lookalike]:
    with serving(vendor.endpoint) as server, open_store(path, "new_episodes") as store:
        streamed = vendor.streamed(vendor.answer)
        server.answers = [streamed if on_delta else Answer(200, vendor.answer)]
        session = store.session("baseline")
        with use(session):
            turns = converse(vendor.client(base_url=server.url, api_key=KEY), on_delta)
        session.finish()
    assert session.recorded == len(server.bodies) == 2
    return turns, server


def replay(path: Path, run: Callable[[], Any]) -> Session:
    with open_store(path) as store:
        session = store.session("baseline")
        with use(session):
            run()
    return session


@vendors
@both_ways
def test_what_was_recorded_replays_with_the_server_gone(
    vendor: Vendor, on_delta: Any, tmp_path: Path
) -> None:
    path = tmp_path / "suite" / "task" / "0.jsonl"
    turns, _ = record(path, vendor, on_delta)
    gone = vendor.client(base_url=NOWHERE, api_key="another")
    replayed: list[ModelTurn] = []
    session = replay(path, lambda: replayed.extend(converse(gone, on_delta)))
    assert (session.served, session.recorded) == (2, 0)
    assert replayed == turns
    assert KEY not in path.read_text()


@vendors
def test_a_replayed_stream_shows_the_same_pieces(vendor: Vendor, tmp_path: Path) -> None:
    path = tmp_path / "suite" / "task" / "0.jsonl"
    live: list[ModelDelta] = []
    record(path, vendor, live.append)
    again: list[ModelDelta] = []
    gone = vendor.client(base_url=NOWHERE, api_key=KEY)
    replay(path, lambda: converse(gone, again.append))
    assert again == live


@vendors
@both_ways
@pytest.mark.parametrize(
    "change",
    [{"model": "n"}, {"system": "Be long."}, {"temperature": 0.5}],
    ids=["model", "system", "temperature"],
)
def test_another_request_is_a_miss(
    vendor: Vendor, change: Any, on_delta: Any, tmp_path: Path
) -> None:
    path = tmp_path / "suite" / "task" / "0.jsonl"
    record(path, vendor, on_delta)
    gone = vendor.client(base_url=NOWHERE, api_key=KEY)

    def ask() -> None:
        with pytest.raises(ReplayMissError, match="no recording"):
            gone.complete(replace(REQUEST, **change), on_delta)

    replay(path, ask)


@vendors
def test_a_whole_answer_does_not_stand_for_a_streamed_one(vendor: Vendor, tmp_path: Path) -> None:
    path = tmp_path / "suite" / "task" / "0.jsonl"
    record(path, vendor, None)
    gone = vendor.client(base_url=NOWHERE, api_key=KEY)

    def ask() -> None:
        with pytest.raises(ReplayMissError):
            gone.complete(REQUEST, lambda _: None)

    replay(path, ask)


@vendors
def test_the_recording_names_the_dialect(vendor: Vendor, tmp_path: Path) -> None:
    path = tmp_path / "suite" / "task" / "0.jsonl"
    record(path, vendor, None)
    lines = [json.loads(line) for line in path.read_text().split("\n") if line]
    endpoints = {line["endpoint"] for line in lines if "endpoint" in line}
    assert endpoints <= {dialect.name for dialect in DIALECTS}
    assert len(endpoints) == 1

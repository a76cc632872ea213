"""Answers of Ollama's chat endpoint, streamed and not, through its package over real HTTP."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import vcr  # type: ignore[import-untyped]

from harness.errors import (
    AuthenticationError,
    CassetteError,
    ConfigurationError,
    ContextExceededError,
    MalformedAnswerError,
    ModelCallError,
    OverloadedError,
    RateLimitedError,
    ReplayMissError,
)
from harness.providers.catalog import live_client
from harness.providers.ollama_chat import OllamaChat
from harness.providers.ollama_client import client
from harness.providers.sdk_client import SdkClient
from harness.schema.messages import Message, StopReason, Text, ToolCall, ToolResult, ToolSpec, Usage
from harness.schema.record import JsonObject
from harness.schema.suite import ModelConfig
from harness.values import ModelDelta, ModelRequest
from tests.providers.lookalikes.ollama import ANSWER, ENDPOINT, lines, streamed
from tests.providers.lookalikes.server import Answer, Lookalike, serving

SCHEMA: JsonObject = {
    "type": "object",
    "properties": {"x": {"type": "object", "properties": {"y": {"minimum": 1, "default": None}}}},
    "additionalProperties": False,
}
SHELL = ToolSpec(name="shell", description="Run.", parameters=SCHEMA)
ASK = Message(role="user", content=(Text(text="List ☃ files."),))
REQUEST = ModelRequest(model="m", system="S", messages=(ASK,), tools=(SHELL,), temperature=0.5)
BARE_CALL = {"function": {"name": "shell", "arguments": {"command": "ls ☃"}}}
SAID: dict[str, Any] = ANSWER | {
    "message": {
        "role": "assistant",
        "content": "I look \x85 for ☃.",
        "thinking": "hm ☃",
        "tool_calls": [BARE_CALL, {"id": "own", **BARE_CALL}, BARE_CALL],
    }
}

ways = pytest.mark.parametrize("way", ["whole", "streamed"])


@pytest.fixture
def server() -> Iterator[Lookalike]:
    with serving(ENDPOINT) as look:
        yield look


def live(server: Lookalike) -> SdkClient:
    return client(base_url=server.url)


def ignore(_: ModelDelta) -> None:
    pass


def on_delta(way: str) -> Any:
    return None if way == "whole" else ignore


def test_a_streamed_answer_is_the_same_as_one_that_is_not(server: Lookalike) -> None:
    server.answers = [streamed(lines(SAID)), Answer(200, SAID)]
    deltas: list[ModelDelta] = []
    turn = live(server).complete(REQUEST, deltas.append)
    assert turn == live(server).complete(REQUEST)
    assert turn.usage == Usage(input=7, output=2)
    assert turn.stop is StopReason.TOOL_USE
    calls = Message(role="assistant", content=turn.content).tool_calls
    assert [d.call_id for d in deltas if d.kind == "call_start"] == [call.id for call in calls]
    assert "".join(d.text for d in deltas if d.kind == "text") == "I look \x85 for ☃."
    assert {call.arguments for call in calls} == {'{"command": "ls ☃"}'}


@ways
def test_ids_that_the_server_does_not_give_are_unique_over_a_run(
    way: str, server: Lookalike
) -> None:
    messages: tuple[Message, ...] = (ASK,)
    for _ in range(3):
        said = SAID | {"message": SAID["message"] | {"tool_calls": [BARE_CALL, BARE_CALL]}}
        server.answers = [Answer(200, said) if way == "whole" else streamed(lines(said))]
        request = ModelRequest(model="m", system=None, messages=messages, tools=(SHELL,))
        turn = live(server).complete(request, on_delta(way))
        calls = [block for block in turn.content if isinstance(block, ToolCall)]
        results = tuple(ToolResult(call_id=c.id, name=c.name, content="x") for c in calls)
        messages += (
            Message(role="assistant", content=turn.content),
            Message(role="user", content=results),
        )
    ids = [call.id for message in messages for call in message.tool_calls]
    assert len(set(ids)) == len(ids) == 6
    request = ModelRequest(model="m", system=None, messages=messages, tools=(SHELL,))
    assert live(server).complete(request, on_delta(way)).stop is StopReason.END_TURN
    said_again = [m for m in server.bodies[-1]["messages"] if m["role"] == "tool"]
    assert [message["tool_call_id"] for message in said_again] == ids


def test_ids_are_the_same_when_the_same_is_answered_again_and_others_at_another_time(
    server: Lookalike,
) -> None:
    later = SAID | {"created_at": "2026-11-20T10:00:01Z"}
    server.answers = [Answer(200, SAID), Answer(200, SAID), Answer(200, later)]
    first, again, other = (live(server).complete(REQUEST) for _ in range(3))
    assert first == again
    assert first.content[-1] != other.content[-1]


@ways
def test_the_body_that_arrives_is_the_one_the_dialect_made(way: str, server: Lookalike) -> None:
    live(server).complete(REQUEST, on_delta(way))
    assert server.bodies == [OllamaChat().to_request(REQUEST, stream=way == "streamed")]
    assert server.bodies[0]["tools"][0]["function"]["parameters"] == SCHEMA


def test_a_key_is_sent_when_there_is_one(
    server: Lookalike, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OLLAMA_API_KEY", "key-of-the-environment")
    client(base_url=server.url, api_key="key-of-this-test").complete(REQUEST)
    client(base_url=server.url).complete(REQUEST)
    assert [h.get("authorization") for h in server.headers] == ["Bearer key-of-this-test", None]


def test_the_catalog_makes_the_client(server: Lookalike) -> None:
    model = ModelConfig(provider="ollama", name="m", base_url=server.url)
    assert live_client(model, "k").complete(REQUEST).content == (Text(text="Hi ☃ \x85 there"),)


CALL = ToolCall(id="a", name="shell", arguments="{}")
ASKED = Message(role="assistant", content=(CALL,))
ANSWERED = Message(role="user", content=(ToolResult(call_id="a", name="shell", content="x"),))


@ways
@pytest.mark.parametrize(
    ("messages", "why"), [((ASK, ASKED, ASK), "unanswered"), ((ANSWERED,), "without its call")]
)
def test_a_broken_conversation_is_refused(
    way: str, messages: tuple[Message, ...], why: str, server: Lookalike
) -> None:
    with pytest.raises(ModelCallError, match=f"HTTP 400: .*{why}"):
        live(server).complete(ModelRequest("m", None, messages), on_delta(way))


@ways
@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (400, {"error": "because"}, ModelCallError),
        (400, {"error": "prompt too long; exceeded max context length (because)"}, None),
        (400, ["because"], ModelCallError),
        (401, {"error": "because"}, AuthenticationError),
        (404, {"error": "model 'm' not found, because"}, ModelCallError),
        (429, {"error": "because"}, RateLimitedError),
        (500, {"error": "because"}, OverloadedError),
        (503, "<html>because</html>", OverloadedError),
        (400, {"error": {"type": "replay_miss", "message": "because"}}, ReplayMissError),
    ],
)
def test_refusals_are_told_apart(
    way: str, status: int, body: Any, expected: type[ModelCallError] | None, server: Lookalike
) -> None:
    server.answers = [Answer(status, body)]
    with pytest.raises(ModelCallError, match="because") as caught:
        live(server).complete(REQUEST, on_delta(way))
    assert type(caught.value) is (expected or ContextExceededError)
    assert len(server.bodies) == 1


def test_an_error_in_the_middle_of_a_stream_ends_it(server: Lookalike) -> None:
    server.answers = [streamed([*lines(SAID)[:3], {"error": "runner stopped"}])]
    with pytest.raises(OverloadedError, match="runner stopped"):
        live(server).complete(REQUEST, ignore)


def test_a_connection_that_breaks_within_a_stream_is_no_answer(server: Lookalike) -> None:
    server.answers = [streamed(lines(SAID)[:3], is_cut=True)]
    with pytest.raises(OverloadedError, match="cannot reach"):
        live(server).complete(REQUEST, ignore)


def test_a_stream_that_ends_early_is_malformed(server: Lookalike) -> None:
    server.answers = [streamed(lines(SAID)[:3])]
    with pytest.raises(MalformedAnswerError, match="ended before"):
        live(server).complete(REQUEST, ignore)


@ways
@pytest.mark.parametrize("body", ["<html>hello</html>", "[]", '{"object": "list"}'])
def test_an_answer_in_another_format_is_malformed(way: str, body: str, server: Lookalike) -> None:
    server.answers = [Answer(200, body)]
    with pytest.raises(MalformedAnswerError, match="check that"):
        live(server).complete(REQUEST, on_delta(way))


@ways
def test_an_endpoint_where_nothing_listens_is_named(way: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(OverloadedError, match=f"cannot reach http://127.0.0.1:{port}.*refused"):
        client(base_url=f"http://127.0.0.1:{port}").complete(REQUEST, on_delta(way))


@ways
def test_an_error_of_ours_below_the_package_comes_out_as_itself(
    way: str, server: Lookalike, tmp_path: Path
) -> None:
    def refuse(_: object) -> None:
        raise CassetteError("line 3 is damaged")

    recorder = vcr.VCR(before_record_request=refuse)
    with (
        recorder.use_cassette(str(tmp_path / "c.yaml")),
        pytest.raises(CassetteError, match="line 3 is damaged"),
    ):
        live(server).complete(REQUEST, on_delta(way))
    assert server.bodies == []


def test_a_base_url_that_is_none_is_named() -> None:
    with pytest.raises(ConfigurationError, match="base_url 'http://h:x' is no URL"):
        client(base_url="http://h:x")

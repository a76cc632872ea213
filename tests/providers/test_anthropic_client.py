"""Answers of Anthropic's endpoint, streamed and not, through the vendor's SDK over real HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from harness.errors import (
    ContextExceededError,
    MalformedAnswerError,
    ModelCallError,
    OverloadedError,
    RateLimitedError,
)
from harness.providers.anthropic_client import client
from harness.providers.anthropic_messages import AnthropicMessages
from harness.providers.sdk_client import SdkClient
from harness.schema.messages import (
    Message,
    StopReason,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
    Usage,
    VendorBlock,
)
from harness.values import ModelDelta, ModelRequest
from tests.providers.lookalikes.anthropic import ANSWER, ENDPOINT, error, events, thinking
from tests.providers.lookalikes.server import Answer, Lookalike, serving, stream

ASK = Message(role="user", content=(Text(text="List ☃ files."),))
SHELL = ToolSpec(name="shell", description="Run.", parameters={})
REQUEST = ModelRequest(
    model="m", system="S", messages=(ASK,), tools=(SHELL,), tool_choice="shell", cache_marks=True
)
SAID: dict[str, Any] = ANSWER | {
    "content": [
        thinking("hm ☃ hm"),
        {"type": "redacted_thinking", "data": "sealed:x"},
        {"type": "text", "text": "I look for ☃."},
        {"type": "tool_use", "id": "toolu_1", "name": "shell", "input": {"command": "ls ☃"}},
    ],
    "stop_reason": "tool_use",
}


@pytest.fixture
def server() -> Iterator[Lookalike]:
    with serving(ENDPOINT) as look:
        yield look


def live(server: Lookalike) -> SdkClient:
    return client(base_url=server.url, api_key="key-1")


def ignore(_: ModelDelta) -> None:
    pass


def test_a_streamed_answer_is_the_same_as_one_that_is_not(server: Lookalike) -> None:
    server.answers = [stream(*events(SAID), names=True), Answer(200, SAID)]
    deltas: list[ModelDelta] = []
    turn = live(server).complete(REQUEST, deltas.append)
    assert turn == live(server).complete(REQUEST)
    assert turn.usage == Usage(input=7, output=2, cache_write=3, cache_read=4)
    assert turn.stop is StopReason.TOOL_USE
    assert "".join(d.text for d in deltas if d.kind == "text") == "I look for ☃."
    own = [d for d in deltas if d.call_id == "toolu_1"]
    assert [own[0].kind, own[0].text, own[-1].kind] == ["call_start", "shell", "call_done"]
    assert json.loads("".join(d.text for d in own[1:-1])) == {"command": "ls ☃"}


@pytest.mark.parametrize("on_delta", [None, ignore])
def test_what_the_model_thought_goes_back_as_it_came(on_delta: Any, server: Lookalike) -> None:
    server.answers = [stream(*events(SAID), names=True) if on_delta else Answer(200, SAID)]
    turn = live(server).complete(REQUEST, on_delta)
    result = ToolResult(call_id="toolu_1", name="shell", content="none")
    messages = (
        ASK,
        Message(role="assistant", content=turn.content),
        Message(role="user", content=(result,)),
    )
    request = ModelRequest(model="m", system=None, messages=messages, tools=(SHELL,))
    assert live(server).complete(request, on_delta).content == (Text(text="Hi ☃"),)
    assert server.bodies[1]["messages"][1]["content"] == SAID["content"]


@pytest.mark.parametrize("on_delta", [None, ignore])
def test_the_body_that_arrives_is_the_one_the_dialect_made(
    on_delta: Any, server: Lookalike
) -> None:
    shown: list[Any] = []
    live(server).complete(replace(REQUEST, on_wire=shown.append), on_delta)
    dialect = AnthropicMessages()
    assert server.bodies == shown == [dialect.to_request(REQUEST, stream=on_delta is not None)]


CALL = ToolCall(id="a", name="shell", arguments="{}")
ASKED = Message(role="assistant", content=(CALL,))
ANSWERED = Message(role="user", content=(ToolResult(call_id="a", name="shell", content="x"),))
CHANGED = VendorBlock(dialect="anthropic-messages", data=thinking("hm") | {"thinking": "ha"})
BROKEN: dict[str, tuple[tuple[Message, ...], tuple[ToolSpec, ...], str]] = {
    "unanswered": ((ASK, ASKED, ASK), (SHELL,), "unanswered tool_use"),
    "without its call": ((ASK, ANSWERED), (SHELL,), "without its tool_use"),
    "without tools": ((ASK, ASKED, ANSWERED), (), "without tools"),
    "changed thinking": (
        (ASK, Message(role="assistant", content=(CHANGED, Text(text="Hm."))), ASK),
        (),
        "was changed",
    ),
}


@pytest.mark.parametrize("on_delta", [None, ignore])
@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_conversation_is_refused(name: str, on_delta: Any, server: Lookalike) -> None:
    messages, tools, why = BROKEN[name]
    request = ModelRequest(model="m", system=None, messages=messages, tools=tools)
    with pytest.raises(ModelCallError, match=f"HTTP 400: .*{why}"):
        live(server).complete(request, on_delta)


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (error("overloaded_error"), OverloadedError),
        (error("rate_limit_error"), RateLimitedError),
        (error("invalid_request_error", "because prompt is too long"), ContextExceededError),
    ],
)
def test_an_error_in_the_middle_of_a_stream_is_told_apart(
    event: Any, expected: type[ModelCallError], server: Lookalike
) -> None:
    server.answers = [stream(*events(SAID)[:5], event, names=True)]
    deltas: list[ModelDelta] = []
    with pytest.raises(ModelCallError, match="because") as caught:
        live(server).complete(REQUEST, deltas.append)
    assert type(caught.value) is expected
    assert len(server.bodies) == 1


def test_an_overloaded_endpoint_is_told_from_a_bad_request_when_streaming(
    server: Lookalike,
) -> None:
    server.answers = [
        Answer(529, error("overloaded_error"), {"retry-after-ms": "1"}) for _ in range(3)
    ]
    with pytest.raises(OverloadedError, match="HTTP 529: because"):
        live(server).complete(REQUEST, ignore)


def test_a_connection_that_breaks_within_a_stream_is_no_answer(server: Lookalike) -> None:
    server.answers = [stream(*events(SAID)[:9], names=True, is_cut=True)]
    with pytest.raises(OverloadedError, match="cannot reach"):
        live(server).complete(REQUEST, ignore)


def test_a_stream_that_ends_early_is_malformed(server: Lookalike) -> None:
    server.answers = [stream(*events(SAID)[:9], names=True)]
    with pytest.raises(MalformedAnswerError, match="ended before"):
        live(server).complete(REQUEST, ignore)

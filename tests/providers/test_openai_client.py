"""Streaming from OpenAI's two interfaces, through the vendor's SDK over real HTTP."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest

from harness.errors import (
    AuthenticationError,
    ContextExceededError,
    MalformedAnswerError,
    ModelCallError,
    OverloadedError,
    RateLimitedError,
    ReplayMissError,
)
from harness.protocols import Dialect, Provider
from harness.providers.openai_chat import OpenAIChat
from harness.providers.openai_client import client
from harness.providers.openai_responses import OpenAIResponses
from harness.schema.messages import Message, StopReason, Text, ToolCall, ToolSpec, Usage
from harness.values import ModelDelta, ModelRequest
from tests.providers.lookalikes import openai_chat, openai_responses
from tests.providers.lookalikes.server import Answer, Lookalike, serving, stream

SHELL = ToolSpec(name="shell", description="Run.", parameters={"type": "object"})
REQUEST = ModelRequest(
    model="model-1",
    system="Be brief.",
    messages=(Message(role="user", content=(Text(text="List ☃ files."),)),),
    tools=(SHELL,),
    tool_choice="shell",
    max_output_tokens=50,
)
ARGUMENTS = '{"command": "ls ☃"}'
SAID = {
    "role": "assistant",
    "content": "I look for ☃.",
    "tool_calls": [
        {
            "id": call_id,
            "type": "function",
            "function": {"name": "shell", "arguments": ARGUMENTS},
        }
        for call_id in ("a", "b")
    ],
}
CHAT: dict[str, Any] = openai_chat.ANSWER | {
    "choices": [{"index": 0, "message": SAID, "finish_reason": "tool_calls", "logprobs": None}]
}
RESPONSE: dict[str, Any] = copy.deepcopy(openai_responses.ANSWER)
RESPONSE["output"][0]["content"][0]["text"] = "I look for ☃."
RESPONSE["output"] += [
    {"type": "function_call", "call_id": call_id, "name": "shell", "arguments": ARGUMENTS}
    for call_id in ("a", "b")
]
WHOLE = {"chat": CHAT, "responses": RESPONSE}
STREAMED = {
    "chat": openai_chat.streamed(CHAT),
    "responses": openai_responses.streamed(RESPONSE),
}
BEGUN = {
    "chat": [*openai_chat.chunks(CHAT)][:3],
    "responses": [*openai_responses.numbered(RESPONSE)][:5],
}
DIALECTS: dict[str, Dialect] = {"chat": OpenAIChat(), "responses": OpenAIResponses()}

apis = pytest.mark.parametrize("api", ["chat", "responses"])


@pytest.fixture
def server() -> Iterator[Lookalike]:
    with serving(openai_chat.CHAT, openai_responses.RESPONSES) as look:
        yield look


def provider(api: Any, server: Lookalike) -> Provider:
    return client(base_url=f"{server.url}/v1", api_key="key-1", api=api)


def ignore(_: ModelDelta) -> None:
    pass


@apis
def test_a_streamed_answer_is_the_same_as_one_that_is_not(api: str, server: Lookalike) -> None:
    server.answers = [STREAMED[api], Answer(200, WHOLE[api])]
    deltas: list[ModelDelta] = []
    streamed = provider(api, server).complete(REQUEST, deltas.append)
    assert streamed == provider(api, server).complete(REQUEST)
    assert streamed.content == (
        Text(text="I look for ☃."),
        ToolCall(id="a", name="shell", arguments=ARGUMENTS),
        ToolCall(id="b", name="shell", arguments=ARGUMENTS),
    )
    assert streamed.stop is StopReason.TOOL_USE
    assert "".join(d.text for d in deltas if d.kind == "text") == "I look for ☃."
    for call_id in ("a", "b"):
        own = [d for d in deltas if d.call_id == call_id]
        assert [own[0].kind, own[0].text, own[-1].kind] == ["call_start", "shell", "call_done"]
        assert "".join(d.text for d in own[1:-1]) == ARGUMENTS
        assert len(own) > 3


@apis
def test_the_body_that_arrives_is_the_one_the_dialect_made(api: str, server: Lookalike) -> None:
    turn = provider(api, server).complete(REQUEST, ignore)
    assert server.bodies == [DIALECTS[api].to_request(REQUEST, stream=True)]
    assert turn.content == (Text(text="Hi ☃"),)
    assert turn.usage is not None
    assert (turn.usage.input, turn.usage.output) == (7, 2)


def test_a_chat_stream_without_usage_reports_none(server: Lookalike) -> None:
    server.answers = [openai_chat.streamed(openai_chat.ANSWER, usage=False)]
    assert provider("chat", server).complete(REQUEST, ignore).usage is None


def test_keep_alive_comments_and_unknown_fields_do_no_harm(server: Lookalike) -> None:
    chunks = [chunk | {"x_server": {"a": None}} for chunk in openai_chat.chunks(CHAT)]
    parts = [part for chunk in chunks for part in (": keep-alive\n\n", chunk)]
    server.answers = [stream(*parts, end="data: [DONE]\n\n"), Answer(200, CHAT)]
    chat = provider("chat", server)
    assert chat.complete(REQUEST, ignore) == chat.complete(REQUEST)


def failed(api: str, error: Any) -> Answer:
    event = {"error": error} if api == "chat" else {"type": "error", **error}
    return stream(*BEGUN[api], event, names=api == "responses")


@apis
@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("rate_limit_exceeded", RateLimitedError),
        ("server_error", OverloadedError),
        ("invalid_api_key", AuthenticationError),
        ("context_length_exceeded", ContextExceededError),
        ("vector_store_timeout", ModelCallError),
    ],
)
def test_an_error_in_the_middle_of_a_stream_is_told_apart(
    api: str, code: str, expected: type[ModelCallError], server: Lookalike
) -> None:
    server.answers = [failed(api, {"code": code, "message": "because", "param": None})]
    with pytest.raises(ModelCallError, match="because") as caught:
        provider(api, server).complete(REQUEST, ignore)
    assert type(caught.value) is expected
    assert len(server.bodies) == 1


@apis
def test_a_content_policy_in_the_middle_of_a_stream_is_a_refusal(
    api: str, server: Lookalike
) -> None:
    server.answers = [failed(api, {"code": "content_filter", "message": "Not this."})]
    turn = provider(api, server).complete(REQUEST, ignore)
    assert turn.stop is StopReason.REFUSAL
    assert turn.usage is None


@apis
@pytest.mark.parametrize(
    ("status", "error", "expected"),
    [
        (400, {"code": "context_length_exceeded", "message": "because"}, ContextExceededError),
        (400, {"code": "replay_miss", "message": "because"}, ReplayMissError),
        (401, {"code": "invalid_api_key", "message": "because"}, AuthenticationError),
        (404, {"message": "because"}, ModelCallError),
    ],
)
def test_a_stream_that_is_refused_is_told_apart(
    api: str, status: int, error: Any, expected: type[ModelCallError], server: Lookalike
) -> None:
    server.answers = [Answer(status, {"error": error})]
    with pytest.raises(ModelCallError, match="because") as caught:
        provider(api, server).complete(REQUEST, ignore)
    assert type(caught.value) is expected
    assert len(server.bodies) == 1


@apis
def test_a_stream_that_fails_before_it_begins_is_tried_again(api: str, server: Lookalike) -> None:
    busy = Answer(429, {"error": {"message": "slow"}}, {"retry-after-ms": "1"})
    server.answers = [busy, busy]
    assert provider(api, server).complete(REQUEST, ignore).content == (Text(text="Hi ☃"),)
    server.answers = [busy, busy, busy]
    with pytest.raises(RateLimitedError, match="slow"):
        provider(api, server).complete(REQUEST, ignore)


@apis
def test_a_connection_that_breaks_in_the_middle_is_an_overload(api: str, server: Lookalike) -> None:
    server.answers = [stream(*BEGUN[api], names=api == "responses", is_cut=True)]
    with pytest.raises(OverloadedError, match=server.url):
        provider(api, server).complete(REQUEST, ignore)


@apis
@pytest.mark.parametrize(
    "rest",
    ["", "data: [DONE]\n\n", "data: {oops\n\n", "data: [1]\n\n", "data: 5\n\n", "data: null\n\n"],
)
def test_a_stream_that_is_no_whole_answer_is_malformed(
    api: str, rest: str, server: Lookalike
) -> None:
    server.answers = [stream(*BEGUN[api], rest, names=api == "responses")]
    with pytest.raises(MalformedAnswerError):
        provider(api, server).complete(REQUEST, ignore)


@apis
def test_a_server_that_does_not_stream_is_malformed(api: str, server: Lookalike) -> None:
    server.answers = [Answer(200, WHOLE[api])]
    with pytest.raises(MalformedAnswerError, match="ended before the answer did"):
        provider(api, server).complete(REQUEST, ignore)


@apis
@pytest.mark.parametrize("error", [KeyboardInterrupt(), ValueError("mine"), TimeoutError("mine")])
def test_what_the_reader_raises_comes_out_and_the_stream_is_closed(
    api: str, error: BaseException, server: Lookalike
) -> None:
    long = ": endless\n\n" * 3_000_000
    begun = [json.dumps(event) for event in BEGUN[api]]
    head = "".join(f"event: x\ndata: {event}\n\n" for event in begun)
    # Text comes right after these.
    head += "".join(
        f"data: {json.dumps(event)}\n\n"
        for event in (*openai_chat.chunks(CHAT), *openai_responses.numbered(RESPONSE))
    )
    server.answers = [Answer(200, head + long, is_stream=True)]

    def raising(_: ModelDelta) -> None:
        raise error

    with pytest.raises(type(error)) as caught:
        provider(api, server).complete(REQUEST, raising)
    assert caught.value is error
    assert server.hung_up.wait(20)


def test_cached_tokens_are_counted_apart_when_streamed_too(server: Lookalike) -> None:
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 5,
        "prompt_tokens_details": {"cached_tokens": 64},
    }
    server.answers = [openai_chat.streamed(CHAT | {"usage": usage})]
    turn = provider("chat", server).complete(REQUEST, ignore)
    assert turn.usage == Usage(input=36, output=5, cache_read=64)


def test_system_text_goes_where_the_model_wants_it(server: Lookalike) -> None:
    for role in ("system", "developer"):
        chat = client(base_url=f"{server.url}/v1", api_key="k", system_role=role)
        chat.complete(REQUEST)
        assert server.bodies[-1]["messages"][0] == {"role": role, "content": "Be brief."}
    provider("responses", server).complete(REQUEST)
    assert server.bodies[-1]["instructions"] == "Be brief."

from __future__ import annotations

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
from harness.providers.anthropic_messages import AnthropicMessages
from harness.schema.messages import StopReason, ToolCall, Usage
from harness.values import ModelDelta
from tests.providers.lookalikes.anthropic import ANSWER, error, events, thinking

SEARCH = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "x"}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [{"type": "t"}]}
REDACTED = {"type": "redacted_thinking", "data": "sealed:x"}
USE = {"type": "tool_use", "id": "toolu_1", "name": "fs_x2E_read", "input": {"path": "é"}}


def streamed(*content: dict[str, Any], **rest: Any) -> tuple[dict[str, Any], list[ModelDelta]]:
    message = ANSWER | {"content": [*content]} | rest
    assembler = AnthropicMessages().assembler()
    deltas = [delta for event in events(message) for delta in assembler.add(event)]
    assert assembler.body() == message
    return assembler.body(), deltas


def test_every_kind_of_block_comes_out_as_without_streaming() -> None:
    said = {"type": "text", "text": "I look."}
    body, deltas = streamed(thinking("hm hm"), REDACTED, SEARCH, FOUND, said, USE)
    assert deltas == [
        ModelDelta("text", "I l"),
        ModelDelta("text", "ook"),
        ModelDelta("text", "."),
        ModelDelta("call_start", "fs.read", "toolu_1"),
        *(
            ModelDelta("call_arguments", piece, "toolu_1")
            for piece in ('{"p', "ath", '": ', '"\\u', "00e", '9"}')
        ),
        ModelDelta("call_done", "", "toolu_1"),
    ]
    turn = AnthropicMessages().from_response(body)
    assert turn.content[-1] == ToolCall(id="toolu_1", name="fs.read", arguments='{"path": "é"}')


@pytest.mark.parametrize("reason", ["pause_turn", "refusal", "model_context_window_exceeded"])
def test_the_stop_reason_is_the_last_one(reason: str) -> None:
    body, _ = streamed(stop_reason=reason)
    assert body["stop_reason"] == reason
    assert AnthropicMessages().from_response(body).stop in (
        StopReason.PAUSE_TURN,
        StopReason.REFUSAL,
        StopReason.MAX_TOKENS,
    )


def test_usage_is_what_the_start_and_the_end_say_together() -> None:
    body, _ = streamed({"type": "text", "text": "Hi"})
    assert AnthropicMessages().from_response(body).usage == Usage(
        input=7, output=2, cache_write=3, cache_read=4
    )


def test_totals_at_the_end_replace_those_of_the_start() -> None:
    assembler = AnthropicMessages().assembler()
    for event in events(ANSWER):
        if event["type"] == "message_delta":
            event["usage"] = {"input_tokens": 70, "output_tokens": 20}
        assembler.add(event)
    assert AnthropicMessages().from_response(assembler.body()).usage == Usage(
        input=70, output=20, cache_write=3, cache_read=4
    )


def test_arguments_that_are_no_json_object_arrive_as_they_were_written() -> None:
    use = USE | {"input": {"INVALID_JSON": '{"path": "a'}}
    body, _ = streamed(use, stop_reason="max_tokens")
    (call,) = AnthropicMessages().from_response(body).content
    assert isinstance(call, ToolCall)
    assert call.arguments == '{"path": "a'


def test_citations_are_collected() -> None:
    assembler = AnthropicMessages().assembler()
    cited = [{"cited_text": "x"}, {"cited_text": "y"}]
    found = events(ANSWER)
    place = next(i for i, event in enumerate(found) if event["type"] == "content_block_stop")
    found[place:place] = [
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "citations_delta", "citation": citation},
        }
        for citation in cited
    ]
    for event in found:
        assembler.add(event)
    assert assembler.body() == ANSWER | {"content": [{**ANSWER["content"][0], "citations": cited}]}


@pytest.mark.parametrize("length", range(len(events(ANSWER))))
def test_a_stream_that_ends_early_is_malformed(length: int) -> None:
    assembler = AnthropicMessages().assembler()
    for event in events(ANSWER)[:length]:
        assembler.add(event)
    with pytest.raises(MalformedAnswerError, match="ended before"):
        assembler.body()


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (error("overloaded_error"), OverloadedError),
        (error("api_error"), OverloadedError),
        (error("rate_limit_error"), RateLimitedError),
        (error("authentication_error"), AuthenticationError),
        (error("invalid_request_error", "prompt is too long: 9 > 8"), ContextExceededError),
        (error("invalid_request_error"), ModelCallError),
        (error("replay_miss"), ReplayMissError),
    ],
)
def test_error_events_are_told_apart(event: Any, expected: type[ModelCallError]) -> None:
    assembler = AnthropicMessages().assembler()
    assembler.add(events(ANSWER)[0])
    with pytest.raises(ModelCallError, match=r"because|too long") as caught:
        assembler.add(event)
    assert type(caught.value) is expected


@pytest.mark.parametrize(
    ("event", "says"),
    [
        ({"type": "message_start"}, "'message' is None"),
        ({"type": "message_delta", "delta": {}}, "before its message_start"),
        ({"type": "content_block_start", "index": 0}, "'content_block'"),
        ({"type": "content_block_start", "content_block": {}}, "'index' is None"),
        ({"type": "content_block_delta", "index": 3, "delta": {}}, "never started"),
        ({"type": "content_block_stop"}, "never started"),
    ],
)
def test_events_of_another_format_are_malformed(event: Any, says: str) -> None:
    with pytest.raises(MalformedAnswerError, match=says):
        AnthropicMessages().assembler().add(event)


@pytest.mark.parametrize("delta", [{"type": "x"}, {}, {"type": "text_delta"}])
def test_pieces_that_cannot_be_kept_are_malformed(delta: Any) -> None:
    assembler = AnthropicMessages().assembler()
    assembler.add(
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    )
    with pytest.raises(MalformedAnswerError):
        assembler.add({"type": "content_block_delta", "index": 0, "delta": delta})

"""Streams as OpenAI and the servers that speak like it send them."""

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
)
from harness.providers.openai_chat import OpenAIChat
from harness.schema.messages import (
    ModelTurn,
    StopReason,
    Text,
    ToolCall,
    Usage,
    VendorBlock,
)
from harness.values import ModelDelta


def chunk(delta: dict[str, Any] | None = None, finish: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": {} if delta is None else delta, "finish_reason": finish}
    return {"id": "c-1", "object": "chat.completion.chunk", "model": "m", "choices": [choice]}


def calls(*pieces: dict[str, Any]) -> dict[str, Any]:
    return chunk({"tool_calls": [*pieces]})


def piece(
    index: int | None = None,
    call_id: str | None = None,
    name: str | None = None,
    arguments: object = None,
    **more: Any,
) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    known = {"index": index, "id": call_id}
    return {
        **{k: v for k, v in known.items() if v is not None},
        "function": {k: v for k, v in function.items() if v is not None},
        **more,
    }


END = chunk(finish="tool_calls")
USAGE: dict[str, Any] = {
    "id": "c-1",
    "choices": [],
    "usage": {"prompt_tokens": 3, "completion_tokens": 1},
}


def read(*events: dict[str, Any]) -> tuple[ModelTurn, list[ModelDelta]]:
    dialect = OpenAIChat()
    assembler = dialect.assembler()
    deltas = [delta for event in events for delta in assembler.add(event)]
    return dialect.from_response(assembler.body()), deltas


def test_text_comes_in_pieces_and_the_usage_in_a_chunk_without_choices() -> None:
    turn, deltas = read(
        chunk({"role": "assistant", "content": ""}),
        chunk({"content": "Hel"}),
        chunk({"content": "lo"}),
        chunk(finish="stop"),
        USAGE,
    )
    assert turn == ModelTurn(
        content=(Text(text="Hello"),),
        stop=StopReason.END_TURN,
        usage=Usage(input=3, output=1),
        model="m",
    )
    assert deltas == [ModelDelta("text", "Hel"), ModelDelta("text", "lo")]


def test_a_stream_without_usage_reports_none() -> None:
    turn, _ = read(chunk({"content": "x"}) | {"usage": None}, chunk(finish="stop"))
    assert turn.usage is None


def test_parallel_calls_may_come_interleaved() -> None:
    turn, deltas = read(
        calls(piece(0, "a", "shell", "", type="function")),
        calls(piece(0, arguments='{"x"')),
        calls(piece(1, "b", "read", '{"p'), piece(0, arguments=": 1}")),
        calls(piece(1, arguments='": 2}')),
        END,
    )
    assert turn.content == (
        ToolCall(id="a", name="shell", arguments='{"x": 1}'),
        ToolCall(id="b", name="read", arguments='{"p": 2}'),
    )
    assert turn.stop is StopReason.TOOL_USE
    assert deltas == [
        ModelDelta("call_start", "shell", "a"),
        ModelDelta("call_arguments", '{"x"', "a"),
        ModelDelta("call_start", "read", "b"),
        ModelDelta("call_arguments", '{"p', "b"),
        ModelDelta("call_arguments", ": 1}", "a"),
        ModelDelta("call_arguments", '": 2}', "b"),
        ModelDelta("call_done", call_id="a"),
        ModelDelta("call_done", call_id="b"),
    ]


BOTH = (
    ToolCall(id="a", name="shell", arguments='{"x": 1}'),
    ToolCall(id="b", name="read", arguments="{}"),
)


@pytest.mark.parametrize(
    "events",
    [
        pytest.param(
            [calls(piece(0, "a", "shell", '{"x": 1}'), piece(1, "b", "read", "{}"))],
            id="in one chunk",
        ),
        pytest.param(
            [calls(piece(1, "a", "shell", '{"x": 1}')), calls(piece(4, "b", "read", "{}"))],
            id="indexes with gaps",
        ),
        pytest.param(
            [
                calls(piece(None, "a", "shell", '{"x"')),
                calls(piece(None, None, None, ": 1}")),
                calls(piece(None, "b", "read", "{}")),
            ],
            id="no indexes",
        ),
        pytest.param(
            [calls(piece(0, "a", "shell", '{"x": 1}')), calls(piece(0, "b", "read", "{}"))],
            id="one index for all",
        ),
        pytest.param(
            [
                calls(piece(0, "a", "shell", '{"x"')),
                calls(piece(0, "a", "shell", ": 1}")),
                calls(piece(1, "b", "read", "{")),
                calls(piece(1, "b", "read", "}")),
            ],
            id="id and name with each piece",
        ),
        pytest.param(
            [
                calls(piece(0, "a", "shell")),
                calls({"index": 0, "id": None, "type": None, "function": {"arguments": None}}),
                calls(piece(0, "", "", '{"x": 1}')),
                calls(piece(1, "b", "read", "{}")),
                chunk({"content": None, "tool_calls": None, "refusal": None}),
            ],
            id="nulls and empty texts",
        ),
    ],
)
def test_calls_as_different_servers_send_them(events: list[dict[str, Any]]) -> None:
    turn, deltas = read(*events, END)
    assert turn.content == BOTH
    assert [delta.call_id for delta in deltas if delta.kind == "call_start"] == ["a", "b"]
    for call in BOTH:
        own = [d.text for d in deltas if d.kind == "call_arguments" and d.call_id == call.id]
        assert "".join(own) == call.arguments


def test_calls_without_ids_get_the_same_made_ones_as_without_streaming() -> None:
    turn, deltas = read(
        calls(piece(0, None, "shell", "{}")), calls(piece(1, "", "read", "{}")), END
    )
    assert [call.id for call in turn.content if isinstance(call, ToolCall)] == ["c-1_0", "c-1_1"]
    assert {delta.call_id for delta in deltas} == {"c-1_0", "c-1_1"}
    whole: dict[str, Any] = {"id": "c-1", "model": "m"}
    wire = [{"function": {"name": name, "arguments": "{}"}} for name in ("shell", "read")]
    choice: dict[str, Any] = {"message": {"tool_calls": wire}, "finish_reason": "tool_calls"}
    assert OpenAIChat().from_response(whole | {"choices": [choice]}) == turn


def test_a_refusal_streams_as_text_and_ends_as_a_refusal() -> None:
    turn, deltas = read(
        chunk({"refusal": "I will"}), chunk({"refusal": " not."}), chunk(finish="stop")
    )
    assert turn.content == (Text(text="I will not."),)
    assert turn.stop is StopReason.REFUSAL
    assert "".join(delta.text for delta in deltas) == "I will not."


def test_reasoning_of_a_local_server_is_kept_and_not_shown() -> None:
    turn, deltas = read(
        chunk({"reasoning_content": "h"}),
        chunk({"reasoning_content": "m", "content": None}),
        chunk({"content": "Yes"}, "stop"),
    )
    assert turn.content == (
        VendorBlock(dialect="openai-chat", data={"reasoning_content": "hm"}),
        Text(text="Yes"),
    )
    assert deltas == [ModelDelta("text", "Yes")]


def test_chunks_without_choices_and_other_choices_are_passed_over() -> None:
    other = {"index": 1, "delta": {"content": "no"}, "finish_reason": "length"}
    turn, _ = read(
        {"id": "", "choices": [], "prompt_filter_results": [{"prompt_index": 0}]},
        {"id": "c-1", "choices": None},
        {"id": "c-1", "choices": [other]},
        chunk({"content": "yes"}),
        chunk(finish="stop"),
    )
    assert turn.content == (Text(text="yes"),)


def test_a_body_is_what_comes_without_streaming() -> None:
    assembler = OpenAIChat().assembler()
    for event in (
        chunk({"role": "assistant", "content": None}) | {"service_tier": "default"},
        calls(piece(0, "a", "shell", '{"x": 1}', type="function")),
        END,
        USAGE,
    ):
        assembler.add(event)
    assert assembler.body() == {
        "id": "c-1",
        "object": "chat.completion",
        "model": "m",
        "service_tier": "default",
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [
                        {
                            "id": "a",
                            "type": "function",
                            "function": {"name": "shell", "arguments": '{"x": 1}'},
                        }
                    ],
                },
                "finish_reason": "tool_calls",
            }
        ],
        "usage": USAGE["usage"],
    }


@pytest.mark.parametrize(
    "events",
    [[], [chunk({"content": "cut"})], [USAGE], [calls(piece(0, "a", "shell", '{"x"'))]],
)
def test_a_stream_that_ends_before_its_answer_is_malformed(events: list[dict[str, Any]]) -> None:
    with pytest.raises(MalformedAnswerError, match="ended before the answer did"):
        read(*events)


@pytest.mark.parametrize(
    "event",
    [
        {"choices": ["x"]},
        chunk({"tool_calls": ["x"]}),
        calls(piece(0, "a")),
        calls(piece(0, "a", "shell", {"x": 1})),
        calls({"index": 0, "id": 5, "function": {"name": "shell"}}),
    ],
)
def test_a_chunk_in_another_format_is_malformed(event: dict[str, Any]) -> None:
    with pytest.raises(MalformedAnswerError):
        read(event, END)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        ({"code": "rate_limit_exceeded", "message": "slow"}, RateLimitedError),
        ({"type": "server_error", "message": "sorry"}, OverloadedError),
        ({"code": 503, "type": "unavailable_error", "message": "loading"}, OverloadedError),
        ({"code": "invalid_api_key", "message": "who"}, AuthenticationError),
        ({"code": "context_length_exceeded", "message": "long"}, ContextExceededError),
        ({"code": 400, "message": "the request exceeds the context size"}, ContextExceededError),
        ({"code": "odd", "message": "because"}, ModelCallError),
        ("because", ModelCallError),
    ],
)
def test_an_error_in_a_stream_is_told_apart(error: Any, expected: type[ModelCallError]) -> None:
    with pytest.raises(ModelCallError) as caught:
        read(chunk({"content": "x"}), {"error": error})
    assert type(caught.value) is expected
    assert (error if isinstance(error, str) else error["message"]) in str(caught.value)


def test_reasoning_details_come_in_pieces_and_go_back_whole() -> None:
    def details(*entries: dict[str, Any]) -> dict[str, Any]:
        return chunk({"reasoning_details": [*entries]})

    text = {"type": "reasoning.text", "index": 0}
    sealed = {"type": "reasoning.encrypted", "data": "zz", "id": "r"}
    turn, _ = read(
        details(text | {"text": "I ", "signature": None, "format": "f"}),
        details(
            text | {"text": "look."}, {"type": "reasoning.summary", "summary": "x", "index": 0}
        ),
        details(text | {"signature": "s"}),
        details(sealed),
        details(sealed),
        chunk({"content": "Hi."}, "stop"),
    )
    whole = [
        text | {"text": "I look.", "signature": "s", "format": "f"},
        {"type": "reasoning.summary", "summary": "x", "index": 0},
        sealed,
        sealed,
    ]
    assert turn.content == (
        VendorBlock(dialect="openai-chat", data={"reasoning_details": [*whole]}),
        Text(text="Hi."),
    )


def test_a_streamed_call_keeps_its_signature() -> None:
    signed = {"extra_content": {"google": {"thought_signature": "c2ln"}}}
    turn, deltas = read(calls(piece(0, "a", "shell", "{}", **signed)), END)
    assert turn.content == (
        VendorBlock(dialect="openai-chat", data={"next_call": signed}),
        ToolCall(id="a", name="shell", arguments="{}"),
    )
    assert [delta.kind for delta in deltas] == ["call_start", "call_arguments", "call_done"]


def test_a_choice_that_ends_in_an_error_is_told_apart() -> None:
    broken = chunk({"content": ""}, "error")
    broken["choices"][0]["error"] = {"code": 502, "message": "Upstream failed"}
    with pytest.raises(OverloadedError, match="Upstream failed"):
        read(chunk({"content": "x"}), broken)

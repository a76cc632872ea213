from __future__ import annotations

import copy
from typing import Any

import pytest

from harness.errors import MalformedAnswerError, OverloadedError
from harness.providers.anthropic_messages import AnthropicMessages
from harness.schema.messages import (
    Block,
    Message,
    StopReason,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
    Usage,
    VendorBlock,
)
from harness.values import ModelRequest

ASK = Message(role="user", content=(Text(text="Go."),))


def to_request(request: ModelRequest, dialect: AnthropicMessages | None = None) -> dict[str, Any]:
    return (dialect or AnthropicMessages()).to_request(request)


def request(*messages: Message, **changes: Any) -> ModelRequest:
    return ModelRequest(model="m", messages=messages or (ASK,), **{"system": None, **changes})


def user(*content: Block) -> Message:
    return Message(role="user", content=content)


def assistant(*content: Block) -> Message:
    return Message(role="assistant", content=content)


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


def answer(*content: dict[str, Any], stop: object = "end_turn", **rest: Any) -> dict[str, Any]:
    return {"type": "message", "model": "m-2026", "content": [*content], "stop_reason": stop} | rest


def test_results_come_first_and_neighbours_of_one_role_are_merged() -> None:
    messages = to_request(
        request(
            ASK,
            assistant(
                Text(text="I look."),
                ToolCall(id="a", name="shell", arguments='{"b": 1, "a": null}'),
            ),
            user(
                Text(text="Early."),
                ToolResult(call_id="a", name="shell", content="x"),
                Text(text=""),
            ),
            user(Text(text="Go on.")),
        )
    )["messages"]
    assert messages == [
        {"role": "user", "content": [text("Go.")]},
        {
            "role": "assistant",
            "content": [
                text("I look."),
                {"type": "tool_use", "id": "a", "name": "shell", "input": {"b": 1, "a": None}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "a", "content": "x"},
                text("Early."),
                text("Go on."),
            ],
        },
    ]


def test_failed_and_empty_results() -> None:
    messages = to_request(
        request(user(ToolResult(call_id="a", name="shell", content="", is_error=True)))
    )["messages"]
    # Anthropic: "content cannot be empty if `is_error` is true".
    failed = {"type": "tool_result", "tool_use_id": "a", "is_error": True}
    assert messages[0]["content"] == [failed | {"content": "The tool failed without a message."}]


def test_a_tool_that_worked_and_said_nothing_sends_nothing() -> None:
    messages = to_request(request(user(ToolResult(call_id="a", name="shell", content=""))))[
        "messages"
    ]
    assert messages[0]["content"] == [{"type": "tool_result", "tool_use_id": "a"}]


def test_citations_are_kept_and_go_back_with_their_text() -> None:
    quoted = {"type": "char_location", "cited_text": "x", "document_index": 0}
    block: dict[str, Any] = {"type": "text", "text": "So it is.", "citations": [quoted]}
    plain: dict[str, Any] = {"type": "text", "text": "Look:", "citations": None}
    turn = AnthropicMessages().from_response({"content": [plain, block], "stop_reason": "end_turn"})
    answered = assistant(*turn.content)
    assert answered.text == "Look:So it is."
    assert to_request(request(ASK, answered))["messages"][1]["content"] == [text("Look:"), block]


def test_citations_whose_text_is_gone_are_left_out() -> None:
    quote = VendorBlock(dialect="anthropic-messages", data={"next_block": {"citations": [{}]}})
    messages = to_request(request(ASK, assistant(quote), user(Text(text="Well?"))))["messages"]
    assert messages == [{"role": "user", "content": [text("Go."), text("Well?")]}]
    messages = to_request(request(ASK, assistant(Text(text="Hm."), quote)))["messages"]
    assert messages[1]["content"] == [text("Hm.")]


def test_a_blank_answer_is_left_out() -> None:
    messages = to_request(request(ASK, assistant(Text(text=" \n")), user(Text(text="Well?"))))[
        "messages"
    ]
    assert messages == [{"role": "user", "content": [text("Go."), text("Well?")]}]


def test_parameters_are_sent_and_absent_ones_are_not() -> None:
    spec = ToolSpec(name="shell", description="Run.", parameters={"type": "object"})
    body = to_request(request(system="S", tools=(spec,), temperature=0.0, max_output_tokens=9))
    assert {key: value for key, value in body.items() if key != "messages"} == {
        "model": "m",
        "max_tokens": 9,
        "system": "S",
        "tools": [{"name": "shell", "description": "Run.", "input_schema": {"type": "object"}}],
        "temperature": 0.0,
    }
    assert set(to_request(request(system=" "))) == {
        "model",
        "max_tokens",
        "messages",
    }


@pytest.mark.parametrize(
    "raw",
    ["", "{oops", "[1]", "null", '{"x": NaN}', '{"x": 1e999}', '{"x": "\\ud800"}', "[" * 9999],
)
def test_arguments_that_are_no_json_object_travel_whole(raw: str) -> None:
    dialect = AnthropicMessages()
    call = ToolCall(id="a", name="shell", arguments=raw)
    block = to_request(request(ASK, assistant(call)))["messages"][1]["content"][0]
    assert block["input"] == {"INVALID_JSON": raw}
    assert dialect.from_response(answer(block, stop="tool_use")).content == (call,)


def test_an_answer_keeps_thinking_whole_and_in_place() -> None:
    dialect = AnthropicMessages()
    thinking = {"type": "thinking", "thinking": "hm", "signature": "s=="}
    redacted = {"type": "redacted_thinking", "data": "zz"}
    call = {"type": "tool_use", "id": "a", "name": "shell", "input": {"z": "é", "a": [1.0, None]}}
    turn = dialect.from_response(answer(thinking, redacted, text("ok"), call, stop="tool_use"))
    assert turn.content == (
        VendorBlock(dialect="anthropic-messages", data=thinking),
        VendorBlock(dialect="anthropic-messages", data=redacted),
        Text(text="ok"),
        ToolCall(id="a", name="shell", arguments='{"z": "é", "a": [1.0, null]}'),
    )
    body = to_request(request(ASK, assistant(*turn.content)))
    assert body["messages"][1]["content"] == [thinking, redacted, text("ok"), call]


def test_blocks_of_another_vendor_are_left_out() -> None:
    other = VendorBlock(dialect="openai-chat", data={"reasoning_content": "hm"})
    body = to_request(request(ASK, assistant(other, Text(text="Yes"))))
    assert body["messages"][1]["content"] == [text("Yes")]


@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("end_turn", StopReason.END_TURN),
        ("tool_use", StopReason.TOOL_USE),
        ("max_tokens", StopReason.MAX_TOKENS),
        ("model_context_window_exceeded", StopReason.MAX_TOKENS),
        ("stop_sequence", StopReason.STOP_SEQUENCE),
        ("pause_turn", StopReason.PAUSE_TURN),
        ("refusal", StopReason.REFUSAL),
    ],
)
def test_stop_reasons(reason: str, stop: StopReason) -> None:
    assert AnthropicMessages().from_response(answer(stop=reason)).stop is stop


def test_usage_has_four_buckets() -> None:
    usage = {
        "input_tokens": 1,
        "output_tokens": 2,
        "cache_creation_input_tokens": 3,
        "cache_read_input_tokens": 4,
        "service_tier": "standard",
    }
    assert AnthropicMessages().from_response(answer(usage=usage)).usage == Usage(
        input=1, output=2, cache_write=3, cache_read=4
    )
    assert AnthropicMessages().from_response(
        answer(usage={"input_tokens": 0, "output_tokens": 2, "cache_read_input_tokens": None})
    ).usage == Usage(input=0, output=2)


@pytest.mark.parametrize("usage", [None, {}, "x"])
def test_usage_that_is_not_reported_is_none(usage: object) -> None:
    assert AnthropicMessages().from_response(answer(usage=usage)).usage is None


def test_half_a_surrogate_pair_in_a_request_becomes_a_question_mark() -> None:
    body = to_request(request(user(Text(text="file \udcff"))))
    assert body["messages"][0]["content"] == [text("file ?")]


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ({}, "'content' is None"),
        (answer(stop=None), "'stop_reason' is None"),
        (answer(stop="eos"), "'eos'"),
        (answer({"type": "text"}), "'text' is None"),
        (answer({"type": "tool_use", "id": "a", "name": "n", "input": "{}"}), "'input' is '{}'"),
        (answer({"type": "tool_use", "name": "n", "input": {}}), "'id' is None"),
        ({"content": ["x"], "stop_reason": "end_turn"}, "'x'"),
    ],
)
def test_an_answer_in_another_format_is_named(body: dict[str, Any], names: str) -> None:
    with pytest.raises(MalformedAnswerError) as caught:
        AnthropicMessages().from_response(body)
    assert names in str(caught.value)


PLAIN: dict[str, Any] = {
    "model": "m",
    "max_tokens": 5,
    "system": [{"type": "text", "text": "S"}],
    "tools": [{"name": "t", "input_schema": {"properties": {"x": {"default": None}}}}],
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "Go."}]},
        {
            "role": "assistant",
            "content": [
                {
                    "type": "tool_use",
                    "id": "a",
                    "name": "t",
                    "input": {"x": None, "cache_control": None},
                },
                {"type": "tool_use", "id": "b", "name": "t", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "a",
                    "content": [{"type": "text", "text": "done"}],
                },
                {"type": "tool_result", "tool_use_id": "b"},
            ],
        },
    ],
}
MARK = {"cache_control": {"type": "ephemeral"}}


def respelled() -> dict[str, Any]:
    """PLAIN with cache marks, strings for text blocks and explicit nulls."""
    body = copy.deepcopy(PLAIN)
    body |= {"system": "S", "stream": False, "metadata": None, **MARK}
    body["tools"][0] |= {"description": None, **MARK}
    first, second, third = body["messages"]
    first["content"] = "Go."
    second["content"][0] |= {"caller": None, **MARK}
    third["content"][0] |= {"content": "done", "is_error": False, **MARK}
    third["content"][1] |= {"content": "", "is_error": None}
    return body


def test_spellings_that_mean_the_same_split_the_same() -> None:
    dialect = AnthropicMessages()
    assert dialect.split(respelled()) == dialect.split(PLAIN)
    marked = copy.deepcopy(PLAIN)
    marked["system"][0] |= MARK
    marked["messages"][2]["content"][0]["content"][0] |= MARK
    assert dialect.split(marked) == dialect.split(PLAIN)
    assert dialect.split(PLAIN) == (
        {key: value for key, value in PLAIN.items() if key != "messages"},
        PLAIN["messages"],
    )


def test_split_leaves_the_body_alone() -> None:
    body = respelled()
    AnthropicMessages().split(body)
    assert body == respelled()


@pytest.mark.parametrize(
    "change",
    [
        lambda b: b.update(max_tokens=6),
        lambda b: b.update(stream=True),
        lambda b: b.update(system="T"),
        lambda b: b["messages"][0].update(content="Go!"),
        lambda b: b["messages"][1]["content"][0].update(input={}),
        lambda b: b["messages"][2]["content"][0].update(is_error=True),
        lambda b: b["tools"][0].update(input_schema={"properties": {"x": {}}}),
    ],
)
def test_what_changes_the_question_changes_the_split(change: Any) -> None:
    body = copy.deepcopy(PLAIN)
    change(body)
    assert AnthropicMessages().split(body) != AnthropicMessages().split(PLAIN)


@pytest.mark.parametrize("messages", [None, "x", [1], {}])
def test_a_body_without_proper_messages_is_all_parameters(messages: object) -> None:
    body = {"model": "m", "messages": messages, "metadata": None}
    kept = {"model": "m", "messages": messages} if messages is not None else {"model": "m"}
    assert AnthropicMessages().split(body) == (kept, [])  # type: ignore[arg-type]


def test_odd_values_at_known_places_are_kept() -> None:
    body: dict[str, Any] = {
        "system": 1,
        "tools": ["x"],
        "messages": [{"role": "user", "content": 3}, {"role": "user", "content": ["y"]}],
    }
    parameters, messages = AnthropicMessages().split(body)
    assert parameters == {"system": 1, "tools": ["x"]}
    assert messages == body["messages"]


def test_an_error_that_a_gateway_puts_into_an_answer_is_told_apart() -> None:
    error: dict[str, Any] = {"type": "overloaded_error", "message": "Overloaded"}
    with pytest.raises(OverloadedError, match="Overloaded"):
        AnthropicMessages().from_response({"type": "error", "error": error})

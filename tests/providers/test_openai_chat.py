from __future__ import annotations

import copy
from typing import Any

import pytest

from harness.errors import MalformedAnswerError, RateLimitedError
from harness.providers.openai_chat import OpenAIChat
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
from harness.values import ModelRequest

ASK = Message(role="user", content=(Text(text="Go."),))


def to_request(request: ModelRequest, dialect: OpenAIChat | None = None) -> dict[str, Any]:
    return (dialect or OpenAIChat()).to_request(request)


def request(*messages: Message, **changes: Any) -> ModelRequest:
    return ModelRequest(model="m", messages=messages or (ASK,), **{"system": None, **changes})


def answer(message: dict[str, Any], finish: object = "stop", **rest: Any) -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    return {"id": "c", "model": "m-2026", "choices": [choice], **rest}


def wire_call(call_id: str, arguments: str) -> dict[str, Any]:
    return {
        "id": call_id,
        "type": "function",
        "function": {"name": "shell", "arguments": arguments},
    }


def test_a_user_turn_becomes_one_tool_message_per_result_and_then_its_text() -> None:
    body = to_request(
        request(
            ASK,
            Message(
                role="assistant",
                content=(
                    Text(text="I look."),
                    ToolCall(id="a", name="shell", arguments='{"command": "ls"'),
                    ToolCall(id="b", name="shell", arguments="{}"),
                ),
            ),
            Message(
                role="user",
                content=(
                    ToolResult(call_id="a", name="shell", content="broken", is_error=True),
                    ToolResult(call_id="b", name="shell", content=""),
                    Text(text="Go on."),
                    Text(text="Quickly."),
                ),
            ),
            system="Be brief.",
        )
    )
    assert body["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Go."},
        {
            "role": "assistant",
            "content": "I look.",
            # Servers that read them again refuse arguments that are no JSON.
            "tool_calls": [
                wire_call("a", '{"INVALID_JSON": "{\\"command\\": \\"ls\\""}'),
                wire_call("b", "{}"),
            ],
        },
        {"role": "tool", "tool_call_id": "a", "content": "broken"},
        {"role": "tool", "tool_call_id": "b", "content": ""},
        {"role": "user", "content": "Go on.\n\nQuickly."},
    ]


def test_parameters_are_sent_and_absent_ones_are_not() -> None:
    spec = ToolSpec(name="shell", description="Run.", parameters={"type": "object"})
    assert to_request(request(tools=(spec,), temperature=0.0, max_output_tokens=9)) == {
        "model": "m",
        "messages": [{"role": "user", "content": "Go."}],
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "shell",
                    "description": "Run.",
                    "parameters": {"type": "object"},
                },
            }
        ],
        "max_completion_tokens": 9,
        "temperature": 0.0,
    }
    assert set(to_request(request())) == {"model", "messages", "max_completion_tokens"}


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        ("auto", None),
        ("required", "required"),
        ("none", "none"),
        ("shell", {"type": "function", "function": {"name": "shell"}}),
    ],
)
def test_tool_choice(choice: str, sent: object) -> None:
    spec = ToolSpec(name="shell", description="Run.", parameters={"type": "object"})
    body = to_request(request(tools=(spec,), tool_choice=choice))
    assert body.get("tool_choice") == sent
    assert body["tools"]
    assert "tool_choice" not in to_request(request(tool_choice=choice))


def test_a_stream_asks_for_its_usage_and_changes_nothing_else() -> None:
    plain = request(system="S")
    assert OpenAIChat().to_request(plain, stream=True) == to_request(plain) | {
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_cache_marks_are_not_sent() -> None:
    assert to_request(request(cache_marks=True)) == to_request(request())


def test_names_that_the_vendor_refuses_are_spelled_so_that_it_takes_them() -> None:
    spec = ToolSpec(name="fs.read", description="Read.", parameters={})
    call = ToolCall(id="a", name="fs.read", arguments="{}")
    body = to_request(
        request(Message(role="assistant", content=(call,)), tools=(spec,), tool_choice="fs.read")
    )
    wire = body["messages"][0]["tool_calls"][0]
    names = {
        body["tools"][0]["function"]["name"],
        body["tool_choice"]["function"]["name"],
        wire["function"]["name"],
    }
    assert names == {"fs_x2E_read"}
    assert OpenAIChat().from_response(answer({"tool_calls": [wire]})).content == (call,)


def test_system_text_can_go_under_the_developer_role() -> None:
    body = to_request(request(system="S"), OpenAIChat(system_role="developer"))
    assert body["messages"][0] == {"role": "developer", "content": "S"}


def test_blocks_of_another_vendor_are_left_out_and_own_ones_are_sent_back() -> None:
    own = VendorBlock(dialect="openai-chat", data={"reasoning_content": "hm"})
    other = VendorBlock(dialect="anthropic-messages", data={"type": "thinking"})
    image = VendorBlock(
        dialect="openai-chat", data={"type": "image_url", "image_url": {"url": "data:x"}}
    )
    messages = to_request(
        request(
            Message(role="user", content=(Text(text="See"), image, other)),
            Message(role="assistant", content=(other, own, Text(text="Yes"))),
        )
    )["messages"]
    assert messages == [
        {"role": "user", "content": [{"type": "text", "text": "See"}, image.data]},
        {"role": "assistant", "content": "Yes", "reasoning_content": "hm"},
    ]


def test_an_answer_with_calls_keeps_their_arguments_as_written() -> None:
    turn = OpenAIChat().from_response(
        answer(
            {
                "content": None,
                "refusal": None,
                "tool_calls": [wire_call("a", '{"n": 1.0,  "n": 2}'), wire_call("b", "{oops")],
            },
            "tool_calls",
            usage={
                "prompt_tokens": 100,
                "completion_tokens": 5,
                "prompt_tokens_details": {"cached_tokens": 64, "audio_tokens": 0},
            },
        )
    )
    assert turn.content == (
        ToolCall(id="a", name="shell", arguments='{"n": 1.0,  "n": 2}'),
        ToolCall(id="b", name="shell", arguments="{oops"),
    )
    assert turn.stop is StopReason.TOOL_USE
    assert turn.usage == Usage(input=36, output=5, cache_read=64)
    assert turn.model == "m-2026"


def test_reasoning_of_a_local_server_survives_the_way_there_and_back() -> None:
    dialect = OpenAIChat()
    turn = dialect.from_response(
        answer({"content": "Yes", "reasoning_content": "hm", "annotations": [], "audio": None})
    )
    back = to_request(request(ASK, Message(role="assistant", content=turn.content)))
    assert back["messages"][1] == {
        "role": "assistant",
        "content": "Yes",
        "reasoning_content": "hm",
    }


@pytest.mark.parametrize(
    ("finish", "stop"),
    [
        ("stop", StopReason.END_TURN),
        ("tool_calls", StopReason.TOOL_USE),
        ("function_call", StopReason.TOOL_USE),
        ("length", StopReason.MAX_TOKENS),
        ("content_filter", StopReason.REFUSAL),
    ],
)
def test_finish_reasons(finish: str, stop: StopReason) -> None:
    assert OpenAIChat().from_response(answer({"content": "x"}, finish)).stop is stop


def test_a_refusal_is_text_that_ends_with_a_refusal() -> None:
    turn = OpenAIChat().from_response(answer({"content": None, "refusal": "I will not."}))
    assert turn.content == (Text(text="I will not."),)
    assert turn.stop is StopReason.REFUSAL


def test_an_empty_answer_has_no_content() -> None:
    assert OpenAIChat().from_response(answer({"content": ""})).content == ()
    assert OpenAIChat().from_response(answer({"content": None})).content == ()


@pytest.mark.parametrize("usage", [None, {}, {"total_tokens": 3}])
def test_usage_that_is_not_reported_is_none(usage: object) -> None:
    assert OpenAIChat().from_response(answer({"content": "x"}, usage=usage)).usage is None


def test_unreported_cache_reads_are_not_zero() -> None:
    body = answer({"content": "x"}, usage={"prompt_tokens": 3, "completion_tokens": 0})
    assert OpenAIChat().from_response(body).usage == Usage(input=3, output=0)


def test_half_a_surrogate_pair_in_an_answer_becomes_a_question_mark() -> None:
    turn = OpenAIChat().from_response(answer({"content": "a\ud83d!"}))
    assert turn.content == (Text(text="a?!"),)


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ({}, "'choices' is None"),
        ({"choices": []}, "no choices"),
        ({"choices": ["x"]}, "'x'"),
        ({"choices": [{"finish_reason": "stop"}]}, "'message'"),
        (answer({"content": ["x"]}), "'content'"),
        (answer({"content": "x"}, None), "'finish_reason' is None"),
        (answer({"content": "x"}, "eos"), "'eos'"),
        (answer({"tool_calls": [{"id": "a"}]}, "tool_calls"), "'function'"),
        (answer({"tool_calls": [{"id": 5, "function": {}}]}, "tool_calls"), "'id' is 5"),
        (answer({"tool_calls": [{"function": {}}]}, "tool_calls"), "'name' is None"),
        (
            answer({"tool_calls": [{"id": "a", "function": {"name": "n", "arguments": {}}}]}),
            "'arguments' is {}",
        ),
    ],
)
def test_an_answer_in_another_format_is_named(body: dict[str, Any], names: str) -> None:
    with pytest.raises(MalformedAnswerError) as caught:
        OpenAIChat().from_response(body)
    assert names in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "sent"),
    [
        ("", ""),
        ('{ "a":1.0 }', '{ "a":1.0 }'),
        ("null", '{"INVALID_JSON": "null"}'),
        ("[1]", '{"INVALID_JSON": "[1]"}'),
        ('{"a": NaN}', '{"INVALID_JSON": "{\\"a\\": NaN}"}'),
        ('{"a', '{"INVALID_JSON": "{\\"a"}'),
    ],
)
def test_arguments_that_are_no_object_are_sent_in_one(arguments: str, sent: str) -> None:
    call = ToolCall(id="a", name="shell", arguments=arguments)
    body = to_request(request(ASK, Message(role="assistant", content=(call,))))
    assert body["messages"][1]["tool_calls"] == [wire_call("a", sent)]


def test_what_comes_beside_a_call_goes_back_with_it() -> None:
    signed = {"extra_content": {"google": {"thought_signature": "c2ln"}}}
    found = [wire_call("a", "{}") | signed, wire_call("b", "{}")]
    turn = OpenAIChat().from_response(answer({"content": "I look.", "tool_calls": found}))
    asked = Message(role="assistant", content=turn.content)
    assert [call.id for call in asked.tool_calls] == ["a", "b"]
    assert to_request(request(ASK, asked))["messages"][1] == {
        "role": "assistant",
        "content": "I look.",
        "tool_calls": found,
    }


BUSY = {"code": 429, "message": "Provider returned error"}


@pytest.mark.parametrize(
    "body",
    [
        {"error": BUSY, "user_id": "u"},
        {"id": "c", "choices": [{"error": BUSY, "finish_reason": "error", "message": {}}]},
        answer({"content": ""}, "error", error=BUSY),
    ],
)
def test_an_error_that_a_gateway_puts_into_an_answer_is_told_apart(body: dict[str, Any]) -> None:
    with pytest.raises(RateLimitedError, match="Provider returned error"):
        OpenAIChat().from_response(body)


PLAIN: dict[str, Any] = {
    "model": "m",
    "temperature": 0,
    "tools": [
        {
            "type": "function",
            "function": {"name": "t", "parameters": {"properties": {"x": {"default": None}}}},
        }
    ],
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "Go."}]},
        {"role": "assistant", "tool_calls": [wire_call("a", '{"x": null}')]},
        {"role": "tool", "tool_call_id": "a", "content": [{"type": "text", "text": "done"}]},
    ],
}


def respelled() -> dict[str, Any]:
    """PLAIN as an SDK that dumps its models would send it."""
    body = copy.deepcopy(PLAIN)
    body |= {"stream": False, "stream_options": None, "seed": None, "cache_control": {"type": "x"}}
    body["tools"][0]["function"] |= {"description": None, "strict": None}
    user, assistant, tool = body["messages"]
    user |= {"content": "Go.", "name": None}
    assistant |= {"content": "", "refusal": None, "audio": None, "function_call": None}
    tool |= {"content": "done", "cache_control": {"type": "ephemeral"}}
    return body


def test_spellings_that_mean_the_same_split_the_same() -> None:
    dialect = OpenAIChat()
    assert dialect.split(respelled()) == dialect.split(PLAIN)
    with_null = respelled()
    with_null["messages"][1]["content"] = None
    assert dialect.split(with_null) == dialect.split(PLAIN)
    assert dialect.split(PLAIN) == (
        {key: value for key, value in PLAIN.items() if key != "messages"},
        PLAIN["messages"],
    )


def test_split_leaves_the_body_alone() -> None:
    body = respelled()
    OpenAIChat().split(body)
    assert body == respelled()


@pytest.mark.parametrize(
    "change",
    [
        lambda b: b.update(temperature=0.5),
        lambda b: b.update(stream=True),
        lambda b: b["messages"][0].update(content="Go!"),
        lambda b: b["messages"][0].update(role="system"),
        lambda b: b["messages"][1]["tool_calls"][0]["function"].update(arguments='{"x":null}'),
        lambda b: b["tools"][0]["function"].update(parameters={"properties": {"x": {}}}),
    ],
)
def test_what_changes_the_question_changes_the_split(change: Any) -> None:
    body = copy.deepcopy(PLAIN)
    change(body)
    assert OpenAIChat().split(body) != OpenAIChat().split(PLAIN)


@pytest.mark.parametrize("messages", [None, "x", [1], {}])
def test_a_body_without_proper_messages_is_all_parameters(messages: object) -> None:
    body = {"model": "m", "messages": messages, "n": None}
    kept = {"model": "m", "messages": messages} if messages is not None else {"model": "m"}
    assert OpenAIChat().split(body) == (kept, [])  # type: ignore[arg-type]


def test_odd_values_at_known_places_are_kept() -> None:
    body: dict[str, Any] = {
        "tools": ["x", {"function": 1}],
        "messages": [{"role": "user", "content": 3, "tool_calls": ["y"]}],
    }
    assert OpenAIChat().split(body) == ({"tools": body["tools"]}, body["messages"])

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
from harness.providers.ollama_chat import OllamaChat
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
from tests.providers.lookalikes.ollama import ANSWER, check
from tests.providers.lookalikes.server import Rejected

ASK = Message(role="user", content=(Text(text="Go."),))
SHELL = ToolSpec(name="shell", description="Run.", parameters={"type": "object"})
READ = ToolSpec(name="read", description="Read.", parameters={"type": "object"})
CALL = ToolCall(id="a", name="shell", arguments='{"x": [1, null]}')
THINKING = VendorBlock(dialect="ollama-chat", data={"thinking": "hm"})


def body(*messages: Message, **changes: Any) -> dict[str, Any]:
    settings: dict[str, Any] = {"system": None, **changes}
    return OllamaChat().to_request(ModelRequest(model="m", messages=messages or (ASK,), **settings))


def test_a_conversation_as_it_is_sent() -> None:
    image = VendorBlock(dialect="ollama-chat", data={"images": ["aGk="]})
    sent = body(
        Message(role="user", content=(Text(text="Go."), image, Text(text="Now."), image)),
        Message(role="assistant", content=(THINKING, Text(text="I look."), CALL)),
        Message(
            role="user",
            content=(ToolResult(call_id="a", name="shell", content="x"), Text(text="Well?")),
        ),
        system="S",
        tools=(SHELL,),
        temperature=0.5,
        max_output_tokens=9,
    )
    check(sent)
    assert sent == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "S"},
            {"role": "user", "content": "Go.\n\nNow.", "images": ["aGk=", "aGk="]},
            {
                "role": "assistant",
                "content": "I look.",
                "thinking": "hm",
                "tool_calls": [
                    {"id": "a", "function": {"name": "shell", "arguments": {"x": [1, None]}}}
                ],
            },
            {"role": "tool", "content": "x", "tool_name": "shell", "tool_call_id": "a"},
            {"role": "user", "content": "Well?"},
        ],
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
        "stream": False,
        "options": {"num_predict": 9, "temperature": 0.5},
    }


@pytest.mark.parametrize(
    ("choice", "offered"),
    [
        ("auto", ["shell", "read"]),
        ("required", ["shell", "read"]),
        ("read", ["read"]),
        ("none", []),
    ],
)
def test_a_choice_of_tools_is_what_is_offered(choice: str, offered: list[str]) -> None:
    sent = body(tools=(SHELL, READ), tool_choice=choice)
    assert [tool["function"]["name"] for tool in sent.get("tools", [])] == offered


@pytest.mark.parametrize(
    ("messages", "why"),
    [
        ([{"role": "tool", "content": "x", "tool_name": "f", "tool_call_id": "a"}], "without its"),
        ([{"role": "developer", "content": "x"}], "invalid role"),
        (
            [
                {
                    "role": "assistant",
                    "content": "",
                    "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": "{}"}}],
                }
            ],
            "no object",
        ),
        (
            [
                {
                    "role": "assistant",
                    "content": "",
                    "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": {}}}],
                },
                {"role": "user", "content": "x"},
            ],
            "unanswered",
        ),
    ],
)
def test_the_lookalike_refuses_what_makes_no_sense(messages: list[Any], why: str) -> None:
    with pytest.raises(Rejected, match=why):
        check(body() | {"messages": messages})


def test_an_answer_has_thinking_text_and_calls() -> None:
    wire = {
        "role": "assistant",
        "content": "I look.",
        "thinking": "hm",
        "tool_calls": [
            {"id": "a", "function": {"index": 0, "name": "shell", "arguments": {"x": [1, None]}}}
        ],
    }
    turn = OllamaChat().from_response(ANSWER | {"message": wire})
    assert turn.content == (THINKING, Text(text="I look."), CALL)
    assert turn.stop is StopReason.TOOL_USE
    assert turn.usage == Usage(input=7, output=2)
    assert turn.model == "qwen-test"


@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("stop", StopReason.END_TURN),
        ("length", StopReason.MAX_TOKENS),
        (None, StopReason.END_TURN),
        ("", StopReason.END_TURN),
    ],
)
def test_stop_reasons(reason: str | None, stop: StopReason) -> None:
    assert OllamaChat().from_response({**ANSWER, "done_reason": reason}).stop is stop


def test_usage_that_is_not_reported_is_none() -> None:
    bare = {key: ANSWER[key] for key in ("message", "done")}
    assert OllamaChat().from_response(bare).usage is None
    # A prompt that was in the server's cache is not counted by older ones.
    assert OllamaChat().from_response({**bare, "eval_count": 2}).usage == Usage(output=2)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ({}, "'message' is None"),
        ({**ANSWER, "done": False}, "not done"),
        ({**ANSWER, "done_reason": "load"}, "'load'"),
        ({**ANSWER, "message": {"content": 1}}, "'content' is 1"),
        ({**ANSWER, "message": {"tool_calls": [1]}}, "not an object"),
        ({**ANSWER, "message": {"tool_calls": [{"function": {"name": "f"}}]}}, "'arguments'"),
        (
            {**ANSWER, "message": {"tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]}},
            "'arguments'",
        ),
        ({**ANSWER, "message": {"tool_calls": [{"id": 3, "function": {}}]}}, "'id' is 3"),
    ],
)
def test_answers_in_another_format_are_malformed(answer: Any, says: str) -> None:
    with pytest.raises(MalformedAnswerError, match=says):
        OllamaChat().from_response(answer)


def test_a_stream_that_is_not_done_is_malformed() -> None:
    assembler = OllamaChat().assembler()
    with pytest.raises(MalformedAnswerError, match="ended before"):
        assembler.body()
    assembler.add({"message": {"role": "assistant", "content": "Hi"}, "done": False})
    with pytest.raises(MalformedAnswerError, match="ended before"):
        assembler.body()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ({"error": "model runner has unexpectedly stopped"}, OverloadedError),
        (
            {"error": "prompt too long; exceeded max context length by 4 tokens"},
            ContextExceededError,
        ),
        ({"error": "slow down", "status_code": 429}, RateLimitedError),
        ({"error": "unauthorized", "status_code": 401}, AuthenticationError),
        ({"error": "bad", "status_code": 400}, ModelCallError),
        ({"error": {"type": "overloaded_error", "message": "busy"}}, OverloadedError),
        ({"nonsense": 1}, MalformedAnswerError),
    ],
)
def test_errors_within_an_answer_are_told_apart(line: Any, expected: type[ModelCallError]) -> None:
    for read in (OllamaChat().assembler().add, OllamaChat().from_response):
        with pytest.raises(ModelCallError) as caught:
            read(line)
        assert type(caught.value) is expected


def test_spellings_that_mean_the_same_have_one_identity() -> None:
    dialect = OllamaChat()
    plain = {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": {}}}]}
    spelled = {**plain, "content": "", "thinking": None, "images": []}
    one: dict[str, Any] = {"model": "m", "messages": [plain], "options": {"num_predict": 1}}
    other: dict[str, Any] = {
        "model": "m",
        "messages": [spelled],
        "options": {"num_predict": 1, "temperature": None},
        "stream": True,
        "tools": None,
    }
    assert dialect.split(one) == dialect.split(other)
    assert dialect.split(one) != dialect.split({**one, "stream": False})
    assert dialect.split({"messages": 1}) == ({"messages": 1}, [])

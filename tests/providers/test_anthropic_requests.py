"""What the look-alike of Anthropic's endpoint refuses, and how the dialect avoids each of it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from harness.providers.anthropic_messages import AnthropicMessages
from harness.schema.messages import (
    Block,
    Message,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
    VendorBlock,
)
from harness.schema.record import JsonObject
from harness.values import ModelRequest
from tests.providers.lookalikes.anthropic import check, thinking
from tests.providers.lookalikes.server import Rejected

DIALECT = AnthropicMessages()
SHELL = ToolSpec(name="shell", description="Run.", parameters={"type": "object"})
MARK = {"type": "ephemeral"}

Break = Callable[[dict[str, Any]], object]


def vendor(data: dict[str, Any]) -> VendorBlock:
    return VendorBlock(dialect="anthropic-messages", data=data)


def user(*content: Block) -> Message:
    return Message(role="user", content=content)


def assistant(*content: Block) -> Message:
    return Message(role="assistant", content=content)


ASK = user(Text(text="Go."))
CALL = ToolCall(id="a", name="shell", arguments='{"x": 1}')
RESULT = ToolResult(call_id="a", name="shell", content="ok")
THOUGHT = vendor(thinking("hm"))
WHOLE = (
    ASK,
    assistant(THOUGHT, Text(text="I look."), CALL),
    user(RESULT, Text(text="Go on.")),
    assistant(Text(text="Well")),
)


def sent(*messages: Message, **changes: Any) -> dict[str, Any]:
    settings: dict[str, Any] = {"system": "S", "tools": (SHELL,), **changes}
    request = ModelRequest(model="m", messages=messages or WHOLE, **settings)
    return DIALECT.to_request(request)


def turns(*messages: Message, **changes: Any) -> list[Any]:
    body = sent(*messages, **changes)
    check(body)
    return [(turn["role"], turn["content"]) for turn in body["messages"]]


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


def marked(value: str) -> dict[str, Any]:
    return {**text(value), "cache_control": MARK}


def content(body: dict[str, Any], turn: int) -> Any:
    return body["messages"][turn]["content"]


BREAKS: dict[str, tuple[Break, str]] = {
    "unanswered call": (lambda b: content(b, 2).pop(0), "unanswered tool_use"),
    "result without its call": (lambda b: content(b, 1).pop(2), "without its tool_use"),
    "result after text": (lambda b: content(b, 2).reverse(), "after other content"),
    "two user turns": (lambda b: b["messages"].insert(0, b["messages"][0]), "alternate"),
    "two assistant turns": (lambda b: b["messages"].append(b["messages"][3]), "alternate"),
    "assistant first": (lambda b: b["messages"].pop(0), "not the user's"),
    "no messages": (lambda b: b["messages"].clear(), "messages is empty"),
    "empty turn": (lambda b: content(b, 0).clear(), "content is empty"),
    "blank text": (lambda b: content(b, 0)[0].update(text=" \n"), "text is blank"),
    "white space at the end": (lambda b: content(b, 3)[0].update(text="Well "), "white space"),
    "no max_tokens": (lambda b: b.pop("max_tokens"), "missing"),
    "no room": (lambda b: b.update(max_tokens=0), "max_tokens"),
    "no tools": (lambda b: b.pop("tools"), "without tools"),
    "tool name": (lambda b: b["tools"][0].update(name="fs.read"), "bad tool name"),
    "call name": (lambda b: content(b, 1)[2].update(name="fs.read"), "bad tool_use name"),
    "call id": (lambda b: content(b, 1)[2].update(id="a.b"), "bad tool_use id"),
    "doubled id": (lambda b: content(b, 1).append(content(b, 1)[2]), "unanswered|unique"),
    "arguments": (lambda b: content(b, 1)[2].update(input="{}"), "no object"),
    "schema": (lambda b: b["tools"][0].update(input_schema={}), "must be object"),
    "choice": (lambda b: b.update(tool_choice={"type": "required"}), "unknown tool_choice"),
    "choice of no tool": (lambda b: b.update(tool_choice={"type": "tool", "name": "x"}), "no tool"),
    "five marks": (lambda b: content(b, 0).extend([marked("x")] * 5), "more than 4"),
    "marked thinking": (lambda b: content(b, 1)[0].update(cache_control=MARK), "on thinking"),
    "changed thinking": (lambda b: content(b, 1)[0].update(thinking="ha"), "was changed"),
    "thinking not first": (lambda b: content(b, 1).insert(1, content(b, 1).pop(0)), "not first"),
    "thinking last": (lambda b: content(b, 3).append(thinking("x")), "not first|final block"),
    "unknown key": (lambda b: b.update(n=1), "unknown"),
    "blank system": (lambda b: b.update(system=" "), "blank"),
}


@pytest.mark.parametrize("name", BREAKS)
def test_the_lookalike_refuses(name: str) -> None:
    body = copy.deepcopy(sent())
    check(body)
    change, why = BREAKS[name]
    change(body)
    with pytest.raises(Rejected, match=why):
        check(body)


@pytest.mark.parametrize(
    ("choice", "wire"),
    [
        ("auto", None),
        ("required", {"type": "any"}),
        ("none", {"type": "none"}),
        ("shell", {"type": "tool", "name": "shell"}),
    ],
)
def test_tool_choice_is_in_the_vendors_words(choice: str, wire: JsonObject | None) -> None:
    body = sent(tool_choice=choice)
    check(body)
    assert body.get("tool_choice") == wire
    assert len(body["tools"]) == 1


def test_a_choice_without_tools_is_not_sent() -> None:
    body = sent(ASK, tools=(), tool_choice="none")
    assert {"tools", "tool_choice"}.isdisjoint(body)


@pytest.mark.parametrize(
    "schema", [{}, {"properties": {}}, {"type": ["object", "null"]}, {"type": None}]
)
def test_a_schema_is_that_of_an_object(schema: JsonObject) -> None:
    body = sent(ASK, tools=(ToolSpec(name="f", description="", parameters=schema),))
    check(body)
    assert body["tools"][0]["input_schema"] == {**schema, "type": "object"}


def test_ids_and_names_that_are_not_legal_are_spelled_so() -> None:
    call = ToolCall(id="call:1/é", name="fs.read", arguments="{}")
    tool = ToolSpec(name="fs.read", description="", parameters={"type": "object"})
    messages = (ASK, assistant(call), user(ToolResult(call_id=call.id, name="", content="x")))
    body = sent(*messages, tools=(tool,), tool_choice="fs.read")
    check(body)
    use = content(body, 1)[0]
    assert use["id"] == content(body, 2)[0]["tool_use_id"] == "call_x3A_1_x2F__xE9_"
    assert use["name"] == body["tools"][0]["name"] == body["tool_choice"]["name"] == "fs_x2E_read"
    back = DIALECT.from_response({"content": [use], "stop_reason": "tool_use"})
    assert back.content == (call,)


@pytest.mark.parametrize("kept", ["toolu_01AbC-d", "call_1", "get_xml", "a_x_b", "f_xAB"])
def test_ordinary_ids_and_names_stay_as_they_are(kept: str) -> None:
    call = ToolCall(id=kept, name=kept, arguments="{}")
    use = content(sent(ASK, assistant(call)), 1)[0]
    assert (use["id"], use["name"]) == (kept, kept)


def test_a_conversation_that_does_not_begin_with_the_user_is_given_a_beginning() -> None:
    assert turns(assistant(Text(text="Hello")), ASK)[0] == ("user", [text("Continue.")])


@pytest.mark.parametrize("messages", [(user(Text(text=" ")),), (user(), assistant())])
def test_a_conversation_that_says_nothing_is_sent_as_a_request_to_go_on(
    messages: tuple[Message, ...],
) -> None:
    assert turns(*messages) == [("user", [text("Continue.")])]


def test_an_empty_last_turn_of_the_user_does_not_make_the_model_write_on() -> None:
    assert turns(ASK, assistant(Text(text="Yes")), user(Text(text="")))[2:] == [
        ("user", [text("Continue.")])
    ]


def test_white_space_goes_from_the_end_of_the_last_answer_only() -> None:
    said = assistant(Text(text="Yes \n"))
    assert turns(ASK, said)[1] == ("assistant", [text("Yes")])
    assert turns(ASK, said, ASK)[1] == ("assistant", [text("Yes \n")])


def test_two_answers_in_a_row_become_one() -> None:
    server_use = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}}
    found = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}
    after = thinking("found it")
    paused = assistant(Text(text="I search."), vendor(server_use), vendor(found))
    resumed = assistant(vendor(after), Text(text="Done."))
    assert turns(ASK, paused)[1][1] == [text("I search."), server_use, found]
    assert turns(ASK, paused, resumed)[1][1] == [
        text("I search."),
        server_use,
        found,
        after,
        text("Done."),
    ]


def test_thinking_comes_first_unchanged_and_never_alone() -> None:
    late = assistant(Text(text="Hm."), THOUGHT, CALL)
    assert turns(ASK, late, user(RESULT))[1][1][0] == THOUGHT.data
    cut_off = assistant(Text(text="Hm."), THOUGHT)
    assert turns(ASK, cut_off, ASK)[1][1] == [text("Hm.")]
    assert turns(ASK, assistant(THOUGHT), ASK) == [("user", [text("Go."), text("Go.")])]


def test_pictures_and_documents_pass_through() -> None:
    picture = {"type": "image", "source": {"type": "base64", "media_type": "x", "data": "aGk="}}
    document = {"type": "document", "source": {"type": "text", "data": "hi"}, "title": "T"}
    parts = (Text(text="See."), vendor(picture), vendor(document))
    assert turns(user(*parts)) == [("user", [text("See."), picture, document])]


def test_cache_marks_stand_on_the_system_prompt_and_the_end_of_the_last_user_turn() -> None:
    body = sent(cache_marks=True)
    check(body)
    assert body["system"] == [{"type": "text", "text": "S", "cache_control": MARK}]
    blocks = [b for t in body["messages"] for b in t["content"] if "cache_control" in b]
    assert blocks == [marked("Go on.")]
    assert DIALECT.split(body) == DIALECT.split(sent())


def test_a_mark_on_a_result_or_a_picture_changes_nothing_of_the_callers() -> None:
    body = sent(ASK, assistant(CALL), user(RESULT), system=None, cache_marks=True)
    check(body)
    assert content(body, 2)[-1]["cache_control"] == MARK
    assert "system" not in body
    picture = vendor({"type": "image", "source": {"type": "url", "url": "u"}})
    check(sent(user(picture, THOUGHT), cache_marks=True))
    assert "cache_control" not in picture.data


def test_a_streamed_request_differs_in_that_alone() -> None:
    request = ModelRequest(model="m", system="S", messages=WHOLE, tools=(SHELL,))
    assert DIALECT.to_request(request, stream=True) == {**sent(), "stream": True}

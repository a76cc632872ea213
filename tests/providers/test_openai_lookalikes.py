"""The servers that stand for OpenAI's refuse what the vendor refuses: each break on its own."""

from __future__ import annotations

import copy
import json
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from harness.providers.openai_chat import OpenAIChat
from harness.providers.openai_responses import OpenAIResponses
from harness.schema.messages import Message, Text, ToolCall, ToolResult, ToolSpec
from harness.values import ModelRequest
from tests.providers.lookalikes.openai_chat import CHAT
from tests.providers.lookalikes.openai_responses import RESPONSES
from tests.providers.lookalikes.server import Lookalike, serving

REQUEST = ModelRequest(
    model="m",
    system="S",
    messages=(
        Message(role="user", content=(Text(text="Go."),)),
        Message(
            role="assistant",
            content=(
                Text(text="I look."),
                ToolCall(id="a", name="shell", arguments="{}"),
                ToolCall(id="b", name="shell", arguments="{oops"),
            ),
        ),
        Message(
            role="user",
            content=(
                ToolResult(call_id="a", name="shell", content="ok"),
                ToolResult(call_id="b", name="shell", content="", is_error=True),
            ),
        ),
    ),
    tools=(ToolSpec(name="shell", description="Run.", parameters={"type": "object"}),),
    tool_choice="shell",
)
GOOD: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": OpenAIChat().to_request(REQUEST),
    "/v1/responses": OpenAIResponses().to_request(REQUEST),
}

Change = Callable[[dict[str, Any]], object]


@pytest.fixture
def server() -> Iterator[Lookalike]:
    with serving(CHAT, RESPONSES) as look:
        yield look


def post(url: str, body: dict[str, Any]) -> tuple[int, str]:
    head = {"content-type": "application/json"}
    request = urllib.request.Request(url, json.dumps(body).encode(), head)
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)["error"]["message"]


@pytest.mark.parametrize("path", GOOD)
def test_what_the_dialect_sends_is_accepted(path: str, server: Lookalike) -> None:
    assert post(server.url + path, GOOD[path])[0] == 200
    status, text = post(server.url + path, GOOD[path] | {"stream": True})
    assert status == 200
    assert text.count("data: ") > 3


def refused(path: str, change: Change, server: Lookalike) -> str:
    body = copy.deepcopy(GOOD[path])
    change(body)
    status, said = post(server.url + path, body)
    assert status == 400
    return said


CHAT_BREAKS: list[tuple[Change, str]] = [
    (lambda b: b["messages"].pop(), "unanswered tool calls ['b']"),
    (lambda b: b["messages"].pop(2), "tool message without its call"),
    (lambda b: b["messages"].insert(4, {"role": "user", "content": "x"}), "unanswered"),
    (lambda b: b["messages"].append(b["messages"][-1]), "tool message without its call"),
    (lambda b: b["messages"][4].update(tool_call_id="c"), "tool message without its call"),
    (lambda b: b["messages"][2]["tool_calls"][1].update(id="a"), "duplicate tool call ids"),
    (lambda b: b["messages"][2]["tool_calls"][1].update(id=""), "without an id"),
    (lambda b: b["messages"][2].update(tool_calls=[]), "tool_calls is empty"),
    (lambda b: b["messages"][0].update(role="bot"), "unknown role"),
    (lambda b: b["messages"][1].update(content=[]), "neither text nor parts"),
    (lambda b: b["messages"][1].update(content=[{"type": "image"}]), "bad part"),
    (lambda b: b["messages"][1].update(name_="x"), "unknown ['name_']"),
    (lambda b: b.update(messages=[]), "messages is empty"),
    (lambda b: b.update(tools=[]), "tools is empty"),
    (lambda b: b["tools"][0]["function"].update(name="a b"), "bad tool name"),
    (lambda b: b["tools"].append(b["tools"][0]), "two tools of one name"),
    (lambda b: b["tools"][0]["function"].update(parameters={}), "schema of no object"),
    (lambda b: b["tool_choice"]["function"].update(name="x"), "tool_choice names no tool"),
    (lambda b: b.update(tool_choice="shell"), "bad tool_choice"),
    (lambda b: b.pop("tools"), "tool_choice without tools"),
    (lambda b: b.update(max_tokens=5), "unknown ['max_tokens']"),
    (lambda b: b.update(stream_options={}), "stream_options without stream"),
]


@pytest.mark.parametrize(("change", "says"), CHAT_BREAKS)
def test_chat_refuses_a_broken_request(change: Change, says: str, server: Lookalike) -> None:
    assert says in refused("/v1/chat/completions", change, server)


RESPONSES_BREAKS: list[tuple[Change, str]] = [
    (lambda b: b["input"].pop(), "no tool output found for function call ['b']"),
    (lambda b: b["input"].pop(2), "no tool call found for function call output"),
    (lambda b: b["input"][4].update(call_id="c"), "no tool call found"),
    (lambda b: b["input"].append(b["input"][-1]), "no tool call found"),
    (lambda b: b["input"][3].update(call_id="a"), "duplicate call ids"),
    (lambda b: b["input"][3].update(arguments={}), "arguments is no string"),
    (lambda b: b["input"][0].update(role="bot"), "unknown role"),
    (lambda b: b["input"][0].update(content=[{"type": "text", "text": "x"}]), "bad part"),
    (lambda b: b["input"][1].update(content=[{"type": "input_text", "text": "x"}]), "bad part"),
    (lambda b: b["input"][0].update(type="thing"), "unknown item"),
    (
        lambda b: b["input"].insert(
            0, {"type": "reasoning", "id": "r", "summary": [], "encrypted_content": "z"}
        ),
        "without its required following item",
    ),
    (
        lambda b: b["input"].insert(1, {"type": "reasoning", "id": "r", "summary": []}),
        "not stored",
    ),
    (lambda b: b.update(input=[]), "input is empty"),
    (lambda b: b["tools"][0].update(name="a b"), "bad tool name"),
    (lambda b: b["tools"][0].update(function={}), "unknown ['function']"),
    (lambda b: b["tool_choice"].update(name="x"), "tool_choice names no tool"),
    (lambda b: b.update(messages=[]), "unknown ['messages']"),
    (lambda b: b.update(max_output_tokens=5), "max_output_tokens is below 16"),
]


@pytest.mark.parametrize(("change", "says"), RESPONSES_BREAKS)
def test_responses_refuses_a_broken_request(change: Change, says: str, server: Lookalike) -> None:
    assert says in refused("/v1/responses", change, server)

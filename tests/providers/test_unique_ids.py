"""No two calls of a conversation share an id on the wire, and every result keeps its call."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.protocols import Dialect
from harness.providers.anthropic_messages import AnthropicMessages
from harness.providers.openai_chat import OpenAIChat
from harness.providers.openai_responses import OpenAIResponses
from harness.providers.unique_ids import with_unique_ids
from harness.schema.messages import Block, Message, Text, ToolCall, ToolResult, ToolSpec
from harness.schema.record import JsonObject
from harness.values import ModelRequest
from tests.providers.lookalikes import anthropic, openai_chat, openai_responses

TASK = Message(role="user", content=(Text(text="Do it."),))
TOOLS = (ToolSpec(name="look", description="", parameters={"type": "object"}),)
DIALECTS = [
    pytest.param(AnthropicMessages(), anthropic.check, id="anthropic"),
    pytest.param(OpenAIChat(), openai_chat.check, id="chat"),
    pytest.param(OpenAIResponses(), openai_responses.check, id="responses"),
]


def conversation(*turns: list[str]) -> list[Message]:
    messages = [TASK]
    for number, ids in enumerate(turns):
        calls: list[Block] = [ToolCall(id=id_, name="look", arguments="{}") for id_ in ids]
        results: list[Block] = [
            ToolResult(call_id=id_, name="look", content=f"{number}.{place}")
            for place, id_ in enumerate(ids)
        ]
        messages += [
            Message(role="assistant", content=tuple(calls)),
            Message(role="user", content=tuple(results)),
        ]
    return messages


def test_a_conversation_with_unique_ids_is_left_as_it_is() -> None:
    messages = conversation(["a", "b"], ["c"])
    assert with_unique_ids(messages) is messages


@given(st.lists(st.lists(st.sampled_from(["a", "a-2", "b"]), min_size=1, max_size=3), max_size=5))
def test_ids_are_unique_and_results_follow_their_calls(turns: list[list[str]]) -> None:
    messages = conversation(*turns)
    renamed = with_unique_ids(messages)
    ids = [call.id for message in renamed for call in message.tool_calls]
    assert len(set(ids)) == len(ids)
    for asked, answered in pairwise(renamed[1:]):
        if asked.tool_calls:
            assert [call.id for call in asked.tool_calls] == [
                result.call_id for result in answered.tool_results
            ]
    contents = [[result.content for result in message.tool_results] for message in messages]
    assert contents == [[result.content for result in message.tool_results] for message in renamed]


@pytest.mark.parametrize(("dialect", "check"), DIALECTS)
def test_the_vendor_accepts_what_a_careless_server_numbered(
    dialect: Dialect, check: Callable[[JsonObject], None]
) -> None:
    messages = tuple(conversation(["call_0", "call_0"], ["call_0"]))
    request = ModelRequest(model="m", system=None, messages=messages, tools=TOOLS)
    check(dialect.to_request(request))

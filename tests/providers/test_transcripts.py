"""Whatever the loop may have in its transcript, the vendors accept it and nothing is lost."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from harness.protocols import ModelRequest
from harness.providers.anthropic_messages import AnthropicMessages
from harness.providers.openai_chat import OpenAIChat
from harness.schema.messages import (
    Block,
    Message,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
    VendorBlock,
)
from tests.providers.lookalike import check_anthropic
from tests.providers.lookalikes.openai_chat import check as check_openai

SHELL = ToolSpec(name="shell", description="Run.", parameters={"type": "object"})

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=5,
)
objects = st.dictionaries(st.text(max_size=5), json_values, max_size=3)
arguments = objects.map(json.dumps) | st.text(max_size=8) | st.sampled_from(['{"a": NaN}', "[]"])
texts = st.text(max_size=8) | st.sampled_from(["", " \n", "half \ud800 pair"])
solid_texts = st.text(max_size=8).map(lambda text: f"x{text}")
vendor_blocks = st.sampled_from(
    [
        VendorBlock(dialect="anthropic-messages", data={"type": "thinking", "thinking": "hm"}),
        VendorBlock(dialect="openai-chat", data={"reasoning_content": "hm"}),
        VendorBlock(dialect="another", data={"type": "image"}),
    ]
)


@st.composite
def transcripts(draw: st.DrawFn, text: st.SearchStrategy[str] = texts) -> tuple[Message, ...]:
    """Turns as the loop makes them: every call answered in order, feedback after the results."""
    messages = [Message(role="user", content=(Text(text=draw(solid_texts)),))]
    turns = draw(st.integers(0, 4))
    for number in range(turns):
        names = [f"call_{number}_{index}" for index in range(draw(st.integers(0, 3)))]
        calls = [ToolCall(id=name, name="shell", arguments=draw(arguments)) for name in names]
        lead: list[Block] = list(draw(st.lists(vendor_blocks, max_size=1)))
        said = Text(text=draw(text))
        messages.append(Message(role="assistant", content=(*lead, said, *calls)))
        results = [
            ToolResult(
                call_id=name, name="shell", content=draw(texts), is_error=draw(st.booleans())
            )
            for name in names
        ]
        last = number == turns - 1
        feedback = Text(text=draw(solid_texts if last else text))
        messages.append(Message(role="user", content=(*results, feedback)))
    return tuple(messages)


def request(messages: tuple[Message, ...]) -> ModelRequest:
    return ModelRequest(model="m", system="S", messages=messages, tools=(SHELL,))


def sent_as_json(body: dict[str, Any]) -> dict[str, Any]:
    """Through the encoder that both SDKs use, which refuses what is not JSON."""
    sent: dict[str, Any] = json.loads(
        json.dumps(body, ensure_ascii=False, allow_nan=False).encode()
    )
    return sent


@given(transcripts())
def test_openai_accepts_every_transcript_and_says_every_call_back(
    messages: tuple[Message, ...],
) -> None:
    dialect = OpenAIChat()
    body = sent_as_json(dialect.to_request(request(messages)))
    check_openai(body)
    said = [message for message in body["messages"] if message["role"] == "assistant"]
    for wire, message in zip(said, messages[1::2], strict=True):
        turn = dialect.from_response({"choices": [{"message": wire, "finish_reason": "stop"}]})
        back = Message(role="assistant", content=turn.content)
        assert back.tool_calls == message.tool_calls
        assert back.text == message.text.replace("\ud800", "?")


@given(transcripts())
def test_anthropic_accepts_every_transcript_and_says_every_call_back(
    messages: tuple[Message, ...],
) -> None:
    dialect = AnthropicMessages()
    body = sent_as_json(dialect.to_request(request(messages)))
    check_anthropic(body)
    said = [
        block
        for message in body["messages"]
        if message["role"] == "assistant"
        for block in message["content"]
    ]
    turn = dialect.from_response({"content": said, "stop_reason": "tool_use"})
    back = Message(role="assistant", content=turn.content).tool_calls
    calls = [call for message in messages for call in message.tool_calls]
    assert [(call.id, call.name) for call in back] == [(call.id, call.name) for call in calls]
    for after, before in zip(back, calls, strict=True):
        assert after.arguments == before.arguments or (
            json.loads(after.arguments) == json.loads(before.arguments)
        )


@given(transcripts(text=solid_texts))
def test_each_request_extends_the_one_before_it(messages: tuple[Message, ...]) -> None:
    for dialect in (OpenAIChat(), AnthropicMessages()):
        earlier: list[Any] = []
        for end in range(1, len(messages) + 1, 2):
            body = dialect.to_request(request(messages[:end]))
            parameters, split = dialect.split(body)
            assert parameters.keys() == body.keys() - {"messages"}
            assert split[: len(earlier)] == earlier
            assert len(split) > len(earlier)
            assert dialect.split({**parameters, "messages": [*split]}) == (parameters, split)
            earlier = split

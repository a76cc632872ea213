"""As a conversation grows, each request only adds to the one before: cassettes rely on it."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from harness.providers.anthropic_messages import AnthropicMessages
from harness.providers.openai_chat import OpenAIChat
from harness.providers.openai_responses import OpenAIResponses
from harness.schema.messages import (
    Block,
    Message,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
    VendorBlock,
)
from harness.values import ModelRequest

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


@given(transcripts(text=solid_texts))
def test_each_request_extends_the_one_before_it(messages: tuple[Message, ...]) -> None:
    for dialect, key in (
        (OpenAIChat(), "messages"),
        (OpenAIResponses(), "input"),
        (AnthropicMessages(), "messages"),
    ):
        earlier: list[Any] = []
        for end in range(1, len(messages) + 1, 2):
            body = dialect.to_request(request(messages[:end]))
            parameters, split = dialect.split(body)
            assert parameters.keys() == body.keys() - {key}
            assert split[: len(earlier)] == earlier
            assert len(split) > len(earlier)
            assert dialect.split({**parameters, key: [*split]}) == (parameters, split)
            earlier = split

"""Whatever is in a conversation, OpenAI's rules hold on the wire and nothing is lost."""

from __future__ import annotations

import copy
import dataclasses
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from harness.protocols import Dialect
from harness.providers.object_arguments import as_object_text
from harness.providers.openai_chat import OpenAIChat
from harness.providers.openai_responses import OpenAIResponses
from harness.schema.messages import (
    Block,
    Message,
    ModelTurn,
    Text,
    ToolCall,
    ToolResult,
    VendorBlock,
)
from harness.schema.record import storable
from harness.values import ModelDelta, ModelRequest
from tests.providers.lookalikes import openai_chat, openai_responses
from tests.providers.random_transcripts import as_json, requests, transcripts, whole_texts

CHAT = OpenAIChat()
RESPONSES = OpenAIResponses()
sizes = st.integers(1, 6)


def vendor(dialect: str, data: dict[str, Any]) -> VendorBlock:
    return VendorBlock(dialect=dialect, data=data)


def with_ids(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """No vendor and no loop gives a call an empty id; all else is possible."""

    def named(block: Block) -> Block:
        if isinstance(block, ToolCall) and not block.id:
            return block.model_copy(update={"id": "empty"})
        if isinstance(block, ToolResult) and not block.call_id:
            return block.model_copy(update={"call_id": "empty"})
        return block

    return tuple(
        message.model_copy(update={"content": tuple(named(block) for block in message.content)})
        for message in messages
    )


def conversations(
    lead: st.SearchStrategy[VendorBlock], parts: st.SearchStrategy[VendorBlock]
) -> st.SearchStrategy[tuple[Message, ...]]:
    drawn = transcripts(st.lists(lead, max_size=2), st.lists(parts, max_size=1))
    return drawn.filter(bool).map(with_ids)


others = st.just(vendor("anthropic-messages", {"type": "thinking", "thinking": "hm"}))
signatures = whole_texts.map(
    lambda t: vendor(CHAT.name, {"next_call": {"extra_content": {"signature": t}}})
)
chat_conversations = conversations(
    whole_texts.map(lambda t: vendor(CHAT.name, {"reasoning_content": f"hm{t}"}))
    | signatures
    | others,
    st.just(vendor(CHAT.name, {"type": "image_url", "image_url": {"url": "data:x"}})) | others,
)
reasoning = whole_texts.map(
    lambda text: vendor(
        RESPONSES.name,
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": f"zz{text}"},
    )
)
phases = st.sampled_from(["commentary", "final_answer"]).map(
    lambda phase: vendor(RESPONSES.name, {"phase": phase})
)
responses_conversations = conversations(
    reasoning | phases | others,
    st.just(vendor(RESPONSES.name, {"type": "input_image", "image_url": "data:x"})) | others,
)


@given(requests(chat_conversations), st.booleans())
def test_chat_accepts_every_request(request: ModelRequest, stream: bool) -> None:
    before = copy.deepcopy(request)
    body = as_json(CHAT.to_request(request, stream=stream))
    openai_chat.check(body)
    assert request == before
    assert body.get("stream", False) is stream


@given(requests(responses_conversations), st.booleans())
def test_responses_accepts_every_request(request: ModelRequest, stream: bool) -> None:
    request = dataclasses.replace(request, max_output_tokens=request.max_output_tokens + 15)
    before = copy.deepcopy(request)
    body = as_json(RESPONSES.to_request(request, stream=stream))
    assume(body["input"])
    openai_responses.check(body)
    assert request == before
    assert body.get("stream", False) is stream


def chat_answer(message: Message) -> dict[str, Any]:
    """An assistant turn as it is sent, in the form of an answer."""
    request = ModelRequest(model="m", system=None, messages=(message,))
    (said,) = as_json(CHAT.to_request(request))["messages"]
    finish = "tool_calls" if "tool_calls" in said else "stop"
    return {
        "id": "c",
        "object": "chat.completion",
        "model": "m",
        "choices": [{"index": 0, "message": said, "finish_reason": finish}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 1},
    }


def response(message: Message) -> dict[str, Any]:
    request = ModelRequest(model="m", system=None, messages=(message,))
    return {
        "id": "r",
        "model": "m",
        "status": "completed",
        "output": as_json(RESPONSES.to_request(request))["input"],
        "usage": {"input_tokens": 3, "output_tokens": 1},
    }


def said_in(messages: tuple[Message, ...]) -> list[Message]:
    return [message for message in messages if message.role == "assistant"]


def sent_call(call: ToolCall) -> ToolCall:
    return ToolCall(
        id=storable(call.id), name=call.name, arguments=storable(as_object_text(call.arguments))
    )


@given(chat_conversations)
def test_a_chat_turn_goes_there_and_comes_back(messages: tuple[Message, ...]) -> None:
    for message in said_in(messages):
        own = {
            key: value
            for block in message.content
            if isinstance(block, VendorBlock) and block.dialect == CHAT.name
            for key, value in block.data.items()
        }
        signature = own.pop("next_call", None)
        expected: list[Block] = [vendor(CHAT.name, own)] if own else []
        expected += [Text(text=storable(message.text))] if message.text else []
        if signature and message.tool_calls:
            expected.append(vendor(CHAT.name, {"next_call": signature}))
        expected += [sent_call(call) for call in message.tool_calls]
        assert CHAT.from_response(chat_answer(message)).content == tuple(expected)


@given(responses_conversations)
def test_a_responses_turn_goes_there_and_comes_back(messages: tuple[Message, ...]) -> None:
    for message in said_in(messages):
        expected: list[Block] = []
        phase: list[Block] = []
        for block in message.content:
            if isinstance(block, Text) and block.text:
                expected += [*phase, Text(text=storable(block.text))]
                phase = []
            elif isinstance(block, ToolCall):
                expected.append(sent_call(block))
            elif isinstance(block, VendorBlock) and "phase" in block.data:
                phase = [block]
            elif isinstance(block, VendorBlock) and block.dialect == RESPONSES.name:
                expected.append(block)
        while expected and isinstance(expected[-1], VendorBlock):
            expected.pop()
        assert RESPONSES.from_response(response(message)).content == tuple(expected)


def read(dialect: Dialect, events: Any) -> tuple[ModelTurn, list[ModelDelta]]:
    assembler = dialect.assembler()
    deltas = [delta for event in events for delta in assembler.add(event)]
    return dialect.from_response(assembler.body()), deltas


def shows(deltas: list[ModelDelta], turn: ModelTurn) -> None:
    """The pieces are those of the turn."""
    whole = Message(role="assistant", content=turn.content)
    assert "".join(delta.text for delta in deltas if delta.kind == "text") == whole.text
    started = [(d.call_id, d.text) for d in deltas if d.kind == "call_start"]
    assert started == [(call.id, call.name) for call in whole.tool_calls]
    assert [d.call_id for d in deltas if d.kind == "call_done"] == [id_ for id_, _ in started]
    for call in whole.tool_calls:
        own = [d for d in deltas if d.call_id == call.id]
        assert (own[0].kind, own[-1].kind) == ("call_start", "call_done")
        assert "".join(d.text for d in own[1:-1]) == call.arguments


@given(chat_conversations, sizes)
def test_a_streamed_chat_turn_is_the_same(messages: tuple[Message, ...], size: int) -> None:
    for message in said_in(messages):
        answer = chat_answer(message)
        turn, deltas = read(CHAT, openai_chat.chunks(answer, size=size))
        assert turn == CHAT.from_response(answer)
        shows(deltas, turn)


@given(responses_conversations, sizes)
def test_a_streamed_response_is_the_same(messages: tuple[Message, ...], size: int) -> None:
    for message in said_in(messages):
        answer = response(message)
        turn, deltas = read(RESPONSES, openai_responses.events(answer, size=size))
        assert turn == RESPONSES.from_response(answer)
        shows(deltas, turn)

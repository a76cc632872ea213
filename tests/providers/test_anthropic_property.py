"""Whatever is in a conversation, Anthropic's rules hold on the wire and nothing is lost."""

from __future__ import annotations

import copy
import dataclasses
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from harness.providers.anthropic_messages import AnthropicMessages
from harness.providers.legal_names import legal, original
from harness.providers.object_arguments import as_object, as_text
from harness.schema.messages import Block, Message, Text, ToolCall, ToolResult, VendorBlock
from harness.schema.record import storable
from harness.values import ModelRequest
from tests.providers.lookalikes.anthropic import ID, check, events, thinking
from tests.providers.random_transcripts import (
    TOOLS,
    as_json,
    cuts,
    ids,
    requests,
    same_arguments,
    transcripts,
    whole_texts,
    without_arguments,
)

DIALECT = AnthropicMessages()


def vendor(data: dict[str, Any], dialect: str = "anthropic-messages") -> VendorBlock:
    return VendorBlock(dialect=dialect, data=data)


thoughts = st.one_of(
    whole_texts.map(lambda text: vendor(thinking(text))),
    whole_texts.map(lambda text: vendor({"type": "redacted_thinking", "data": f"sealed:{text}"})),
)
quotes = st.just(vendor({"next_block": {"citations": [{"type": "page_location"}]}}))
others = st.just(vendor({"reasoning_content": "hm"}, "openai-chat"))
images = st.just(vendor({"type": "image", "source": {"type": "url", "url": "http://x/y.png"}}))
random_transcripts = transcripts(
    st.lists(thoughts | quotes | others, max_size=3), st.lists(images | others)
)


@given(requests(random_transcripts), st.booleans())
def test_the_vendor_accepts_every_request(request: ModelRequest, stream: bool) -> None:
    before = copy.deepcopy(request)
    body = as_json(DIALECT.to_request(request, stream=stream))
    check(body)
    assert request == before
    assert body.get("stream", False) is stream


def survives(content: tuple[Block, ...]) -> list[Block]:
    """What of a turn is sent."""
    kept: list[Block] = []
    for block in content:
        if isinstance(block, Text) and block.text.strip():
            kept.append(Text(text=storable(block.text)))
        elif isinstance(block, ToolCall):
            kept.append(block.model_copy(update={"name": block.name}))
        elif isinstance(block, VendorBlock) and block.dialect == DIALECT.name:
            kept.append(block)
    after = [*kept[1:], None]
    kept = [
        block
        for block, following in zip(kept, after, strict=False)
        if not is_quote(block) or isinstance(following, Text)
    ]
    while kept and isinstance(kept[-1], VendorBlock):
        kept.pop()
    return kept


def is_quote(block: Block) -> bool:
    return isinstance(block, VendorBlock) and "next_block" in block.data


def wire_of(message: Message) -> list[Any]:
    """The blocks of one assistant turn as they are sent."""
    results = tuple(
        ToolResult(call_id=call.id, name=call.name, content="ok") for call in message.tool_calls
    )
    ask = Message(role="user", content=(Text(text="Go."),))
    after = Message(role="user", content=(*results, Text(text="On.")))
    request = ModelRequest(model="m", system=None, messages=(ask, message, after), tools=TOOLS)
    turns = as_json(DIALECT.to_request(request))["messages"]
    content: list[Any] = turns[1]["content"] if len(turns) == 3 else []
    return content


@given(random_transcripts)
def test_an_assistant_turn_goes_there_and_comes_back(messages: tuple[Message, ...]) -> None:
    for message in messages:
        if message.role == "user":
            continue
        expected = survives(message.content)
        turn = DIALECT.from_response({"content": wire_of(message), "stop_reason": "end_turn"})
        assert without_arguments(turn.content) == without_arguments(tuple(expected))
        back = Message(role="assistant", content=turn.content).tool_calls
        for after, call in zip(back, message.tool_calls, strict=True):
            assert same_arguments(after.arguments, storable(call.arguments))


@given(random_transcripts, st.lists(st.integers(0, 99), max_size=4))
def test_streamed_is_not_streamed(messages: tuple[Message, ...], places: list[int]) -> None:
    for message in messages:
        answer: dict[str, Any] = {
            "type": "message",
            "model": "m",
            "content": wire_of(message),
            "stop_reason": "tool_use",
            "stop_sequence": None,
            "usage": {"input_tokens": 5, "cache_read_input_tokens": 6, "output_tokens": 7},
        }
        assembler = DIALECT.assembler()
        deltas = [d for event in events(answer, cuts(places)) for d in assembler.add(event)]
        assert assembler.body() == answer
        turn = DIALECT.from_response(answer)
        whole = Message(role="assistant", content=turn.content)
        assert "".join(d.text for d in deltas if d.kind == "text") == whole.text
        started = [(d.call_id, d.text) for d in deltas if d.kind == "call_start"]
        assert started == [(call.id, call.name) for call in whole.tool_calls]
        assert [d.call_id for d in deltas if d.kind == "call_done"] == [id_ for id_, _ in started]
        for call in whole.tool_calls:
            raw = [d.text for d in deltas if d.call_id == call.id and d.kind == "call_arguments"]
            assert as_text(as_object("".join(raw))) == call.arguments


@given(requests(random_transcripts))
def test_cache_marks_change_no_identity(request: ModelRequest) -> None:
    plain = dataclasses.replace(request, cache_marks=False)
    marked = dataclasses.replace(request, cache_marks=True)
    body = DIALECT.to_request(marked)
    assert DIALECT.split(body) == DIALECT.split(DIALECT.to_request(plain))
    assert str(body).count("cache_control") == (2 if "system" in body else 1)


@given(st.text(alphabet="_x25EF.aé", max_size=12) | ids)
def test_ids_and_names_become_legal_and_come_back(text: str) -> None:
    wire = legal(text)
    assert ID.fullmatch(wire)
    assert original(wire) == text


@given(st.text(alphabet="_x25EFg-", max_size=12))
def test_what_the_vendor_names_itself_goes_back_to_it_unchanged(wire: str) -> None:
    if wire:
        assert legal(original(wire)) == wire or original(wire) == wire

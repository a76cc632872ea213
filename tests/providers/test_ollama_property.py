"""Whatever is in a conversation, an Ollama server can read it and nothing is lost."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from harness.providers.ollama_chat import OllamaChat
from harness.schema.messages import Block, Message, Text, ToolCall, ToolResult, VendorBlock
from harness.schema.record import storable
from harness.values import ModelRequest
from tests.providers.lookalikes.ollama import check, lines
from tests.providers.random_transcripts import (
    as_json,
    cuts,
    requests,
    same_arguments,
    transcripts,
    whole_texts,
    without_arguments,
)

DIALECT = OllamaChat()


def vendor(data: dict[str, Any], dialect: str = "ollama-chat") -> VendorBlock:
    return VendorBlock(dialect=dialect, data=data)


thoughts = whole_texts.map(lambda text: vendor({"thinking": f"{text}."}))
others = st.just(vendor({"type": "thinking", "thinking": "hm"}, "anthropic-messages"))
images = st.just(vendor({"images": ["aGk="]}))
random_transcripts = transcripts(
    st.lists(thoughts, max_size=1) | st.lists(others, max_size=1), st.lists(images | others)
)


@given(requests(random_transcripts), st.booleans())
def test_a_server_can_read_every_request(request: ModelRequest, stream: bool) -> None:
    if not (request.messages or request.system):
        return
    before = copy.deepcopy(request)
    body = as_json(DIALECT.to_request(request, stream=stream))
    check(body)
    assert request == before
    assert body["stream"] is stream
    assert ("tools" in body) is (request.tool_choice != "none")


def wire_of(message: Message) -> dict[str, Any]:
    """One assistant turn as it is sent."""
    results = tuple(
        ToolResult(call_id=call.id, name=call.name, content="ok") for call in message.tool_calls
    )
    after = Message(role="user", content=results)
    request = ModelRequest(model="m", system=None, messages=(message, after))
    sent: dict[str, Any] = as_json(DIALECT.to_request(request))["messages"][0]
    return sent


def survives(message: Message) -> list[Block]:
    """A turn as the format tells it: what else there is, the text, the calls."""
    own = [b for b in message.content if isinstance(b, VendorBlock) and b.dialect == DIALECT.name]
    text = storable(message.text)
    return [*own, *([Text(text=text)] if text else []), *message.tool_calls]


def answer_of(message: Message) -> dict[str, Any]:
    return {"model": "m", "message": wire_of(message), "done": True, "done_reason": "stop"}


@given(random_transcripts)
def test_an_assistant_turn_goes_there_and_comes_back(messages: tuple[Message, ...]) -> None:
    for message in messages:
        if message.role == "user":
            continue
        turn = DIALECT.from_response(answer_of(message))
        back = Message(role="assistant", content=turn.content).tool_calls
        expected = survives(message)
        # Made up where there is none: the format takes an empty id for an absent one.
        for call, after in zip(message.tool_calls, back, strict=True):
            assert same_arguments(after.arguments, storable(call.arguments))
            if not call.id:
                assert after.id
                expected[expected.index(call)] = call.model_copy(update={"id": after.id})
        assert without_arguments(turn.content) == without_arguments(tuple(expected))


@given(random_transcripts, st.lists(st.integers(0, 99), max_size=4))
def test_streamed_is_not_streamed(messages: tuple[Message, ...], places: list[int]) -> None:
    for message in messages:
        if message.role == "user":
            continue
        answer = answer_of(message) | {"prompt_eval_count": 3, "eval_count": 4}
        assembler = DIALECT.assembler()
        deltas = [d for line in lines(answer, cuts(places)) for d in assembler.add(line)]
        assert assembler.body() == answer
        whole = Message(role="assistant", content=DIALECT.from_response(answer).content)
        assert "".join(d.text for d in deltas if d.kind == "text") == whole.text
        started = [(d.call_id, d.text) for d in deltas if d.kind == "call_start"]
        assert started == [(call.id, call.name) for call in whole.tool_calls]
        raw = [d.text for d in deltas if d.kind == "call_arguments"]
        assert raw == [call.arguments for call in whole.tool_calls]


@given(requests(random_transcripts))
def test_identity_is_that_of_what_is_sent(request: ModelRequest) -> None:
    body = DIALECT.to_request(request)
    parameters, messages = DIALECT.split(body)
    assert DIALECT.split(parameters | {"messages": [*messages], "stream": False}) == (
        parameters,
        messages,
    )
    streamed, same = DIALECT.split(DIALECT.to_request(request, stream=True))
    assert same == messages
    assert streamed == parameters | {"stream": True}


def test_ids_of_calls_are_given_where_there_are_none() -> None:
    call = {"function": {"name": "shell", "arguments": {}}}
    answer: dict[str, Any] = {
        "message": {"role": "assistant", "tool_calls": [call, call]},
        "done": True,
    }
    turn = DIALECT.from_response(answer)
    ids = [block.id for block in turn.content if isinstance(block, ToolCall)]
    assert len(set(ids)) == 2

from __future__ import annotations

import pytest

from harness.errors import ModelCallError, RateLimitedError
from harness.providers.scripted import Scripted, turn
from harness.schema.messages import Message, StopReason, Text, ToolCall
from harness.values import ModelDelta, ModelRequest

REQUESTS = [ModelRequest(model=f"m{n}", system=None, messages=()) for n in range(3)]


def test_answers_come_in_order_and_requests_are_remembered() -> None:
    first, second = turn("one"), turn(calls=[("a", "shell", "{}")])
    provider = Scripted([first, second])
    assert [provider.complete(request) for request in REQUESTS[:2]] == [first, second]
    assert provider.requests == REQUESTS[:2]


def test_an_exception_in_the_script_is_raised_and_the_script_goes_on() -> None:
    provider = Scripted([RateLimitedError("slow"), turn("two")])
    with pytest.raises(RateLimitedError, match="slow"):
        provider.complete(REQUESTS[0])
    assert provider.complete(REQUESTS[1]) == turn("two")


def test_a_script_that_has_ended_says_so() -> None:
    provider = Scripted([turn("one")])
    provider.complete(REQUESTS[0])
    with pytest.raises(ModelCallError, match="no answer to model call 2"):
        provider.complete(REQUESTS[1])


def test_a_turn_stops_for_the_reason_its_content_gives() -> None:
    spoken = turn("hi", calls=[("a", "shell", "{")])
    assert spoken.content == (Text(text="hi"), ToolCall(id="a", name="shell", arguments="{"))
    assert spoken.stop is StopReason.TOOL_USE
    assert turn("hi").stop is StopReason.END_TURN
    assert turn("hi", stop=StopReason.MAX_TOKENS).stop is StopReason.MAX_TOKENS


def test_a_streamed_turn_comes_in_pieces_that_make_it_up() -> None:
    spoken = turn("a text of some length", calls=[("a", "shell", '{"command": "ls"}')])
    deltas: list[ModelDelta] = []
    assert Scripted([spoken]).complete(REQUESTS[0], deltas.append) == spoken
    kinds = [delta.kind for delta in deltas]
    assert kinds == [
        *["text"] * 3,
        "call_start",
        *["call_arguments"] * 3,
        "call_done",
    ]
    assert "".join(delta.text for delta in deltas[:3]) == "a text of some length"
    assert "".join(delta.text for delta in deltas[4:7]) == '{"command": "ls"}'
    assert deltas[3].text == "shell"
    assert {delta.call_id for delta in deltas[3:]} == {"a"}


def test_an_exception_streams_nothing() -> None:
    deltas: list[ModelDelta] = []
    with pytest.raises(RateLimitedError):
        Scripted([RateLimitedError("slow")]).complete(REQUESTS[0], deltas.append)
    assert deltas == []


def test_a_remembered_request_does_not_change_with_the_conversation() -> None:
    messages = [Message(role="user", content=(Text(text="Go."),))]
    provider = Scripted([turn("one")])
    provider.complete(ModelRequest(model="m", system=None, messages=messages))
    messages.append(Message(role="user", content=(Text(text="Later."),)))
    assert provider.requests[0].messages == (messages[0],)

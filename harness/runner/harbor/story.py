"""A conversation in OpenAI's chat format as our trajectories tell it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from harness.cassette.convert.chat_calls import Transcript, text_of
from harness.schema.messages import Block, Message, Text, ToolCall, ToolResult
from harness.schema.record import Json, JsonObject, storable

_SYSTEM = ("system", "developer")


def system_of(conversations: Sequence[Transcript]) -> str | None:
    """The system prompt, if there is one."""
    said = [_text(one) for one in _all(conversations) if one.get("role") in _SYSTEM]
    return "\n\n".join(dict.fromkeys(said)) or None


def messages_of(conversations: Sequence[Transcript]) -> tuple[Message, ...]:
    """The turns: what stands between two answers is one turn of the user, results first."""
    every = list(_all(conversations))
    names = {call["id"]: call["name"] for one in every for call in _calls(one)}
    told = [one for one in every if one.get("role") not in _SYSTEM]
    turns = []
    for is_answer, group in groupby(told, key=lambda one: one.get("role") == "assistant"):
        if is_answer:
            turns += [Message(role="assistant", content=tuple(_answer(one))) for one in group]
        else:
            turns.append(Message(role="user", content=tuple(_heard(list(group), names))))
    return tuple(turns)


def _all(conversations: Sequence[Transcript]) -> Iterator[JsonObject]:
    for one in conversations:
        yield from one.messages


def _answer(message: JsonObject) -> Iterator[Block]:
    if text := _text(message):
        yield Text(text=text)
    for call in _calls(message):
        yield ToolCall(**call)


def _heard(messages: list[JsonObject], names: dict[str, str]) -> Iterator[Block]:
    results = [one for one in messages if one.get("role") == "tool"]
    for one in results:
        name = storable(str(one.get("tool_call_id")))
        yield ToolResult(call_id=name, name=names.get(name, "unknown"), content=_text(one))
    for one in messages:
        if one.get("role") != "tool":
            yield Text(text=_text(one))


def _calls(message: JsonObject) -> list[dict[str, str]]:
    """The calls of an answer, as the arguments of a `ToolCall`."""
    calls = message.get("tool_calls")
    return [_call(call) for call in calls] if isinstance(calls, list) else []


def _call(call: Json) -> dict[str, str]:
    given = call if isinstance(call, dict) else {}
    function = given.get("function")
    asked = function if isinstance(function, dict) else {}
    parts = {"id": given.get("id"), "name": asked.get("name"), "arguments": asked.get("arguments")}
    return {key: storable(str(value or "")) for key, value in parts.items()}


def _text(message: JsonObject) -> str:
    return storable(text_of(message.get("content")))

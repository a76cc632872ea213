"""Ids of tool calls that no two calls of a conversation share, as vendors want them."""

from __future__ import annotations

from collections.abc import Sequence

from harness.schema.messages import Block, Message, ToolCall, ToolResult


def with_unique_ids(messages: Sequence[Message]) -> Sequence[Message]:
    """The same conversation; a call whose id was there before gets a new one, and so its result.

    Local servers number the calls of each answer anew, or give none an id at all. The transcript
    keeps what they gave.
    """
    ids = [b.id for message in messages for b in message.content if b.type == "tool_call"]
    if len(set(ids)) == len(ids):
        return messages
    seen: set[str] = set()
    taken = set(ids)
    waiting: list[tuple[str, str]] = []
    renamed = []
    for message in messages:
        content: list[Block] = []
        if message.tool_calls:
            waiting = []
        for block in message.content:
            if isinstance(block, ToolCall):
                new = _fresh(block.id, seen, taken)
                waiting.append((block.id, new))
                content.append(block.model_copy(update={"id": new}))
            elif isinstance(block, ToolResult):
                new = _of_call(block.call_id, waiting)
                content.append(block.model_copy(update={"call_id": new}))
            else:
                content.append(block)
        renamed.append(Message(role=message.role, content=tuple(content)))
    return renamed


def _fresh(call_id: str, seen: set[str], taken: set[str]) -> str:
    new, number = call_id, 1
    while new in seen or (new != call_id and new in taken):
        number += 1
        new = f"{call_id}-{number}"
    seen.add(new)
    return new


def _of_call(call_id: str, waiting: list[tuple[str, str]]) -> str:
    """The new id of the first call of this id that has no result yet."""
    for place, (old, new) in enumerate(waiting):
        if old == call_id:
            del waiting[place]
            return new
    return call_id

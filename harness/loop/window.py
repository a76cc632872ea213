"""The sliding window: how much of a long conversation the model is sent."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TypeGuard

from harness.schema.loop_config import Window
from harness.schema.messages import Block, Message, Text, ToolCall, ToolResult, VendorBlock

_CHARACTERS_PER_TOKEN = 4


def estimate_tokens(message: Message) -> int:
    """The message's size in tokens, at four characters a token, rounded up."""
    written = [block.data for block in message.content if _is_written(block)]
    # A model that calls tools in text is sent what it wrote, and not the calls in it besides.
    characters = sum(
        map(len, (str(data["text"]) for data in written))
        if written
        else map(_characters, message.content)
    )
    return -(-characters // _CHARACTERS_PER_TOKEN)


def _is_written(block: Block) -> TypeGuard[VendorBlock]:
    return isinstance(block, VendorBlock) and block.dialect.startswith("text-")


def _characters(block: Block) -> int:
    match block:
        case Text():
            return len(block.text)
        case ToolCall():
            return len(block.id) + len(block.name) + len(block.arguments)
        case ToolResult():
            return len(block.call_id) + len(block.content)
        case _:
            return len(json.dumps(block.data, ensure_ascii=False))


class PinnedTail:
    """The pinned messages and the last turns of a conversation that grows at its end.

    Pinned is the first user message, with what stands before it. The tail begins right after it,
    until `drop_to` makes it begin later, at an assistant turn that follows a user turn: there no
    call is parted from its result. Following a conversation costs as much as what was added to
    it, since sizes are summed as it grows; the last message may still be exchanged for a longer
    one. A conversation that is not the grown one begins anew with all of its turns.
    """

    def __init__(self, *, sized: bool = True) -> None:
        """Begin before the first message.

        Args:
            sized: Whether `tokens` is wanted; estimating costs time.
        """
        self._sized = sized
        self._anchors: tuple[tuple[int, Message], ...] = ()
        self.pinned = 0
        self.start = 0
        self._summed = 0
        self._sum = 0
        self._last = 0

    def follow(self, messages: Sequence[Message]) -> bool:
        """Take in what is new; False when this conversation is not the grown one."""
        grown = len(self._anchors) > 0 and all(
            place < len(messages) and messages[place] is message for place, message in self._anchors
        )
        if not grown:
            self.pinned = self.start = _pinned(messages)
            self._summed = self._sum = 0
        # The last message is summed later: user turns grow until they are answered.
        newest = max(len(messages) - 1, 0)
        if self._sized:
            self._sum += sum(map(estimate_tokens, messages[self._summed : newest]))
            self._last = sum(map(estimate_tokens, messages[newest:]))
        self._summed = newest
        self._anchor(messages)
        return grown

    def is_start_of(self, messages: Sequence[Message]) -> bool:
        """Whether this conversation is the one that was followed, or has grown from it."""
        return (
            self.pinned > 0
            and 0 < self._summed < len(messages)
            and all(messages[place] is message for place, message in self._anchors)
        )

    @property
    def tokens(self) -> int:
        """Estimated size of the pinned messages and the tail."""
        return self._sum + self._last

    def next_start(self, messages: Sequence[Message], after: int | None = None) -> int | None:
        """The first place after the tail's beginning, or a later place, where it may begin."""
        for place in range((self.start if after is None else after) + 1, len(messages)):
            if messages[place].role == "assistant" and messages[place - 1].role == "user":
                return place
        return None

    def drop_to(self, messages: Sequence[Message], start: int) -> None:
        """Let the tail begin at a place that `next_start` gave."""
        if self._sized:
            self._sum -= sum(map(estimate_tokens, messages[self.start : start]))
        self.start = start
        self._anchor(messages)

    def _anchor(self, messages: Sequence[Message]) -> None:
        places = {max(self.pinned - 1, 0), self.start, self._summed - 1}
        self._anchors = tuple(
            (place, messages[place]) for place in places if 0 <= place < self._summed
        )


def _pinned(messages: Sequence[Message]) -> int:
    """How many messages are pinned: up to the first user message; 0 while there is none."""
    for place, message in enumerate(messages):
        if message.role == "user":
            return place + 1
    return 0


class SlidingWindow:
    """Cuts a growing conversation to the window; what it costs does not grow with the history."""

    def __init__(self, window: Window) -> None:
        self._window = window
        self._tail = PinnedTail(sized=window.max_tokens is not None)

    def visible(self, messages: Sequence[Message]) -> Sequence[Message]:
        """What is sent: the first user message and as many of the last turns as fit.

        Where not even the last turns fit, they are sent all the same: a window is never smaller
        than the pinned message and the last assistant turn with its answer.

        Args:
            messages: The whole conversation. Calling again with the grown one is cheap.

        Returns:
            `messages` itself when nothing is left out.
        """
        tail = self._tail
        tail.follow(messages)
        while self._is_over(len(messages)):
            start = tail.next_start(messages)
            if start is None:
                break
            tail.drop_to(messages, start)
        if tail.start == tail.pinned:
            return messages
        return (*messages[: tail.pinned], *messages[tail.start :])

    def _is_over(self, length: int) -> bool:
        limits, tail = self._window, self._tail
        count = tail.pinned + length - tail.start
        return (limits.max_messages is not None and count > limits.max_messages) or (
            limits.max_tokens is not None and tail.tokens > limits.max_tokens
        )

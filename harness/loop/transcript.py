"""The conversation of one run: grows at its end, and always takes turns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

from harness.schema.messages import Block, Message, Text, ToolResult
from harness.schema.record import storable


def user_text(text: str) -> Message:
    """A user message of plain text."""
    return Message(role="user", content=(Text(text=text),))


class Snapshot(Sequence[Message]):
    """The first messages of a list that only grows: taking one costs nothing."""

    def __init__(self, messages: list[Message]) -> None:
        self._messages = messages
        self._length = len(messages)

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> Message: ...

    @overload
    def __getitem__(self, index: slice) -> list[Message]: ...

    def __getitem__(self, index: int | slice) -> Message | list[Message]:
        wanted = range(self._length)[index]
        if isinstance(wanted, range):
            return [self._messages[position] for position in wanted]
        return self._messages[wanted]


class Transcript:
    """The messages so far; what the caller passed in is never changed."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self._messages = list(messages)

    @property
    def messages(self) -> Sequence[Message]:
        """The messages of this moment; what comes later does not show."""
        return Snapshot(self._messages)

    def replace(self, messages: Sequence[Message]) -> None:
        """Go on with another conversation."""
        self._messages = list(messages)

    def extend(self, messages: Sequence[Message]) -> None:
        """Go on with further messages."""
        for message in messages:
            if message.role == "user":
                self._add_user(message.content)
            else:
                self.add_assistant(message)

    def add_assistant(self, message: Message) -> None:
        """Add what the model said; a turn without content is left out, since no API takes one."""
        if message.content:
            self._messages.append(message)

    def add_results(self, results: Sequence[ToolResult]) -> None:
        """Add the answers to a turn's calls as one user turn."""
        self._add_user(tuple(results))

    def add_user(self, text: str) -> None:
        """Add text of the user's side, into the user turn that is still open if there is one."""
        self._add_user((Text(text=storable(text)),))

    def _add_user(self, blocks: tuple[Block, ...]) -> None:
        if not blocks:
            return
        if self._messages and self._messages[-1].role == "user":
            *before, last = self._messages
            # A new list: snapshots of the old one keep the shorter turn.
            self._messages = [*before, Message(role="user", content=(*last.content, *blocks))]
        else:
            self._messages.append(Message(role="user", content=blocks))

"""The conversation of one run: grows at its end, and always takes turns."""

from __future__ import annotations

from collections.abc import Sequence

from harness.schema.messages import Block, Message, Text, ToolResult


def user_text(text: str) -> Message:
    """A user message of plain text."""
    return Message(role="user", content=(Text(text=text),))


class Transcript:
    """The messages so far; what the caller passed in is never changed."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self.messages = tuple(messages)

    def add_assistant(self, message: Message) -> None:
        """Add what the model said; a turn without content is left out, since no API takes one."""
        if message.content:
            self.messages = (*self.messages, message)

    def add_results(self, results: Sequence[ToolResult]) -> None:
        """Add the answers to a turn's calls as one user turn."""
        self._add_user(tuple(results))

    def add_user(self, text: str) -> None:
        """Add text of the user's side, into the user turn that is still open if there is one."""
        self._add_user((Text(text=text),))

    def _add_user(self, blocks: tuple[Block, ...]) -> None:
        if not blocks:
            return
        if self.messages and self.messages[-1].role == "user":
            last = self.messages[-1]
            merged = Message(role="user", content=(*last.content, *blocks))
            self.messages = (*self.messages[:-1], merged)
        else:
            self.messages = (*self.messages, Message(role="user", content=blocks))

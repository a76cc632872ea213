"""Compaction: older turns give way to a summary, in what the model is sent."""

from __future__ import annotations

from collections.abc import Sequence

from harness.loop.window import PinnedTail, estimate_tokens
from harness.schema.loop_config import Compaction
from harness.schema.messages import Block, Message, Text, ToolCall, ToolResult
from harness.values import ModelRequest

SYSTEM = (
    "You condense the history of an agent's work, so that the agent can go on with your summary in"
    " place of the history."
)

_INSTRUCTION = (
    "Summarise the history for the agent. Keep what it needs to finish the task: facts it found,"
    " names, paths and values word for word, what it changed, what failed and why, and what is"
    " left to do. Add nothing that is not there. Answer with the summary only."
)

_HEADING = "Summary of the earlier turns, which are left out here:"


class Compactor:
    """Decides when a conversation is compacted, and what is sent instead of it.

    The engine makes the model call. One object serves one conversation, which it follows as it
    grows, at a cost that does not grow with it; the conversation itself stays whole.
    """

    def __init__(self, compaction: Compaction) -> None:
        self._limit = compaction.limit
        self._tail = PinnedTail()
        self._ask_above = self._limit
        self._asked: int | None = None
        self._summary: str | None = None
        self._summary_tokens = 0
        self._head: tuple[Message, ...] = ()

    def request(
        self,
        messages: Sequence[Message],
        *,
        model: str,
        max_output_tokens: int,
        temperature: float | None = None,
    ) -> ModelRequest | None:
        """What to ask the model before the next call, or None while there is no need.

        Asked for is a summary of all but the last turns, which fill half of the room that the
        pinned messages leave below the limit. An earlier summary is folded in. Before the next
        request the conversation must grow by a quarter of the limit, whatever came of this one.

        Args:
            messages: The whole conversation, ready to be sent.
            model: Writes the summary.
            max_output_tokens: Of the summary.
            temperature: Of the summary.
        """
        self._follow(messages)
        if self._tokens <= self._ask_above:
            return None
        self._wait()
        start = self._start_of_kept(messages)
        if start == self._tail.start:
            return None
        self._asked = start
        text = self._prompt(messages, start)
        return ModelRequest(
            model=model,
            system=SYSTEM,
            messages=(Message(role="user", content=(Text(text=text),)),),
            max_output_tokens=max_output_tokens,
            temperature=temperature,
        )

    def accept(self, messages: Sequence[Message], summary: str) -> None:
        """Take the answer to the last request; an empty one leaves things as they are."""
        start, self._asked = self._asked, None
        if start is None or not summary.strip():
            return
        self._tail.drop_to(messages, start)
        self._summary = summary.strip()
        block = Text(text=f"{_HEADING}\n{self._summary}")
        *before, pinned = messages[: self._tail.pinned]
        content = (*pinned.content, block)
        self._head = (*before, pinned.model_copy(update={"content": content}))
        self._summary_tokens = estimate_tokens(Message(role="user", content=(block,)))
        self._wait()

    def apply(self, messages: Sequence[Message]) -> Sequence[Message]:
        """What is sent: the task with the summary and the last turns.

        Returns:
            `messages` itself when there is no summary, or it is one of another conversation.
        """
        if self._summary is None or not self._tail.is_start_of(messages):
            return messages
        return (*self._head, *messages[self._tail.start :])

    @property
    def _tokens(self) -> int:
        return self._tail.tokens + self._summary_tokens

    def _wait(self) -> None:
        """Ask again after some growth only, whatever comes of this time."""
        self._ask_above = max(self._limit, self._tokens + self._limit // 4)

    def _follow(self, messages: Sequence[Message]) -> None:
        if not self._tail.follow(messages):
            self._ask_above, self._asked = self._limit, None
            self._summary, self._summary_tokens = None, 0

    def _start_of_kept(self, messages: Sequence[Message]) -> int:
        tail = self._tail
        pinned = _size(messages[: tail.pinned])
        room = max(self._limit - pinned - self._summary_tokens, 0) // 2
        start, kept = tail.start, tail.tokens - pinned
        while kept > room and (later := tail.next_start(messages, start)) is not None:
            kept -= _size(messages[start:later])
            start = later
        return start

    def _prompt(self, messages: Sequence[Message], start: int) -> str:
        tail = self._tail
        parts = [f"The agent's task:\n{_as_text(messages[: tail.pinned])}"]
        if self._summary is not None:
            parts.append(f"Summary of the history before:\n{self._summary}")
        parts += [f"The history:\n{_as_text(messages[tail.start : start])}", _INSTRUCTION]
        return "\n\n".join(parts)


def _size(messages: Sequence[Message]) -> int:
    return sum(map(estimate_tokens, messages))


def _as_text(messages: Sequence[Message]) -> str:
    """The turns as a text that every model takes; parts for one vendor only are left out."""
    lines = [_line(message.role, block) for message in messages for block in message.content]
    return "\n".join(line for line in lines if line)


def _line(role: str, block: Block) -> str:
    match block:
        case Text(text=text):
            return f"{role}: {text}" if text.strip() else ""
        case ToolCall():
            return f"{role} called {block.name}: {block.arguments}"
        case ToolResult():
            return f"{'error' if block.is_error else 'result'} of {block.name}: {block.content}"
        case _:
            return ""

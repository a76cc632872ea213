"""The answers to one turn's calls, and what they decided."""

from __future__ import annotations

from collections.abc import Sequence

from harness.loop.endings import Draft, Ending
from harness.schema.messages import ToolCall, ToolResult
from harness.schema.record import storable
from harness.schema.signals import Signal, Suspend
from harness.values import CallAndResult


class AnsweredTurn:
    """Exactly one result per call, in call order; filled position by position."""

    def __init__(self, calls: Sequence[ToolCall]) -> None:
        self.calls = tuple(calls)
        self.ending: Ending | None = None
        self.draft: Draft | None = None
        self.submitted = False
        self.completes_at: int | None = None
        """Position of a call that says the task is complete."""
        self.signals: list[Signal] = []
        self.suspend: Suspend | None = None
        self.executed: list[str] = []
        """Names of the tools that were really invoked."""
        self._results: dict[int, ToolResult] = {}
        self._handed_in: list[int] = []

    @property
    def results(self) -> list[ToolResult]:
        """The results so far, in call order."""
        return [self._results[position] for position in sorted(self._results)]

    @property
    def calls_and_results(self) -> list[CallAndResult]:
        """Every call with its result."""
        return [
            CallAndResult(call, self._results[position]) for position, call in enumerate(self.calls)
        ]

    def put(self, position: int, content: str, *, is_error: bool = False) -> None:
        """Answer a call."""
        call = self.calls[position]
        self._results[position] = ToolResult(
            call_id=call.id, name=call.name, content=storable(content), is_error=is_error
        )

    def put_handed_in(self, position: int, content: str, *, is_error: bool = False) -> None:
        """Answer an output or submit call, whose result a failed validation replaces."""
        self.put(position, content, is_error=is_error)
        self._handed_in.append(position)

    def fill(self, text: str) -> None:
        """Answer every call that has no result yet with an error."""
        for position in range(len(self.calls)):
            if position not in self._results:
                self.put(position, text, is_error=True)

    def reject(self, text: str) -> None:
        """Make a text the error result of what was handed in."""
        for position in self._handed_in:
            self.put(position, text, is_error=True)

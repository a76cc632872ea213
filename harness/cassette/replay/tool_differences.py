"""Tools that ran again, held against what is recorded of them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from harness.cassette.replay.echo import outputs
from harness.schema.record import JsonObject
from harness.values import ToolInvocation, ToolOutcome

_TYPES = "keystrokes"
"""The argument with what a terminal tool types."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A tool that gave something else than what was recorded."""

    name: str
    arguments: JsonObject
    recorded: ToolOutcome
    live: ToolOutcome


@dataclass(frozen=True, slots=True)
class _Ran:
    """A call that ran, and the turn whose calls are only known together, if it is of one."""

    found: Difference
    turn: str | None


class Differences:
    """Collects what differs; calls may come at the same time."""

    def __init__(self, same_text: Callable[[str], str]) -> None:
        """Begin with none.

        Args:
            same_text: A result's text as it is compared.
        """
        self._same_text = same_text
        self._lock = threading.Lock()
        self._ran: list[_Ran] = []

    def add(
        self,
        invocation: ToolInvocation,
        recorded: ToolOutcome,
        live: ToolOutcome,
        *,
        turn: str | None = None,
    ) -> None:
        """Compare a call's results.

        Args:
            invocation: The call.
            recorded: What the model was answered with.
            live: What it gave now.
            turn: The turn that it is of, where only what all its calls gave together is known.
        """
        found = Difference(invocation.name, invocation.arguments, recorded, live)
        if turn is not None or not self._alike(recorded, live):
            with self._lock:
                self._ran.append(_Ran(found, turn))

    def found(self) -> list[Difference]:
        """What differs, in the order of the calls; a turn is told by its last call."""
        with self._lock:
            ran = tuple(self._ran)
        turns: dict[str, list[Difference]] = {}
        typed: list[str] = []
        for one in ran:
            if one.turn is not None:
                turns.setdefault(one.turn, []).append(one.found)
        found = []
        for one in ran:
            if one.turn is None:
                found.append(one.found)
            elif calls := turns.pop(one.turn, None):
                before, typed = typed, [keys for call in calls for keys in _typed(call)]
                if differs := self._of_turn(calls, [*before, *typed]):
                    found.append(differs)
        return found

    def _alike(self, recorded: ToolOutcome, live: ToolOutcome) -> bool:
        return (self._same_text(recorded.content), recorded.status, recorded.asks) == (
            self._same_text(live.content),
            live.status,
            live.asks,
        )

    def _of_turn(self, calls: list[Difference], typed: list[str]) -> Difference | None:
        recorded, live = (
            _joined(outcomes)
            for outcomes in ([one.recorded for one in calls], [one.live for one in calls])
        )
        # After the last recorded answer nothing is known of what its calls gave.
        if not recorded:
            return None
        recorded, live = self._same_text(recorded), self._same_text(live)
        if typed:
            recorded, live = outputs(recorded, live, typed)
        if _bare(recorded) == _bare(live):
            return None
        last = calls[-1]
        return Difference(last.name, last.arguments, ToolOutcome(recorded), ToolOutcome(live))


def _typed(call: Difference) -> Iterator[str]:
    """What a call types into a terminal, if it does."""
    keys = call.arguments.get(_TYPES)
    if isinstance(keys, str):
        yield keys


def _joined(outcomes: Iterable[ToolOutcome]) -> str:
    return "\n".join(one.content for one in outcomes if one.content.strip())


def _bare(text: str) -> list[str]:
    """The lines of a screen, without the space that ends them and empty ones between."""
    return [line.rstrip() for line in text.split("\n") if line.strip()]

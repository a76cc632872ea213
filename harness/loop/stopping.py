"""When a run that could go on is stopped: repeated turns, stop conditions, callbacks at limits."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from harness.errors import error_line
from harness.loop.answered_turn import AnsweredTurn
from harness.loop.endings import Ending
from harness.loop.written_json import read_json
from harness.protocols import LimitCallback, StopTest, TerminalCheck
from harness.schema.loop_config import LoopConfig, StopCondition, TerminationReason
from harness.schema.messages import ToolCall
from harness.schema.signals import Signal
from harness.schema.trajectory import Trajectory


class LoopDetector:
    """Notices the same turn again and again."""

    def __init__(self, limit: int) -> None:
        """Take the number of identical turns in a row that is one too many; 0 is never."""
        self.limit = limit
        self._last: object = None
        self._times = 0

    def sees_too_many(self, calls: Sequence[ToolCall]) -> bool:
        """Take a turn; says whether it is the last straw. A turn without calls breaks the row."""
        signature = [(call.name, _canonical(call.arguments)) for call in calls]
        self._times = self._times + 1 if signature == self._last else 1
        self._last = signature
        return bool(self.limit and calls) and self._times >= self.limit


def _canonical(arguments: str) -> str:
    """Arguments with their keys in order; text that is no JSON as it is."""
    try:
        return json.dumps(read_json(arguments), sort_keys=True)
    except ValueError:
        return arguments


@dataclass(frozen=True, slots=True)
class Iteration:
    """What stop conditions look at: one iteration, and the run so far."""

    executed: Sequence[str]
    text: str
    tokens: int
    so_far: Callable[[], Trajectory]


class StopConditions:
    """Conditions of the settings, any of which ends the run with a signal."""

    def __init__(self, config: LoopConfig, custom: Mapping[str, StopTest]) -> None:
        self.conditions = config.stop_when
        self.custom = custom

    def met(self, iteration: Iteration) -> Ending | None:
        """The ending by the first condition that holds, or None."""
        for condition in self.conditions:
            if isinstance(condition, StopCondition):
                name = _built_in(condition, iteration)
                if name is not None:
                    return signalled(Signal(name=name))
                continue
            try:
                holds = self.custom[condition](iteration.so_far())
            except Exception as error:  # noqa: BLE001 - a run has a result for every ending
                return failed_by(f"the stop condition {condition!r}", error)
            if holds:
                return signalled(Signal(name=condition))
        return None


def _built_in(condition: StopCondition, iteration: Iteration) -> str | None:
    """The name of the signal if the condition holds."""
    if condition.tool_called is not None:
        holds = condition.tool_called in iteration.executed
        return f"tool_called:{condition.tool_called}" if holds else None
    if condition.text_contains is not None:
        holds = condition.text_contains in iteration.text
        return f"text_contains:{condition.text_contains}" if holds else None
    limit = condition.tokens_above
    return f"tokens_above:{limit}" if limit is not None and iteration.tokens > limit else None


def signal_of(
    turn: AnsweredTurn, config: LoopConfig, check: TerminalCheck | None
) -> Signal | Ending | None:
    """The signal that ends the run after a turn: the terminal check's before the tools'."""
    if check is not None:
        try:
            given = _as_signal(check(turn.calls_and_results))
        except Exception as error:  # noqa: BLE001 - a run has a result for every ending
            return failed_by("the terminal check", error)
        if given is not None:
            return given
    if not turn.signals:
        return None
    return turn.signals[0 if config.multi_signal == "first" else -1]


def ask_at_limit(callback: LimitCallback | None) -> Signal | Ending | None:
    """What the limit callback gives; an ending when it raises."""
    if callback is None:
        return None
    try:
        return _as_signal(callback())
    except Exception as error:  # noqa: BLE001 - a run has a result for every ending
        return failed_by("the limit callback", error)


def signalled(signal: Signal) -> Ending:
    """The ending by a signal."""
    return Ending(TerminationReason.SIGNAL, signal=signal)


def failed_by(what: str, error: Exception) -> Ending:
    """The ending by a function of the user's that raised."""
    return Ending(TerminationReason.ERROR, f"{what} failed: {error_line(error)}")


def _as_signal(given: Signal | str | None) -> Signal | None:
    if isinstance(given, Signal | None):
        return given
    if not isinstance(given, str):
        raise TypeError(f"a signal, a text or None is needed, not {type(given).__name__}")
    return Signal(name=given) if given else None

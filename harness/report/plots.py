"""Where things stand in the small pictures: one number line, shared by all rows of a picture."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from harness.analysis import numbers
from harness.analysis.comparison import Interval, MetricComparison, TaskDifference

MARGIN = 5.0
"""Percent of a row's drawing area left free at either end; no difference is in its middle."""

Tone = Literal["good", "bad", "neutral", "none"]

_STEPS = (1.0, 1.5, 2.0, 3.0, 5.0, 7.5)
_RATIO_LIMITS = (1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0, 100.0, 1000.0)


@dataclass(frozen=True, slots=True)
class Lollipop:
    """One task's difference: a line from "no difference" to a dot."""

    x: float
    """Percent of the width, as every position here."""
    tone: Tone


@dataclass(frozen=True, slots=True)
class Whiskers:
    """An effect with its interval."""

    x: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class NumberLine:
    """Maps differences to positions, the same for every row of a picture."""

    limit: float
    ratio: bool

    @classmethod
    def over(cls, *metrics: MetricComparison, with_tasks: bool = True) -> NumberLine:
        """One that holds every interval, and every task's difference, with a round end."""
        ratio = metrics[0].kind == "ratio"
        found = [0.0]
        for metric in metrics:
            if with_tasks:
                found += [abs(change(metric, task)) for task in metric.task_differences]
            ends = [metric.interval.low, metric.interval.high] if metric.interval else []
            if not ends and metric.effect is not None:
                ends = [metric.effect]
            found += [abs(math.log(end)) if ratio else abs(end) for end in ends]
        largest = max(found)
        return cls(_round_ratio(largest) if ratio else _round_up(largest), ratio)

    def at(self, value: float) -> float:
        """The position of a difference, or of the logarithm of a ratio."""
        share = max(-1.0, min(1.0, value / self.limit))
        return round(50 + share * (50 - MARGIN), 1)

    def effect(self, metric: MetricComparison) -> Whiskers | None:
        """The mean effect."""
        if metric.effect is None:
            return None
        interval = metric.interval or Interval(low=metric.effect, high=metric.effect)
        x, low, high = (
            self.at(math.log(value) if self.ratio else value)
            for value in (metric.effect, interval.low, interval.high)
        )
        return Whiskers(x, low, high) if metric.interval else Whiskers(x, None, None)

    def ticks(self, metric: MetricComparison) -> tuple[str, str, str]:
        """What stands at the left end, the middle and the right end."""
        if self.ratio:
            ends = (math.exp(-self.limit), 1.0, math.exp(self.limit))
            return (numbers.ratio(ends[0]), "same", numbers.ratio(ends[2]))
        form = numbers.points if metric.metric == "pass_rate" else numbers.signed
        return (form(-self.limit), "same", form(self.limit))


def change(metric: MetricComparison, task: TaskDifference) -> float:
    """A task's difference, or the logarithm of its ratio."""
    if metric.kind == "ratio":
        return math.log(task.candidate / task.baseline)
    return task.difference


def tone(metric: MetricComparison, value: float) -> Tone:
    """Whether a task moved to the better; only some metrics have a better end."""
    if value == 0:
        return "none"
    if metric.metric == "pass_rate":
        return "good" if value > 0 else "bad"
    if metric.kind == "ratio":
        return "good" if value < 0 else "bad"
    return "neutral"


def _round_up(largest: float) -> float:
    if largest <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(largest))
    return next(
        (step * power for step in _STEPS if step * power >= largest * (1 - 1e-9)), 10 * power
    )


def _round_ratio(largest: float) -> float:
    fitting = (math.log(limit) for limit in _RATIO_LIMITS if math.log(limit) >= largest - 1e-9)
    return next(fitting, largest)

"""What a comparison of two groups of trials found, ready to be shown or written as JSON."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from harness.schema.loop_config import TerminationReason
from harness.schema.record import Record

MetricName = Literal["pass_rate", "iterations", "attempts", "tool_calls", "tokens", "cost_usd"]
Direction = Literal["good", "bad", "neutral"]

LABELS: dict[MetricName, str] = {
    "pass_rate": "pass rate",
    "iterations": "iterations",
    "attempts": "attempts",
    "tool_calls": "tool calls",
    "tokens": "tokens",
    "cost_usd": "cost",
}
"""What people read instead of a metric's name."""


class Conclusion(StrEnum):
    """What may be said about a metric, or about the whole comparison."""

    BETTER = "better"
    WORSE = "worse"
    DIFFERENT = "different"
    """A clear difference in a metric where neither direction is the better one."""
    SAME = "same"
    """Equal in every compared task; no claim about other tasks."""
    INCONCLUSIVE = "inconclusive"


class Interval(Record):
    """A 95% confidence interval, in the unit of the effect."""

    low: float
    high: float


class TaskDifference(Record):
    """One task's means over its compared repeats."""

    task: str
    repeats: int
    """Compared pairs of trials."""
    baseline: float
    candidate: float
    difference: float
    """Candidate minus baseline, in the metric's unit."""


class LeftOut(Record):
    """Trials or pairs that were not compared."""

    reason: str
    count: int


class MetricComparison(Record):
    """One metric, compared over tasks. Means are means of task means."""

    metric: MetricName
    kind: Literal["difference", "ratio"]
    """Whether the effect is candidate minus baseline, or the geometric mean of their ratios."""
    tasks: int
    """Tasks compared: the number of independent observations."""
    baseline_mean: float | None
    candidate_mean: float | None
    effect: float | None
    interval: Interval | None
    """None where there are too few tasks for one, or no variation between them."""
    test: str
    p: float | None
    adjusted_p: float | None
    """Holm's correction over all tests of the comparison."""
    minimum_detectable: float | None = None
    """Pass rate only: the difference found four times in five; None where none could be."""
    direction: Direction
    """Of the observed effect, clear or not."""
    conclusion: Conclusion
    reason: str = ""
    """Why the conclusion is what it is, where numbers do not say it."""
    task_differences: tuple[TaskDifference, ...] = ()
    """Sorted by task."""
    left_out: tuple[LeftOut, ...] = ()
    """Pairs that lack this metric."""


class TokenPart(Record):
    """Input or output tokens: what the tokens are made of, in figures alone."""

    name: Literal["input", "output"]
    """Input is what the model was sent, read from a cache or not."""
    tasks: int
    baseline_mean: float
    candidate_mean: float
    ratio: float
    """The geometric mean of the tasks' ratios."""


class Transition(Record):
    """How often one ending under the baseline was another one under the candidate."""

    baseline: TerminationReason
    candidate: TerminationReason
    count: int
    """Pairs of trials with the same task and repeat."""


class EndingComparison(Record):
    """How endings moved."""

    transitions: tuple[Transition, ...]
    """Only those that occur, in the order of TerminationReason."""
    moved: int
    """Pairs that ended differently."""
    p: float | None
    adjusted_p: float | None
    conclusion: Conclusion
    """`different`, `same` or `inconclusive`."""

    @property
    def matrix(self) -> dict[tuple[TerminationReason, TerminationReason], int]:
        """(ending under the baseline, ending under the candidate) -> pairs."""
        return {(step.baseline, step.candidate): step.count for step in self.transitions}


class Comparison(Record):
    """Two variants (or one variant in two runs), compared as populations, paired by task."""

    baseline: str
    candidate: str
    tasks: int
    pairs: int
    """Pairs of trials with the same task and repeat, both usable."""
    headline: str
    """One sentence in plain English."""
    notes: tuple[str, ...]
    """Further sentences: other clear differences, and what was left out."""
    conclusion: Conclusion
    """That of the pass rate."""
    reason: str = ""
    metrics: tuple[MetricComparison, ...]
    """The pass rate first; the cost only where it is known."""
    token_parts: tuple[TokenPart, ...] = ()
    """Input and output apart, where they are known; nothing is concluded from them."""
    endings: EndingComparison
    left_out: tuple[LeftOut, ...] = ()
    """Trials that were not compared at all."""

    def metric(self, name: MetricName) -> MetricComparison | None:
        """The comparison of one metric, if it was made."""
        return next((entry for entry in self.metrics if entry.metric == name), None)

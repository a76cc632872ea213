"""The metrics of a comparison, each with the test and effect that fit it.

pass rate              sign-flip permutation (with one repeat: exact McNemar), difference,
                       standard error clustered by task
counts                 Wilcoxon signed-rank with Pratt's zeros, mean difference, BCa bootstrap
tokens, cost           sign-flip permutation on log ratios, geometric mean ratio, BCa bootstrap
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from harness.analysis import stats
from harness.analysis.comparison import (
    Conclusion,
    Direction,
    Interval,
    LeftOut,
    MetricComparison,
    MetricName,
    TaskDifference,
    TokenPart,
)
from harness.schema.results import TrialRecord
from harness.schema.trajectory import UsageTotal
from harness.scorers.efficiency import total_tokens

Pair = tuple[TrialRecord, TrialRecord]
"""Trials of one task and repeat: baseline, candidate."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One number of a trial, and how two variants are compared in it."""

    name: MetricName
    value: Callable[[TrialRecord], float | None]
    better: int
    """1: higher is better, -1: lower is better, 0: neither."""
    absent: str = ""
    """Why a pair may lack it."""
    ratio: bool = False


def _passed(trial: TrialRecord) -> float | None:
    return None if trial.outcome is None else float(trial.outcome == "passed")


def _tokens(trial: TrialRecord) -> float | None:
    total = total_tokens(trial.usage)
    return None if total is None or trial.usage.missing_calls else float(total)


def _iterations(trial: TrialRecord) -> float | None:
    return None if "iterations" in trial.untold else float(trial.iterations)


def _tool_calls(trial: TrialRecord) -> float | None:
    return None if "tool_calls" in trial.untold else float(trial.tool_calls_made)


def _input(trial: TrialRecord) -> float | None:
    return _known(trial.usage, (trial.usage.input, trial.usage.cache_write, trial.usage.cache_read))


def _output(trial: TrialRecord) -> float | None:
    return _known(trial.usage, (trial.usage.output,))


def _known(usage: UsageTotal, buckets: Sequence[int | None]) -> float | None:
    reported = [bucket for bucket in buckets if bucket is not None]
    return float(sum(reported)) if reported and not usage.missing_calls else None


_UNTOLD = "not told by the imported files"

METRICS = (
    Metric("pass_rate", _passed, better=1, absent="no verdict"),
    Metric("iterations", _iterations, better=0, absent=_UNTOLD),
    Metric("attempts", lambda trial: float(trial.attempts), better=0),
    Metric("tool_calls", _tool_calls, better=0, absent=_UNTOLD),
    Metric("tokens", _tokens, better=-1, absent="usage not fully reported", ratio=True),
    Metric(
        "cost_usd", lambda trial: trial.cost_usd, better=-1, absent="cost unknown or 0", ratio=True
    ),
)


def token_parts(pairs: dict[str, list[Pair]]) -> tuple[TokenPart, ...]:
    """Input and output tokens apart, each over the tasks that report it."""
    found: list[TokenPart] = []
    names: tuple[tuple[Literal["input", "output"], Callable[[TrialRecord], float | None]], ...]
    names = (("input", _input), ("output", _output))
    for name, value in names:
        metric = Metric("tokens", value, better=-1, ratio=True)
        tasks, _ = _task_differences(metric, pairs)
        if tasks:
            changes = [_change(metric, task) for task in tasks]
            found.append(
                TokenPart(
                    name=name,
                    tasks=len(tasks),
                    baseline_mean=math.fsum(task.baseline for task in tasks) / len(tasks),
                    candidate_mean=math.fsum(task.candidate for task in tasks) / len(tasks),
                    ratio=math.exp(math.fsum(changes) / len(changes)),
                )
            )
    return tuple(found)


def compare_metric(metric: Metric, pairs: dict[str, list[Pair]]) -> MetricComparison:
    """Compare one metric over tasks; p is not yet corrected and nothing is concluded from it."""
    tasks, lacking = _task_differences(metric, pairs)
    left_out = (LeftOut(reason=metric.absent, count=lacking),) if lacking else ()
    if not tasks:
        return _nothing(metric, left_out)
    changes = [_change(metric, task) for task in tasks]
    effect = math.fsum(changes) / len(changes)
    single = all(task.repeats == 1 for task in tasks)
    test, p = _test(metric, changes, single)
    same = all(task.baseline == task.candidate for task in tasks)
    return MetricComparison(
        metric=metric.name,
        kind="ratio" if metric.ratio else "difference",
        tasks=len(tasks),
        baseline_mean=math.fsum(task.baseline for task in tasks) / len(tasks),
        candidate_mean=math.fsum(task.candidate for task in tasks) / len(tasks),
        effect=math.exp(effect) if metric.ratio else effect,
        interval=_interval(metric, changes),
        test=test,
        p=p,
        adjusted_p=p,
        minimum_detectable=(
            stats.minimum_detectable(changes, single_repeat=single)
            if metric.name == "pass_rate"
            else None
        ),
        direction=_direction(effect * metric.better),
        conclusion=Conclusion.SAME if same else Conclusion.INCONCLUSIVE,
        task_differences=tuple(tasks),
        left_out=left_out,
    )


def _nothing(metric: Metric, left_out: tuple[LeftOut, ...]) -> MetricComparison:
    return MetricComparison(
        metric=metric.name,
        kind="ratio" if metric.ratio else "difference",
        tasks=0,
        baseline_mean=None,
        candidate_mean=None,
        effect=None,
        interval=None,
        test="none",
        p=None,
        adjusted_p=None,
        direction="neutral",
        conclusion=Conclusion.INCONCLUSIVE,
        reason=f"{metric.absent} in any pair" if left_out else "no pairs",
        left_out=left_out,
    )


def _task_differences(
    metric: Metric, pairs: dict[str, list[Pair]]
) -> tuple[list[TaskDifference], int]:
    """Per task the means over its usable pairs, and how many pairs lack the metric."""
    tasks, lacking = [], 0
    for task, members in pairs.items():
        values = [(metric.value(one), metric.value(other)) for one, other in members]
        known = [(one, other) for one, other in values if one is not None and other is not None]
        found = _task_difference(task, known)
        if not found or (metric.ratio and min(found.baseline, found.candidate) <= 0):
            lacking += len(members)
            continue
        lacking += len(members) - len(known)
        tasks.append(found)
    return tasks, lacking


def _task_difference(task: str, known: Sequence[tuple[float, float]]) -> TaskDifference | None:
    if not known:
        return None
    one, other = (math.fsum(side) / len(known) for side in zip(*known, strict=True))
    return TaskDifference(
        task=task, repeats=len(known), baseline=one, candidate=other, difference=other - one
    )


def _change(metric: Metric, task: TaskDifference) -> float:
    return math.log(task.candidate / task.baseline) if metric.ratio else task.difference


def _test(metric: Metric, changes: Sequence[float], single: bool) -> tuple[str, float]:
    if metric.ratio:
        return "sign-flip permutation on log ratios of task means", stats.sign_flip(changes)
    if metric.name == "pass_rate":
        name = "exact McNemar" if single else "sign-flip permutation on task means"
        return name, stats.sign_flip(changes)
    return "Wilcoxon signed-rank (Pratt) on task means", stats.wilcoxon_pratt(changes)


def _interval(metric: Metric, changes: Sequence[float]) -> Interval | None:
    if metric.name == "pass_rate":
        found = stats.t_interval(changes)
        return Interval(low=max(-1.0, found[0]), high=min(1.0, found[1])) if found else None
    found = stats.bootstrap_interval(changes)
    if found and metric.ratio:
        found = math.exp(found[0]), math.exp(found[1])
    return Interval(low=found[0], high=found[1]) if found else None


def _direction(gain: float) -> Direction:
    return "good" if gain > 0 else "bad" if gain < 0 else "neutral"

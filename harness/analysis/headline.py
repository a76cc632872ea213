"""What a comparison found, as sentences that claim no more than it shows."""

from __future__ import annotations

from collections.abc import Sequence

from harness.analysis import numbers
from harness.analysis.comparison import (
    LABELS,
    Comparison,
    Conclusion,
    LeftOut,
    MetricComparison,
    TaskDifference,
)
from harness.analysis.numbers import plural
from harness.analysis.stats import MIN_TASKS


def headline(comparison: Comparison) -> str:
    """The pass rate in one sentence."""
    who = f"{comparison.candidate} vs {comparison.baseline}"
    main = comparison.metrics[0]
    if not main.tasks:
        why = comparison.reason
        lost = _left_out(comparison.left_out, "trial")
        return f"{who}: inconclusive, because {why}{f' ({lost})' if lost else ''}."
    where = _extent(main.task_differences)
    if main.conclusion is Conclusion.SAME:
        rate = numbers.percent(main.baseline_mean)
        return f"{who}: pass rate {rate} in both, the same in every task ({where}){_limit(main)}."
    facts = f"{_from_to(main)} on {where} ({_evidence(main)})"
    if main.conclusion is Conclusion.INCONCLUSIVE:
        return f"{who}: {facts}: inconclusive{_limit(main)}."
    return f"{who}: {facts}: {main.conclusion}."


def notes(comparison: Comparison) -> tuple[str, ...]:
    """Other clear differences, how endings moved, and what was left out."""
    lines = [
        f"{_capital(_from_to(metric))} ({_evidence(metric)}): {metric.conclusion}."
        for metric in comparison.metrics[1:]
        if metric.conclusion not in (Conclusion.INCONCLUSIVE, Conclusion.SAME)
    ]
    endings = comparison.endings
    if endings.moved:
        verb = "ends" if endings.moved == 1 else "end"
        lines.append(
            f"{endings.moved} of {plural(comparison.pairs, 'pair')} {verb} differently"
            f" (adjusted {numbers.equation(endings.adjusted_p)}): {endings.conclusion}."
        )
    if comparison.pairs and comparison.left_out:
        lines.append(f"{_capital(_left_out(comparison.left_out, 'trial'))}.")
    lines += [
        f"{_capital(LABELS[metric.metric])}: {_left_out(metric.left_out, 'pair')}."
        for metric in comparison.metrics
        if metric.left_out
    ]
    return tuple(lines)


def narrowed(comparison: Comparison, metric: MetricComparison) -> Comparison:
    """The same comparison, of one metric alone."""
    lines = [f"{_capital(_left_out(comparison.left_out, 'trial'))}."] if comparison.left_out else []
    if metric.left_out:
        lines.append(f"{_capital(LABELS[metric.metric])}: {_left_out(metric.left_out, 'pair')}.")
    sentence = comparison.headline
    if metric.metric != comparison.metrics[0].metric:
        who = f"{comparison.candidate} vs {comparison.baseline}"
        why = f"; {metric.reason}" if metric.reason else ""
        facts = f"{_from_to(metric)} on {plural(metric.tasks, 'task')} ({_evidence(metric)})"
        sentence = f"{who}: {facts}: {metric.conclusion}{why}."
    return comparison.model_copy(
        update={"headline": sentence, "notes": tuple(lines), "metrics": (metric,)}
    )


def _from_to(metric: MetricComparison) -> str:
    before = numbers.metric_value(metric.metric, metric.baseline_mean)
    after = numbers.metric_value(metric.metric, metric.candidate_mean)
    return f"{LABELS[metric.metric]} {before} -> {after}"


def _evidence(metric: MetricComparison) -> str:
    parts = [numbers.metric_effect(metric)]
    if metric.interval and metric.metric == "pass_rate":
        parts.append(f"95% interval {numbers.points_interval(metric.interval)}")
    elif metric.interval:
        parts.append(f"95% interval {numbers.metric_interval(metric)}")
    parts.append(f"adjusted {numbers.equation(metric.adjusted_p)}")
    return ", ".join(parts)


def _limit(metric: MetricComparison) -> str:
    """What the comparison could not have seen."""
    if metric.reason:
        return f"; {metric.reason}"
    if metric.tasks < MIN_TASKS:
        return f"; fewer than {MIN_TASKS} tasks cannot show any difference"
    if metric.minimum_detectable is None:
        return "; so few and so different tasks can hardly show any difference"
    smallest = numbers.detectable(metric.minimum_detectable)
    return f"; a difference below {smallest} would often be missed"


def _extent(tasks: Sequence[TaskDifference]) -> str:
    repeats = {task.repeats for task in tasks}
    if len(repeats) == 1:
        return f"{plural(len(tasks), 'task')} × {plural(repeats.pop(), 'repeat')}"
    pairs = sum(task.repeats for task in tasks)
    return f"{plural(len(tasks), 'task')}, {plural(pairs, 'pair')} of trials"


def _left_out(left_out: Sequence[LeftOut], noun: str) -> str:
    if not left_out:
        return ""
    total = plural(sum(entry.count for entry in left_out), noun)
    if len(left_out) == 1:
        return f"{total} left out, {left_out[0].reason}"
    reasons = ", ".join(f"{entry.count} {entry.reason}" for entry in left_out)
    return f"{total} left out: {reasons}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]

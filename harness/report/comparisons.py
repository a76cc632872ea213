"""What the comparison of two variants looks like: verdict, metrics, tasks, endings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from harness.analysis import numbers
from harness.analysis.comparison import (
    LABELS,
    Comparison,
    Conclusion,
    LeftOut,
    MetricComparison,
    TaskDifference,
    TokenPart,
)
from harness.report.marks import ending_label
from harness.report.plots import Lollipop, NumberLine, Whiskers, change, tone
from harness.schema.loop_config import TerminationReason

CONCLUSION_SYMBOLS: dict[Conclusion, str] = {
    Conclusion.BETTER: "▲",
    Conclusion.WORSE: "▼",
    Conclusion.DIFFERENT: "◆",
    Conclusion.SAME: "=",
    Conclusion.INCONCLUSIVE: "~",
}

HEAT_STEPS = 4


@dataclass(frozen=True, slots=True)
class Badge:
    """A conclusion: a word, with a symbol and a colour."""

    word: str
    symbol: str


@dataclass(frozen=True, slots=True)
class MetricRow:
    """One metric in figures."""

    label: str
    term: str
    """Its key in the glossary."""
    baseline: str
    candidate: str
    effect: str
    interval: str
    p: str
    adjusted_p: str
    test: str
    tasks: int
    badge: Badge
    reason: str


@dataclass(frozen=True, slots=True)
class PartRow:
    """A part of a metric, in figures alone: it is not tested."""

    label: str
    baseline: str
    candidate: str
    effect: str
    tasks: int


@dataclass(frozen=True, slots=True)
class TaskLine:
    """One task in the picture of a metric."""

    task: str
    baseline: str
    candidate: str
    difference: str
    lollipop: Lollipop


@dataclass(frozen=True, slots=True)
class MetricPicture:
    """One metric per task, the largest difference first."""

    label: str
    row: MetricRow
    better: str
    """Which way is better, in words; empty where neither is."""
    ticks: tuple[str, str, str]
    whiskers: Whiskers | None
    tasks: tuple[TaskLine, ...]
    all_same: bool


@dataclass(frozen=True, slots=True)
class MatrixCell:
    """How many pairs ended so under the baseline and so under the candidate."""

    count: int
    heat: int
    """0 (none) to HEAT_STEPS (the most)."""
    same: bool
    """Whether both endings are the same."""
    label: str


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """One ending under the baseline."""

    ending: str
    cells: tuple[MatrixCell, ...]
    total: int


@dataclass(frozen=True, slots=True)
class EndingsMatrix:
    """Endings under the baseline against endings under the candidate."""

    columns: tuple[str, ...]
    rows: tuple[MatrixRow, ...]
    totals: tuple[int, ...]
    pairs: int
    moved: int
    p: str
    adjusted_p: str
    badge: Badge


@dataclass(frozen=True, slots=True)
class ComparisonView:
    """Everything about one candidate against the baseline."""

    baseline: str
    candidate: str
    anchor: str
    badge: Badge
    sentence: str
    """The headline without the names, which stand above it."""
    notes: tuple[str, ...]
    pass_rate: MetricRow
    interval: Whiskers | None
    """The effect on the pass rate, on a number line that all comparisons of the page share."""
    ticks: tuple[str, str, str]
    minimum_detectable: str
    tasks: int
    pairs: int
    left_out: tuple[LeftOut, ...]
    metrics: tuple[MetricRow, ...]
    token_parts: tuple[PartRow, ...]
    pictures: tuple[MetricPicture, ...]
    matrix: EndingsMatrix | None


def comparison_views(comparisons: Sequence[Comparison]) -> tuple[ComparisonView, ...]:
    """The comparisons of one page."""
    if not comparisons:
        return ()
    rates = [comparison.metrics[0] for comparison in comparisons]
    line = NumberLine.over(*rates, with_tasks=False)
    return tuple(
        _view(comparison, number, line) for number, comparison in enumerate(comparisons, 1)
    )


def _view(comparison: Comparison, number: int, line: NumberLine) -> ComparisonView:
    rate = comparison.metrics[0]
    pictures = tuple(_picture(metric) for metric in comparison.metrics)
    smallest = rate.minimum_detectable
    return ComparisonView(
        baseline=comparison.baseline,
        candidate=comparison.candidate,
        anchor=f"comparison-{number}",
        badge=_badge(comparison.conclusion),
        sentence=_sentence(comparison),
        notes=tuple(note.replace(" -> ", " → ") for note in comparison.notes),
        pass_rate=pictures[0].row,
        interval=line.effect(rate),
        ticks=line.ticks(rate),
        minimum_detectable=numbers.ABSENT if smallest is None else numbers.detectable(smallest),
        tasks=comparison.tasks,
        pairs=comparison.pairs,
        left_out=comparison.left_out,
        metrics=tuple(picture.row for picture in pictures),
        token_parts=tuple(map(_part, comparison.token_parts)),
        pictures=pictures,
        matrix=_matrix(comparison) if comparison.pairs else None,
    )


def _sentence(comparison: Comparison) -> str:
    names = f"{comparison.candidate} vs {comparison.baseline}: "
    text = comparison.headline.removeprefix(names).replace(" -> ", " → ")
    return text[:1].upper() + text[1:]


def _badge(conclusion: Conclusion) -> Badge:
    return Badge(conclusion.value, CONCLUSION_SYMBOLS[conclusion])


def _picture(metric: MetricComparison) -> MetricPicture:
    line = NumberLine.over(metric)
    ranked = sorted(
        metric.task_differences, key=lambda task: (-abs(change(metric, task)), task.task)
    )
    return MetricPicture(
        label=LABELS[metric.metric],
        row=_row(metric),
        better=_better(metric),
        ticks=line.ticks(metric),
        whiskers=line.effect(metric),
        tasks=tuple(_task_line(metric, line, task) for task in ranked),
        all_same=bool(ranked) and all(change(metric, task) == 0 for task in ranked),
    )


def _part(part: TokenPart) -> PartRow:
    return PartRow(
        label=f"{part.name} tokens",
        baseline=numbers.mean(part.baseline_mean),
        candidate=numbers.mean(part.candidate_mean),
        effect=numbers.ratio(part.ratio),
        tasks=part.tasks,
    )


def _better(metric: MetricComparison) -> str:
    if metric.metric == "pass_rate":
        return "right is better"
    return "left is better" if metric.kind == "ratio" else ""


def _row(metric: MetricComparison) -> MetricRow:
    lacking = ", ".join(
        f"{numbers.plural(entry.count, 'pair')} left out: {entry.reason}"
        for entry in metric.left_out
    )
    return MetricRow(
        label=LABELS[metric.metric],
        term=metric.metric,
        baseline=numbers.metric_value(metric.metric, metric.baseline_mean),
        candidate=numbers.metric_value(metric.metric, metric.candidate_mean),
        effect=numbers.metric_effect(metric),
        interval=numbers.metric_interval(metric),
        p=numbers.p_value(metric.p),
        adjusted_p=numbers.p_value(metric.adjusted_p),
        test=metric.test,
        tasks=metric.tasks,
        badge=_badge(metric.conclusion),
        reason="; ".join(filter(None, (metric.reason, lacking))),
    )


def _task_line(metric: MetricComparison, line: NumberLine, task: TaskDifference) -> TaskLine:
    moved = change(metric, task)
    if metric.kind == "ratio":
        difference = numbers.ratio(task.candidate / task.baseline)
    elif metric.metric == "pass_rate":
        difference = numbers.points(task.difference)
    else:
        difference = numbers.signed(task.difference)
    return TaskLine(
        task=task.task,
        baseline=numbers.metric_value(metric.metric, task.baseline),
        candidate=numbers.metric_value(metric.metric, task.candidate),
        difference=difference,
        lollipop=Lollipop(line.at(moved), tone(metric, moved)),
    )


def _matrix(comparison: Comparison) -> EndingsMatrix:
    endings = comparison.endings
    found = endings.matrix
    before = [reason for reason in TerminationReason if any(key[0] is reason for key in found)]
    after = [reason for reason in TerminationReason if any(key[1] is reason for key in found)]
    most = max(found.values())
    totals: Counter[TerminationReason] = Counter()
    for (_, to), count in found.items():
        totals[to] += count
    return EndingsMatrix(
        columns=tuple(ending_label(reason) for reason in after),
        rows=tuple(
            MatrixRow(
                ending_label(one),
                tuple(
                    _matrix_cell(one, other, found.get((one, other), 0), most) for other in after
                ),
                sum(count for (source, _), count in found.items() if source is one),
            )
            for one in before
        ),
        totals=tuple(totals[reason] for reason in after),
        pairs=comparison.pairs,
        moved=endings.moved,
        p=numbers.p_value(endings.p),
        adjusted_p=numbers.p_value(endings.adjusted_p),
        badge=_badge(endings.conclusion),
    )


def _matrix_cell(
    one: TerminationReason, other: TerminationReason, count: int, most: int
) -> MatrixCell:
    heat = 0 if count == 0 else max(1, round(HEAT_STEPS * count / most))
    said = f"{numbers.plural(count, 'pair')}: {ending_label(one)} → {ending_label(other)}"
    return MatrixCell(count, heat, one is other, said)

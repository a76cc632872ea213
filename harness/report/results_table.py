"""The table of tasks and variants: who passed what, how it ended, what it took."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from harness.analysis import numbers
from harness.report.marks import SYMBOLS, Mark, MarkKind, ending_label, mark, missing
from harness.schema.loop_config import UNSCORED, TerminationReason
from harness.schema.results import RunRecord, TrialRecord
from harness.schema.suite import Variant
from harness.scorers.efficiency import total_tokens

CellTrials = Mapping[tuple[str, str], Sequence[TrialRecord]]
"""(task, variant) -> its trials, by repeat."""


@dataclass(frozen=True, slots=True)
class EndingCount:
    """How many trials ended in one way."""

    label: str
    count: str
    plain: bool
    """Whether it is the ending nobody has to look at: completed."""


@dataclass(frozen=True, slots=True)
class Tally:
    """What some trials of one variant came to, as text."""

    passed: int
    judged: int
    """Trials with a verdict."""
    rate: str
    endings: tuple[EndingCount, ...]
    iterations: str
    """Mean over the trials that have a result."""
    tokens: str
    """Mean over the trials that have a result and reported all their usage."""

    @property
    def passed_of(self) -> str:
        """`2/3`; a dash where nothing was judged."""
        return f"{self.passed}/{self.judged}" if self.judged else numbers.ABSENT


@dataclass(frozen=True, slots=True)
class TableCell:
    """One task under one variant; no tally where the variant does not run this task."""

    variant: str
    marks: tuple[Mark, ...]
    tally: Tally | None


@dataclass(frozen=True, slots=True)
class TaskRow:
    """One task."""

    task: str
    cells: tuple[TableCell, ...]


@dataclass(frozen=True, slots=True)
class Total:
    """One variant over all its tasks."""

    variant: str
    tally: Tally
    tasks: int
    limited: bool
    """Whether other variants ran on tasks that this one did not."""
    baseline_there: str
    """What the baseline passed on the same tasks; empty where that says nothing new."""
    cost: str
    duration: str


@dataclass(frozen=True, slots=True)
class ResultsTable:
    """The whole table."""

    variants: tuple[str, ...]
    rows: tuple[TaskRow, ...]
    totals: tuple[Total, ...]
    tasks: int
    kinds: tuple[MarkKind, ...]
    """Kinds of marks in it, for the legend."""
    has_cost: bool
    has_limited: bool
    has_mixed: bool


def cells_of(trials: Iterable[TrialRecord]) -> dict[tuple[str, str], list[TrialRecord]]:
    """Trials by task and variant, each sorted by repeat."""
    cells: dict[tuple[str, str], list[TrialRecord]] = defaultdict(list)
    for trial in trials:
        cells[trial.task, trial.variant].append(trial)
    for members in cells.values():
        members.sort(key=lambda trial: trial.repeat)
    return dict(cells)


def results_table(
    run: RunRecord, trials: Sequence[TrialRecord], baseline: str | None
) -> ResultsTable:
    """Tasks and variants in the order of the run."""
    cells = cells_of(trials)
    rows = tuple(_row(task, run, cells) for task in _tasks(run, trials))
    totals = tuple(_total(variant, rows, cells, baseline) for variant in run.variants)
    marks = [mark for row in rows for cell in row.cells for mark in cell.marks]
    return ResultsTable(
        variants=tuple(variant.name for variant in run.variants),
        rows=rows,
        totals=totals,
        tasks=len(rows),
        kinds=tuple(kind for kind in SYMBOLS if any(mark.kind == kind for mark in marks)),
        has_cost=any(trial.cost_usd is not None for trial in trials),
        has_limited=any(total.limited for total in totals),
        has_mixed=any(mark.mixed for mark in marks),
    )


def tally(trials: Sequence[TrialRecord]) -> Tally:
    """Count and average some trials; those without a result count as endings alone."""
    scored = [trial for trial in trials if trial.termination_reason not in UNSCORED]
    judged = [trial for trial in scored if trial.outcome is not None]
    passed = sum(trial.outcome == "passed" for trial in judged)
    return Tally(
        passed=passed,
        judged=len(judged),
        rate=numbers.percent(passed / len(judged) if judged else None),
        endings=_endings(trials),
        iterations=numbers.mean(_mean(scored, told_iterations)),
        tokens=numbers.mean(_mean(scored, full_tokens)),
    )


def told_iterations(trial: TrialRecord) -> int | None:
    """A trial's iterations; None where others ran it and do not tell."""
    return None if "iterations" in trial.untold else trial.iterations


def full_tokens(trial: TrialRecord) -> int | None:
    """A trial's tokens; None where a call reported none, since the sum would be too small."""
    return None if trial.usage.missing_calls else total_tokens(trial.usage)


def _tasks(run: RunRecord, trials: Sequence[TrialRecord]) -> tuple[str, ...]:
    return tuple(dict.fromkeys([*run.tasks, *(trial.task for trial in trials)]))


def _row(task: str, run: RunRecord, cells: CellTrials) -> TaskRow:
    return TaskRow(task, tuple(_cell(task, variant, run, cells) for variant in run.variants))


def _cell(task: str, variant: Variant, run: RunRecord, cells: CellTrials) -> TableCell:
    members = cells.get((task, variant.name), ())
    if not members and not any(fnmatchcase(task, glob) for glob in variant.tasks):
        return TableCell(variant.name, (), None)
    held = {trial.repeat: mark(trial) for trial in members}
    repeats = sorted({*range(run.repeats), *held})
    marks = tuple(held.get(repeat) or missing(task, variant.name, repeat) for repeat in repeats)
    return TableCell(variant.name, marks, tally(members))


def _total(
    variant: Variant, rows: Sequence[TaskRow], cells: CellTrials, baseline: str | None
) -> Total:
    tasks = [row.task for row in rows if cells.get((row.task, variant.name))]
    trials = [trial for task in tasks for trial in cells[task, variant.name]]
    scored = [trial for trial in trials if trial.termination_reason not in UNSCORED]
    limited = len(tasks) < len(rows)
    there = ""
    if limited and baseline is not None and variant.name != baseline:
        other = tally([trial for task in tasks for trial in cells.get((task, baseline), ())])
        there = other.passed_of
    return Total(
        variant=variant.name,
        tally=tally(trials),
        tasks=len(tasks),
        limited=limited,
        baseline_there=there,
        cost=numbers.dollars(_mean(scored, lambda trial: trial.cost_usd)),
        duration=numbers.seconds(_mean(scored, lambda trial: trial.duration_s)),
    )


def _endings(trials: Sequence[TrialRecord]) -> tuple[EndingCount, ...]:
    found = Counter(trial.termination_reason for trial in trials)
    return tuple(
        EndingCount(
            ending_label(reason), numbers.count(found[reason]),
            plain=reason is TerminationReason.COMPLETED,
        )
        for reason in TerminationReason
        if reason in found
    )  # fmt: skip


def _mean(
    trials: Iterable[TrialRecord], value: Callable[[TrialRecord], float | None]
) -> float | None:
    known = [number for trial in trials if (number := value(trial)) is not None]
    return sum(known) / len(known) if known else None

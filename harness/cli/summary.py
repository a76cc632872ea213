"""What a run came to: the same numbers as a table and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from pydantic import Field

from harness.analysis import numbers
from harness.analysis.exact import UnscoredTrial, unscored_trial
from harness.analysis.misses import MissGroup, group_misses
from harness.cassette.playback import FaultPlan
from harness.cli.terminal import table
from harness.report.results_table import full_tokens, told_iterations
from harness.report.scenario_results import holding_line
from harness.runner.log import RunLog
from harness.schema.loop_config import UNSCORED, TerminationReason
from harness.schema.record import Record
from harness.schema.results import RequestChange, RunRecord, ToolChange, TrialRecord
from harness.scorers.outcome import reward
from harness.scorers.scenario import NAME as SCENARIO


class Group(Record):
    """Some trials of one variant."""

    variant: str
    trials: int
    passed: int
    judged: int
    """Trials with a verdict; only these can have passed."""
    endings: dict[TerminationReason, int]
    iterations: float | None
    """Mean over the trials that have a result."""
    tokens: float | None
    """Mean over the trials that have a result and reported all their usage."""
    cost_usd: float | None
    """Mean over the trials whose cost is known."""


class TaskSummary(Record):
    """One task under each variant that ran on it."""

    task: str
    variants: tuple[Group, ...]


class ScenarioSummary(Record):
    """A run of scenarios: the expectations that do not hold, one line each."""

    scenarios: int
    holding: int
    differences: tuple[str, ...]
    """`id: field: expected X, got Y`."""
    titles: dict[str, str] = Field(default_factory=dict)
    """Of the scenarios that do not hold and have one."""


class ToolDifferences(Record):
    """A trial whose tools gave something else than what was recorded, and was fed."""

    trial_id: str
    count: int
    first: str | None
    changes: tuple[ToolChange, ...]


class RequestDifferences(Record):
    """A trial whose model calls said something else than those whose answers they were given."""

    trial_id: str
    count: int
    changes: tuple[RequestChange, ...]
    """The first of them."""


class RunSummary(Record):
    """A run in short."""

    run_id: str
    folder: str
    report: str
    suite: str
    planned: int
    trials: int
    tasks: tuple[TaskSummary, ...]
    totals: tuple[Group, ...]
    unscored: tuple[UnscoredTrial, ...]
    """Misses and infrastructure errors."""
    skipped: tuple[UnscoredTrial, ...] = ()
    """Trials of tasks that this machine cannot run."""
    unjudged: tuple[UnscoredTrial, ...] = ()
    """Trials whose verifier gave no reward, with the reason."""
    misses: tuple[MissGroup, ...]
    """The misses among them by what changed, the most frequent first."""
    tool_differences: tuple[ToolDifferences, ...]
    """Trials whose tools ran again with another result."""
    request_differences: tuple[RequestDifferences, ...] = ()
    """Trials that were answered in order, whatever they asked, and asked something else."""
    unused: dict[str, int] = Field(default_factory=dict)
    """Trials that were answered in order and ended earlier, by how many answers were left."""
    scenarios: ScenarioSummary | None = None
    """None for a suite of tasks."""
    most_calls: int | None = None
    """Of a run with faults: how many calls its longest trial made, a client's retries included."""
    unmet_faults: tuple[str, ...] = ()
    """The parts of its `--faults` that chose later calls, so that nothing came of them."""


def summarise(log: RunLog, report: str) -> RunSummary:
    """Count and average a run's trials, by task and variant."""
    run, trials = log.run(), log.trials()
    variants = [variant.name for variant in run.variants]
    most = max((trial.calls_with_retries or 0 for trial in trials), default=0)
    return RunSummary(
        run_id=run.run_id,
        folder=str(log.folder),
        report=report,
        suite=run.suite,
        planned=run.planned_trials,
        trials=len(trials),
        tasks=tuple(
            TaskSummary(task=task, variants=_groups(variants, trials, task)) for task in run.tasks
        ),
        totals=_groups(variants, trials),
        unscored=tuple(
            unscored_trial(trial)
            for trial in trials
            if _is_unscored(trial) and not _is_skipped(trial)
        ),
        skipped=tuple(unscored_trial(trial) for trial in trials if _is_skipped(trial)),
        unjudged=tuple(
            unscored_trial(trial).model_copy(update={"error": reward(trial.verdict).explanation})
            for trial in trials
            if trial.verdict is not None and trial.outcome is None and not _is_unscored(trial)
        ),
        misses=group_misses(trials),
        tool_differences=tuple(
            ToolDifferences(
                trial_id=trial.trial_id,
                count=trial.tool_differences,
                first=trial.first_tool_difference,
                changes=trial.tool_changes,
            )
            for trial in trials
            if trial.tool_differences
        ),
        request_differences=tuple(
            RequestDifferences(
                trial_id=trial.trial_id,
                count=trial.request_differences,
                changes=trial.request_changes,
            )
            for trial in trials
            if trial.request_differences
        ),
        unused={trial.trial_id: trial.unused for trial in trials if trial.unused},
        scenarios=_scenarios(run, trials),
        most_calls=None if run.faults is None else most,
        unmet_faults=() if run.faults is None else FaultPlan.parse(run.faults).after(most),
    )


def _scenarios(run: RunRecord, trials: Sequence[TrialRecord]) -> ScenarioSummary | None:
    played = [trial for trial in trials if SCENARIO in trial.scores]
    if not played:
        return None
    failed = [trial for trial in played if trial.outcome != "passed"]
    lines = [line for trial in failed for line in trial.scores[SCENARIO].explanation.splitlines()]
    names = {trial.task for trial in played}
    return ScenarioSummary(
        scenarios=len(names),
        holding=len(names - {trial.task for trial in failed}),
        # Once, however often it was repeated.
        differences=tuple(dict.fromkeys(lines)),
        titles={trial.task: run.titles[trial.task] for trial in failed if trial.task in run.titles},
    )


def _groups(
    variants: Iterable[str], trials: Sequence[TrialRecord], task: str | None = None
) -> tuple[Group, ...]:
    found = []
    for variant in variants:
        members = [t for t in trials if t.variant == variant and task in (None, t.task)]
        if members:
            found.append(_group(variant, members))
    return tuple(found)


def _group(variant: str, trials: Sequence[TrialRecord]) -> Group:
    scored = [trial for trial in trials if not _is_unscored(trial)]
    judged = [trial for trial in scored if trial.outcome is not None]
    endings = Counter(trial.termination_reason for trial in trials)
    return Group(
        variant=variant,
        trials=len(trials),
        passed=sum(trial.outcome == "passed" for trial in judged),
        judged=len(judged),
        endings={reason: endings[reason] for reason in TerminationReason if reason in endings},
        iterations=_mean(scored, told_iterations),
        tokens=_mean(scored, full_tokens),
        cost_usd=_mean(scored, lambda trial: trial.cost_usd),
    )


def _is_unscored(trial: TrialRecord) -> bool:
    # A scenario is judged by its expectations, whatever its ending.
    return trial.termination_reason in UNSCORED and SCENARIO not in trial.scores


def _is_skipped(trial: TrialRecord) -> bool:
    return trial.termination_reason is TerminationReason.SKIPPED


def _mean(
    trials: Iterable[TrialRecord], value: Callable[[TrialRecord], float | None]
) -> float | None:
    known = [number for trial in trials if (number := value(trial)) is not None]
    return sum(known) / len(known) if known else None


def summary_lines(summary: RunSummary) -> list[str]:
    """The summary as a table: tasks down, variants across, totals below.

    Of scenarios, only what does not hold is worth a line.
    """
    if summary.scenarios is not None:
        found = summary.scenarios
        return [*_differing(found), f"{holding_line(found.holding, found.scenarios)}."]
    variants = [group.variant for group in summary.totals]
    rows = [["passed, of trials judged", *variants]]
    rows += [[task.task, *_across(variants, task.variants, _passed)] for task in summary.tasks]
    totals = [["all its tasks", *_across(variants, summary.totals, _passed)]]
    if any(len(_tasks_of(summary, name)) < len(summary.tasks) for name in variants):
        # Columns over different tasks do not compare; the first variant on the same tasks does.
        there = [_on_tasks(summary, variants[0], _tasks_of(summary, name)) for name in variants]
        if any(one != numbers.ABSENT for one in there):
            totals.append([f"{variants[0]} on the same tasks", *there])
    reasons = [r for r in TerminationReason if any(r in group.endings for group in summary.totals)]
    for reason in reasons:
        name = f"ended {reason.value.replace('_', ' ')}"
        totals.append([name, *_across(variants, summary.totals, _count_of(reason))])
    totals += [
        ["iterations, mean", *_across(variants, summary.totals, _iterations)],
        ["tokens, mean", *_across(variants, summary.totals, _tokens)],
    ]
    if any(group.cost_usd is not None for group in summary.totals):
        totals.append(["cost, mean", *_across(variants, summary.totals, _cost)])
    lines = table([*rows, *totals], right=range(1, len(variants) + 1))
    lines.insert(2 + len(summary.tasks), lines[1])
    return lines


def _differing(found: ScenarioSummary) -> Iterator[str]:
    """Each difference; the first of a scenario with its title after the id."""
    titles = dict(found.titles)
    for line in found.differences:
        name, _, rest = line.partition(": ")
        title = titles.pop(name, "")
        yield f"{name} ({title}): {rest}" if title else line


def _tasks_of(summary: RunSummary, variant: str) -> set[str]:
    return {
        task.task
        for task in summary.tasks
        if any(group.variant == variant for group in task.variants)
    }


def _on_tasks(summary: RunSummary, variant: str, tasks: Collection[str]) -> str:
    groups = [
        group
        for task in summary.tasks
        if task.task in tasks
        for group in task.variants
        if group.variant == variant
    ]
    judged = sum(group.judged for group in groups)
    return f"{sum(group.passed for group in groups)}/{judged}" if judged else numbers.ABSENT


def _across(
    variants: Sequence[str], groups: Iterable[Group], cell: Callable[[Group], str]
) -> list[str]:
    by_name = {group.variant: group for group in groups}
    return [cell(by_name[name]) if name in by_name else "" for name in variants]


def _passed(group: Group) -> str:
    return f"{group.passed}/{group.judged}" if group.judged else numbers.ABSENT


def _count_of(reason: TerminationReason) -> Callable[[Group], str]:
    return lambda group: numbers.count(group.endings.get(reason, 0))


def _iterations(group: Group) -> str:
    return numbers.mean(group.iterations)


def _tokens(group: Group) -> str:
    return numbers.mean(group.tokens)


def _cost(group: Group) -> str:
    return numbers.dollars(group.cost_usd)

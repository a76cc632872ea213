"""The committed baseline: made from a run, and held against later ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from harness.analysis.exact import (
    Difference,
    TrialDifferences,
    UnscoredTrial,
    differences_between,
    facts,
    grouped_lines,
    trial_differences,
    unscored_trial,
)
from harness.analysis.numbers import plural
from harness.errors import BadInputError
from harness.schema.loop_config import UNSCORED, TerminationReason
from harness.schema.record import Record
from harness.schema.results import Baseline, RunRecord, TrialRecord

_NAMED = 5
"""Trials that a one-line refusal names."""


class CheckResult(Record):
    """A run held against a baseline."""

    checked: int
    """Trials of the run that were held against the baseline, whatever came of it."""
    differing: tuple[TrialDifferences, ...]
    """Sorted by trial id; trials that the baseline does not hold are among them."""
    missing: tuple[str, ...]
    """Ids of trials that the run should hold and does not."""
    unscored: tuple[UnscoredTrial, ...]
    """Misses and infrastructure errors: nothing can be said about these."""
    skipped: tuple[UnscoredTrial, ...] = ()
    """Trials of tasks that this machine cannot run: told, and nothing against the run."""

    @property
    def holds(self) -> bool:
        """Whether every trial is there, has a result, and is as the baseline says."""
        return not (self.differing or self.missing or self.unscored)

    def lines(self) -> tuple[str, ...]:
        """What to print."""
        if self.holds:
            as_before = plural(self.checked - len(self.skipped), "trial")
            return (f"{as_before} as in the baseline.", *skipped_lines(self.skipped))
        lines: list[str] = []
        if self.differing:
            verb = "differs" if len(self.differing) == 1 else "differ"
            whole = plural(self.checked, "trial")
            lines.append(f"{len(self.differing)} of {whole} {verb} from the baseline.")
            lines += grouped_lines(self.differing)
        if self.missing:
            lines.append(f"{plural(len(self.missing), 'trial')} missing from the run:")
            lines += [f"  {trial_id}" for trial_id in self.missing]
        if self.unscored:
            lines.append(f"{plural(len(self.unscored), 'trial')} without a result:")
            lines += [line for trial in self.unscored for line in _unscored_lines(trial)]
        return (*lines, *skipped_lines(self.skipped))


def make_baseline(run: RunRecord, trials: Sequence[TrialRecord]) -> Baseline:
    """The facts of a complete run, to be committed; a skipped trial has none.

    Raises:
        BadInputError: a trial without a result, a trial that is there twice, or a run that was
            not finished.
    """
    where = f"run {run.run_id!r} cannot become a baseline"
    judged = [t for t in trials if t.termination_reason is not TerminationReason.SKIPPED]
    if broken := sorted(t.trial_id for t in judged if t.termination_reason in UNSCORED):
        raise BadInputError(
            f"{where}: no result in {_list(broken)}; record or repair them and run again"
        )
    if run.imported is not None:
        raise BadInputError(f"{where}: its trials were imported from {run.imported}; run a suite")
    if run.forked is not None:
        raise BadInputError(f"{where}: it is a fork of {run.forked.trial_id!r}; run the suite")
    if run.faults is not None:
        raise BadInputError(f"{where}: it was run with --faults {run.faults}; run without it")
    counts = Counter(trial.trial_id for trial in trials)
    if twice := sorted(trial_id for trial_id, count in counts.items() if count > 1):
        raise BadInputError(f"{where}: its log holds {_list(twice)} more than once; run again")
    if len(trials) < run.planned_trials:
        raise BadInputError(
            f"{where}: it holds {len(trials)} of {run.planned_trials} planned trials; run again"
        )
    ordered = sorted(judged, key=lambda trial: trial.trial_id)
    return Baseline(
        suite=run.suite,
        suite_version=run.suite_version,
        trials={trial.trial_id: facts(trial) for trial in ordered},
    )


def uncovered(run: RunRecord, old: Baseline) -> tuple[str, ...]:
    """Trials of an older baseline that a run says nothing about: its plan did not cover them.

    A baseline of another version of the suite has none: its facts hold no longer.
    """
    if old.suite_version != run.suite_version:
        return ()
    variants = {variant.name for variant in run.variants}

    def is_covered(trial_id: str) -> bool:
        task, variant, repeat = trial_id.rsplit("/", 2)
        return task in run.tasks and variant in variants and int(repeat) < run.repeats

    return tuple(sorted(trial_id for trial_id in old.trials if not is_covered(trial_id)))


def difference(trial: TrialRecord, baseline: Baseline) -> tuple[Difference, ...]:
    """Everything in which a trial is not what the baseline says; empty when it is."""
    expected = baseline.trials.get(trial.trial_id)
    if expected is None:
        ending = str(trial.termination_reason)
        return (Difference(field="trial", expected=None, got=ending),)
    return differences_between(expected, facts(trial))


def check(
    trials: Sequence[TrialRecord], baseline: Baseline, planned: Collection[str] | None = None
) -> CheckResult:
    """Hold a run against a baseline.

    Args:
        trials: The run's trials.
        baseline: What they should be.
        planned: Ids of the trials that a limited run was to make. None: the run must hold every
            trial of the baseline.
    """
    expected = set(baseline.trials if planned is None else planned)
    held = sorted(
        (trial for trial in trials if planned is None or trial.trial_id in expected),
        key=lambda trial: (trial.task, trial.variant, trial.repeat),
    )
    differing, unscored, skipped = [], [], []
    for trial in held:
        if trial.termination_reason is TerminationReason.SKIPPED:
            skipped.append(unscored_trial(trial))
        elif trial.termination_reason in UNSCORED:
            unscored.append(unscored_trial(trial))
        elif found := difference(trial, baseline):
            differing.append(trial_differences(trial, found))
    return CheckResult(
        checked=len(held),
        differing=tuple(differing),
        missing=tuple(sorted(expected - {trial.trial_id for trial in held})),
        unscored=tuple(unscored),
        skipped=tuple(skipped),
    )


def skipped_lines(skipped: Sequence[UnscoredTrial], *, detailed: bool = False) -> tuple[str, ...]:
    """Tasks that this machine cannot run, with the reason; nothing where there are none.

    Args:
        skipped: The trials.
        detailed: Show all of a reason, instead of its first line with what to do.
    """
    tasks: dict[str, dict[str, None]] = {}
    for trial in skipped:
        tasks.setdefault(trial.error, {})[trial.task] = None
    if not skipped:
        return ()
    reasons = (
        f"  {', '.join(names)}: {reason if detailed else first_line(reason)}"
        for reason, names in tasks.items()
    )
    return (f"{plural(len(skipped), 'trial')} skipped:", *reasons)


def first_line(text: str) -> str:
    """What an error says itself, without the words of a program that it may quote below."""
    first, _, rest = text.partition("\n")
    return first.removesuffix(":") if rest else first


def _unscored_lines(trial: UnscoredTrial) -> list[str]:
    heading = (
        f"  {trial.task} · {trial.variant} · repeat {trial.repeat}: {trial.termination_reason}"
    )
    return [heading, *(f"    {line}" for line in trial.error.splitlines())]


def _list(names: Sequence[str]) -> str:
    shown = ", ".join(map(repr, names[:_NAMED]))
    rest = len(names) - _NAMED
    return f"{shown} and {rest} more" if rest > 0 else shown

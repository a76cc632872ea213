"""Exact comparison: under replay, every difference between two versions of a trial is a fact."""

from __future__ import annotations

from collections.abc import Sequence

from harness.analysis.numbers import plural
from harness.schema.loop_config import UNSCORED
from harness.schema.record import Json, Record
from harness.schema.results import BaselineTrial, TrialRecord


class Difference(Record):
    """One fact that is not what it was."""

    field: str
    """For instance `iterations` or `usage.input`; `trial` where the whole trial is unknown."""
    expected: Json
    got: Json


class TrialDifferences(Record):
    """Everything that changed in one trial, the most telling fact first."""

    trial_id: str
    task: str
    variant: str
    repeat: int
    differences: tuple[Difference, ...]


class UnscoredTrial(Record):
    """A trial without a result, or one that was skipped: nothing can be said about it."""

    trial_id: str
    task: str
    variant: str
    repeat: int
    termination_reason: str
    error: str
    """The explanation, maybe of several lines."""


class RunsComparison(Record):
    """The trials that two runs have in common, held against each other exactly."""

    same: int
    differing: tuple[TrialDifferences, ...]
    """`expected` is the first run, `got` the second."""
    only_first: tuple[str, ...]
    """Trial ids that the second run lacks."""
    only_second: tuple[str, ...]
    unscored: tuple[UnscoredTrial, ...]
    """Trials of either run without a result, left out."""
    headline: str

    @property
    def identical(self) -> bool:
        """Whether both runs hold the same trials with the same facts."""
        return not (self.differing or self.only_first or self.only_second or self.unscored)


_USAGE = ("input", "output", "cache_write", "cache_read", "missing_calls")
_FIELDS = (
    "termination_reason",
    "outcome",
    "iterations",
    "attempts",
    "model_calls",
    "tool_calls_made",
    "tools_used",
    "validation_failures",
    "confirmed",
)
_RANK = {name: rank for rank, name in enumerate(("trial", *_FIELDS))}
_SHARED = ("trial", "termination_reason", "outcome")
"""Facts whose values head a group of trials; of the others only the name does."""
_FOLLOWING = ("usage.", "model_calls")
"""Facts that follow from another conversation, and only lengthen a line beside it."""
_WORDED = {"trial": "not in the baseline", "transcript_digest": "the conversation differs"}


def facts(trial: TrialRecord) -> BaselineTrial:
    """What replay must reproduce of a trial."""
    return BaselineTrial(**{name: getattr(trial, name) for name in BaselineTrial.model_fields})


def differences_between(expected: BaselineTrial, got: BaselineTrial) -> tuple[Difference, ...]:
    """Every fact that changed, the most telling one first."""
    before, after = expected.model_dump(mode="json"), got.model_dump(mode="json")
    pairs = [(name, before[name], after[name]) for name in _FIELDS]
    pairs += [(f"usage.{name}", before["usage"][name], after["usage"][name]) for name in _USAGE]
    pairs.append(("transcript_digest", before["transcript_digest"], after["transcript_digest"]))
    return tuple(
        Difference(field=name, expected=one, got=other)
        for name, one, other in pairs
        if one != other
    )


def compare_runs(first: Sequence[TrialRecord], second: Sequence[TrialRecord]) -> RunsComparison:
    """Hold two runs against each other: same task, variant and repeat, exactly."""
    one = {trial.trial_id: trial for trial in first}
    other = {trial.trial_id: trial for trial in second}
    same, differing, unscored = 0, [], []
    for trial_id in sorted(one.keys() & other.keys()):
        before, after = one[trial_id], other[trial_id]
        broken = [trial for trial in (before, after) if trial.termination_reason in UNSCORED]
        if broken:
            unscored.append(unscored_trial(broken[-1]))
        elif found := differences_between(facts(before), facts(after)):
            differing.append(trial_differences(after, found))
        else:
            same += 1
    only_first = tuple(sorted(one.keys() - other.keys()))
    only_second = tuple(sorted(other.keys() - one.keys()))
    parts = [f"{same} the same", f"{len(differing)} different"]
    parts += [f"{len(unscored)} without a result"] if unscored else []
    parts += [f"{len(only_first)} only in the first run"] if only_first else []
    parts += [f"{len(only_second)} only in the second run"] if only_second else []
    return RunsComparison(
        same=same,
        differing=tuple(differing),
        only_first=only_first,
        only_second=only_second,
        unscored=tuple(unscored),
        headline=f"Trials of both runs, compared exactly: {', '.join(parts)}.",
    )


def trial_differences(trial: TrialRecord, found: Sequence[Difference]) -> TrialDifferences:
    """The differences with the names of their trial."""
    return TrialDifferences(
        trial_id=trial.trial_id,
        task=trial.task,
        variant=trial.variant,
        repeat=trial.repeat,
        differences=tuple(found),
    )


def unscored_trial(trial: TrialRecord) -> UnscoredTrial:
    """A trial without a result, with its explanation."""
    return UnscoredTrial(
        trial_id=trial.trial_id,
        task=trial.task,
        variant=trial.variant,
        repeat=trial.repeat,
        termination_reason=str(trial.termination_reason),
        error=trial.error or "",
    )


def describe(found: TrialDifferences) -> str:
    """One line: task, variant, repeat, then each field with what was expected and what came."""
    return f"{_place(found)}: {'; '.join(_phrase(entry) for entry in found.differences)}"


def grouped_lines(differing: Sequence[TrialDifferences]) -> tuple[str, ...]:
    """The differences for a terminal: trials with the same leading change under one heading."""
    groups: dict[tuple[int, str], list[TrialDifferences]] = {}
    for found in differing:
        leading = found.differences[0]
        rank = _RANK.get(leading.field, len(_RANK))
        groups.setdefault((rank, _heading(leading)), []).append(found)
    lines: list[str] = []
    for (_, heading), members in sorted(groups.items(), key=lambda group: group[0]):
        lines.append(f"{heading} ({plural(len(members), 'trial')})")
        lines += [f"  {_member(found)}" for found in members]
    return tuple(lines)


def _heading(leading: Difference) -> str:
    if leading.field in _SHARED:
        return _phrase(leading)
    return f"{leading.field.split('.')[0]} changed, expected -> got"


def _member(found: TrialDifferences) -> str:
    """A trial under its heading, without what the heading says and what follows by itself."""
    fields = {entry.field for entry in found.differences}
    rest = [
        _short(entry)
        for position, entry in enumerate(found.differences)
        if not (position == 0 and entry.field in _SHARED)
        and not ("transcript_digest" in fields and entry.field.startswith(_FOLLOWING))
    ]
    return f"{_place(found)}{': ' if rest else ''}{', '.join(rest)}"


def _short(entry: Difference) -> str:
    if entry.field in _WORDED:
        return _WORDED[entry.field]
    return f"{entry.field} {_shown(entry.expected)} -> {_shown(entry.got)}"


def _place(found: TrialDifferences) -> str:
    return f"{found.task} · {found.variant} · repeat {found.repeat}"


def _phrase(entry: Difference) -> str:
    if entry.field in _WORDED:
        return _WORDED[entry.field]
    return f"{entry.field}: expected {_shown(entry.expected)}, got {_shown(entry.got)}"


def _shown(value: Json) -> str:
    if value is None:
        return "none"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return str(value).lower() if isinstance(value, bool) else str(value)

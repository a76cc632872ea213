"""What stands beside a run's numbers: trials without a result, other tool results, unmet faults."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from harness.analysis import numbers
from harness.analysis.exact import UnscoredTrial
from harness.analysis.misses import MissGroup
from harness.cli.summary import RequestDifferences, RunSummary, ToolDifferences
from harness.schema.loop_config import TerminationReason

_FEW_CAUSES = 4
_FEW_LINES = 16
_FEW_NAMES = 6
_FEW_CALLS = 10
_FEW_TRIALS = 4
_FEW_DIFF_LINES = 8


def unscored_lines(
    unscored: Sequence[UnscoredTrial],
    misses: Sequence[MissGroup],
    *,
    trials: int,
    record: str = "",
    explain: bool = False,
) -> list[str]:
    """How many trials have no result, and why: misses by cause, then whatever else failed.

    Args:
        unscored: All of them.
        misses: The misses among them, grouped.
        trials: How many trials there were.
        record: Command that records what is missing; may be empty.
        explain: Show every cause in full and name every trial, instead of what fits a screen.
    """
    counts = Counter(trial.termination_reason for trial in unscored)
    what = ", ".join(f"{count} {reason}" for reason, count in counts.items())
    tasks = _few(tuple(dict.fromkeys(trial.task for trial in unscored)), explain=explain)
    of_all = numbers.plural(trials, "trial")
    lines = [f"{len(unscored)} of {of_all} without a result ({what}), in {tasks}"]
    shown = misses if explain else misses[:_FEW_CAUSES]
    for group in shown:
        lines += _group_lines(group, explain=explain)
    if left := misses[len(shown) :]:
        members = sum(len(group.trials) for group in left)
        causes = numbers.plural(len(left), "more cause")
        lines.append(f"  {causes} of {numbers.plural(members, 'miss')}: see the report")
    known = {trial for group in misses for trial in group.trials}
    lines += _failures([one for one in unscored if one.trial_id not in known], explain=explain)
    missed = TerminationReason.REPLAY_MISS
    if record and any(one.termination_reason == missed for one in unscored):
        lines.append(f"To record what is missing: {record}")
    return lines


def _group_lines(group: MissGroup, *, explain: bool) -> Iterator[str]:
    count = numbers.plural(len(group.trials), "trial")
    tasks = _few(group.tasks, explain=explain)
    yield f"  {group.cause}: {count} of {tasks} ({', '.join(group.variants)})"
    difference = group.difference.splitlines()
    kept = len(difference) if explain else _FEW_LINES
    yield from (f"    {line}" for line in difference[:kept])
    if len(difference) > kept:
        yield f"    ... {len(difference) - kept} more lines"
    if explain:
        yield from (f"    in {trial}" for trial in group.trials)


def _failures(failed: Sequence[UnscoredTrial], *, explain: bool) -> Iterator[str]:
    by_error: dict[str, list[UnscoredTrial]] = {}
    for trial in failed:
        by_error.setdefault(trial.error, []).append(trial)
    for error, members in by_error.items():
        names = _few(tuple(trial.trial_id for trial in members), explain=explain)
        yield f"  {members[0].termination_reason}: {names}"
        yield from (f"    {line}" for line in error.splitlines())


def _few(names: Sequence[str], *, explain: bool) -> str:
    if explain or len(names) <= _FEW_NAMES:
        return ", ".join(names)
    return f"{', '.join(names[:_FEW_NAMES])} and {len(names) - _FEW_NAMES} more"


def unjudged_lines(unjudged: Sequence[UnscoredTrial]) -> list[str]:
    """Trials whose verifier gave no reward, each reason once; nothing where there are none."""
    if not unjudged:
        return []
    trials: dict[str, list[str]] = {}
    for trial in unjudged:
        trials.setdefault(" ".join(trial.error.split()), []).append(trial.trial_id)
    return [
        f"{numbers.plural(len(unjudged), 'trial')} without a verdict:",
        *(f"  {_few(names, explain=False)}: {reason}" for reason, names in trials.items()),
    ]


def difference_lines(differing: Sequence[ToolDifferences]) -> list[str]:
    """A warning where tools that ran again gave something else; else nothing."""
    if not differing:
        return []
    count = sum(one.count for one in differing)
    calls = numbers.plural(count, "tool call")
    trials = numbers.plural(len(differing), "trial")
    found = [(one.trial_id, change.summary) for one in differing for change in one.changes]
    lines = [
        f"warning: {calls} in {trials} gave something else than what is recorded; the model was "
        "answered with what is recorded",
        *(f"  {trial}: {summary}" for trial, summary in found[:_FEW_CALLS]),
    ]
    if count > min(len(found), _FEW_CALLS):
        more = numbers.plural(count - min(len(found), _FEW_CALLS), "more call")
        lines.append(f"  and {more}: see the trials in the report")
    return [*lines, ""]


def request_lines(differing: Sequence[RequestDifferences]) -> list[str]:
    """What trials that are answered in order said otherwise than was recorded; else nothing."""
    if not differing:
        return []
    calls = numbers.plural(sum(one.count for one in differing), "model call")
    trials = numbers.plural(len(differing), "trial")
    lines = [
        f"{calls} in {trials} said something else than what is recorded, and got the recorded "
        "answers in order"
    ]
    for one in differing[:_FEW_TRIALS]:
        places = ", ".join(str(change.call) for change in one.changes)
        more = ", …" if one.count > len(one.changes) else ""
        lines.append(f"  {one.trial_id}: {one.count}, in call {places}{more}")
        if one is differing[0] and one.changes:
            diff = one.changes[0].difference.splitlines()
            lines += [f"      {line}" for line in diff[:_FEW_DIFF_LINES]]
            if len(diff) > _FEW_DIFF_LINES:
                lines.append(f"      … {numbers.plural(len(diff) - _FEW_DIFF_LINES, 'more line')}")
    if len(differing) > _FEW_TRIALS:
        more = numbers.plural(len(differing) - _FEW_TRIALS, "more trial")
        lines.append(f"  and {more}: see the report")
    return [*lines, ""]


def unused_lines(unused: Mapping[str, int]) -> list[str]:
    """A warning where trials that are answered in order ended before the recording does."""
    if not unused:
        return []
    names = tuple(f"{name} ({count})" for name, count in unused.items())
    return [
        f"warning: {numbers.plural(sum(unused.values()), 'recorded answer')} of "
        f"{numbers.plural(len(unused), 'trial')} came to no use, since the loop ended before the "
        "recording does; another --preset or limit may fit",
        f"  {_few(names, explain=False)}",
        "",
    ]


def fault_lines(summary: RunSummary) -> list[str]:
    """A warning where faults were to come later than any call was made; else nothing."""
    if not summary.unmet_faults:
        return []
    calls = numbers.plural(summary.most_calls or 0, "model call")
    return [
        f"warning: nothing came of --faults {','.join(summary.unmet_faults)}: no trial made more "
        f"than {calls}, retries included",
        "",
    ]

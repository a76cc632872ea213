"""Misses that have the same reason, told once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from harness.schema.record import Record
from harness.schema.results import MissCause, TrialRecord

_FEW_CAUSES = 3


class MissGroup(Record):
    """Trials that miss a recording for the same reason."""

    cause: str
    """What is not as it was recorded."""
    difference: str
    """The first of them, as a unified diff or in words; may be empty."""
    tasks: tuple[str, ...]
    variants: tuple[str, ...]
    trials: tuple[str, ...]
    """Trial ids."""


def group_misses(trials: Iterable[TrialRecord]) -> tuple[MissGroup, ...]:
    """The misses among some trials by what changed, the most frequent first."""
    groups: dict[str, list[tuple[TrialRecord, MissCause]]] = {}
    for trial in trials:
        if trial.miss is not None:
            groups.setdefault(_key(trial.miss), []).append((trial, trial.miss))
    found = [_group(members) for members in groups.values()]
    return tuple(sorted(found, key=lambda group: -len(group.trials)))


def _group(members: Sequence[tuple[TrialRecord, MissCause]]) -> MissGroup:
    trials = [trial for trial, _ in members]
    causes = [cause for cause, _ in Counter(miss.cause for _, miss in members).most_common()]
    more = f" and {len(causes) - _FEW_CAUSES} more" if len(causes) > _FEW_CAUSES else ""
    return MissGroup(
        cause=", ".join(causes[:_FEW_CAUSES]) + more,
        difference=members[0][1].difference,
        tasks=tuple(dict.fromkeys(trial.task for trial in trials)),
        variants=tuple(dict.fromkeys(trial.variant for trial in trials)),
        trials=tuple(trial.trial_id for trial in trials),
    )


def _key(miss: MissCause) -> str:
    """What changed, wherever it stands and whatever stands around it."""
    heads = ("--- ", "+++ ")
    changed = [
        f"{line[0]}{line[1:].strip()}"
        for line in miss.difference.splitlines()
        if line.startswith(("-", "+")) and not line.startswith(heads)
    ]
    return "\n".join(changed) or f"{miss.cause}\n{miss.difference}"

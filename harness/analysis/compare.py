"""Compares two variants as populations: paired by task, each task's repeats averaged first."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from harness.analysis.comparison import (
    Comparison,
    Conclusion,
    EndingComparison,
    LeftOut,
    MetricComparison,
    Transition,
)
from harness.analysis.headline import headline, notes
from harness.analysis.metrics import METRICS, Pair, compare_metric, token_parts
from harness.analysis.numbers import equation
from harness.analysis.stats import ALPHA, MIN_TASKS, holm, marginal_shift
from harness.errors import BadInputError
from harness.schema.loop_config import UNSCORED, TerminationReason
from harness.schema.results import TrialRecord

Pairs = dict[str, list[Pair]]
"""Task -> its pairs; tasks and repeats sorted."""
Cell = tuple[str, int]
"""Task and repeat."""


def compare_variants(trials: Sequence[TrialRecord], baseline: str, candidate: str) -> Comparison:
    """Compare two variants of one run.

    Raises:
        BadInputError: a variant that the run does not have, or the same one twice.
    """
    known = sorted({trial.variant for trial in trials})
    for name in (baseline, candidate):
        if name not in known:
            held = f"choose from {', '.join(known)}" if known else "the run has no trials"
            raise BadInputError(f"variant {name!r} is not in the run: {held}")
    if baseline == candidate:
        raise BadInputError(f"baseline and candidate are both {baseline!r}: name two variants")
    return compare_populations(
        [trial for trial in trials if trial.variant == baseline],
        [trial for trial in trials if trial.variant == candidate],
        baseline=baseline,
        candidate=candidate,
    )


def compare_populations(
    first: Sequence[TrialRecord], second: Sequence[TrialRecord], *, baseline: str, candidate: str
) -> Comparison:
    """Compare two groups of trials, paired by task and repeat; the names are labels only.

    Trials without a result (a miss, an infrastructure error), trials answered by several models,
    and trials without a counterpart are left out and counted. A task's means are taken over its
    remaining pairs; tests and intervals then see one number per task.

    Raises:
        BadInputError: a task and repeat that is twice in one group.
    """
    pairs, left_out = _paired(first, second)
    drafts = [compare_metric(metric, pairs) for metric in METRICS]
    drafts = [draft for draft in drafts if draft.tasks or draft.metric != "cost_usd"]
    metrics, endings = _concluded(drafts, _endings(pairs))
    comparison = Comparison(
        baseline=baseline,
        candidate=candidate,
        tasks=len(pairs),
        pairs=sum(map(len, pairs.values())),
        headline="",
        notes=(),
        conclusion=metrics[0].conclusion,
        reason=metrics[0].reason if pairs else "no task has a usable trial of both",
        metrics=metrics,
        token_parts=token_parts(pairs),
        endings=endings,
        left_out=left_out,
    )
    return comparison.model_copy(
        update={"headline": headline(comparison), "notes": notes(comparison)}
    )


def _paired(
    first: Sequence[TrialRecord], second: Sequence[TrialRecord]
) -> tuple[Pairs, tuple[LeftOut, ...]]:
    one, other = _by_cell(first), _by_cell(second)
    reasons: Counter[str] = Counter()
    pairs: Pairs = defaultdict(list)
    for cell in sorted(one.keys() | other.keys()):
        members = [side[cell] for side in (one, other) if cell in side]
        faults = [fault for trial in members if (fault := _fault(trial))]
        reasons.update(faults)
        if len(members) == 2 and not faults:
            pairs[cell[0]].append((members[0], members[1]))
        else:
            why = "not run by both" if len(members) == 1 else "counterpart left out"
            reasons[why] += len(members) - len(faults)
    left_out = tuple(
        LeftOut(reason=reason, count=count) for reason, count in sorted(reasons.items()) if count
    )
    return dict(pairs), left_out


def _by_cell(trials: Sequence[TrialRecord]) -> dict[Cell, TrialRecord]:
    cells: dict[Cell, TrialRecord] = {}
    for trial in trials:
        cell = (trial.task, trial.repeat)
        if cell in cells:
            raise BadInputError(
                f"trial {trial.trial_id!r} is in the log twice: remove one of its lines"
            )
        cells[cell] = trial
    return cells


def _fault(trial: TrialRecord) -> str | None:
    """Why a trial cannot be compared."""
    if trial.termination_reason in UNSCORED:
        return str(trial.termination_reason)
    return "answered by several models" if trial.mixed else None


def _endings(pairs: Pairs) -> EndingComparison:
    steps = Counter(
        (one.termination_reason, other.termination_reason)
        for members in pairs.values()
        for one, other in members
    )
    moved = sum(count for (before, after), count in steps.items() if before is not after)
    p = marginal_shift([_shares_moved(members) for members in pairs.values()]) if pairs else None
    return EndingComparison(
        transitions=tuple(
            Transition(baseline=before, candidate=after, count=steps[before, after])
            for before in TerminationReason
            for after in TerminationReason
            if (before, after) in steps
        ),
        moved=moved,
        p=p,
        adjusted_p=p,
        conclusion=Conclusion.SAME if pairs and not moved else Conclusion.INCONCLUSIVE,
    )


def _shares_moved(members: Sequence[Pair]) -> list[float]:
    """For each ending: its share of the task's candidate trials minus that of the baseline's."""
    change: Counter[TerminationReason] = Counter()
    for one, other in members:
        change[other.termination_reason] += 1
        change[one.termination_reason] -= 1
    return [change[ending] / len(members) for ending in TerminationReason]


def _concluded(
    metrics: Sequence[MetricComparison], endings: EndingComparison
) -> tuple[tuple[MetricComparison, ...], EndingComparison]:
    """Holm over every test that was made, and what may be said after it."""
    tests = [*(metric.p for metric in metrics), endings.p]
    raw = [p for p in tests if p is not None]
    adjusted = iter(holm(raw))
    concluded = tuple(
        metric if metric.p is None else _conclude(metric, next(adjusted), len(raw))
        for metric in metrics
    )
    if endings.p is None:
        return concluded, endings
    p = next(adjusted)
    clear = Conclusion.DIFFERENT if p <= ALPHA else endings.conclusion
    return concluded, endings.model_copy(update={"adjusted_p": p, "conclusion": clear})


def _conclude(metric: MetricComparison, p: float, tests: int) -> MetricComparison:
    conclusion, reason = metric.conclusion, metric.reason
    if p <= ALPHA:
        conclusion = {
            "good": Conclusion.BETTER,
            "bad": Conclusion.WORSE,
            "neutral": Conclusion.DIFFERENT,
        }[metric.direction]
    elif metric.p is not None and metric.p <= ALPHA:
        reason = f"{equation(metric.p)} by itself, not clear once corrected for {tests} tests"
    elif metric.tasks < MIN_TASKS and conclusion is Conclusion.INCONCLUSIVE:
        reason = f"fewer than {MIN_TASKS} tasks cannot show any difference"
    return metric.model_copy(update={"adjusted_p": p, "conclusion": conclusion, "reason": reason})

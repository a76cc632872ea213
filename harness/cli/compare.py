"""`harness compare`: two variants of a run, or the same variants of two runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

import click

from harness.analysis import numbers
from harness.analysis.compare import compare_populations, compare_variants
from harness.analysis.comparison import (
    LABELS,
    Comparison,
    Conclusion,
    MetricComparison,
    MetricName,
    TokenPart,
)
from harness.analysis.exact import RunsComparison, compare_runs, grouped_lines
from harness.analysis.headline import narrowed
from harness.cli import FINE, UNDECIDED
from harness.cli.options import make_command
from harness.cli.run_folder import find_run
from harness.cli.terminal import Terminal, table
from harness.errors import BadInputError
from harness.runner.log import RunLog
from harness.schema.results import TrialRecord


@make_command("compare", example="harness compare last --baseline baseline --candidate skills")
@click.argument("runs", nargs=-1, required=True, metavar="RUN [RUN]")
@click.option("--baseline", metavar="NAME", help="Variant to compare with.  [default: the first]")
@click.option("--candidate", metavar="NAME", help="Variant to judge.  [default: all others]")
@click.option("--metric", type=click.Choice(get_args(MetricName)), help="Only this metric.")
@click.option("--strict", is_flag=True, help="Exit with 3 where the comparison is inconclusive.")
def command(
    terminal: Terminal,
    runs: tuple[str, ...],
    baseline: str | None,
    candidate: str | None,
    metric: MetricName | None,
    strict: bool,
) -> int:
    """Compare variants of one run, or the same variants of two runs.

    Two runs are held against each other exactly, trial by trial, and then as populations, paired
    by task. RUN is a run's folder, its id under reports/, or `last`.
    """
    logs = [find_run(run) for run in runs]
    exact = None
    if len(logs) == 1:
        found = _one_run(logs[0], baseline, candidate)
    elif len(logs) == 2:
        exact = compare_runs(logs[0].trials(), logs[1].trials())
        found = _two_runs(logs[0], logs[1], baseline, candidate)
    else:
        raise BadInputError(f"compare takes one run or two, not {len(logs)}")
    if metric:
        found = [_only(one, metric) for one in found]
    data = {
        "exact": exact.model_dump(mode="json") if exact else None,
        "comparisons": [one.model_dump(mode="json") for one in found],
    }
    terminal.result(data, [*(_exact_lines(exact) if exact else ()), *_lines(found)])
    undecided = any(_conclusion(one, metric) is Conclusion.INCONCLUSIVE for one in found)
    return UNDECIDED if strict and undecided else FINE


def _one_run(log: RunLog, baseline: str | None, candidate: str | None) -> list[Comparison]:
    trials = log.trials()
    present = {trial.variant for trial in trials}
    names = [variant.name for variant in log.run().variants if variant.name in present]
    if baseline is None:
        baseline = next((name for name in names if name != candidate), candidate)
    if baseline is None:
        raise BadInputError(f"{log.folder}: the run has no trials to compare; run the suite again")
    candidates = [candidate] if candidate else [name for name in names if name != baseline]
    if not candidates:
        raise BadInputError(
            f"{log.folder}: the run has only the variant {baseline!r}; name a second run, or run "
            "more variants"
        )
    return [compare_variants(trials, baseline, name) for name in candidates]


def _two_runs(
    first: RunLog, second: RunLog, baseline: str | None, candidate: str | None
) -> list[Comparison]:
    """Each variant of both runs, or the one that is named; two names compare across the runs."""
    one, other = first.trials(), second.trials()
    in_both = [
        variant.name
        for variant in first.run().variants
        if all(_of(trials, variant.name) for trials in (one, other))
    ]
    named = baseline or candidate
    pairs = [(baseline or named, candidate or named)] if named else [(n, n) for n in in_both]
    found = []
    for before, after in pairs:
        for name, log in ((before, first), (after, second)):
            if not _of(log.trials(), name):
                raise BadInputError(f"{log.folder}: the run has no trials of variant {name!r}")
        found.append(
            compare_populations(
                _of(one, before),
                _of(other, after),
                baseline=f"{before} in {first.run().run_id}",
                candidate=f"{after} in {second.run().run_id}",
            )
        )
    if not found:
        raise BadInputError(f"{first.folder} and {second.folder} have no variant in common")
    return found


def _of(trials: Sequence[TrialRecord], variant: str | None) -> list[TrialRecord]:
    return [trial for trial in trials if trial.variant == variant]


def _only(comparison: Comparison, metric: MetricName) -> Comparison:
    kept = comparison.metric(metric)
    if kept is None:
        raise BadInputError(f"{LABELS[metric]} is not known in these trials; leave --metric out")
    return narrowed(comparison, kept)


def _conclusion(comparison: Comparison, metric: MetricName | None) -> Conclusion:
    chosen = comparison.metric(metric) if metric else None
    return chosen.conclusion if chosen else comparison.conclusion


def _exact_lines(exact: RunsComparison) -> list[str]:
    lines = [exact.headline, *grouped_lines(exact.differing)]
    for names, where in ((exact.only_first, "first"), (exact.only_second, "second")):
        lines += [f"only in the {where} run: {name}" for name in names]
    lines += [f"without a result: {trial.trial_id}" for trial in exact.unscored]
    return [*lines, ""]


def _lines(found: Sequence[Comparison]) -> list[str]:
    lines: list[str] = []
    for comparison in found:
        lines += [comparison.headline, *(f"  {note}" for note in comparison.notes)]
        heading = ["metric", "tasks", "baseline", "candidate", "effect", "95% interval"]
        heading += ["adjusted p", "conclusion"]
        rows = [heading]
        for metric in comparison.metrics:
            rows.append(_row(metric))
            if metric.metric == "tokens":
                rows += map(_part_row, comparison.token_parts)
        lines += [*(f"  {line}" for line in table(rows, right=range(1, 7))), ""]
    return lines[:-1]


def _row(metric: MetricComparison) -> list[str]:
    return [
        LABELS[metric.metric],
        numbers.count(metric.tasks),
        numbers.metric_value(metric.metric, metric.baseline_mean),
        numbers.metric_value(metric.metric, metric.candidate_mean),
        numbers.metric_effect(metric),
        numbers.metric_interval(metric),
        numbers.p_value(metric.adjusted_p),
        str(metric.conclusion),
    ]


def _part_row(part: TokenPart) -> list[str]:
    means = (numbers.mean(part.baseline_mean), numbers.mean(part.candidate_mean))
    ratio = numbers.ratio(part.ratio)
    return [f"  {part.name}", numbers.count(part.tasks), *means, ratio, "", "", ""]

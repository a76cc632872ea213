"""`harness check`: hold a run against the committed baseline of its suite."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import click

from harness.analysis.baseline import CheckResult, check, skipped_lines
from harness.analysis.misses import MissGroup, group_misses
from harness.cassette.secrets import secrets_in
from harness.cli import DOES_NOT_HOLD, FINE, UNDECIDED
from harness.cli.execution import (
    Planned,
    Selection,
    accept_command,
    execute,
    plan_suite,
    say_first,
)
from harness.cli.hosting import machine_options
from harness.cli.options import environment, make_command, selection
from harness.cli.run_folder import REPORTS, find_run, is_run, write_report
from harness.cli.summary import summarise
from harness.cli.terminal import Terminal
from harness.cli.unscored import unscored_lines
from harness.errors import BadInputError
from harness.runner.baseline_file import baseline_file, read_baseline
from harness.runner.log import RunLog
from harness.schema.results import Baseline, RunRecord


@make_command("check", example="harness check basics --set loop.max_iterations=2")
@click.argument("suite_or_run", metavar="SUITE|RUN")
@selection
@machine_options
@click.option(
    "--baseline",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Hold it against this file.  [default: reports/baselines/SUITE.json]",
)
@click.option("--explain", is_flag=True, help="Show every cause of misses in full.")
def command(
    terminal: Terminal, suite_or_run: str, baseline: Path | None, explain: bool, **options: Any
) -> int:
    """Hold a suite, replayed first, or a run against the committed baseline.

    Exits with 1 where a trial is not as in the baseline, with 3 where only replay misses or
    infrastructure errors stand in the way.
    """
    chosen = Selection(**options)
    if is_run(suite_or_run):
        log, held = _run(terminal, suite_or_run, chosen, baseline, explain=explain)
    else:
        log, held = _suite(terminal, suite_or_run, chosen, baseline, explain=explain)
    planned = _planned(held, log, chosen)
    result = check(log.trials(), held, planned)
    run, missed = log.run(), {trial.trial_id for trial in result.unscored}
    misses = group_misses(trial for trial in log.trials() if trial.trial_id in missed)
    data = {"holds": result.holds, "run": str(log.folder)} | result.model_dump(mode="json")
    data["misses"] = [group.model_dump(mode="json") for group in misses]
    terminal.result(data, _lines(result, misses, record=_record(run, chosen), explain=explain))
    if result.differing or result.missing:
        return DOES_NOT_HOLD
    return UNDECIDED if result.unscored else FINE


def _run(
    terminal: Terminal, argument: str, chosen: Selection, baseline: Path | None, *, explain: bool
) -> tuple[RunLog, Baseline]:
    given = chosen.machines.arguments[:1]
    if chosen.overrides or chosen.preset or chosen.out or chosen.jobs or given:
        others = "".join(f", {name}" for name in given)
        raise BadInputError(
            f"{argument!r} is a finished run: --set, --preset{others}, --out and --jobs are for "
            "suites, which are replayed first; leave them out"
        )
    log = find_run(argument)
    run = log.run()
    if run.forked is not None:
        raise BadInputError(
            f"{log.folder}: is a fork of {run.forked.trial_id!r} in run {run.forked.run_id!r}; "
            f"hold them against each other: harness compare {run.forked.run_id} {run.run_id}"
        )
    if run.faults is not None:
        raise BadInputError(
            f"{log.folder}: was run with --faults {run.faults}, and is compared with no baseline; "
            "run the suite without it"
        )
    if run.imported is not None and not (baseline or baseline_file(REPORTS, run.suite)).exists():
        raise BadInputError(
            f"{log.folder}: its trials were imported from {run.imported}, of which no baseline is"
            f" made; hold it against another run: harness compare RUN {argument}"
        )
    try:
        return log, _read(baseline, run.suite, run.suite_version)
    except BadInputError:
        if explain:
            _explain(terminal, log, chosen)
        raise


def _suite(
    terminal: Terminal, argument: str, chosen: Selection, baseline: Path | None, *, explain: bool
) -> tuple[RunLog, Baseline]:
    planned = plan_suite(argument, chosen)
    try:
        # The baseline is read first: nobody should wait for a replay to learn that it is missing.
        held = _read(baseline, planned.suite.name, planned.suite.version)
    except BadInputError:
        if explain:
            _explain(terminal, _replay(planned, terminal), chosen)
        raise
    return _replay(planned, terminal), held


def _replay(planned: Planned, terminal: Terminal) -> RunLog:
    say_first(planned, terminal)
    log = execute(planned, terminal)
    terminal.say(f"Report: {write_report(log)}")
    return log


def _explain(terminal: Terminal, log: RunLog, chosen: Selection) -> None:
    """Tell why trials have no result: that needs no baseline."""
    found = summarise(log, "")
    if found.unscored:
        record = _record(log.run(), chosen)
        lines = unscored_lines(
            found.unscored, found.misses, trials=found.trials, record=record, explain=True
        )
        terminal.error("\n".join(lines))


def _record(run: RunRecord, chosen: Selection) -> str:
    return accept_command(run.suite_folder, chosen.as_in(run), secrets_in(environment()))


def _read(path: Path | None, suite: str, version: int) -> Baseline:
    path = path or baseline_file(REPORTS, suite)
    baseline = read_baseline(path)
    if (baseline.suite, baseline.suite_version) != (suite, version):
        raise BadInputError(
            f"{path}: holds {baseline.suite!r} version {baseline.suite_version}, not {suite!r} "
            f"version {version}; write it again from a run: harness baseline update last"
        )
    return baseline


def _planned(baseline: Baseline, log: RunLog, chosen: Selection) -> set[str] | None:
    """Ids that a limited check is about; None where it is about the whole baseline."""
    limited = chosen.variants or chosen.tasks or chosen.repeats
    if not limited and not any(text.startswith("repeats") for text in chosen.overrides):
        return None
    run = log.run()
    variants = chosen.variant_names or [variant.name for variant in run.variants]
    repeats = chosen.repeats or run.repeats

    def is_chosen(trial_id: str) -> bool:
        task, variant, repeat = trial_id.rsplit("/", 2)
        named = not chosen.tasks or any(fnmatchcase(task, glob) for glob in chosen.tasks)
        return named and variant in variants and int(repeat) < repeats

    ids = {*baseline.trials, *(trial.trial_id for trial in log.trials())}
    return {trial_id for trial_id in ids if is_chosen(trial_id)}


def _lines(
    result: CheckResult, misses: Sequence[MissGroup], *, record: str, explain: bool
) -> list[str]:
    lines: list[str] = []
    if result.holds or result.differing or result.missing:
        lines += result.model_copy(update={"unscored": ()}).lines()
    if result.unscored:
        lines += unscored_lines(
            result.unscored, misses, trials=result.checked, record=record, explain=explain
        )
        lines += skipped_lines(result.skipped) if not (result.differing or result.missing) else ()
    return lines

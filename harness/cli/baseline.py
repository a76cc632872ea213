"""`harness baseline`: write or print what later runs are held against."""

from __future__ import annotations

from collections.abc import Iterator

import click

from harness.analysis.baseline import make_baseline, uncovered
from harness.analysis.numbers import count, plural
from harness.cli import FINE
from harness.cli.options import make_command
from harness.cli.run_folder import REPORTS, find_run
from harness.cli.terminal import Terminal, table
from harness.errors import BadInputError
from harness.runner.baseline_file import FOLDER, baseline_file, read_baseline, write_baseline
from harness.schema.results import Baseline


@click.group("baseline", epilog="Example: harness run basics, then harness baseline update last")
def command() -> None:
    """Write or print a committed baseline: reports/baselines/SUITE.json."""


@make_command("update", example="harness baseline update last")
@click.argument("run")
def _update(terminal: Terminal, run: str) -> int:
    """Make a finished run the baseline of its suite.

    Trials that a limited run did not plan stay as they are; to drop those of a task that is gone,
    remove the file first.

    RUN is a run's folder, its id under reports/, or `last`.
    """
    log = find_run(run)
    record = log.run()
    new = make_baseline(record, log.trials())
    path = baseline_file(REPORTS, new.suite)
    old = read_baseline(path) if path.exists() else new.model_copy(update={"trials": {}})
    before = old.trials
    kept = {name: before[name] for name in uncovered(record, old)}
    trials = dict(sorted({**kept, **new.trials}.items()))
    write_baseline(path, new.model_copy(update={"trials": trials}))
    data = {
        "file": str(path),
        "trials": len(trials),
        "added": sorted(trials.keys() - before.keys()),
        "changed": sorted(name for name in trials.keys() & before if trials[name] != before[name]),
        "removed": sorted(before.keys() - trials.keys()),
        "kept": sorted(kept),
    }
    terminal.result(data, _changes(data))
    return FINE


def _changes(data: dict[str, object]) -> Iterator[str]:
    counts = []
    for key in ("added", "changed", "removed", "kept"):
        names = data[key]
        assert isinstance(names, list)
        counts.append(f"{len(names)} {key}")
    yield f"{data['file']}: {data['trials']} trials ({', '.join(counts)})"


@make_command("show", example="harness baseline show basics")
@click.argument("suite", required=False)
def _show(terminal: Terminal, suite: str | None) -> int:
    """Print a suite's baseline, or all that there are."""
    if suite is None:
        paths = sorted((REPORTS / FOLDER).glob("*.json"))
        if not paths:
            raise BadInputError(
                f"{REPORTS / FOLDER}/ holds no baseline; make one from a finished run: "
                "harness baseline update last"
            )
    else:
        paths = [baseline_file(REPORTS, suite)]
    baselines = [read_baseline(path) for path in paths]
    data = {"baselines": [baseline.model_dump(mode="json") for baseline in baselines]}
    terminal.result(data, [line for baseline in baselines for line in _shown(baseline)])
    return FINE


def _shown(baseline: Baseline) -> Iterator[str]:
    yield f"{baseline.suite}, version {baseline.suite_version}: " + plural(
        len(baseline.trials), "trial"
    )
    heading = ["trial", "ended", "outcome", "iterations", "tool calls"]
    rows = [
        [
            name,
            str(trial.termination_reason),
            trial.outcome or "–",
            count(trial.iterations),
            count(trial.tool_calls_made),
        ]
        for name, trial in baseline.trials.items()
    ]
    yield from table([heading, *rows], right=(3, 4))


command.add_command(_update)
command.add_command(_show)

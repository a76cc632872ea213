"""`harness import`: cassettes and runs of what others recorded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from harness.analysis.numbers import plural
from harness.cassette.convert.conversations import read_all
from harness.cassette.convert.reading_vcr import read_vcr
from harness.cassette.secrets import secrets_in
from harness.cli import FINE
from harness.cli.import_conversation import (
    cassette_data,
    cassette_lines,
    import_alone,
    import_into,
    use_lines,
    write_cassettes,
)
from harness.cli.options import environment, make_command
from harness.cli.run_folder import REPORTS, write_report
from harness.cli.summary import RunSummary, summarise, summary_lines
from harness.cli.terminal import Terminal
from harness.errors import BadInputError
from harness.redaction import Redactor
from harness.runner.harbor.importing import import_run
from harness.runner.harbor.trials import HarborTrial, read_trials
from harness.runner.harbor.variants import Chosen, VariantGlob, chosen_by_facts, chosen_by_globs
from harness.runner.log import RunLog

_OUT = Path("cassettes/imported")

_paths = click.argument(
    "paths",
    metavar="PATH...",
    nargs=-1,
    required=True,
    type=click.Path(exists=True, path_type=Path),
)
_out = click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=_OUT,
    show_default=True,
    metavar="DIR|FILE",
    help="Folder for NAME/REPEAT.jsonl, or one file that ends with .jsonl.",
)


@click.group("import", epilog="Example: harness import vcr tests/cassettes")
def command() -> None:
    """Make cassettes and runs of what others recorded; secrets are removed."""


@make_command("vcr", example="harness import vcr tests/cassettes --out cassettes/api")
@_paths
@_out
def vcr(terminal: Terminal, paths: tuple[Path, ...], out: Path) -> int:
    """Import vcrpy's cassettes (YAML or JSON), from files or whole folders.

    A request is found again by what it asks, as in cassettes that were recorded here.
    """
    redactor = _redactor()
    chosen = write_cassettes(read_vcr(paths, redactor), out, "request", redactor)
    lines = (*cassette_lines(chosen, "interaction"), "", "Each request is answered as it was:")
    terminal.result({"cassettes": cassette_data(chosen)}, (*lines, *use_lines(chosen)))
    return FINE


@make_command("conversation", example="harness import conversation trajectory.json")
@_paths
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR|FILE",
    help="Folder for NAME/REPEAT.jsonl, or one file that ends with .jsonl and gets no suite.  "
    f"[default: {_OUT}]",
)
@click.option(
    "--suite",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Suite that replays them, written or added to.  [default: suites/imported]",
)
@click.option(
    "--into",
    metavar="SUITE/TASK",
    help="Recordings of this task of a suite of yours: no suite is written.",
)
def conversation(
    terminal: Terminal,
    paths: tuple[Path, ...],
    out: Path | None,
    suite: Path | None,
    into: str | None,
) -> int:
    """Import recorded conversations: ATIF, episodes, call logs, or plain messages.

    PATH is a file or a folder of files.

    They are replayed by position: the first model call gets the first answer, and so on. Each
    becomes a task of a suite as well, so that `harness run` replays it.
    """
    redactor = _redactor()
    found, others = read_all(paths, redactor)
    if into is None:
        return import_alone(terminal, found, others, out or _OUT, suite, redactor)
    if out or suite:
        raise BadInputError("--into names the place by itself; leave --out and --suite out")
    return import_into(terminal, found, others, into, redactor)


@make_command(
    "harbor", example="harness import harbor jobs/2026-01-26 --variant skills='*-skills/*'"
)
@_paths
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="The run's folder.  [default: a new one under reports/]",
)
@click.option(
    "--variant",
    "globs",
    multiple=True,
    metavar="NAME=GLOB",
    help="Trials of this variant, by folder, path or JOB/TRIAL; repeatable.  "
    "[default: by agent and model, and by job where only that differs]",
)
def harbor(
    terminal: Terminal, paths: tuple[Path, ...], out: Path | None, globs: tuple[str, ...]
) -> int:
    """Import trials that Harbor ran, as a run that compare, report and show can read.

    PATH is the folder of a trial, with its result.json, or of a job, or of several.
    """
    trials, unfinished = read_trials(paths)
    chosen, others = _with_variants(trials, globs)
    log = import_run(chosen, reports=REPORTS, out=out, redactor=_redactor())
    summary = summarise(log, str(write_report(log)))
    left_out = [f"{folder}: never ended, it has no result.json" for folder in unfinished]
    left_out += [f"{trial.folder}: no --variant takes it" for trial in others]
    data = {"run": summary.model_dump(mode="json"), "left_out": left_out}
    terminal.result(data, _run_lines(log, summary, left_out))
    return FINE


def _with_variants(
    trials: Sequence[HarborTrial], globs: Sequence[str]
) -> tuple[list[Chosen], list[HarborTrial]]:
    if not globs:
        return chosen_by_facts(trials), []
    return chosen_by_globs(trials, [VariantGlob.parse(glob) for glob in globs])


def _run_lines(log: RunLog, summary: RunSummary, left_out: Sequence[str]) -> Iterator[str]:
    yield from summary_lines(summary)
    yield ""
    yield from (f"left out: {line}" for line in left_out)
    yield f"{plural(summary.trials, 'trial')} imported into {log.folder}"
    if len(summary.totals) > 1:
        yield f"Compare: harness compare {log.folder}"
    yield f"Report: {summary.report}"


command.add_command(vcr)
command.add_command(conversation)
command.add_command(harbor)


def _redactor() -> Redactor:
    return Redactor(secrets_in(environment()))

"""`harness report`: a run as an HTML report, and in the formats of other tools."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from harness.analysis.numbers import plural
from harness.cli import FINE
from harness.cli.options import make_command
from harness.cli.run_folder import find_run, write_report
from harness.cli.terminal import Terminal
from harness.errors import BadInputError
from harness.report.atif import atif_files
from harness.report.exported import write_files
from harness.report.harbor_job import harbor_files
from harness.report.harbor_trial import job_name
from harness.runner.log import RunLog

FORMATS = ("html", "atif", "harbor")


def _formats(_: click.Context, param: click.Parameter, value: str) -> tuple[str, ...]:
    names = [name.strip() for name in value.split(",")]
    for name in names:
        if name not in FORMATS:
            raise click.BadParameter(
                f"{name!r} is none of {', '.join(FORMATS)}; several are joined by commas.",
                param=param,
            )
    return tuple(dict.fromkeys(names))


@make_command("report", example="harness report last --format html,atif,harbor -o exported")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option(
    "--format",
    "formats",
    metavar="A,B",
    default="html",
    show_default=True,
    callback=_formats,
    help="html; atif: each trial's trajectory as ATIF 1.8; harbor: a job folder as Harbor's.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(),
    metavar="OUT",
    help="With html alone, the file to write; else a folder.  [default: the run's folder]",
)
def command(
    terminal: Terminal, runs: tuple[str, ...], formats: tuple[str, ...], output: str | None
) -> int:
    """Render a run again: the HTML report, and exports that other tools read.

    RUN is a run's folder, its id under reports/, or `last`. Into OUT go RUN.html, atif/RUN/ with
    a file for each trial, and the job folder harbor/RUN/.
    """
    if formats == ("html",):
        written = [str(path) for path in _pages(runs, output)]
    else:
        written = []
        for log in [find_run(run) for run in runs]:
            written += _exported(terminal, log, formats, None if output is None else Path(output))
    terminal.result({"format": ",".join(formats), "reports": written}, written)
    return FINE


def _pages(runs: Sequence[str], output: str | None) -> Iterator[Path]:
    """HTML reports alone: OUT is a file."""
    if output is None:
        return (write_report(find_run(run)) for run in runs)
    if len(runs) > 1:
        raise BadInputError("-o names one file; render the runs one by one, or leave it out")
    target = Path(output)
    if target.is_dir() or output.endswith("/"):
        raise BadInputError(f"{output}: a folder; with --format html, -o names the file to write")
    return (write_report(find_run(run), target) for run in runs)


def _exported(
    terminal: Terminal, log: RunLog, formats: Sequence[str], output: Path | None
) -> Iterator[str]:
    """Write a run in each format; where each is."""
    run, trials = log.run(), log.trials()
    name, folder = job_name(run), output or log.folder
    for form in formats:
        if form == "html":
            yield str(write_report(log, _page_in(output, name)))
            continue
        target = folder / form / name
        if form == "atif":
            count = write_files(target, atif_files(run, trials, log.trajectory))
            left_out, why = len(trials) - count, "have no conversation"
        else:
            write_files(folder / form, harbor_files(run, trials, log.trajectory))
            left_out = sum(trial.termination_reason == "skipped" for trial in trials)
            why = "were skipped"
        if left_out:
            terminal.say(f"{target}: left out, since they {why}: {plural(left_out, 'trial')}")
        yield str(target)


def _page_in(output: Path | None, name: str) -> Path | None:
    if output is None:
        return None
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInputError(f"{output}: no folder can be made there ({error.strerror})") from None
    return output / f"{name}.html"

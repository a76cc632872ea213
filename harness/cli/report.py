"""`harness report`: render the HTML report of runs again."""

from __future__ import annotations

from pathlib import Path

import click

from harness.cli import FINE
from harness.cli.options import make_command
from harness.cli.run_folder import find_run, write_report
from harness.cli.terminal import Terminal
from harness.errors import BadInputError


@make_command("report", example="harness report last -o /tmp/report.html")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option(
    "--format", "form", type=click.Choice(["html"]), default="html", help="What to render."
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write here.  [default: report.html in the run's folder]",
)
def command(terminal: Terminal, runs: tuple[str, ...], form: str, output: Path | None) -> int:
    """Render the HTML report of runs again.

    RUN is a run's folder, its id under reports/, or `last`.
    """
    if output is not None and len(runs) > 1:
        raise BadInputError("-o names one file; render the runs one by one, or leave it out")
    written = [str(write_report(find_run(run), output)) for run in runs]
    terminal.result({"format": form, "reports": written}, written)
    return FINE

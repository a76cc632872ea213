"""`harness cassette prune`: removes recordings that nobody uses."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from harness.analysis.numbers import plural
from harness.cassette.care.prune import Pruning, plan_pruning
from harness.cli import FINE
from harness.cli.cassette.files import FOLDER, cassettes_in, no_cassette, ranges
from harness.cli.cassette.suites import said_by, suite_option
from harness.cli.options import make_command
from harness.cli.terminal import Terminal
from harness.errors import BadInputError


@make_command("prune", example="harness cassette prune cassettes/basics --suite basics --dry-run")
@click.argument("path", type=click.Path(path_type=Path), default=FOLDER)
@suite_option
@click.option("--yes", is_flag=True, help="Remove without asking.")
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
def command(
    terminal: Terminal, path: Path, suites: tuple[str, ...], yes: bool, dry_run: bool
) -> int:
    """Remove lines that no finished trial uses, and files that no suite has.

    PATH is a cassette or a folder of them (default: cassettes). Without --suite nothing is
    known of tasks and variants that are gone, and only lines are removed. Unfinished recordings
    stay; so does what was recorded for another version of a task.
    """
    cells = said_by(suites).cells
    files = cassettes_in(path)
    prunings = [found for file in files if (found := plan_pruning(file, cells))]
    if prunings and not dry_run and not yes:
        _ask(terminal, prunings)
    for pruning in () if dry_run else prunings:
        pruning.apply()
    data = {"removed": not dry_run, "files": [_data(pruning) for pruning in prunings]}
    terminal.result(data, _lines(prunings, dry_run) if files else [no_cassette([path])])
    return FINE


def _ask(terminal: Terminal, prunings: Sequence[Pruning]) -> None:
    """Show what would go, and let the user decide.

    Raises:
        BadInputError: nobody is there to be asked.
    """
    if terminal.json or not sys.stdin.isatty():
        raise BadInputError(
            f"{_amount(prunings)} would be removed; give --yes to remove it, or --dry-run to see it"
        )
    for line in _lines(prunings, dry_run=True):
        terminal.say(line)
    click.confirm("Remove it?", abort=True, err=True)


def _data(pruning: Pruning) -> dict[str, object]:
    return {
        "file": str(pruning.path),
        "whole": pruning.is_whole,
        "bytes": pruning.removed_bytes,
        "removals": [{"lines": list(one.lines), "why": one.why} for one in pruning.removals],
    }


def _lines(prunings: Sequence[Pruning], dry_run: bool) -> Iterator[str]:
    if not prunings:
        yield "Nothing to remove: every line is used."
        return
    for pruning in prunings:
        for one in pruning.removals:
            where = str(pruning.path) if pruning.is_whole else f"{pruning.path}:{ranges(one.lines)}"
            yield f"{where}: {one.why}"
    yield f"{_amount(prunings)} {'to remove' if dry_run else 'removed'}"


def _amount(prunings: Sequence[Pruning]) -> str:
    """`12 lines and 1 file, 3,456 bytes`."""
    whole = sum(pruning.is_whole for pruning in prunings)
    lines = sum(
        len(one.lines) for pruning in prunings if not pruning.is_whole for one in pruning.removals
    )
    parts = [plural(lines, "line")] if lines else []
    parts += [plural(whole, "file")] if whole else []
    size = sum(pruning.removed_bytes for pruning in prunings)
    return f"{' and '.join(parts)}, {plural(size, 'byte')}"

"""`harness cassette fix`: seals a cassette again after an edit by hand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from harness.analysis.numbers import plural
from harness.cassette.care.repair import Note, Repair, plan_repair, repair
from harness.cli import FINE
from harness.cli.cassette.files import existing
from harness.cli.options import make_command
from harness.cli.terminal import Terminal


@make_command("fix", example="harness cassette fix cassettes/basics/contact-card/0.jsonl")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--dry-run", is_flag=True, help="Only say what there is to do.")
def command(terminal: Terminal, file: Path, dry_run: bool) -> int:
    """Seal a cassette again after an edit by hand, a merge or a recording that was cut.

    Every line is checked. What was edited is sealed as it is now, and ids are computed anew,
    also those of the lines that follow from it. A last line that was cut is removed, and so are
    empty lines and lines that stand twice. Where a line cannot be read, nothing is written.
    """
    done = plan_repair(existing(file)) if dry_run else repair(existing(file))
    data = {
        "file": str(file),
        "changes": _data(done.changes),
        "doubts": _data(done.doubts),
        "written": bool(done.changes) and not dry_run,
    }
    terminal.result(data, _lines(done, dry_run))
    return FINE


def _data(notes: tuple[Note, ...]) -> list[dict[str, object]]:
    return [{"line": note.number, "text": note.text} for note in notes]


def _lines(done: Repair, dry_run: bool) -> Iterator[str]:
    yield from (f"{done.path}:{note.number}: {note.text}" for note in done.changes)
    for note in done.doubts:
        yield f"{done.path}:{note.number}: look at this yourself: {note.text}"
    if not done.changes:
        yield f"{done.path}: nothing to repair"
    elif dry_run:
        yield f"{plural(len(done.changes), 'change')}, not written"
    else:
        yield f"{plural(len(done.changes), 'change')}, written"

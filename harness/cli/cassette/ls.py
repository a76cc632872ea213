"""`harness cassette ls`: the cassettes of a folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from harness.analysis.numbers import ABSENT, count, plural
from harness.cassette.file.view import CassetteView, read
from harness.cli import DOES_NOT_HOLD, FINE
from harness.cli.cassette.files import FOLDER, cassettes_in, no_cassette
from harness.cli.options import make_command
from harness.cli.terminal import Terminal, table
from harness.errors import CassetteError
from harness.schema.record import Record


class CassetteSummary(Record):
    """One file in short."""

    file: str
    suite: str
    task: str
    repeat: int
    variants: tuple[str, ...]
    """Variants whose recording is finished."""
    interactions: int
    tools: int
    verdicts: int
    models: tuple[str, ...]
    recorded_on: str | None
    """Day of the latest recording."""
    size_bytes: int


@make_command("ls", example="harness cassette ls cassettes/basics")
@click.argument("path", type=click.Path(path_type=Path), default=FOLDER)
def command(terminal: Terminal, path: Path) -> int:
    """List the cassettes in a folder (default: cassettes), every line of them checked.

    Exit code 1 if one of them is damaged; the others are listed all the same.
    """
    found: list[CassetteSummary] = []
    damaged: list[str] = []
    files = cassettes_in(path)
    for file in files:
        try:
            found.append(summary(read(file)))
        except CassetteError as error:
            damaged.append(str(error))
    data = {"cassettes": [one.model_dump(mode="json") for one in found], "damaged": damaged}
    terminal.result(data, _listing(path, found, damaged))
    return DOES_NOT_HOLD if damaged else FINE


def summary(view: CassetteView) -> CassetteSummary:
    """A cassette in short."""
    between = view.recorded_between
    return CassetteSummary(
        file=str(view.path),
        suite=view.header.suite,
        task=view.header.task,
        repeat=view.header.repeat,
        variants=tuple(sorted(view.trials)),
        interactions=len(view.interactions),
        tools=len(view.tools),
        verdicts=len(view.verdicts),
        models=view.models,
        recorded_on=between[1].date().isoformat() if between else None,
        size_bytes=view.size_bytes,
    )


def _listing(path: Path, found: list[CassetteSummary], damaged: list[str]) -> Iterator[str]:
    if not found and not damaged:
        yield no_cassette([path])
    if found:
        yield from _table(found)
        size = sum(one.size_bytes for one in found)
        yield f"{plural(len(found), 'cassette')}, {plural(size, 'byte')}"
    if damaged:
        yield f"{plural(len(damaged), 'cassette')} that cannot be used:"
        yield from (f"  {line}" for line in damaged)


def _table(found: list[CassetteSummary]) -> list[str]:
    heading = ["file", "variants", "model calls", "tool calls", "bytes", "model", "recorded on"]
    rows = [
        [
            one.file,
            ", ".join(one.variants),
            count(one.interactions),
            count(one.tools),
            count(one.size_bytes),
            ", ".join(one.models),
            one.recorded_on or ABSENT,
        ]
        for one in found
    ]
    return table([heading, *rows], right=(2, 3, 4))

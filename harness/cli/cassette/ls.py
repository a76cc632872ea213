"""`harness cassette ls`: the cassettes of a folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from harness.analysis.numbers import count, plural
from harness.cassette.view import CassetteView, read
from harness.cli import FINE
from harness.cli.options import make_command
from harness.cli.terminal import Terminal, table
from harness.errors import BadInputError
from harness.schema.record import Record

_FOLDER = Path("cassettes")


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
@click.argument("path", type=click.Path(path_type=Path), default=_FOLDER)
def command(terminal: Terminal, path: Path) -> int:
    """List the cassettes in a folder (default: cassettes), every line of them checked."""
    if not path.exists():
        raise BadInputError(f"{path}: no such folder or file; record with `harness run`")
    files = sorted(path.rglob("*.jsonl")) if path.is_dir() else [path]
    found = [summary(read(file)) for file in files]
    data = {"cassettes": [one.model_dump(mode="json") for one in found]}
    terminal.result(data, _listing(found) if found else [f"{path} holds no cassette."])
    return FINE


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


def _listing(found: list[CassetteSummary]) -> Iterator[str]:
    heading = ["file", "variants", "model calls", "tool calls", "bytes", "model", "recorded on"]
    rows = [
        [
            one.file,
            ", ".join(one.variants),
            count(one.interactions),
            count(one.tools),
            count(one.size_bytes),
            ", ".join(one.models),
            one.recorded_on or "–",
        ]
        for one in found
    ]
    yield from table([heading, *rows], right=(2, 3, 4))
    size = sum(one.size_bytes for one in found)
    yield f"{plural(len(found), 'cassette')}, {plural(size, 'byte')}"

"""`harness cassette export`: a cassette in the formats of others."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

from harness.analysis.numbers import plural
from harness.cassette.convert.exporting import to_messages, to_vcr, write_export
from harness.cassette.file.view import read
from harness.cli import FINE
from harness.cli.cassette.files import existing
from harness.cli.options import make_command
from harness.cli.terminal import Terminal
from harness.errors import BadInputError


@make_command(
    "export",
    example="harness cassette export cassettes/basics/contact-card/0.jsonl --format vcr"
    " -o contact-card.yaml",
)
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--format",
    "form",
    type=click.Choice(["vcr", "messages"]),
    required=True,
    help="vcr: YAML that vcrpy replays. messages: a conversation a line, as JSON.",
)
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    metavar="OUT",
    help="The file to write.",
)
@click.option(
    "--base-url",
    metavar="URL",
    help="With vcr: the base URL that the client's SDK is given. [default: the vendor's own]",
)
def command(
    terminal: Terminal,
    file: Path,
    form: Literal["vcr", "messages"],
    out: Path,
    base_url: str | None,
) -> int:
    """Write a cassette as vcrpy's YAML, or as plain conversations."""
    existing(file)
    if base_url is not None and form != "vcr":
        raise BadInputError(f"--base-url {base_url!r}: only --format vcr holds addresses")
    view = read(file)
    if form == "vcr":
        answered = [
            one for one in view.interactions.values() if not one.line.response.is_out_of_time
        ]
        number = len(answered)
        write_export(to_vcr(view, base_url=base_url), out)
        said = [
            f"{out}: {plural(number, 'interaction')}",
            'Replay: with vcr.use_cassette(FILE, record_mode="none",'
            ' match_on=["method", "uri", "body"])',
        ]
    else:
        text, number = to_messages(view)
        if not number:
            raise BadInputError(f"{file}: holds no conversation that a model answered")
        write_export(text, out)
        said = [f"{out}: {plural(number, 'conversation')}"]
    terminal.result({"file": str(out), "format": form, "count": number}, said)
    return FINE

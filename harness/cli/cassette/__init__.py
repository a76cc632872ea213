"""`harness cassette`: look at recordings and care for them; one file per command."""

from __future__ import annotations

import click

from harness.cli.cassette import export, ls, show


@click.group("cassette", epilog="Example: harness cassette ls cassettes/basics")
def command() -> None:
    """Look at recordings: list them, or read one as a conversation."""


for _module in (export, ls, show):
    command.add_command(_module.command)

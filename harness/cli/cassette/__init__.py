"""`harness cassette`: look at recordings and care for them; one file per command."""

from __future__ import annotations

import click

from harness.cli.cassette import audit, diff, export, fix, ls, prune, show


@click.group("cassette", epilog="Example: harness cassette ls cassettes/basics")
def command() -> None:
    """Look at recordings, check them, and keep them in order."""


for _module in (ls, show, diff, audit, fix, prune, export):
    command.add_command(_module.command)

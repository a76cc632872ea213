"""`harness cassette`: look at recordings and care for them; one module per command."""

from __future__ import annotations

import importlib

import click

_COMMANDS = ("ls", "show", "diff", "audit", "fix", "prune", "export")


class _Commands(click.Group):
    """Imports a command when it is used: git runs `show` for every cassette of a diff."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        command = importlib.import_module(f"harness.cli.cassette.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command


@click.group("cassette", cls=_Commands, epilog="Example: harness cassette ls cassettes/basics")
def command() -> None:
    """Look at recordings, check them, and keep them in order."""

"""The command line. Commands are loaded by name when they are asked for: help stays instant."""

from __future__ import annotations

import errno
import importlib
import importlib.metadata
import os
import sys
import traceback
from collections.abc import Sequence

import click

from harness.cli.terminal import Terminal
from harness.errors import BadInputError, HarnessError, error_line

FINE, DOES_NOT_HOLD, BAD_INPUT, UNDECIDED, INTERRUPTED = 0, 1, 2, 3, 130
"""Exit codes, the same for every command."""

COMMANDS = {
    "run": "Run a suite's trials, from recordings or live.",
    "accept": "Record again just what a suite misses.",
    "fork": "Go on with a recorded trial from some turn on.",
    "check": "Hold a suite or a run against its committed baseline.",
    "compare": "Compare variants of a run, or the same variants of two runs.",
    "report": "Render the HTML report of runs again, or export them.",
    "show": "Print one trial as a readable transcript.",
    "baseline": "Write or print a committed baseline.",
    "cassette": "Look at recordings.",
    "task": "Check that tasks can be trusted.",
    "import": "Make cassettes of what others recorded.",
    "demo": "Replay, compare and report the shipped suite.",
    "doctor": "Say what is installed and usable here.",
}
"""What `harness --help` lists; each is the attribute `command` of its module."""

_EPILOG = "Example: harness run basics, then harness show last contact-card/baseline/0"


class _Commands(click.Group):
    """A group that imports a command when it is used, and not to list it."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = "import_" if cmd_name == "import" else cmd_name
        command = importlib.import_module(f"harness.cli.{module}").command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def _print_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted:
        click.echo(f"harness {importlib.metadata.version('loop-harness')}")
        ctx.exit()


@click.command(cls=_Commands, epilog=_EPILOG)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Print the version.",
)
def group() -> None:
    """Record and replay evaluation of LLM agent loops.

    Exit codes: 0 fine, 1 the thing checked does not hold, 2 wrong usage or bad input, 3 could not
    be decided or completed (replay misses, infrastructure errors), 130 interrupted.
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point of the console script."""
    sys.exit(_run(list(sys.argv[1:] if arguments is None else arguments)))


def _run(arguments: list[str]) -> int:
    terminal = Terminal()
    try:
        with group.make_context("harness", arguments, obj=terminal) as context:
            code = group.invoke(context)
            sys.stdout.flush()
            return code if isinstance(code, int) else FINE
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return BAD_INPUT
    except click.ClickException as error:
        terminal.error(_usage(error))
        return BAD_INPUT
    except (KeyboardInterrupt, click.Abort):
        terminal.error("interrupted")
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the last resort: a user sees a line, not a traceback
        if isinstance(error, OSError) and error.errno == errno.EPIPE:
            # Who reads our output has seen enough; what is still buffered must not fail at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return FINE
        return _failed(error, terminal)


def _usage(error: click.ClickException) -> str:
    message = " ".join(error.format_message().split())
    context = getattr(error, "ctx", None)
    return f"{message} See {context.command_path} --help" if context else message


def _failed(error: Exception, terminal: Terminal) -> int:
    if terminal.verbosity >= 2:
        traceback.print_exception(error, file=sys.stderr)
    if isinstance(error, HarnessError):
        terminal.error(str(error))
        return BAD_INPUT if isinstance(error, BadInputError) else UNDECIDED
    if isinstance(error, OSError) and error.filename is not None:
        terminal.error(f"{error.filename}: {error.strerror}")
        return UNDECIDED
    what = " ".join(error_line(error).split())
    again = "" if terminal.verbosity >= 2 else "; -vv shows where"
    terminal.error(f"this is a defect in harness, please report it: {what}{again}")
    return UNDECIDED

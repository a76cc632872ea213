"""Options that several commands share."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click

from harness.cli.terminal import Terminal, Warnings
from harness.schema.presets import PRESETS

MOST_REPEATS = 1000

Function = TypeVar("Function", bound=Callable[..., Any])


def make_command(name: str, *, example: str) -> Callable[[Callable[..., int]], click.Command]:
    """Make a command: its function takes the terminal first and returns the exit code."""

    def make(function: Callable[..., int]) -> click.Command:
        @wraps(function)
        def run(*arguments: Any, **values: Any) -> int:
            terminal = click.get_current_context().ensure_object(Terminal)
            terminal.json = values.pop("as_json")
            terminal.quiet = values.pop("quiet")
            terminal.verbosity = values.pop("verbose")
            _show_warnings(terminal)
            return function(terminal, *arguments, **values)

        run = click.option("-v", "--verbose", count=True, help="Say more; -vv also tracebacks.")(
            run
        )
        run = click.option("-q", "--quiet", is_flag=True, help="Only results and errors.")(run)
        run = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")(run)
        made: click.Command = click.command(name, epilog=f"Example: {example}")(run)
        return made

    return make


def _show_warnings(terminal: Terminal) -> None:
    log = logging.getLogger("harness")
    log.handlers[:] = [Warnings(terminal)]
    log.propagate = False
    machines = logging.getLogger("harness.runner.hosting")
    machines.handlers[:] = [Warnings(terminal, logging.INFO)]
    machines.propagate = False
    machines.setLevel(logging.INFO)


def environment() -> Mapping[str, str]:
    """The variables this process was started with."""
    return os.environ


class Folder(click.Path):
    """A path that is not empty: an empty one would mean the current folder."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Refuse an empty one."""
        if value == "":
            self.fail("'' names no folder.", param, ctx)
        return super().convert(value, param, ctx)


def _some_variant(_: click.Context, param: click.Parameter, value: str | None) -> str | None:
    if value is not None and not value.replace(",", "").strip():
        raise click.BadParameter(f"{value!r} names no variant; leave it out for all.", param=param)
    return value


def repeats(
    help: str, *, most: int = MOST_REPEATS, default: int | None = None
) -> Callable[[Function], Function]:
    """How often something is done; no default of its own leaves it to the suite."""
    return click.option(
        "--repeats",
        "--repeat",
        "repeats",
        type=click.IntRange(min=1, max=most),
        default=default,
        show_default=default is not None,
        help=help,
    )


def selection(function: Function) -> Function:
    """Which trials of a suite, and how: what `run` and `check` share."""
    for option in reversed(
        (
            click.option(
                "--variants", metavar="A,B", callback=_some_variant, help="Only these variants."
            ),
            click.option(
                "--task",
                "tasks",
                multiple=True,
                metavar="GLOB",
                help="Only these tasks; repeatable.",
            ),
            repeats("Repeats of each task and variant; scenarios take none."),
            click.option(
                "--set",
                "overrides",
                multiple=True,
                metavar="KEY=VALUE",
                help="Override a setting of every variant: loop.max_iterations=5, model.name=NAME, "
                "skills=none|curated|DIR, disclosure=full|on_demand, repeats=3; repeatable. A "
                "scenario keeps what it sets itself.",
            ),
            click.option(
                "--preset",
                type=click.Choice(list(PRESETS)),
                metavar="NAME",
                help=f"Loop settings that every variant takes: {', '.join(PRESETS)}. A scenario "
                "keeps the one it names.",
            ),
            click.option(
                "--cassettes",
                type=Folder(path_type=Path),
                default=Path("cassettes"),
                show_default=True,
                metavar="DIR",
                help="Folder of recordings.",
            ),
            click.option(
                "--jobs",
                type=click.IntRange(min=1),
                metavar="N",
                help="Cells at a time.  [default: up to one per core; 1 while recording]",
            ),
            click.option(
                "--out",
                type=Folder(path_type=Path),
                metavar="DIR",
                help="The run's folder. [default: a new one under reports/]",
            ),
        )
    ):
        function = option(function)
    return function

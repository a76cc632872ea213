"""What the command line says about the machines of tasks, for the commands that make some."""

from __future__ import annotations

import logging
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from harness.cli.options import environment
from harness.errors import BadInputError
from harness.loader.task.templates import named_variables
from harness.runner.hosting import Hosting
from harness.sandbox.choose import KINDS, problem
from harness.sandbox.container import SandboxSettings
from harness.sandbox.directory import NOTE
from harness.sandbox.engine.api import engine_address
from harness.sandbox.packages.index_settings import index_settings
from harness.schema.suite import Task

Function = TypeVar("Function", bound=Callable[..., Any])

_LOG = logging.getLogger("harness.cli")

_VARIABLE = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_TIMES = click.FloatRange(min=0, min_open=True, max=1000)


@dataclass(frozen=True, slots=True)
class MachineOptions:
    """The options, as given."""

    sandbox: str | None = None
    timeout_multiplier: float | None = None
    agent_timeout_multiplier: float | None = None
    verifier_timeout_multiplier: float | None = None
    env: tuple[str, ...] = ()
    """Names of this host's variables that tasks are given if they name them."""

    def hosting(self, tasks: Iterable[Task]) -> Hosting:
        """The options and this host's variables, for the machines of some tasks."""
        if self.sandbox == "directory":
            _LOG.warning("--sandbox directory: %s", NOTE)
        variables = environment()
        both = self.timeout_multiplier or 1.0
        named = {name for task in tasks for name in named_variables(task) if name in variables}
        return Hosting(
            sandbox=self.sandbox,
            settings=SandboxSettings(
                cache=_cache(variables),
                index=index_settings(variables),
                engine=engine_address(variables),
            ),
            variables={name: variables[name] for name in named.intersection(self.env)},
            withheld=frozenset(named.difference(self.env)),
            agent_timeout=self.agent_timeout_multiplier or both,
            verifier_timeout=self.verifier_timeout_multiplier or both,
        )

    def check_sandbox(self) -> None:
        """Refuse a sandbox that is asked for by its name and does not work here.

        Raises:
            BadInputError: says why.
        """
        if self.sandbox is None:
            return
        reason = problem(self.sandbox, engine_address(environment()))
        if reason is not None:
            raise BadInputError(
                f"--sandbox {self.sandbox} does not work here: {reason}; `harness doctor` says"
                " which do"
            )

    @property
    def arguments(self) -> tuple[str, ...]:
        """What a command that does the same with a recording must be given as well."""
        times = {
            "--timeout-multiplier": self.timeout_multiplier,
            "--agent-timeout-multiplier": self.agent_timeout_multiplier,
            "--verifier-timeout-multiplier": self.verifier_timeout_multiplier,
        }
        given = [(name, f"{value:g}") for name, value in times.items() if value is not None]
        sandbox = () if self.sandbox is None else ("--sandbox", self.sandbox)
        allowed = [("--env", name) for name in self.env]
        return (*sandbox, *(part for pair in [*given, *allowed] for part in pair))


def _cache(variables: Mapping[str, str]) -> Path:
    """Where environments of packages are kept; a relative path is none, as the XDG rules say."""
    places = (variables.get("XDG_CACHE_HOME", ""), os.path.expanduser("~/.cache"))
    found = [place for place in places if os.path.isabs(place)]
    return Path(*(found[:1] or [tempfile.gettempdir()]), "loop-harness")


def _named(_: click.Context, param: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    for value in values:
        if _VARIABLE.fullmatch(value) is None:
            name = value.partition("=")[0]
            raise click.BadParameter(
                f"{value!r} is no variable's name; its value is taken from the environment, as in "
                f"{name}=… harness … --env {name}",
                param=param,
            )
    return tuple(dict.fromkeys(values))


env_option = click.option(
    "--env",
    multiple=True,
    metavar="NAME",
    callback=_named,
    help="Give this variable of this machine to the tasks that name it as ${NAME}; repeatable. "
    "No other is given to any task.",
)


def machine_options(function: Function) -> Function:
    """The options that `run` and `task check` share; they come as keywords of `MachineOptions`."""
    for option in reversed(
        (
            click.option(
                "--sandbox",
                type=click.Choice(KINDS),
                help="What commands run in; directory holds nothing back and is for trusted tasks "
                "only.  [default: the first of bubblewrap and unshare that works]",
            ),
            click.option(
                "--timeout-multiplier",
                type=_TIMES,
                metavar="X",
                help="Give agents and verifiers X times the time that their task gives.",
            ),
            click.option(
                "--agent-timeout-multiplier",
                type=_TIMES,
                metavar="X",
                help="The same for agents and reference solutions alone.",
            ),
            click.option(
                "--verifier-timeout-multiplier",
                type=_TIMES,
                metavar="X",
                help="The same for verifiers alone.",
            ),
            env_option,
        )
    ):
        function = option(function)
    return function

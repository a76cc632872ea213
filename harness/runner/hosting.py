"""The machines of trials: what makes them on this host, and which tasks it cannot make them for."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from harness.containers import Container, Sandbox
from harness.errors import SandboxError
from harness.loader.task.templates import machine_variables, unset_variables
from harness.sandbox.choose import sandbox
from harness.sandbox.container import SandboxSettings
from harness.sandbox.directory import DirectorySandbox
from harness.sandbox.docker import DockerSandbox
from harness.schema.environment import Environment, Step
from harness.schema.suite import Task
from harness.tools.machine import Machine

_LOG = logging.getLogger("harness.runner.hosting")
"""Told on its level INFO what is being installed, which can take minutes."""


@dataclass(frozen=True, slots=True)
class Hosting:
    """What a host's owner decides about the machines of trials; picklable."""

    sandbox: str | None = None
    """Its kind; None is the first that works."""
    settings: SandboxSettings | None = None
    """What containers are made with, if not with what they are by themselves."""
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    """This host's variables that tasks name and are given."""
    withheld: frozenset[str] = frozenset()
    """Names of those that they are not given: nobody has allowed it."""
    agent_timeout: float = 1.0
    """Agents and reference solutions get this times the time that their task gives."""
    verifier_timeout: float = 1.0

    def chosen(self) -> Sandbox:
        """The sandbox that makes the machines.

        Raises:
            SandboxError: none works here.
        """
        return sandbox(self.sandbox, self.settings, _LOG.info)

    def machine(self, environment: Environment) -> Machine:
        """A machine that is made when something first runs in it."""
        return Machine(environment, self.chosen, self._env(environment))

    def open(self, environment: Environment) -> Container:
        """A machine that is made now.

        Raises:
            SandboxError: it cannot be made.
        """
        return self.chosen().open(environment, self._env(environment))

    def _env(self, environment: Environment) -> dict[str, str]:
        return machine_variables(environment, self.variables)


def not_runnable(task: Task, hosting: Hosting, *, solution: bool = False) -> str | None:
    """Why this host cannot run a task: `not runnable here: ...`; None if it can.

    Args:
        task: its machine, and those of verifiers that have one of their own.
        hosting: what makes them.
        solution: whether the reference solution is to be run as well.
    """
    lacking = list(dict.fromkeys(_lacking(task, hosting, solution)))
    return f"not runnable here: {'; '.join(lacking)}" if lacking else None


def _lacking(task: Task, hosting: Hosting, solution: bool) -> Iterator[str]:
    own = [task.environment, *(step.verifier.environment for step in task.steps)]
    environments = [environment for environment in own if environment is not None]
    for name in unset_variables(task if solution else _without_solutions(task), hosting.variables):
        if name in hosting.withheld:
            yield f"it wants the variable {name} of this machine; allow it with --env {name}"
        else:
            yield f"the variable {name} is not set; set it, and allow it with --env {name}"
    try:
        chosen = hosting.chosen()
    except SandboxError as error:
        yield from (need for environment in environments for need in environment.needs)
        yield str(error)
        return
    if chosen.kind == DirectorySandbox.kind and any(map(_brings_tests, task.steps)):
        yield (
            "a verifier's machine that has its tests from a Dockerfile: the sandbox 'directory'"
            " rewrites no paths in what a Dockerfile copies"
        )
    for environment in [*environments, *_for_scripts(task, solution)]:
        yield from chosen.lacks(environment)


def _brings_tests(step: Step) -> bool:
    return step.verifier.environment is not None and not step.verifier.tests


def _for_scripts(task: Task, solution: bool) -> Iterator[Environment]:
    """The machines as they are when a step is judged, or solved."""
    if task.environment is None:
        return
    for step in task.steps:
        machine = step.verifier.environment or task.environment
        yield machine.model_copy(update={"equipment": step.verifier.equipment})
        if solution and step.solution is not None:
            yield task.environment.model_copy(update={"equipment": step.solution.equipment})


def _without_solutions(task: Task) -> Task:
    steps = tuple(step.model_copy(update={"solution": None}) for step in task.steps)
    return task.model_copy(update={"steps": steps})


def ignored_by(task: Task, hosting: Hosting) -> tuple[str, ...]:
    """What a task's files ask for, its verifiers' as well, and the host's machines do not do."""
    own = [task.environment, *(step.verifier.environment for step in task.steps)]
    has_engine = hosting.sandbox == DockerSandbox.kind
    found = (one.engine.ignored if has_engine else one.ignored for one in own if one is not None)
    return tuple(dict.fromkeys(line for lines in found for line in lines))

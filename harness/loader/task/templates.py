"""`${VAR}` and `${VAR:-default}`: variables of this host that a task asks for by name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from harness.schema.environment import Environment
from harness.schema.suite import Task

_TEMPLATE = re.compile(r"\$\{([^}:]+)(?::-(.*))?\}")


def resolved(env: Mapping[str, str], host: Mapping[str, str]) -> dict[str, str]:
    """The variables with their values; one that the host lacks is left out.

    Args:
        env: values as the task writes them; a template counts only where it is all of a value.
        host: variables of this host.
    """
    found = {name: _value(text, host) for name, text in env.items()}
    return {name: value for name, value in found.items() if value is not None}


def machine_variables(environment: Environment, host: Mapping[str, str]) -> dict[str, str]:
    """The variables of a machine's processes.

    Args:
        environment: the machine; what its Dockerfile sets is no template.
        host: variables of this host.
    """
    own = _own(environment)
    built = {name: text for name, text in environment.env.items() if name not in own}
    return built | resolved(own, host)


def named_variables(task: Task) -> frozenset[str]:
    """The variables of the host that a task asks for, those with a default included."""
    return frozenset(match[1] for match in _templates(task))


def unset_variables(task: Task, host: Mapping[str, str]) -> tuple[str, ...]:
    """The variables without which a task cannot be run, sorted."""
    missing = {match[1] for match in _templates(task) if match[2] is None} - host.keys()
    return tuple(sorted(missing))


def _value(text: str, host: Mapping[str, str]) -> str | None:
    match = _TEMPLATE.fullmatch(text)
    if match is None:
        return text
    return host.get(match[1], match[2])


def _templates(task: Task) -> Iterator[re.Match[str]]:
    for env in _environments(task):
        for text in env.values():
            if match := _TEMPLATE.fullmatch(text):
                yield match


def _environments(task: Task) -> Iterator[Mapping[str, str]]:
    if task.environment is not None:
        yield _own(task.environment)
    for step in task.steps:
        yield step.verifier.env
        if step.verifier.environment is not None:
            yield _own(step.verifier.environment)
        if step.solution is not None:
            yield step.solution.env


def _own(environment: Environment) -> dict[str, str]:
    """The variables that the task's settings name, and no Dockerfile."""
    names = environment.engine.variables
    return {name: text for name, text in environment.env.items() if name in names}

"""What an agent hands on to its loop, by name and type."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypedDict

from harness.loader.reading import known
from harness.protocols import (
    Check,
    Hook,
    LimitCallback,
    Observer,
    Recall,
    Redact,
    StopTest,
    TerminalCheck,
)
from harness.schema.suite import Price, Skill


class LoopArguments(TypedDict, total=False):
    """The arguments of `Loop` that are not the agent's own; `Setup` says what they mean."""

    temperature: float | None
    price: Price | None
    terminal_tools: Collection[str]
    terminal_check: TerminalCheck | None
    on_iteration_limit: LimitCallback | None
    stop_conditions: Mapping[str, StopTest]
    hooks: Sequence[Hook]
    checks: Sequence[Check]
    skills: Sequence[Skill]
    active_skills: Collection[str]
    recall: Recall | None
    observers: Sequence[Observer]
    redact: Redact
    clock: Callable[[], float]


OWN = (
    *("model", "provider", "base_url", "api_key", "system", "tools", "output", "validators"),
    *("reflection_handler", "preset", "config"),
)
"""The agent's own arguments."""


def check_names(given: Mapping[str, object]) -> None:
    """Refuse arguments that neither an agent nor its loop has.

    Raises:
        TypeError: names the first of them and what it may have meant.
    """
    for name in given:
        if name not in LoopArguments.__annotations__:
            names = (*OWN, *LoopArguments.__annotations__)
            raise TypeError(f"Agent() has no argument {name!r}; {known(names, name)}")

"""What a loop is made with."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field

from harness.protocols import (
    Check,
    Hook,
    LimitCallback,
    Observer,
    OutputSpec,
    Provider,
    Recall,
    Redact,
    StopTest,
    TerminalCheck,
    ToolProvider,
)
from harness.redaction import Redactor
from harness.schema.loop_config import LoopConfig
from harness.schema.suite import Price, Skill


@dataclass(frozen=True, eq=False)
class Setup:
    """Model, tools, settings, and whatever of the user's takes part."""

    provider: Provider
    _: KW_ONLY
    model: str
    """The model's name, as the provider knows it."""
    tools: ToolProvider | None = None
    output: OutputSpec | None = None
    """The structured result asked for; None for a run that ends with text."""
    config: LoopConfig = field(default_factory=LoopConfig)
    temperature: float | None = None
    price: Price | None = None
    """Of the model's tokens; a budget of money needs it."""
    terminal_tools: Collection[str] = ()
    """Tools whose success ends the run."""
    terminal_check: TerminalCheck | None = None
    on_iteration_limit: LimitCallback | None = None
    """Asked at `hard_limit`, and at `max_iterations` where `on_limit` is `callback`."""
    stop_conditions: Mapping[str, StopTest] = field(default_factory=dict)
    """Conditions that `stop_when` may name."""
    hooks: Sequence[Hook] = ()
    checks: Sequence[Check] = ()
    """Rules for tool calls, asked after the governance of the settings."""
    skills: Sequence[Skill] = ()
    active_skills: Collection[str] = ()
    """Names of the skills whose full text is given, and which narrow the tools."""
    recall: Recall | None = None
    """Finds earlier items for the system prompt."""
    observers: Sequence[Observer] = ()
    redact: Redact = field(default_factory=lambda: Redactor({}).json)
    """What logs are written through."""
    clock: Callable[[], float] = time.monotonic
    """Seconds; only differences count."""

    @property
    def active(self) -> tuple[Skill, ...]:
        """The active skills."""
        return tuple(skill for skill in self.skills if skill.name in self.active_skills)

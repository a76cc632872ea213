"""Refusing, before anything runs, a loop that could never work."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from harness.errors import ConfigurationError
from harness.loop.budget import BudgetMeter
from harness.loop.endings import Ending
from harness.loop.foreign import specs_of
from harness.loop.given import check_given
from harness.loop.governance import Governor
from harness.loop.handed_in import offered_by_loop
from harness.loop.setup import Setup
from harness.loop.skills import narrowed
from harness.schema.json_schema import schema_problem
from harness.schema.loop_config import StopCondition
from harness.schema.messages import ToolSpec


def check_configuration(setup: Setup) -> None:
    """Raise for settings that contradict each other, the tools, or what else the loop was given.

    Raises:
        ConfigurationError: says what to add or to remove.
    """
    check_given(setup)
    helpers = specs_of(setup.tools)
    if isinstance(helpers, Ending):
        raise ConfigurationError(f"{helpers.error}; correct them")
    names = [spec.name for spec in helpers]
    _check_reflection(setup)
    _check_tools(setup, helpers)
    _check_names("terminal tool", setup.terminal_tools, names, "add it to the tools")
    _check_tool_choice(setup, names)
    Governor(setup.config.governance)  # refuses entries that can never match
    _check_limits(setup)
    _check_stop_conditions(setup, names)
    _check_skills(setup, helpers)


def _check_skills(setup: Setup, helpers: Sequence[ToolSpec]) -> None:
    names = [skill.name for skill in setup.skills]
    for name in names:
        if names.count(name) > 1:
            raise ConfigurationError(f"two skills are called {name!r}: rename one of them")
    _check_names("active skill", setup.active_skills, names, "add it to the skills")
    left = [spec.name for spec in narrowed(helpers, setup.active)]
    for tool in setup.terminal_tools:
        if tool not in left:
            raise ConfigurationError(
                f"terminal tool {tool!r} is hidden by the active skills: allow it in "
                f"`allowed_tools` of {', '.join(setup.active_skills)}, or leave it out"
            )


def _check_reflection(setup: Setup) -> None:
    output = setup.output
    if setup.config.reflection and (output is None or output.reflection_handler is None):
        raise ConfigurationError(
            "loop.reflection = true needs an output with a reflection handler: declare "
            "`output.reflection_handler`, or set loop.reflection = false"
        )


def _check_tools(setup: Setup, helpers: Collection[ToolSpec]) -> None:
    offered = [*helpers, *offered_by_loop(setup.output, setup.config)]
    names = [spec.name for spec in offered]
    for spec in offered:
        if names.count(spec.name) > 1:
            raise ConfigurationError(
                f"two tools are called {spec.name!r}: rename one of them; "
                "an output is renamed with `output.name`"
            )
        problem = schema_problem(spec.parameters)
        if problem is not None:
            raise ConfigurationError(
                f"tool {spec.name!r}: its parameters are no JSON Schema: {problem}; "
                "correct the schema"
            )


def _check_names(what: str, wanted: Collection[str], known: list[str], remedy: str) -> None:
    for name in wanted:
        if name not in known:
            there = ", ".join(known) or "there are none"
            raise ConfigurationError(f"{what} {name!r} is not declared: {remedy} ({there})")


def _check_tool_choice(setup: Setup, names: list[str]) -> None:
    choice = setup.config.tool_choice
    offered = [*names, *([setup.output.tool.name] if setup.output else ())]
    if choice == "auto":
        return
    if not offered:
        raise ConfigurationError(
            f"loop.tool_choice = {choice!r} needs a tool: add tools or an output, "
            "or set loop.tool_choice = 'auto'"
        )
    if choice != "required":
        _check_names("loop.tool_choice:", [choice], offered, "name a tool, `auto` or `required`")


def _check_limits(setup: Setup) -> None:
    config = setup.config
    BudgetMeter(config.budget, setup.price)  # refuses a limit of money without a price
    is_asked = config.on_limit == "callback" or config.hard_limit is not None
    if setup.on_iteration_limit is not None and not is_asked:
        raise ConfigurationError(
            "on_iteration_limit would never be called: set loop.on_limit = 'callback', "
            "or loop.hard_limit"
        )


def _check_stop_conditions(setup: Setup, names: list[str]) -> None:
    for name in setup.stop_conditions:
        if name not in setup.config.stop_when:
            raise ConfigurationError(
                f"stop_conditions: {name!r} would never be asked: name it in loop.stop_when"
            )
    for condition in setup.config.stop_when:
        if not isinstance(condition, StopCondition):
            known = list(setup.stop_conditions)
            _check_names("loop.stop_when:", [condition], known, "give it in `stop_conditions`")
        elif condition.tool_called is not None:
            called = [condition.tool_called]
            _check_names("loop.stop_when.tool_called:", called, names, "add it to the tools")

"""Refusing, before anything runs, a loop that could never work."""

from __future__ import annotations

from harness.errors import ConfigurationError
from harness.loop.tool_calls import SUBMIT
from harness.protocols import OutputSpec, ToolProvider
from harness.schema.json_schema import schema_problem
from harness.schema.loop_config import LoopConfig
from harness.schema.messages import ToolSpec


def check_configuration(
    config: LoopConfig, tools: ToolProvider | None, output: OutputSpec | None
) -> None:
    """Raise for settings that contradict each other or the tools.

    Raises:
        ConfigurationError: says what to add or to remove.
    """
    if config.reflection and (output is None or output.reflection_handler is None):
        raise ConfigurationError(
            "loop.reflection = true needs an output with a reflection handler: declare "
            "`output.reflection_handler`, or set loop.reflection = false"
        )
    offered = [*(tools.specs() if tools else ()), *([output.tool] if output else ())]
    if config.reflection:
        offered.append(SUBMIT)
    names = [spec.name for spec in offered]
    for spec in offered:
        if names.count(spec.name) > 1:
            raise ConfigurationError(
                f"two tools are called {spec.name!r}: rename one of them; "
                "an output is renamed with `output.name`"
            )
        _check_schema(spec)


def _check_schema(spec: ToolSpec) -> None:
    problem = schema_problem(spec.parameters)
    if problem is not None:
        raise ConfigurationError(
            f"tool {spec.name!r}: its parameters are no JSON Schema: {problem}; correct the schema"
        )

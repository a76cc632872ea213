"""Refusing, before anything runs, a loop that could never work."""

from __future__ import annotations

from harness.errors import ConfigurationError
from harness.loop.tool_calls import SUBMIT
from harness.protocols import OutputSpec, ToolProvider
from harness.schema.loop_config import LoopConfig


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
    names = [spec.name for spec in tools.specs()] if tools else []
    reserved = [output.tool.name] if output else []
    if config.reflection:
        reserved.append(SUBMIT.name)
    for name in reserved:
        if name in names or reserved.count(name) > 1:
            raise ConfigurationError(
                f"two tools are called {name!r}: rename the tool, or the output with `output.name`"
            )

"""Whatever may be given as a tool, as a tool."""

from __future__ import annotations

from typing import TypeGuard

from harness.errors import ConfigurationError
from harness.protocols import Tool
from harness.tools.function import function_tool

_MEMBERS = ("spec", "settings", "sequential", "effects", "call")


def is_tool(given: object) -> TypeGuard[Tool]:
    """Whether something is a tool already, not a function or a class."""
    return not isinstance(given, type) and all(hasattr(given, member) for member in _MEMBERS)


def as_tool(given: object, *, where: str, name: str | None = None) -> Tool:
    """The tool itself, or the one that a function makes.

    Args:
        given: A function, plain or async, or a tool.
        where: How an error calls it.
        name: What the model calls a function; its own name if not given.

    Raises:
        ConfigurationError: it is neither, or the function cannot be called by a model.
    """
    if is_tool(given):
        return given
    if isinstance(given, type):
        instead = f"{given.__name__}(...)" if hasattr(given, "call") else "a function"
        raise ConfigurationError(
            f"{where} = {given.__name__}: a class is no tool: give {instead} instead"
        )
    if callable(given):
        return function_tool(given, name=name)
    if isinstance(given, str):
        raise ConfigurationError(
            f"{where} = {given!r}: a name is no tool: give the function itself, or make built-in "
            "tools with harness.tools.builtin.builtin_tools"
        )
    raise ConfigurationError(
        f"{where} = {given!r}: neither a function nor a tool with {', '.join(_MEMBERS)}"
    )

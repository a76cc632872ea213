"""Tools that installed packages bring along."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import EntryPoint, entry_points

from harness.errors import ConfigurationError, error_line
from harness.protocols import Tool
from harness.tools.as_tool import as_tool

GROUP = "harness.tools"


def installed_tools(names: Iterable[str] | None = None) -> tuple[Tool, ...]:
    """The tools under the entry point group `harness.tools`.

    An entry point names a function, which becomes a tool under the entry point's name, or an
    object that is a tool already.

    Args:
        names: Of the entry points wanted, in this order; None is all, sorted by name.

    Raises:
        ConfigurationError: one is not there, cannot be loaded or is no tool.
    """
    found = {entry.name: entry for entry in entry_points(group=GROUP)}
    chosen = sorted(found) if names is None else list(names)
    for name in chosen:
        if name not in found:
            known = ", ".join(sorted(found)) or "none"
            raise ConfigurationError(
                f"no installed package brings the tool {name!r} (entry point group {GROUP!r}); "
                f"there are: {known}"
            )
    return tuple(_load(found[name]) for name in chosen)


def _load(entry: EntryPoint) -> Tool:
    try:
        loaded = entry.load()
    except Exception as error:
        raise ConfigurationError(
            f"the tool {entry.name!r} cannot be loaded from {entry.value!r}: {error_line(error)}"
        ) from error
    return as_tool(loaded, where=f"the tool {entry.name!r} at {entry.value!r}", name=entry.name)

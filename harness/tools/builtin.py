"""The built-in tools, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from harness.errors import ConfigurationError
from harness.protocols import ProcessRunner, Tool
from harness.tools.files import ListDir, ReadFile, WriteFile
from harness.tools.shell import Shell
from harness.tools.workspace import Workspace

BUILTIN_NAMES = ("shell", "read_file", "write_file", "list_dir")


def builtin_tools(
    names: Iterable[str], workspace: Workspace, sandbox_factory: Callable[[], ProcessRunner]
) -> tuple[Tool, ...]:
    """Built-in tools in the order named.

    Args:
        names: Some of `BUILTIN_NAMES`.
        workspace: What the tools act on; not copied before one runs.
        sandbox_factory: Gives the sandbox; asked only when a command runs.

    Raises:
        ConfigurationError: a name is not known.
    """
    known: dict[str, Tool] = {
        tool.spec.name: tool
        for tool in (
            Shell(workspace, sandbox_factory),
            ReadFile(workspace),
            WriteFile(workspace),
            ListDir(workspace),
        )
    }
    chosen = []
    for name in names:
        if name not in known:
            raise ConfigurationError(f"unknown tool {name!r}: use {', '.join(BUILTIN_NAMES)}")
        chosen.append(known[name])
    return tuple(chosen)

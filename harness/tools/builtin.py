"""The built-in tools, by name."""

from __future__ import annotations

from collections.abc import Iterable

from harness.errors import ConfigurationError
from harness.protocols import Tool
from harness.tools.files import ListDir, ReadFile, WriteFile
from harness.tools.machine import Machine
from harness.tools.shell import Shell
from harness.tools.terminal import Keystrokes

BUILTIN_NAMES = ("shell", "read_file", "write_file", "list_dir", "keystrokes")


def builtin_tools(names: Iterable[str], machine: Machine) -> tuple[Tool, ...]:
    """Built-in tools in the order named.

    Args:
        names: Some of `BUILTIN_NAMES`.
        machine: What the tools act on; not made before one runs.

    Raises:
        ConfigurationError: a name is not known.
    """
    known: dict[str, Tool] = {
        tool.spec.name: tool
        for tool in (
            Shell(machine),
            ReadFile(machine),
            WriteFile(machine),
            ListDir(machine),
            Keystrokes(machine),
        )
    }
    chosen = []
    for name in names:
        if name not in known:
            raise ConfigurationError(f"unknown tool {name!r}: use {', '.join(BUILTIN_NAMES)}")
        chosen.append(known[name])
    return tuple(chosen)

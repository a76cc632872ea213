"""Built-in tools for the files of the task's machine."""

from __future__ import annotations

import codecs
from collections.abc import Sequence

from harness.schema.messages import ToolSpec
from harness.schema.record import JsonObject
from harness.tools.machine import Machine
from harness.values import Effect, FileContent, ToolOutcome

READ_LIMIT = 10_000
"""Bytes of a file that are shown."""

LIST_LIMIT = 200
"""Entries of a folder that are shown."""

_PATH: JsonObject = {"type": "string"}


class ReadFile:
    """Shows a text file."""

    spec = ToolSpec(
        name="read_file",
        description="Read a text file.",
        parameters={"type": "object", "properties": {"path": _PATH}, "required": ["path"]},
    )
    sequential = False

    def __init__(self, machine: Machine) -> None:
        self.settings: JsonObject = {"limit": READ_LIMIT}
        self._machine = machine

    def effects(self, arguments: JsonObject) -> Sequence[Effect]:
        """It reads the file."""
        return (Effect("read", _text(arguments["path"])),)

    def call(self, arguments: JsonObject, timeout_s: float) -> ToolOutcome:
        """The file's text, or why there is none."""
        path = _text(arguments["path"])
        try:
            return _show(path, self._machine.container.read(path, READ_LIMIT + 1))
        except OSError as error:
            return _failed(path, error)


class WriteFile:
    """Makes or replaces a text file."""

    spec = ToolSpec(
        name="write_file",
        description="Create or replace a text file.",
        parameters={
            "type": "object",
            "properties": {"path": _PATH, "content": {"type": "string"}},
            "required": ["path", "content"],
        },
    )
    sequential = True

    def __init__(self, machine: Machine) -> None:
        self.settings: JsonObject = {}
        self._machine = machine

    def effects(self, arguments: JsonObject) -> Sequence[Effect]:
        """It writes the file, with all its lines."""
        lines = len(_text(arguments["content"]).splitlines())
        return (Effect("write", _text(arguments["path"]), lines),)

    def call(self, arguments: JsonObject, timeout_s: float) -> ToolOutcome:
        """Write it, and say how much."""
        path, content = _text(arguments["path"]), _text(arguments["content"]).encode()
        try:
            self._machine.container.write(path, content)
        except OSError as error:
            return _failed(path, error)
        return ToolOutcome(content=f"Wrote {len(content)} bytes to {path}")


class ListDir:
    """Names what is in a folder."""

    spec = ToolSpec(
        name="list_dir",
        description="List the files in a folder.",
        parameters={
            "type": "object",
            "properties": {"path": {"type": "string", "default": "."}},
        },
    )
    sequential = False

    def __init__(self, machine: Machine) -> None:
        self.settings: JsonObject = {"limit": LIST_LIMIT}
        self._machine = machine

    def effects(self, arguments: JsonObject) -> Sequence[Effect]:
        """It reads the folder."""
        return (Effect("read", _text(arguments.get("path", "."))),)

    def call(self, arguments: JsonObject, timeout_s: float) -> ToolOutcome:
        """One name a line, folders with a slash."""
        path = _text(arguments.get("path", "."))
        try:
            return ToolOutcome(content=_listing(self._machine.container.names(path)))
        except OSError as error:
            return _failed(path, error)


def _show(path: str, found: FileContent) -> ToolOutcome:
    cut = len(found.data) > READ_LIMIT
    try:
        # Not final when cut: the cut may go through a character.
        decoder = codecs.getincrementaldecoder("utf-8")()
        text = decoder.decode(found.data[:READ_LIMIT], final=not cut)
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        return ToolOutcome(content=f"{path}: not a text file", status="failed")
    if cut:
        text += f"\n[cut: only the first {READ_LIMIT} of {found.size} bytes are shown]"
    return ToolOutcome(content=text or "[empty file]")


def _listing(names: Sequence[str]) -> str:
    shown = list(names[:LIST_LIMIT])
    if len(names) > LIST_LIMIT:
        shown.append(f"[cut: only the first {LIST_LIMIT} of {len(names)} names are shown]")
    return "\n".join(shown) or "[empty folder]"


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"must be text, not {value!r}")
    return value


def _failed(path: str, error: OSError) -> ToolOutcome:
    return ToolOutcome(content=f"{path}: {error.strerror}", status="failed")

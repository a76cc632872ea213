"""Built-in tools for files, which work on the host but reach only the workspace."""

from __future__ import annotations

import codecs
import os
import stat
from collections.abc import Sequence

from harness.schema.messages import ToolSpec
from harness.schema.record import JsonObject
from harness.tools.confined import PathRefusedError, open_below
from harness.tools.workspace import Workspace
from harness.values import Effect, ToolOutcome

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

    def __init__(self, workspace: Workspace) -> None:
        self.settings: JsonObject = {"limit": READ_LIMIT}
        self._workspace = workspace

    def effects(self, arguments: JsonObject) -> Sequence[Effect]:
        """It reads the file."""
        return (Effect("read", _text(arguments["path"])),)

    def call(self, arguments: JsonObject, timeout_s: float) -> ToolOutcome:
        """The file's text, or why there is none."""
        path = _text(arguments["path"])
        try:
            with open_below(self._workspace.path, path) as fd:
                return _show(path, fd)
        except (OSError, PathRefusedError) as error:
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

    def __init__(self, workspace: Workspace) -> None:
        self.settings: JsonObject = {}
        self._workspace = workspace

    def effects(self, arguments: JsonObject) -> Sequence[Effect]:
        """It writes the file, with all its lines."""
        lines = len(_text(arguments["content"]).splitlines())
        return (Effect("write", _text(arguments["path"]), lines),)

    def call(self, arguments: JsonObject, timeout_s: float) -> ToolOutcome:
        """Write it, and say how much."""
        path, content = _text(arguments["path"]), _text(arguments["content"]).encode()
        flags = os.O_WRONLY | os.O_CREAT
        try:
            with open_below(self._workspace.path, path, flags, make_folders=True) as fd:
                if not stat.S_ISREG(os.fstat(fd).st_mode):
                    return ToolOutcome(content=f"{path}: not a file", status="failed")
                os.ftruncate(fd, 0)
                with os.fdopen(fd, "wb", closefd=False) as file:
                    file.write(content)
        except (OSError, PathRefusedError) as error:
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

    def __init__(self, workspace: Workspace) -> None:
        self.settings: JsonObject = {"limit": LIST_LIMIT}
        self._workspace = workspace

    def effects(self, arguments: JsonObject) -> Sequence[Effect]:
        """It reads the folder."""
        return (Effect("read", _text(arguments.get("path", "."))),)

    def call(self, arguments: JsonObject, timeout_s: float) -> ToolOutcome:
        """One name a line, folders with a slash."""
        path = _text(arguments.get("path", "."))
        try:
            with open_below(self._workspace.path, path, os.O_RDONLY | os.O_DIRECTORY) as fd:
                return ToolOutcome(content=_listing(fd))
        except (OSError, PathRefusedError) as error:
            return _failed(path, error)


def _show(path: str, fd: int) -> ToolOutcome:
    found = os.fstat(fd)
    if stat.S_ISDIR(found.st_mode):
        return ToolOutcome(content=f"{path}: Is a directory", status="failed")
    if not stat.S_ISREG(found.st_mode):
        return ToolOutcome(content=f"{path}: not a file", status="failed")
    with os.fdopen(fd, "rb", closefd=False) as file:
        data = file.read(READ_LIMIT + 1)
    cut = len(data) > READ_LIMIT
    try:
        # Not final when cut: the cut may go through a character.
        decoder = codecs.getincrementaldecoder("utf-8")()
        text = decoder.decode(data[:READ_LIMIT], final=not cut)
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        return ToolOutcome(content=f"{path}: not a text file", status="failed")
    if cut:
        text += f"\n[cut: only the first {READ_LIMIT} of {found.st_size} bytes are shown]"
    return ToolOutcome(content=text or "[empty file]")


def _listing(fd: int) -> str:
    with os.scandir(fd) as entries:
        names = [
            f"{entry.name}/" if entry.is_dir(follow_symlinks=False) else entry.name
            for entry in entries
        ]
    names.sort()
    shown = names[:LIST_LIMIT]
    if len(names) > LIST_LIMIT:
        shown.append(f"[cut: only the first {LIST_LIMIT} of {len(names)} names are shown]")
    return "\n".join(shown) or "[empty folder]"


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"must be text, not {value!r}")
    return value


def _failed(path: str, error: OSError | PathRefusedError) -> ToolOutcome:
    reason = f"{path}: {error.strerror}" if isinstance(error, OSError) else str(error)
    return ToolOutcome(content=reason, status="failed")

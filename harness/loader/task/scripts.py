"""Scripts that judge or solve a task: what they install before they begin."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from harness.loader.dockerfile.installs import Files, merged, read_install, without
from harness.loader.dockerfile.pythons import asked_python
from harness.loader.dockerfile.shell import Command, assignment, commands, expand, fields
from harness.loader.reading import read_text
from harness.schema.environment import Equipment

_STOOD_IN = frozenset(
    {
        *("apt-get", "apt", "apt-key", "add-apt-repository", "curl", "wget", "sudo"),
        *("pip", "pip3", "uv", "uvx", "pipx"),
    }
)
_MODULES_STOOD_IN = frozenset({"venv", "virtualenv", "ensurepip"})
_SHELLS = frozenset({"bash", "sh", "source", "."})
_OWN_FOLDER = re.compile(r"dirname.*(\$0|\$\{?BASH_SOURCE)")
"""What scripts write for the folder that they are in."""


@dataclass(frozen=True, slots=True)
class Script:
    """What a script needs."""

    packages: tuple[str, ...]
    """Requirements and options, in order."""
    tools: tuple[tuple[str, ...], ...]
    """Environments of their own, each a sorted set of requirements."""
    python: str | None
    """The version that it installs packages for, if it names one."""
    stand_ins: bool
    """Whether it calls programs that want a network."""
    problems: tuple[str, ...]
    """What it installs and cannot be had here."""

    def equipment(self, base: Equipment) -> Equipment:
        """What its processes are given, beside what the machine has.

        All packages are in one environment: those that the machine has keep it to their version.
        """
        python = None if base.packages else self.python
        return Equipment(
            packages=merged(base.packages, self.packages),
            tools=tuple(dict.fromkeys((*base.tools, *self.tools))),
            python=python or base.python,
            stand_ins=base.stand_ins or self.stand_ins,
        )


def read_script(path: Path, files: Files, shown: str, *, place: str, cwd: str) -> Script:
    """Find out what a script installs, and what the scripts do that it calls.

    Args:
        path: of the script.
        files: for other scripts, and for files of requirements.
        shown: what lines of it are told as, for instance `tests/test.sh`.
        place: folder on the machine that has it.
        cwd: folder on the machine that it is started in.

    Raises:
        BadInputError: it cannot be read.
    """
    reader = _Reader(files, cwd)
    reader.read(path, shown, place)
    return Script(
        packages=merged(reader.packages),
        tools=tuple(dict.fromkeys(reader.tools)),
        python=reader.python,
        stand_ins=reader.stand_ins,
        problems=tuple(reader.problems),
    )


def on_top(base: Equipment, earlier: Equipment, later: Equipment) -> Equipment:
    """What is there when one script has installed what it needs after another one.

    Args:
        base: what both began with.
        earlier: of the first script.
        later: of the second, as it were without the first.
    """
    return Equipment(
        packages=merged(earlier.packages, without(later.packages, base.packages)),
        tools=tuple(dict.fromkeys((*earlier.tools, *later.tools))),
        python=earlier.python if later.python == base.python else later.python,
        stand_ins=earlier.stand_ins or later.stand_ins,
    )


def files_at(places: Mapping[str, Sequence[Path]], otherwise: Files) -> Files:
    """Files by their paths on the machine, where whole folders are laid at some places.

    Args:
        places: folders by the place where they are laid; a later one hides an earlier one's files.
        otherwise: for all other paths.
    """

    def file(path: str) -> Path | None:
        for place, folders in places.items():
            if PurePosixPath(path).is_relative_to(place):
                parts = PurePosixPath(path).relative_to(place).parts
                return _within(folders, parts)
        return otherwise(path)

    return file


def _within(folders: Iterable[Path], parts: tuple[str, ...]) -> Path | None:
    found = None
    for folder in folders:
        path = folder.joinpath(*parts)
        if path.is_file() and path.resolve().is_relative_to(folder.resolve()):
            found = path
    return found


def _is_stood_in(name: str, values: Sequence[str | None]) -> bool:
    if name.startswith("python") and values[1:2] == ["-m"]:
        return bool(_MODULES_STOOD_IN & set(values[2:3]))
    return name in _STOOD_IN


class _Reader:
    def __init__(self, files: Files, cwd: str) -> None:
        self._files = files
        self._cwd: str | None = cwd
        self._seen: set[Path] = set()
        self._variables: dict[str, str] = {"HOME": "/root"}
        self.packages: list[str] = []
        self.tools: list[tuple[str, ...]] = []
        self.python: str | None = None
        self.stand_ins = False
        self.problems: list[str] = []

    def read(self, path: Path, shown: str, place: str) -> None:
        if path in self._seen:
            return
        self._seen.add(path)
        folder = shown.rpartition("/")[0]
        for command in commands(read_text(path, purpose="what is run")):
            called = self._command(command, shown, place)
            found = None if called is None else self._file(called)
            if called is not None and found is not None:
                self.read(found, f"{folder}/{found.name}", posixpath.dirname(called))

    def _command(self, command: Command, shown: str, place: str) -> str | None:
        """Take in one command; gives the script that it calls."""
        words = command.words[1:] if command.words[:1] == ["export"] else command.words
        assigned = [assignment(word) for word in words]
        if words and all(assigned):
            for name, raw in (one for one in assigned if one is not None):
                self._assign(name, raw)
            return None
        values = [one for word in command.words for one in fields(word, self._variables)]
        first = (values[0] if values else None) or ""
        name = PurePosixPath(first).name or first
        self.stand_ins = self.stand_ins or _is_stood_in(name, values)
        self.python = asked_python(values) or self.python
        found = read_install(values, self._file)
        if found is not None:
            self.stand_ins = True
            self.packages += found.packages
            self.tools += [found.tool] if found.tool else []
            self.problems += [f"{shown}:{command.line}: {one}" for one in found.problems]
        elif name == "cd" and len(values) > 1:
            is_own = any(_OWN_FOLDER.search(word) for word in command.words[1:2])
            self._cd(place if is_own else values[1])
        elif name in _SHELLS and len(values) > 1 and values[1] is not None:
            return values[1]
        return None

    def _cd(self, target: str | None) -> None:
        unknown = target is None or self._cwd is None
        self._cwd = None if unknown else posixpath.join(self._cwd or "", target or "")

    def _file(self, path: str) -> Path | None:
        if not path.startswith("/") and self._cwd is None:
            return None
        return self._files(posixpath.normpath(posixpath.join(self._cwd or "", path)))

    def _assign(self, name: str, raw: str) -> None:
        value = expand(raw, self._variables)
        if value is None:
            self._variables.pop(name, None)
        else:
            self._variables[name] = value

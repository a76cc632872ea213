"""`RUN` lines of a Dockerfile: which packages they install, and which files they make."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import dropwhile

from harness.loader.dockerfile.file_commands import (
    has_effect,
    touches_files_only,
    written_in_system,
)
from harness.loader.dockerfile.installs import Files, Install, read_install
from harness.loader.dockerfile.pythons import asked_python
from harness.loader.dockerfile.shell import Command, Unit, assignment, expand, fields
from harness.schema.environment import FileCommand

_MAKE_NO_FILES = frozenset(
    {
        *("apt-get", "apt", "apt-key", "add-apt-repository", "apk", "dpkg", "sudo", "chown"),
        *("chgrp", "useradd", "adduser", "usermod", "groupadd", "addgroup", "passwd", "locale-gen"),
        *("update-alternatives", "update-ca-certificates", "ldconfig", "command", "which"),
    }
)
"""Of what is ignored: commands that later lines do not take files from."""

_ON_LOCAL_FILES = frozenset(
    {
        *("init", "config", "add", "commit", "branch", "tag", "checkout", "switch", "merge", "mv"),
        *("rm", "reset", "rebase", "cherry-pick", "stash", "notes", "update-ref", "gc", "reflog"),
    }
)
"""What of git needs no other machine."""

_VENV_VALUES = ("-p", "--python", "--prompt")
"""Options that the next word belongs to."""

_PREPARED = "/opt/venv"
"""Where the machine has what is installed for the task."""

_PYTHON = re.compile(r"python(3(\.\d+)?)?")
_INTERPRETERS = frozenset({"python", "python3", "bash", "sh"})
_SCRIPTS = (".py", ".sh")


@dataclass(slots=True)
class RunLine:
    """What came of one `RUN`."""

    commands: list[FileCommand] = field(default_factory=list)
    packages: list[str] = field(default_factory=list)
    python: str | None = None
    """The version that the last command to name one installs for."""
    ignored: list[tuple[int, str]] = field(default_factory=list)
    """Lines, each with what stands there."""
    missing: list[tuple[int, str]] = field(default_factory=list)
    """Lines, each with a file of requirements that is not among the task's."""
    is_complete: bool = True
    """Whether nothing was ignored that may have made files."""


def read_run(
    found: Iterable[Unit],
    *,
    cwd: str,
    files: Files,
    variables: Mapping[str, str],
    arguments: Mapping[str, str],
    is_complete: bool,
) -> RunLine:
    """Read the parts of one `RUN`.

    Args:
        found: the parts.
        cwd: where it begins.
        files: for files of requirements.
        variables: of the machine, as they are at this line.
        arguments: of the build; the machine does not have them later.
        is_complete: whether nothing was ignored before that may have made files.
    """
    reader = _Reader(cwd, files, variables, arguments)
    reader.line.is_complete = is_complete
    for unit in found:
        reader.read(unit)
    reader.flush()
    return reader.line


class _Reader:
    def __init__(
        self,
        cwd: str,
        files: Files,
        variables: Mapping[str, str],
        arguments: Mapping[str, str],
    ) -> None:
        self.line = RunLine()
        self._cwd: str | None = cwd
        self._files = files
        self._variables = dict(variables)
        self._own = dict(arguments)
        self._pending: list[str] = []

    def read(self, unit: Unit) -> None:
        only = unit.commands[0] if len(unit.commands) == 1 else None
        if only is not None and self._setting(only):
            return
        for command in unit.commands:
            self.line.python = asked_python(self._words(command)) or self.line.python
        installs = [self._install(command) for command in unit.commands]
        if any(installs):
            self._installed(unit, installs)
        elif only is not None and self._cwd is not None and (place := self._venv(only)):
            self._link(place)
        elif only is not None and self._cwd is not None and self._is_worth_trying(only):
            # Often it makes the task's data. What it calls may be missing here.
            self.flush()
            self.line.is_complete = False
            self._pending.append(unit.text)
        elif not touches_files_only(unit) or self._cwd is None:
            self._ignore(unit.line, unit.text)
            self.line.is_complete &= all(_makes_no_files(command) for command in unit.commands)
        elif has_effect(unit, self._all()):
            self._touch(unit, self._cwd)

    def flush(self) -> None:
        """Make one command of those that were found since the last."""
        if self._pending and self._cwd is not None:
            # As one process: starting each costs more than what it does.
            text = "\n".join(self._pending)
            text = f"set -e\n{text}" if len(self._pending) > 1 else text
            names = [name for name in self._own if re.search(rf"\$\{{?{name}\b", text)]
            given = [f"{name}={shlex.quote(self._own[name])}" for name in names]
            command = "\n".join([*given, text])
            needed = self.line.is_complete
            self.line.commands.append(FileCommand(command=command, cwd=self._cwd, needed=needed))
        self._pending = []

    def _all(self) -> dict[str, str]:
        return self._variables | self._own

    def _setting(self, command: Command) -> bool:
        """Take in what only changes the shell itself; False if it is something else."""
        words = command.words[1:] if command.words[:1] == ["export"] else command.words
        assigned = [assignment(word) for word in words]
        if words and all(assigned):
            self.flush()
            for name, raw in (one for one in assigned if one is not None):
                value = expand(raw, self._all(), unset="")
                if value is None:
                    self._own.pop(name, None)
                else:
                    self._own[name] = value
            return True
        if command.words[:1] == ["cd"] and not command.redirections:
            self.flush()
            self._cwd = self._folder(command.words[1:])
            return True
        return False

    def _folder(self, words: Sequence[str]) -> str | None:
        value = expand(words[0], self._all()) if len(words) == 1 else None
        if value is None or self._cwd is None or value.startswith(("-", "~")):
            return None
        return posixpath.normpath(posixpath.join(self._cwd, value))

    def _install(self, command: Command) -> Install | None:
        words = [one for word in command.words for one in fields(word, self._all())]
        cwd = self._cwd or "/"
        return read_install(words, lambda path: self._files(posixpath.join(cwd, path)))

    def _words(self, command: Command) -> list[str]:
        """A command's words with variables resolved, those before its name left out."""
        written = dropwhile(lambda word: assignment(word) is not None, command.words)
        return [expand(word, self._all()) or "" for word in written]

    def _venv(self, command: Command) -> str | None:
        """Where it makes a virtual environment."""
        words = self._words(command)
        name = posixpath.basename(words[0]) if words else ""
        if _PYTHON.fullmatch(name) and words[1:3] in (["-m", "venv"], ["-m", "virtualenv"]):
            words = words[3:]
        elif name == "virtualenv" or (name == "uv" and words[1:2] == ["venv"]):
            words = words[1 if name == "virtualenv" else 2 :]
        else:
            return None
        pairs = zip(["", *words], words, strict=False)
        places = (word for before, word in pairs if word[:1] != "-" and before not in _VENV_VALUES)
        place = next(places, ".venv" if name == "uv" else "")
        return posixpath.normpath(posixpath.join(self._cwd or "/", place)) if place else None

    def _link(self, place: str) -> None:
        """Let an environment of the task's be the one that is prepared."""
        if place != _PREPARED:
            folder, link = shlex.quote(posixpath.dirname(place)), shlex.quote(place)
            self._pending += [f"mkdir -p {folder}", f"ln -sfn {_PREPARED} {link}"]

    def _is_worth_trying(self, command: Command) -> bool:
        """Whether it runs a script out of the build context, or git on files of the machine."""
        words = self._words(command)
        if words[:1] == ["git"]:
            rest = list(words[1:])
            while rest and rest[0].startswith("-"):
                rest = rest[2 if rest[0] in ("-C", "-c") else 1 :]
            return bool(rest) and rest[0] in _ON_LOCAL_FILES
        if words and posixpath.basename(words[0]) in _INTERPRETERS:
            words = [word for word in words[1:] if not word.startswith("-")]
        path = posixpath.join(self._cwd or "/", words[0]) if words else "/"
        return path.endswith(_SCRIPTS) and self._files(path) is not None

    def _installed(self, unit: Unit, installs: Sequence[Install | None]) -> None:
        """Of several ways to install the same, as after `||`, the first counts."""
        first = next(one for one in installs if one is not None)
        self.line.packages += first.packages
        self.line.missing += [(unit.line, path) for path in first.missing]
        for problem in first.problems:
            self._ignore(unit.line, f"{unit.text.split()[0]}: {problem}")

    def _touch(self, unit: Unit, cwd: str) -> None:
        place = written_in_system(unit, self._all(), cwd)
        if place is not None:
            self._ignore(unit.line, f"{unit.text} ({place} belongs to the system)")
        else:
            self._pending.append(unit.text)

    def _ignore(self, line: int, text: str) -> None:
        self.flush()
        self.line.ignored.append((line, text))


def _makes_no_files(command: Command) -> bool:
    return bool(command.words) and command.words[0] in _MAKE_NO_FILES

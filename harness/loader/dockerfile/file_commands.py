"""Which shell commands only make, move or mark files, and where."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import dropwhile, pairwise
from pathlib import PurePosixPath

from harness.loader.dockerfile.shell import Command, Unit, assignment, expand

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc", "/proc", "/sys", "/dev")
_ETC_OF_SYSTEM = re.compile(
    r"/etc(/(alternatives|fonts|java-[^/]*|ld\.so\.[^/]*|ssl|pki|pip\.conf"
    r"|group|hosts|nsswitch\.conf|passwd|resolv\.conf)(/.*)?)?"
)
"""What of /etc machines have from the system; the rest of it is the task's own."""
_SINKS = ("/dev/null", "/dev/stdout", "/dev/stderr", "/dev/fd", "/dev/shm")
_LEFT_OVERS = ("/var/lib/apt", "/var/cache", "/tmp", "/root/.cache", "/var/log/apt")

_TO_LAST = frozenset({"cp", "mv", "ln", "install"})
_TO_ALL = frozenset({"mkdir", "touch", "rm", "rmdir", "chmod", "tee", "truncate", "gzip", "gunzip"})
_TO_FOLDER = {"tar": "-C", "unzip": "-d"}
_EFFECTIVE = _TO_LAST | _TO_ALL | frozenset(_TO_FOLDER) | {"sed"}
_HARMLESS = frozenset(
    {
        *("echo", "printf", "cat", "true", "false", ":", "test", "[", "[[", "set", "cd", "export"),
        *("for", "case", "select", "in", "head", "tail", "sort", "uniq", "cut", "tr", "seq", "wc"),
        *("awk", "grep", "find", "xargs", "basename", "dirname", "pwd", "ls", "date", "sleep"),
        *("unset", "shopt", "umask", "continue", "break", "exit", "*", "base64"),
    }
)


def in_system(path: str) -> bool:
    """Whether a place on the machine belongs to the system, which tasks cannot write to here."""
    return _below(path, _SYSTEM) and not _below(path, _SINKS)


def takes_copies(place: str) -> bool:
    """Whether files of the task's own can lie at a place on the machine."""
    path = place.rstrip("/")
    is_in_etc = _below(path, ("/etc",))
    return not (_ETC_OF_SYSTEM.fullmatch(path) if is_in_etc else in_system(path))


def touches_files_only(unit: Unit) -> bool:
    """Whether all that a unit does is known to concern files and nothing else."""
    return all(_is_file_command(command) for command in unit.commands)


def has_effect(unit: Unit, variables: Mapping[str, str]) -> bool:
    """Whether any file is different afterwards, left-overs of installations aside."""
    for command in unit.commands:
        name, arguments = _parts(command, variables)
        targets = list(_targets(name, arguments))
        if name == "rm" and targets and all(_below(target, _LEFT_OVERS) for target in targets):
            continue
        if name in _EFFECTIVE or any(_written(command, variables)):
            return True
    return False


def written_in_system(unit: Unit, variables: Mapping[str, str], cwd: str) -> str | None:
    """A place of the system that a unit writes to."""
    for command in unit.commands:
        name, arguments = _parts(command, variables)
        for target in (*_targets(name, arguments), *_written(command, variables)):
            path = str(PurePosixPath(cwd, target))
            # What else is done there may be done to files that only an image has.
            if in_system(path) and not (name == "mkdir" and takes_copies(path)):
                return path
    return None


def _is_file_command(command: Command) -> bool:
    words = _after_assignments(command.words)
    places = [one.target for one in command.redirections]
    if any(expand(word, {}, unset="") is None for word in (*words, *places)):
        return False
    name = expand(words[0], {}, unset="") if words else None
    return name is None or name in _EFFECTIVE or name in _HARMLESS


def _parts(command: Command, variables: Mapping[str, str]) -> tuple[str, list[str]]:
    words = [expand(word, variables, unset="") or "" for word in _after_assignments(command.words)]
    return (words[0], words[1:]) if words else ("", [])


def _after_assignments(words: Sequence[str]) -> Sequence[str]:
    return list(dropwhile(lambda word: assignment(word) is not None, words))


def _targets(name: str, arguments: Sequence[str]) -> Iterable[str]:
    """The places that a command writes to, but for its redirections."""
    plain = [one for one in arguments if not one.startswith("-")]
    if name in _TO_FOLDER:
        option = _TO_FOLDER[name]
        return [two for one, two in pairwise(arguments) if one == option]
    if name in _TO_LAST:
        return plain[-1:]
    if name == "sed":
        in_place = any(one.startswith(("-i", "--in-place")) for one in arguments)
        return plain[1:] if in_place else ()
    if name == "chmod":
        return plain[1:]
    return plain if name in _TO_ALL else ()


def _written(command: Command, variables: Mapping[str, str]) -> Iterable[str]:
    for one in command.redirections:
        target = expand(one.target, variables, unset="") or ""
        if one.writes and not _below(target, _SINKS):
            yield target


def _below(path: str, places: Iterable[str]) -> bool:
    text = path.replace("~", "/root", 1) if path.startswith("~") else path
    return any(text == place or text.startswith(f"{place}/") for place in places)

"""Which programs a shell command line starts, as far as that can be told for certain.

What cannot be told is refused: subshells, substitutions, redirections, and whatever makes the
shell find or build the program's name by itself. The scanner follows bash, since a difference
between the two would be a way past the list.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field

STARTERS = frozenset(
    [
        ".",
        "alias",
        "ash",
        "bash",
        "builtin",
        "busybox",
        "chroot",
        "command",
        "coproc",
        "csh",
        "dash",
        "declare",
        "doas",
        "enable",
        "env",
        "eval",
        "exec",
        "export",
        "fish",
        "flock",
        "function",
        "getopts",
        "hash",
        "ionice",
        "ksh",
        "let",
        "local",
        "mapfile",
        "nice",
        "nohup",
        "parallel",
        "pkexec",
        "read",
        "readarray",
        "readonly",
        "script",
        "set",
        "setsid",
        "sh",
        "shopt",
        "source",
        "stdbuf",
        "strace",
        "su",
        "sudo",
        "taskset",
        "tcsh",
        "time",
        "timeout",
        "trap",
        "typeset",
        "unset",
        "unshare",
        "watch",
        "xargs",
        "zsh",
    ]
)
"""Programs that start others, and builtins that change what a name stands for."""

_OPTIONS = {
    "find": ("-exec", "-ok"),
    "printf": ("-v",),
    "test": ("-v", "-R"),
    "[": ("-v", "-R"),
}
"""Beginnings of options with which a program runs what its arguments say."""

_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\[[^]]*\])?\+?=")
_VARIABLE = re.compile(r"\$(\{[A-Za-z_][A-Za-z0-9_]*\}|[A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!-])")
_HARMLESS = re.compile(r"(>>?|<) ?/dev/null(?=[ \t\n;|&]|\Z)|[<>]&[0-9-](?=[ \t\n;|&]|\Z)")
"""Redirections to nowhere, and from one stream to another."""


class CommandRefusedError(Exception):
    """A command line in which not every program can be told; its text says why."""


@dataclass(slots=True)
class Word:
    """A word of a command line, without its quotes."""

    text: str = ""
    expands: bool = False
    """Whether the shell may put other words in its place."""


def refused_program(command: str, allowed: Collection[str]) -> str | None:
    """Why a command line may not run if only these programs may be started, or None."""
    try:
        segments = split_command(command)
        for words in segments:
            _look_at(words, allowed)
    except CommandRefusedError as error:
        return str(error)
    return None


def split_command(command: str) -> list[list[Word]]:
    """The words of each segment, without harmless redirections.

    Raises:
        CommandRefusedError: it holds what could start something unseen.
    """
    scan = _Scan(command)
    while scan.at < len(command):
        scan.step()
    scan.end_segment()
    return scan.segments


def _look_at(words: list[Word], allowed: Collection[str]) -> None:
    program, name = words[0].text, words[0].text.rpartition("/")[2]
    if _ASSIGNMENT.match(program):
        raise CommandRefusedError(f"setting a variable is not allowed: {program!r}")
    if name in STARTERS:
        raise CommandRefusedError(f"{program!r} can start any program and is not allowed")
    if program not in allowed:
        raise CommandRefusedError(f"the program {program!r} is not allowed")
    if name not in _OPTIONS:
        return
    # An option of printf is one in the first place only.
    for word in words[1:2] if name == "printf" else words[1:]:
        if word.expands:
            raise CommandRefusedError(f"{word.text!r} after {program!r} must be in quotes")
        if word.text.startswith(_OPTIONS[name]):
            raise CommandRefusedError(f"{program} {word.text} is not allowed")


@dataclass(slots=True)
class _Scan:
    """A walk over a command line, one character or quoted part at a time."""

    command: str
    at: int = 0
    segments: list[list[Word]] = field(default_factory=list)
    words: list[Word] = field(default_factory=list)
    word: Word | None = None
    """What there is of the word at hand; None between words."""

    def step(self) -> None:
        char = self.command[self.at]
        harmless = _HARMLESS.match(self.command, self.at)
        if harmless:
            self.end_word()
            self.at = harmless.end()
        elif char in " \t":
            self.end_word()
            self.at += 1
        elif char in "\n;|&":
            self.end_segment()
            self.at += 1
        elif char == "'":
            self._single_quoted()
        elif char == '"':
            self._double_quoted()
        elif char == "\\":
            self._escaped()
        else:
            self._plain(char)

    def end_word(self) -> None:
        if self.word is not None:
            self.words.append(self.word)
        self.word = None

    def end_segment(self) -> None:
        self.end_word()
        if self.words:
            self.segments.append(self.words)
        self.words = []

    def _add(self, text: str, *, expands: bool = False) -> None:
        self.word = self.word or Word()
        self.word.text += text
        self.word.expands |= expands

    def _single_quoted(self) -> None:
        end = self.command.find("'", self.at + 1)
        if end < 0:
            raise CommandRefusedError("a quote is not closed")
        self._add(self.command[self.at + 1 : end])
        self.at = end + 1

    def _double_quoted(self) -> None:
        self._add("")
        self.at += 1
        while self.at < len(self.command):
            char = self.command[self.at]
            if char == '"':
                self.at += 1
                return
            if char == "\\" and self.command[self.at + 1 : self.at + 2] in tuple('$`"\\\n'):
                self._escaped()
            else:
                self._take(char, quoted=True)
        raise CommandRefusedError("a quote is not closed")

    def _escaped(self) -> None:
        if self.at + 1 == len(self.command):
            raise CommandRefusedError("it ends in the middle")
        following = self.command[self.at + 1]
        if following != "\n":
            self._add(following)
        self.at += 2

    def _plain(self, char: str) -> None:
        if char in "()":
            raise CommandRefusedError("subshells and functions are not allowed")
        if char in "<>":
            raise CommandRefusedError("redirections are not allowed, but to /dev/null")
        if char == "#" and self.word is None:
            raise CommandRefusedError("comments are not allowed")
        self._take(char, quoted=False)

    def _take(self, char: str, *, quoted: bool) -> None:
        """A character outside of single quotes, where the shell puts values in."""
        if char in "`\0":
            raise CommandRefusedError("subshells are not allowed")
        if char != "$":
            self._add(char, expands=not quoted and char in "*?[{~")
            self.at += 1
            return
        variable = _VARIABLE.match(self.command, self.at)
        taken = variable.group() if variable else char
        special = ("(", "{", "[", "\\\n") if quoted else ("(", "{", "[", "\\\n", "'", '"')
        computed = variable is None and self.command.startswith(special, self.at + 1)
        # $_ is the last word of the command before.
        if computed or taken in ("$_", "${_}"):
            raise CommandRefusedError("subshells and computed values are not allowed")
        self._add(taken, expands=not quoted)
        self.at += len(taken)

"""Shell text as commands: as much of the grammar as it takes to see what a script installs.

Nothing is run. Text that is no valid shell gives commands that make little sense, and no error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

LONGEST = 65_536
"""Of a word, in characters; a variable that holds itself twice doubles with each line."""

_SPACE = " \t\r"
_OPERATORS = ("&&", "||", ";;", "\n", ";", "|", "&", "(", ")")
_REDIRECTIONS = ("<<<", "<<-", "<<", "&>>", "&>", ">>", ">|", ">&", "<&", "<>", ">", "<")
_OPENING = {"if": "if", "for": "do", "while": "do", "until": "do", "select": "do"}
_OPENING |= {"case": "case", "{": "{"}
_CLOSING = {"fi": "if", "done": "do", "esac": "case", "}": "{"}
_WITHIN = frozenset({"then", "else", "elif", "do", "!"})
_HEADERS = frozenset({"for", "case", "select"})
_DIGITS = re.compile(r"\d*")
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_VARIABLE = re.compile(r"\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)(?:(:?[-+])([^}]*))?\})")
_BLANKS = re.compile(r"[ \t\n]+")
_UNKNOWABLE = re.compile(r"\$[(?@*#!$\d-]")


@dataclass(frozen=True, slots=True)
class Redirection:
    """Where a command reads from or writes to."""

    operator: str
    target: str
    """As written."""

    @property
    def writes(self) -> bool:
        """Whether a file is written."""
        return ">" in self.operator and not self.target.lstrip("-").isdigit()


@dataclass(slots=True)
class Command:
    """A command without pipes or conditions."""

    line: int
    words: list[str] = field(default_factory=list)
    """As written, quotes included."""
    redirections: list[Redirection] = field(default_factory=list)


@dataclass(slots=True)
class _Heredoc:
    end: str
    tabs: bool
    content: str = ""


@dataclass(slots=True)
class Unit:
    """What stands between two `&&`, `;` or line ends: a command, a pipe, a whole loop."""

    line: int
    commands: list[Command]
    follows: str
    """What stands before it: `&&`, `;` or nothing."""
    source: str
    heredocs: list[_Heredoc]

    @property
    def text(self) -> str:
        """As written, with what it reads by `<<`."""
        return "\n".join([self.source, *(one.content for one in self.heredocs)])


def units(text: str, line_at: Callable[[int], int] | None = None) -> list[Unit]:
    """The parts of a script, in order.

    Args:
        text: the script.
        line_at: for the line that a place in it comes from; otherwise it is a file of its own.
    """
    return _Reader(text, line_at).read()


def commands(text: str) -> Iterator[Command]:
    """All commands of a script, those within conditions and loops included."""
    for unit in units(text):
        yield from unit.commands


def assignment(word: str) -> tuple[str, str] | None:
    """Name and value, as written, of a word like `NAME=value`."""
    match = _ASSIGNMENT.fullmatch(word)
    return None if match is None else (match[1], match[2])


def is_too_long(word: str, variables: Mapping[str, str]) -> bool:
    """Whether a word, or what it stands for, is longer than any program is given."""
    if len(word) > LONGEST or "$" not in word:
        return len(word) > LONGEST
    named = (match[1] or match[2] for match in _VARIABLE.finditer(word))
    return len(word) + sum(len(variables.get(name, "")) for name in named) > LONGEST


def expand(word: str, variables: Mapping[str, str], *, unset: str | None = None) -> str | None:
    """What a word stands for; None if only running the script would tell, or if it is too long.

    Args:
        word: as written.
        variables: those that are known.
        unset: what any other stands for.
    """
    parts = _parts(word, variables, unset)
    return None if parts is None else "".join(text for text, _ in parts)


def fields(word: str, variables: Mapping[str, str]) -> list[str | None]:
    """The words that a word becomes: a variable without quotes falls apart at blanks.

    Args:
        word: as written.
        variables: those that are known.
    """
    parts = _parts(word, variables, None)
    if parts is None:
        return [None]
    found: list[str | None] = []
    current: str | None = None
    for text, is_split in parts:
        first, *rest = _BLANKS.split(text) if is_split else (text,)
        if first or not is_split:
            current = (current or "") + first
        for piece in rest:
            found += [] if current is None else [current]
            current = piece or None
    return [*found, *([] if current is None else [current])]


def _parts(
    word: str, variables: Mapping[str, str], unset: str | None
) -> list[tuple[str, bool]] | None:
    """What a word stands for, piece by piece, and whether blanks in the piece end a word."""
    if is_too_long(word, variables):
        return None
    out: list[tuple[str, bool]] = []
    at, quoted = 0, False
    while at < len(word):
        char = word[at]
        if char == "\\" and at + 1 < len(word):
            kept = quoted and word[at + 1] not in '"\\$`'
            out.append((word[at : at + 2] if kept else word[at + 1], False))
            at += 2
        elif char == "'" and not quoted:
            end = word.find("'", at + 1)
            end = len(word) if end < 0 else end
            out.append((word[at + 1 : end], False))
            at = end + 1
        elif char == '"':
            quoted = not quoted
            out.append(("", False))
            at += 1
        elif char == "`" or _UNKNOWABLE.match(word, at):
            return None
        elif char == "$" and (match := _VARIABLE.match(word, at)):
            value = _value(match, variables, unset)
            if value is None:
                return None
            out.append((value, not quoted))
            at = match.end()
        elif word.startswith("${", at):
            return None
        else:
            out.append((char, False))
            at += 1
    return out


def _value(match: re.Match[str], variables: Mapping[str, str], unset: str | None) -> str | None:
    name, operator, other = match[1] or match[2], match[3] or "", match[4] or ""
    value = variables.get(name)
    is_set = bool(value) if operator.startswith(":") else value is not None
    if operator.endswith("+"):
        return expand(other, variables, unset=unset) if is_set else ""
    if operator and not is_set:
        return expand(other, variables, unset=unset)
    return unset if value is None else value


class _Reader:
    """Goes through a text once, from the left."""

    def __init__(self, text: str, line_at: Callable[[int], int] | None) -> None:
        self._text = text
        self._at = 0
        self._line_at = line_at or self._count
        self._line, self._counted = 1, 0
        self._units: list[Unit] = []
        self._follows = ""
        self._start: int | None = None
        self._end = 0
        self._found: list[Command] = []
        self._command: Command | None = None
        self._open: list[str] = []
        self._unread: list[_Heredoc] = []
        """Whose content begins with the next line."""
        self._unowned = 0
        """From which of them on they belong to the unit that is being read."""

    def read(self) -> list[Unit]:
        while self._at < len(self._text):
            if self._text[self._at] in _SPACE:
                self._at += 1
            elif self._text.startswith("\\\n", self._at):
                self._at += 2
            elif self._text[self._at] == "#":
                self._at = self._line_end()
            elif not self._redirection() and not self._operator():
                self._word()
        self._end_unit("")
        return self._units

    def _line_end(self) -> int:
        end = self._text.find("\n", self._at)
        return len(self._text) if end < 0 else end

    def _redirection(self) -> bool:
        digits = _DIGITS.match(self._text, self._at)
        begin = self._at if digits is None else digits.end()
        operator = next((one for one in _REDIRECTIONS if self._text.startswith(one, begin)), None)
        if operator is None:
            return False
        command = self._current()
        self._at = begin + len(operator)
        while self._at < len(self._text) and self._text[self._at] in _SPACE:
            self._at += 1
        target = self._raw_word()
        command.redirections.append(Redirection(operator, target))
        if operator in ("<<", "<<-"):
            self._unread.append(_Heredoc(expand(target, {}) or target, operator == "<<-"))
        return True

    def _operator(self) -> bool:
        operator = next((one for one in _OPERATORS if self._text.startswith(one, self._at)), None)
        if operator is None:
            return False
        if operator == "(":
            self._current()
            self._open.append("(")
        elif operator == ")" and self._open and self._open[-1] == "(":
            self._open.pop()
        if operator in ("(", ")", "|", "||", ";;") or self._open:
            self._command = None
        else:
            self._end_unit(operator)
        self._at += len(operator)
        if operator == ")":
            self._end = self._at
        if operator == "\n":
            self._read_heredocs()
        return True

    def _word(self) -> None:
        command = self._current()
        word = self._raw_word()
        if command.words or command.redirections:
            command.words.append(word)
        elif word in _CLOSING:
            if self._open and self._open[-1] == _CLOSING[word]:
                self._open.pop()
        elif word in _OPENING:
            self._open.append(_OPENING[word])
            if word in _HEADERS:
                command.words.append(word)
        elif word == "[[":
            end = self._text.find("]]", self._at)
            self._at = len(self._text) if end < 0 else end
            command.words.append(word)
        elif word not in _WITHIN:
            command.words.append(word)

    def _raw_word(self) -> str:
        begin = self._at
        while self._at < len(self._text):
            char = self._text[self._at]
            if char in _SPACE or char in ";&|<>()\n":
                break
            self._at = self._past(self._at)
        self._end = self._at
        return self._text[begin : self._at].replace("\\\n", "")

    def _past(self, at: int) -> int:
        """The end of a quoted or substituted part that begins here, or of this character."""
        text = self._text
        if text[at] == "\\":
            return min(at + 2, len(text))
        if text[at] in "'`":
            end = text.find(text[at], at + 1)
            return len(text) if end < 0 else end + 1
        if text[at] == '"':
            return self._past_nested(at + 1, '"')
        if text.startswith("$(", at):
            return self._past_nested(at + 2, ")")
        if text.startswith("${", at):
            return self._past_nested(at + 2, "}")
        return at + 1

    def _past_nested(self, at: int, end: str) -> int:
        """The end of a part that may hold others; a stack, as text may nest without end."""
        ends = [end]
        text = self._text
        while at < len(text) and ends:
            if text[at] == ends[-1]:
                ends.pop()
                at += 1
            elif text[at] == '"':
                ends.append('"')
                at += 1
            elif text.startswith(("$(", "${"), at):
                ends.append(")" if text[at + 1] == "(" else "}")
                at += 2
            elif text[at] == "(" and ends[-1] == ")":
                ends.append(")")
                at += 1
            elif text[at] == "\\" or (text[at] in "'`" and ends[-1] != '"'):
                at = self._past(at)
            else:
                at += 1
        return at

    def _current(self) -> Command:
        if self._command is None:
            self._command = Command(self._line_at(self._at))
            self._found.append(self._command)
            if self._start is None:
                self._start = self._at
        return self._command

    def _count(self, place: int) -> int:
        self._line += self._text.count("\n", self._counted, place)
        self._counted = place
        return self._line

    def _end_unit(self, operator: str) -> None:
        found = [one for one in self._found if one.words or one.redirections]
        if self._start is not None and found:
            source = self._text[self._start : self._end].strip()
            heredocs = self._unread[self._unowned :]
            unit = Unit(self._found[0].line, found, self._follows, source, heredocs)
            self._units.append(unit)
            self._follows = "&&" if operator == "&&" else ";"
        self._unowned = len(self._unread)
        self._start, self._command, self._found = None, None, []

    def _read_heredocs(self) -> None:
        for heredoc in self._unread:
            lines = []
            while self._at < len(self._text):
                end = self._line_end()
                line = self._text[self._at : end]
                self._at = min(end + 1, len(self._text))
                lines.append(line)
                if (line.lstrip("\t") if heredoc.tabs else line) == heredoc.end:
                    break
            heredoc.content = "\n".join(lines)
        self._unread, self._unowned = [], 0

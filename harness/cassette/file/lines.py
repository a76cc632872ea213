"""A whole cassette file, line by line, with whatever is wrong with it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from harness.cassette.format import (
    HeaderLine,
    InteractionLine,
    Line,
    ParametersLine,
    ToolLine,
    TrialLine,
    VerdictLine,
    decode_line,
    is_sealed,
    other_format,
    seal,
)
from harness.cassette.request.canonical import parse_json
from harness.errors import CassetteError
from harness.schema.record import JsonObject

ProblemKind = Literal["damaged", "other_format", "cut", "orphaned"]
"""`orphaned` names a line that is not there; `cut` ends where the writing of it stopped."""


@dataclass(frozen=True, slots=True)
class FileLine:
    """One line of a file, trusted or not."""

    number: int
    """Counted from 1."""
    raw: bytes
    """Without the line end."""
    line: Line | None
    """What it says, where that can be read at all."""
    problem: Problem | None = None
    """Why it cannot be trusted."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong with a line."""

    kind: ProblemKind
    number: int
    text: str


def read_lines(path: Path) -> list[FileLine]:
    """All lines of a file; nothing in it stops the reading.

    Raises:
        CassetteError: there is no such file, or it cannot be read.
    """
    try:
        data = path.read_bytes()
    except IsADirectoryError as error:
        raise CassetteError(f"{path}: a folder where a cassette should be; move it away") from error
    except OSError as error:
        raise CassetteError(f"{path}: cannot be read: {error.strerror}") from error
    lines = data.split(b"\n")
    is_ended = not lines[-1]
    if is_ended:
        lines.pop()
    last = 0 if is_ended else len(lines)
    return [_file_line(number, raw, number == last) for number, raw in enumerate(lines, start=1)]


def _file_line(number: int, raw: bytes, is_unended: bool) -> FileLine:
    if is_sealed(raw):
        try:
            return FileLine(number, raw, decode_line(raw))
        except ValueError as error:
            return FileLine(number, raw, None, _unreadable(number, raw, str(error)))
    try:
        line = decode_line(seal(content_of(raw))[:-1])
    except ValueError as error:
        problem = _unreadable(number, raw, f"the line is damaged: {error}")
        if is_unended and problem.kind != "other_format":
            problem = Problem("cut", number, "the last line is cut")
        return FileLine(number, raw, None, problem)
    edited = "the line is damaged: it is not what was sealed"
    return FileLine(number, raw, line, Problem("damaged", number, edited))


def content_of(raw: bytes) -> bytes:
    """What a line says without its seal, as it would be written.

    Raises:
        ValueError: it is no JSON object.
    """
    return compact(object_of(raw))


def object_of(raw: bytes) -> JsonObject:
    """What a line says without its seal.

    Raises:
        ValueError: it is no JSON object.
    """
    try:
        value = parse_json(raw)
    except ValueError as error:
        if raw[:7] in (b"<<<<<<<", b"=======", b">>>>>>>", b"|||||||"):
            raise ValueError("the mark of a merge that is not finished") from error
        raise ValueError(f"not JSON ({error})") from error
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")
    value.pop("sum", None)
    return value


def compact(value: JsonObject) -> bytes:
    """An object as the bytes of a line, without seal."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.encode()


def _unreadable(number: int, raw: bytes, otherwise: str) -> Problem:
    found = other_format(raw)
    if found is None:
        return Problem("damaged", number, otherwise)
    text = f"format {found!r} is not known here; use the version that recorded it"
    return Problem("other_format", number, text)


def problems(lines: Iterable[FileLine]) -> Iterator[Problem]:
    """What is wrong with the lines themselves, and with what they say of each other."""
    seen = _Seen()
    number = 0
    for each in lines:
        line, number = each.line, each.number
        if each.problem is not None:
            yield each.problem
        if line is None:
            continue
        is_header = isinstance(line, HeaderLine)
        if number == 1 and not is_header:
            yield Problem("damaged", 1, "not a cassette: the first line is no header")
        if number > 1 and is_header:
            yield Problem("damaged", number, "a second header")
        for text in seen.missing(line):
            yield Problem("orphaned", number, text)
        seen.add(line)
    if number == 0:
        yield Problem("damaged", 1, "the file is empty")


@dataclass(slots=True)
class _Seen:
    """What the lines so far can be referred to by."""

    chains: set[str] = field(default_factory=set)
    parameters: set[str] = field(default_factory=set)
    interactions: set[str] = field(default_factory=set)
    tools: set[str] = field(default_factory=set)
    verdicts: set[str] = field(default_factory=set)

    def add(self, line: Line) -> None:
        match line:
            case ParametersLine():
                self.parameters.add(line.id)
            case InteractionLine():
                self.chains.add(line.chain)
                self.interactions.add(line.id)
            case ToolLine():
                self.tools.add(line.id)
            case VerdictLine():
                self.verdicts.add(line.id)

    def missing(self, line: Line) -> Iterator[str]:
        """What a line refers to that does not stand before it, in words."""
        for what, names, there in self._references(line):
            for name in names:
                if name not in there:
                    yield f"its {what} {name!r} is not in the file before it"

    def _references(self, line: Line) -> Iterator[tuple[str, Iterable[str], set[str]]]:
        match line:
            case InteractionLine():
                yield "parent", () if line.parent is None else (line.parent,), self.chains
                yield "set of parameters", (line.parameters,), self.parameters
            case ToolLine():
                names = () if line.interaction is None else (line.interaction,)
                yield "interaction", names, self.interactions
            case TrialLine():
                yield "interaction", line.interactions, self.interactions
                yield "tool call", line.tools, self.tools
                yield "verdict", line.verdicts, self.verdicts

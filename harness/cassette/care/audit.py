"""What is wrong with recordings: lines that lie, that nobody uses, or that hold a secret."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal, get_args

from harness.cassette.care.cells import Cells, Expected, cell_of, place_of
from harness.cassette.care.usage import played
from harness.cassette.file.ids import mistake
from harness.cassette.file.lines import FileLine, problems, read_lines
from harness.cassette.format import (
    HeaderLine,
    InteractionLine,
    Line,
    ParametersLine,
    StoredResponse,
    ToolLine,
    TrialLine,
    VerdictLine,
)
from harness.cassette.response.body import reader_of, response_bytes, without_secrets
from harness.cassette.response.sameness import same_answer
from harness.redaction import Redactor
from harness.schema.record import Json, Record

FindingKind = Literal[
    "damaged", "orphaned", "unplayed", "stale", "duplicate", "leaking", "unfinished"
]
KINDS: tuple[FindingKind, ...] = get_args(FindingKind)


class Finding(Record):
    """One thing that is wrong with a cassette."""

    kind: FindingKind
    file: str
    lines: tuple[int, ...] = ()
    """Counted from 1; empty where the whole file is meant."""
    text: str


def audit(path: Path, redactor: Redactor, cells: Cells | None = None) -> list[Finding]:
    """Check one file, every line of it.

    Args:
        path: The cassette.
        redactor: Finds secrets.
        cells: What the suites have; None where only the file itself is judged. A file of a suite
            that has no cell here is judged by itself as well.

    Raises:
        CassetteError: it cannot be read.
    """
    return list(_Audit(path, redactor, cells).findings())


def audit_partial(path: Path) -> Finding:
    """What an unfinished recording or change beside a cassette means."""
    what, next_step = "recording", "record again to go on with it"
    if path.suffix == ".new":
        what, next_step = "change of the cassette", "the next one removes it"
    return Finding(
        kind="unfinished",
        file=str(path),
        text=f"a {what} that was not finished; {next_step}, or remove it",
    )


class _Audit:
    def __init__(self, path: Path, redactor: Redactor, cells: Cells | None) -> None:
        self._path = path
        self._redactor = redactor
        self._lines = read_lines(path)
        self._cells = cells

    def findings(self) -> Iterator[Finding]:
        yield from self._damage()
        yield from self._secrets()
        yield from self._repetitions()
        header = self._lines[0].line if self._lines else None
        # A line that cannot be read may be the very trial that uses another.
        if isinstance(header, HeaderLine) and all(each.line for each in self._lines):
            if len(self._lines) == 1:
                yield self._finding("unfinished", "it holds nothing; record, or remove it")
            yield from self._by_suite(header)

    def _finding(self, kind: FindingKind, text: str, lines: Sequence[int] = ()) -> Finding:
        return Finding(kind=kind, file=str(self._path), lines=tuple(sorted(lines)), text=text)

    def _damage(self) -> Iterator[Finding]:
        for problem in problems(self._lines):
            kind: FindingKind = "orphaned" if problem.kind == "orphaned" else "damaged"
            yield self._finding(kind, problem.text, [problem.number])
        for each in self._lines:
            if each.line is not None and each.problem is None:
                text = mistake(each.line)
                if text is not None:
                    yield self._finding("damaged", text, [each.number])

    def _secrets(self) -> Iterator[Finding]:
        for each in self._lines:
            names = sorted(set(_secrets_of(each, self._redactor)))
            if names:
                text = f"holds what looks like a secret: {', '.join(names)}"
                yield self._finding("leaking", text, [each.number])

    def _repetitions(self) -> Iterator[Finding]:
        seen: dict[tuple[str, str], int] = {}
        for each in self._lines:
            if isinstance(each.line, (InteractionLine, ParametersLine, ToolLine, VerdictLine)):
                key = (each.line.kind, each.line.id)
                first = seen.setdefault(key, each.number)
                if first != each.number:
                    text = f"line {first} has the same id"
                    yield self._finding("duplicate", text, [each.number])

    def _by_suite(self, header: HeaderLine) -> Iterator[Finding]:
        expected = None
        cell = cell_of(self._path, header, self._cells)
        if self._cells is not None and cell is not None:
            expected = self._cells.get(cell)
            if expected is None:
                text = f"suite {cell[0]!r} has no task {cell[1]!r} with repeat {cell[2]}"
                yield self._finding("orphaned", text)
                return
            yield from self._name(header)
        yield from self._playing(None if expected is None else expected.variants)
        if expected is not None:
            yield from self._versions(expected)

    def _name(self, header: HeaderLine) -> Iterator[Finding]:
        """A cassette is found by its name alone, and was recorded under one."""
        place, recorded = place_of(self._path), (header.suite, header.task, header.repeat)
        name = f"{header.suite}/{header.task}/{header.repeat}.jsonl"
        if place is None or place[0] not in {suite for suite, _, _ in self._cells or ()}:
            yield self._finding("orphaned", f"it belongs to {name}, and nobody looks for it here")
        elif place != recorded:
            yield self._finding("stale", f"it was recorded as {name}", [1])

    def _playing(self, variants: frozenset[str] | None) -> Iterator[Finding]:
        playing = played(self._lines, variants)
        for variant, numbers in playing.dropped.items():
            yield self._finding("stale", f"variant {variant!r} is not in the suite", numbers)
        for variant, numbers in playing.unfinished.items():
            text = f"the recording of variant {variant!r} was not finished; record again to go on"
            yield self._finding("unfinished", text, numbers)
        same, rest = _same_answers(self._lines, playing.unplayed)
        if same:
            text = "no finished trial uses it, and another has the same answer"
            yield self._finding("duplicate", text, same)
        if rest:
            yield self._finding("unplayed", "no finished trial uses it", rest)

    def _versions(self, expected: Expected) -> Iterator[Finding]:
        last: dict[str, tuple[int, str]] = {}
        for each in self._lines:
            if isinstance(each.line, TrialLine) and each.line.variant in expected.variants:
                last[each.line.variant] = (each.number, each.line.task_digest)
        old = {v: at for v, (at, digest) in last.items() if digest != expected.task_digest}
        if old:
            text = (
                f"the task has changed since {_listed(old)} {'was' if len(old) == 1 else 'were'}"
                " recorded"
            )
            yield self._finding("stale", text, sorted(old.values()))


def _listed(names: Mapping[str, int]) -> str:
    return ", ".join(map(repr, names))


def _same_answers(
    lines: Sequence[FileLine], unplayed: Sequence[int]
) -> tuple[list[int], list[int]]:
    """Unplayed lines with an answer that stands elsewhere too, and the others."""
    answers: dict[str, list[tuple[int, InteractionLine]]] = {}
    endpoints: dict[str, str] = {}
    for each in lines:
        if isinstance(each.line, InteractionLine):
            answers.setdefault(each.line.key, []).append((each.number, each.line))
        elif isinstance(each.line, ParametersLine):
            endpoints[each.line.id] = each.line.endpoint
    waiting = set(unplayed)
    same = [
        number
        for alike in answers.values()
        for number, line in alike
        if number in waiting
        and any(
            same_answer(endpoints[line.parameters], other, line)
            for at, other in alike
            if at not in waiting or at < number
        )
    ]
    return sorted(same), [number for number in unplayed if number not in set(same)]


def _secrets_of(each: FileLine, redactor: Redactor) -> Iterator[str]:
    """What was found in a line: as it stands, in pieces of a stream, and in what is encoded."""
    text = each.raw.decode(errors="replace")
    found = [one.rule for one in redactor.find(text)]
    yield from found
    line: Line | None = each.line
    if isinstance(line, ParametersLine):
        yield from _secrets_in_bytes(line.body.get("base64"), redactor)
    if isinstance(line, InteractionLine):
        response = line.response
        if response.type == "base64":
            yield from _secrets_in_bytes(response.body, redactor)
        if not found and _holds_pieces(response, redactor):
            yield "in the pieces of a stream"


def _secrets_in_bytes(encoded: Json, redactor: Redactor) -> Iterator[str]:
    if isinstance(encoded, str):
        with suppress(ValueError):
            yield from (one.rule for one in redactor.find_in(base64.b64decode(encoded)))


def _holds_pieces(response: StoredResponse, redactor: Redactor) -> bool:
    if response.type == "events":
        return redactor.events(response.body) is not response.body
    reader = None
    if response.type != "json":
        with suppress(ValueError):
            content_type = response.headers.get("content-type", "")
            reader = reader_of(response_bytes(response), content_type)
    if reader is None:
        return False
    reader.close(cut=False)
    return without_secrets(reader, redactor) is not None

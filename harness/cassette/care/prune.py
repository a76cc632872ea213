"""Removing what no variant uses any more; the lines that stay are not touched."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.cassette.care.cells import Cells, cell_of
from harness.cassette.care.usage import played
from harness.cassette.file.journal import Journal, replace_file
from harness.cassette.file.lines import FileLine, problems, read_lines
from harness.cassette.format import (
    HeaderLine,
    InteractionLine,
    ParametersLine,
    ToolLine,
    TrialLine,
    VerdictLine,
)
from harness.errors import CassetteError


@dataclass(frozen=True, slots=True)
class Removal:
    """Lines that go for one reason."""

    lines: tuple[int, ...]
    """Counted from 1."""
    why: str


@dataclass(frozen=True, slots=True)
class Pruning:
    """What is to be removed from one file."""

    path: Path
    removals: tuple[Removal, ...]
    is_whole: bool
    """Whether nothing would be left, so that the file goes."""
    kept_bytes: int
    removed_bytes: int
    _lines: tuple[bytes, ...]
    _kept: tuple[bytes, ...]

    def apply(self) -> None:
        """Rewrite the file without them, in one step, or remove it.

        Raises:
            CassetteError: it has changed since, or somebody is recording it.
            InfrastructureError: it cannot be written; it is as it was.
        """
        journal = Journal.open_for_writing(self.path)
        try:
            if tuple(each.raw for each in read_lines(self.path)) != self._lines:
                raise CassetteError(f"{self.path}: it has changed in between; prune again")
            if self.is_whole:
                journal.remove()
            else:
                replace_file(journal.path, [raw + b"\n" for raw in self._kept])
        finally:
            journal.close()


def plan_pruning(path: Path, cells: Cells | None = None) -> Pruning | None:
    """What a cassette holds for nobody; None where it holds nothing such.

    What was recorded for another version of the task stays: it may be asked for as it was.

    Args:
        path: The cassette.
        cells: What the suites have; None where only finished trials tell what is used.

    Raises:
        CassetteError: it cannot be trusted; the text names file and line.
    """
    lines = read_lines(path)
    header = _header(path, lines)
    variants = None
    cell = cell_of(path, header, cells)
    if cells is not None and cell is not None:
        expected = cells.get(cell)
        if expected is None:
            why = f"suite {cell[0]!r} has no task {cell[1]!r} with repeat {cell[2]}"
            numbers = tuple(each.number for each in lines)
            return _pruning(path, lines, [Removal(numbers, why)], set())
        variants = expected.variants
    orphans = _orphans(lines)
    orphans -= _needed(lines, orphans, variants)
    rest = [each for each in lines if each.number not in orphans]
    playing = played(rest, variants)
    removals = [
        Removal(tuple(sorted(numbers)), why)
        for numbers, why in (
            (orphans, "what it belongs to is not in the file"),
            *(
                (numbers, f"variant {variant!r} is not in the suite")
                for variant, numbers in playing.dropped.items()
            ),
            (playing.unplayed, "no finished trial uses it"),
        )
        if numbers
    ]
    if not removals:
        return None
    if playing.superseded:
        why = "the same variant has finished another trial since"
        removals.append(Removal(tuple(playing.superseded), why))
    return _pruning(path, lines, removals, playing.kept)


def _pruning(
    path: Path, lines: Sequence[FileLine], removals: Iterable[Removal], kept: set[int]
) -> Pruning:
    staying = [each for each in lines if each.number in kept]
    is_whole = all(isinstance(each.line, (HeaderLine, ParametersLine)) for each in staying)
    kept_bytes = 0 if is_whole else sum(len(each.raw) + 1 for each in staying)
    return Pruning(
        path=path,
        removals=tuple(removals),
        is_whole=is_whole,
        kept_bytes=kept_bytes,
        removed_bytes=sum(len(each.raw) + 1 for each in lines) - kept_bytes,
        _lines=tuple(each.raw for each in lines),
        _kept=tuple(each.raw for each in staying),
    )


def _header(path: Path, lines: Sequence[FileLine]) -> HeaderLine:
    for problem in problems(lines):
        if problem.kind != "orphaned":
            raise CassetteError(
                f"{path}:{problem.number}: {problem.text}; nothing is removed from a damaged file:"
                " `harness cassette fix` it first, or take it back from version control"
            )
    header = lines[0].line
    assert isinstance(header, HeaderLine)
    return header


def _orphans(lines: Sequence[FileLine]) -> set[int]:
    """Lines that name what is not there, and those that then do."""
    orphans: set[int] = set()
    while True:
        rest = [each for each in lines if each.number not in orphans]
        found = {problem.number for problem in problems(rest) if problem.kind == "orphaned"}
        if not found:
            return orphans
        orphans |= found


def _needed(
    lines: Sequence[FileLine], orphans: set[int], variants: frozenset[str] | None
) -> set[int]:
    """Trials that have lost something, and without which nobody would use the rest."""
    rest = [each for each in lines if each.number not in orphans]
    unused = set(played(rest, variants).unplayed)
    names = {name for each in rest if each.number in unused for name in _ids(each)}
    last = {each.line.variant: each for each in lines if isinstance(each.line, TrialLine)}
    wanted = [each for variant, each in last.items() if variants is None or variant in variants]
    return {each.number for each in wanted if not names.isdisjoint(_used(each))}


def _ids(each: FileLine) -> Sequence[str]:
    line = each.line
    return (line.id,) if isinstance(line, (InteractionLine, ToolLine, VerdictLine)) else ()


def _used(each: FileLine) -> Sequence[str]:
    line = each.line
    if not isinstance(line, TrialLine):
        return ()
    return (*line.interactions, *line.tools, *line.verdicts)

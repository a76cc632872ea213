"""Which lines of a cassette a variant's finished trial uses, and which nobody does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from harness.cassette.file.lines import FileLine
from harness.cassette.format import (
    HeaderLine,
    InteractionLine,
    Line,
    ParametersLine,
    ToolLine,
    TrialLine,
    VerdictLine,
)


@dataclass(slots=True)
class Playing:
    """The lines of a file, by whether they are used: numbers counted from 1."""

    used: set[int] = field(default_factory=set)
    """By a finished trial, or by a line that is kept."""
    unfinished: dict[str, list[int]] = field(default_factory=dict)
    """Recorded by a variant after its last finished trial, or without one: recording goes on with
    them."""
    dropped: dict[str, list[int]] = field(default_factory=dict)
    """Of variants that are not wanted any more."""
    unplayed: list[int] = field(default_factory=list)
    """What else no trial uses."""
    superseded: list[int] = field(default_factory=list)
    """Trials of variants that have finished another one since."""

    @property
    def kept(self) -> set[int]:
        """What is used, or is waiting to be."""
        return self.used.union(*self.unfinished.values())


def played(lines: Sequence[FileLine], variants: frozenset[str] | None = None) -> Playing:
    """Sort the lines of a file in which every line can be read.

    Args:
        lines: All of its lines.
        variants: Those that are wanted; None for all.
    """
    numbered = {each.number: each.line for each in lines if each.line is not None}
    return _Sorting(numbered, variants).sorted()


class _Sorting:
    def __init__(self, lines: dict[int, Line], variants: frozenset[str] | None) -> None:
        self._lines = lines
        self._variants = variants
        self._last = {
            line.variant: number for number, line in lines.items() if isinstance(line, TrialLine)
        }
        self._names = {
            name
            for number, line in lines.items()
            if isinstance(line, TrialLine) and self._counts(number, line)
            for name in (*line.interactions, *line.tools, *line.verdicts)
        }
        self._found = Playing()

    def sorted(self) -> Playing:
        for number, line in self._lines.items():
            self._place(number, line)
        self._keep_what_is_needed()
        self._place_parameters()
        return self._found

    def _counts(self, number: int, trial: TrialLine) -> bool:
        return self._last[trial.variant] == number and self._is_wanted(trial.variant)

    def _is_wanted(self, variant: str) -> bool:
        return self._variants is None or variant in self._variants

    def _place(self, number: int, line: Line) -> None:
        found = self._found
        match line:
            case HeaderLine():
                found.used.add(number)
            case TrialLine():
                if self._counts(number, line):
                    found.used.add(number)
                elif self._is_wanted(line.variant):
                    found.superseded.append(number)
                else:
                    found.dropped.setdefault(line.variant, []).append(number)
            case InteractionLine() | ToolLine() | VerdictLine():
                if line.id in self._names:
                    found.used.add(number)
                elif not self._is_wanted(line.variant):
                    found.dropped.setdefault(line.variant, []).append(number)
                elif number > self._last.get(line.variant, 0):
                    found.unfinished.setdefault(line.variant, []).append(number)
                else:
                    found.unplayed.append(number)

    def _keep_what_is_needed(self) -> None:
        """A request is its parent and what it adds: the parents of what is kept are kept."""
        first: dict[str, int] = {}
        by_id: dict[str, int] = {}
        kept = self._found.kept
        kept_first: dict[str, int] = {}
        for number, one in self._interactions():
            first.setdefault(one.chain, number)
            by_id.setdefault(one.id, number)
            if number in kept:
                kept_first.setdefault(one.chain, number)
        for number in sorted(self._lines, reverse=True):
            line = self._lines[number]
            needed = None
            if number not in kept:
                continue
            if isinstance(line, ToolLine):
                needed = by_id.get(line.interaction or "")
            elif isinstance(line, InteractionLine):
                is_there = line.parent is None or kept_first.get(line.parent, number) < number
                needed = None if is_there else first.get(str(line.parent))
            if needed is not None and needed not in kept:
                kept.add(needed)
                parent = self._lines[needed]
                assert isinstance(parent, InteractionLine)
                kept_first[parent.chain] = min(needed, kept_first.get(parent.chain, needed))
                self._rescue(needed)

    def _rescue(self, number: int) -> None:
        found = self._found
        found.used.add(number)
        for numbers in (found.unplayed, *found.dropped.values()):
            if number in numbers:
                numbers.remove(number)
        found.dropped = {variant: numbers for variant, numbers in found.dropped.items() if numbers}

    def _place_parameters(self) -> None:
        """Parameters go with the first answer that has them, unless a kept one has them too."""
        kept = self._found.kept
        needed = {line.parameters for number, line in self._interactions() if number in kept}
        variants: dict[str, str] = {}
        for _, one in self._interactions():
            variants.setdefault(one.parameters, one.variant)
        for number, line in self._lines.items():
            if not isinstance(line, ParametersLine):
                continue
            variant = variants.get(line.id)
            if line.id in needed:
                self._found.used.add(number)
            elif variant in self._found.dropped:
                self._found.dropped[variant].append(number)
            else:
                self._found.unplayed.append(number)

    def _interactions(self) -> Iterator[tuple[int, InteractionLine]]:
        for number, line in self._lines.items():
            if isinstance(line, InteractionLine):
                yield number, line

"""Two cassettes side by side: what was asked, answered, run and judged otherwise."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from harness.cassette.file.view import CassetteView, read_damaged
from harness.cassette.format import ToolLine
from harness.cassette.show.calls import SpokenCall, spoken
from harness.cassette.show.conversations import conversations
from harness.cassette.show.text_diff import text_lines

Change = Literal["added", "removed", "changed"]


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing in which two cassettes differ."""

    change: Change
    subject: str
    """`call`, `verdict`, `variant`, or what of the header."""
    detail: str
    """Which, and what of it."""
    variants: tuple[str, ...]
    """Whose it is, where it belongs to some."""
    lines: tuple[int | None, int | None]
    """Numbers of the lines in the first and the second file; None where there is none."""
    diff: tuple[str, ...] = ()
    """Unified, in words."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two cassettes."""

    same_calls: int
    differences: tuple[Difference, ...]


_Lines = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Part:
    """One call as lines, by what they are about."""

    id: str
    number: int
    place: int
    """Of its line in the file."""
    request: _Lines
    answer: _Lines
    tools: _Lines

    @property
    def key(self) -> tuple[_Lines, _Lines, _Lines]:
        return self.request, self.answer, self.tools


def compare(first: Path, second: Path) -> Comparison:
    """Compare what two cassettes say: times, counts of tokens and ids do not count.

    Raises:
        CassetteError: one is no cassette at all.
    """
    a, b = _Side(first), _Side(second)
    found = [*_headers(a.view, b.view), *_variants(a, b)]
    pairs: dict[tuple[str | None, str | None], tuple[_Part | None, _Part | None, list[str]]] = {}
    for variant in _in_both(a.trials, b.trials):
        for one, other in _aligned(a.trials[variant], b.trials[variant]):
            key = (one.id if one else None, other.id if other else None)
            pairs.setdefault(key, (one, other, []))[2].append(variant)
    same = 0
    for one, other, variants in pairs.values():
        difference = _difference(one, other, tuple(variants))
        same += difference is None
        found += [difference] if difference is not None else []
    found += _verdicts(a, b)
    return Comparison(same, tuple(found))


class _Side:
    """One of the two: its calls by variant, in the order of the trial."""

    def __init__(self, path: Path) -> None:
        self.view, _ = read_damaged(path)
        calls = spoken(self.view, conversations(self.view))
        parts = {name: _part(one) for name, one in calls.items()}
        self.trials: dict[str, list[_Part]] = {
            variant: [parts[name] for name in trial.interactions if name in parts]
            for variant, trial in self.view.trials.items()
        }
        told = {name for trial in self.view.trials.values() for name in trial.interactions}
        for name, one in self.view.interactions.items():
            if name not in told:
                key = f"{one.line.variant}, in no finished trial"
                self.trials.setdefault(key, []).append(parts[name])


def _part(one: SpokenCall) -> _Part:
    return _Part(
        one.call.interaction.line.id,
        one.call.number,
        one.call.interaction.number,
        tuple(_passages((passage.title, passage.text) for passage in one.asked)),
        tuple(_passages((passage.title, passage.text) for passage in one.answered)),
        tuple(line for tool in one.ran for line in _ran(tool)),
    )


def _passages(passages: Iterable[tuple[str, str]]) -> Iterator[str]:
    for title, text in passages:
        yield f"── {title}"
        yield from text_lines(text)


def _ran(tool: ToolLine) -> Iterator[str]:
    yield f"── Ran {tool.name}: {tool.result.status}"
    yield from text_lines(tool.arguments)
    yield from text_lines(tool.result.content)


def _in_both(a: Iterable[str], b: Iterable[str]) -> list[str]:
    there = set(b)
    return [name for name in a if name in there]


def _headers(a: CassetteView, b: CassetteView) -> Iterator[Difference]:
    for name in ("suite", "task", "repeat", "task_digest", "match"):
        before, now = str(getattr(a.header, name)), str(getattr(b.header, name))
        if before != now:
            diff = (f"-{before}", f"+{now}")
            yield Difference("changed", name.replace("_", " "), "", (), (1, 1), diff)


def _variants(a: _Side, b: _Side) -> Iterator[Difference]:
    sides: tuple[tuple[Change, _Side, _Side], ...] = (("removed", a, b), ("added", b, a))
    for change, here, there in sides:
        for variant in sorted(here.trials.keys() - there.trials.keys()):
            count = len(here.trials[variant])
            detail = f"with {count} call{'s' * (count != 1)}"
            yield Difference(change, "variant", detail, (variant,), (None, None))


def _aligned(a: Sequence[_Part], b: Sequence[_Part]) -> Iterator[tuple[_Part | None, _Part | None]]:
    """The calls of two trials, equal ones beside each other."""
    matcher = difflib.SequenceMatcher(
        None, [part.key for part in a], [part.key for part in b], autojunk=False
    )
    for _, a_from, a_to, b_from, b_to in matcher.get_opcodes():
        for at in range(max(a_to - a_from, b_to - b_from)):
            yield (
                a[a_from + at] if a_from + at < a_to else None,
                b[b_from + at] if b_from + at < b_to else None,
            )


def _difference(a: _Part | None, b: _Part | None, variants: tuple[str, ...]) -> Difference | None:
    there = a or b
    assert there is not None
    lines = (a.place if a else None, b.place if b else None)
    if a is None or b is None:
        change: Change = "added" if a is None else "removed"
        sign = "+" if a is None else "-"
        diff = tuple(f"{sign}{line}" for part in there.key for line in part)
        return Difference(change, "call", str(there.number), variants, lines, diff)
    names = ("request", "answer", "tools")
    differing = [
        name for name, before, now in zip(names, a.key, b.key, strict=True) if before != now
    ]
    if not differing:
        return None
    before = [line for part in a.key for line in part]
    now = [line for part in b.key for line in part]
    diff = tuple(_unified(before, now))
    detail = f"{there.number}, {' and '.join(differing)}"
    return Difference("changed", "call", detail, variants, lines, diff)


def _verdicts(a: _Side, b: _Side) -> Iterator[Difference]:
    for variant in _in_both(a.view.trials, b.view.trials):
        before, now = _verdict_of(a.view, variant), _verdict_of(b.view, variant)
        if before != now:
            diff = tuple(_unified(before, now))
            yield Difference("changed", "verdict", "", (variant,), (None, None), diff)


def _verdict_of(view: CassetteView, variant: str) -> list[str]:
    names = view.trials[variant].verdicts
    return [
        line
        for verdict in view.verdicts
        if verdict.id in names
        for line in text_lines(verdict.verdict.model_dump(mode="json", exclude_defaults=True))
    ]


def _unified(before: Sequence[str], now: Sequence[str]) -> Iterator[str]:
    """A unified diff; the numbers of lines mean nothing here, so gaps are only marked."""
    for line in list(difflib.unified_diff(before, now, n=2, lineterm=""))[2:]:
        yield " …" if line.startswith("@@") else line

"""`harness cassette diff`: two cassettes, or two folders of them, side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from harness.analysis.numbers import plural
from harness.cassette.show.compare import Comparison, Difference, compare
from harness.cli import DOES_NOT_HOLD, FINE
from harness.cli.options import make_command
from harness.cli.terminal import Terminal
from harness.errors import BadInputError


@dataclass(frozen=True, slots=True)
class _Pair:
    """What stands at the same place in both."""

    name: str
    first: Path | None
    second: Path | None
    comparison: Comparison | None
    """None where only one of them is there."""


@make_command("diff", example="harness cassette diff cassettes/basics old/cassettes/basics")
@click.argument("first", type=click.Path(path_type=Path))
@click.argument("second", type=click.Path(path_type=Path))
def command(terminal: Terminal, first: Path, second: Path) -> int:
    """Compare two cassettes, or two folders of cassettes, by what they say.

    Calls are aligned by variant: what was asked, answered, and run by tools. Times, counts of
    tokens and ids do not count. Exit code 1 if they differ.
    """
    pairs = _pairs(first, second)
    differing = [one for one in pairs if one.comparison is None or one.comparison.differences]
    data = {
        "same": not differing,
        "files": [
            {
                "name": one.name,
                "first": one.first and str(one.first),
                "second": one.second and str(one.second),
                "same_calls": one.comparison.same_calls if one.comparison else 0,
                "differences": [asdict(found) for found in one.comparison.differences]
                if one.comparison
                else [],
            }
            for one in pairs
        ],
    }
    terminal.result(data, _lines(pairs, differing))
    return DOES_NOT_HOLD if differing else FINE


def _pairs(first: Path, second: Path) -> list[_Pair]:
    for path in (first, second):
        if not path.exists():
            raise BadInputError(f"{path}: no such folder or file")
    if first.is_dir() != second.is_dir():
        raise BadInputError(f"{first} and {second}: compare two files, or two folders")
    if not first.is_dir():
        return [_Pair(str(first), first, second, compare(first, second))]
    files = [{path.relative_to(top) for path in top.rglob("*.jsonl")} for top in (first, second)]
    return [
        _Pair(
            str(name),
            first / name if name in files[0] else None,
            second / name if name in files[1] else None,
            compare(first / name, second / name) if name in files[0] & files[1] else None,
        )
        for name in sorted(files[0] | files[1])
    ]


def _lines(pairs: list[_Pair], differing: list[_Pair]) -> Iterator[str]:
    counts: Counter[tuple[str, str]] = Counter()
    for pair in differing:
        if pair.comparison is None:
            change = "removed" if pair.second is None else "added"
            counts["cassette", change] += 1
            yield f"{pair.first or pair.second}: {change}"
            continue
        yield f"--- {pair.first}"
        yield f"+++ {pair.second}"
        for one in pair.comparison.differences:
            counts[one.subject, one.change] += 1
            yield _heading(one)
            yield from one.diff
        yield ""
    same = sum(pair.comparison.same_calls for pair in pairs if pair.comparison)
    parts = [f"{plural(number, what)} {change}" for (what, change), number in counts.items()]
    told = ", ".join(parts) or "no difference"
    yield f"{plural(len(pairs), 'cassette')} compared, {plural(same, 'call')} the same: {told}"


def _heading(one: Difference) -> str:
    whose = f"{', '.join(one.variants)}: " if one.variants else ""
    before, now = one.lines
    places = [f"-{before}"] * (before is not None) + [f"+{now}"] * (now is not None)
    where = f" (line {' '.join(places)})" if places else ""
    return f"@@ {whose}{' '.join(filter(None, (one.subject, one.detail)))} {one.change}{where}"

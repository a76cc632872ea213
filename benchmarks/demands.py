"""What the figures must keep to, each with its limit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.corpus import VENDORS
from benchmarks.replay import FRONTS, RIVAL, Results

OF_LIMIT = {"openai": 0.9, "anthropic": 0.75}
RIVAL_FACTOR = 3.0
STEADY = 0.9
"""The slowest size beside the fastest."""
OPENING_MS = 150.0
MEMORY_MB = 60.0
AT = 5_000
FILE_SHARE = 0.25
MANY_MS = 2.0
RECORDING_MS = 2.0
START_MS = 50.0
TRIALS = 20.0
"""A second."""


@dataclass(frozen=True, slots=True)
class Demand:
    """One requirement, and what was found."""

    text: str
    limit: str
    found: str
    holds: bool | None
    """None where it was not measured."""


def demands(results: Results) -> Iterator[Demand]:
    """Every requirement, in the order of the tables."""
    for vendor, least in OF_LIMIT.items():
        ratios = [row.ratio for row in results.rows if (row.name, row.vendor) == ("http", vendor)]
        text = f"HTTP front, {vendor}: share of the SDK's limit, at every size"
        yield _at_least(text, least, ratios)
    for vendor in VENDORS:
        yield _at_least(
            f"direct front, {vendor}: times {RIVAL}, at every size",
            RIVAL_FACTOR,
            list(_times(results, "direct", RIVAL, vendor)),
        )
    for front in FRONTS:
        for vendor in VENDORS:
            ratios = [r.ratio for r in results.rows if (r.name, r.vendor) == (front, vendor)]
            text = f"{front} front, {vendor}: slowest size beside the fastest"
            yield _at_least(text, STEADY, [min(ratios) / max(ratios)])
    large = [row for row in results.rows if row.name in FRONTS and row.calls == AT]
    yield _below(f"opening {AT:,} calls, CPU ms", OPENING_MS, [row.opening_ms for row in large])
    yield _below(f"memory for {AT:,} calls, MB", MEMORY_MB, [row.memory_mb for row in large])
    shares = [
        row.file_bytes / theirs.file_bytes
        for row in results.rows
        if row.name == "http"
        and (theirs := results.row("vcrpy YAML", row.vendor, row.calls)) is not None
    ]
    yield _at_most("size of the file beside vcrpy's YAML, at every size", FILE_SHARE, shares)
    many = results.many
    text = f"{many['count']:,} cassettes of 10 calls: open and close one, CPU ms"
    yield _below(text, MANY_MS, [many["open_close_ms"]])
    for found in results.recording:
        text = f"recording a call after {found['recorded']:,} others, {found['vendor']}: CPU ms"
        yield _below(text, RECORDING_MS, [found["overhead_ms"]])
    yield from _trials(results.trials)
    wrong = sum(row.wrong for row in results.rows if row.name in FRONTS) + many["wrong"]
    wrong += results.trials.get("wrong", 0)
    yield Demand("wrong answers of ours", "0", f"{wrong}", wrong == 0)


def _trials(found: Mapping[str, Any]) -> Iterator[Demand]:
    more = [found["start_ms"] - found["plain_ms"]] if found else []
    yield _below("starting a bubblewrap trial, ms more than a plain process", START_MS, more)
    rates = [found["rate"]] if found else []
    yield _at_least("trials a second on two processes, tools and verifier live", TRIALS, rates)


def _times(results: Results, ours: str, theirs: str, vendor: str) -> Iterator[float]:
    """In units of the SDK's limit in the same process, so that a slow moment cancels out."""
    for row in results.rows:
        if (row.name, row.vendor) == (ours, vendor):
            other = results.row(theirs, vendor, row.calls)
            if other is not None:
                yield row.ratio / other.ratio


def _at_least(text: str, limit: float, found: Iterable[float]) -> Demand:
    worst = min(found, default=None)
    return _demand(text, f">= {limit:g}", worst, worst is not None and worst >= limit)


def _at_most(text: str, limit: float, found: Iterable[float]) -> Demand:
    worst = max(found, default=None)
    return _demand(text, f"<= {limit:g}", worst, worst is not None and worst <= limit)


def _below(text: str, limit: float, found: Iterable[float]) -> Demand:
    worst = max(found, default=None)
    return _demand(text, f"< {limit:g}", worst, worst is not None and worst < limit)


def _demand(text: str, limit: str, worst: float | None, holds: bool) -> Demand:
    if worst is None:
        return Demand(text, limit, "-", None)
    return Demand(text, limit, f"{worst:.3g}", holds)

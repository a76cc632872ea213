"""The figures as text."""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import version
from typing import Any

from benchmarks.corpus import VENDORS, Vendor
from benchmarks.demands import Demand
from benchmarks.replay import OTHER_BYTES, Results
from benchmarks.timing import Row

NAMES = {
    "http": "ours, HTTP front",
    "direct": "ours, direct front",
    OTHER_BYTES: "ours, other bytes",
}
HEADINGS = ("", "recorded", "calls/s", "of limit", "open ms", "MB", "file MB", "B/call", "wrong")
_ROW = "{:<20} {:>8}  {:>8} {:>8}  {:>8}  {:>6}  {:>7}  {:>6}  {:>5}"


def lines(results: Results) -> Iterator[str]:
    """Everything that was measured."""
    yield machine()
    for vendor in VENDORS.values():
        rows = [row for row in results.rows if row.vendor == vendor.name]
        if rows:
            yield ""
            yield from _vendor(vendor, rows)
    yield ""
    many = results.many
    yield (
        f"{many['count']:,} cassettes of 10 calls: {many['open_close_ms']:.2f} ms of CPU time to"
        f" open and close one; {many['with_a_call_ms']:.2f} ms with a call through the direct front"
    )
    for found in results.recording:
        yield (
            f"Recording through the {found['vendor']} SDK after {found['recorded']:,} calls:"
            f" {found['through_ms']:.2f} ms of CPU time a call, {found['plain_ms']:.2f} without"
            f" a cassette: {found['overhead_ms']:.2f} more"
        )
    yield from _trials(results.trials)
    yield from results.notes


def machine() -> str:
    """What it ran on."""
    libraries = ", ".join(f"{name} {version(name)}" for name in ("openai", "anthropic", "httpx2"))
    return (
        f"{platform.system()}, {os.cpu_count()} cores, {platform.python_implementation()}"
        f" {platform.python_version()}, {libraries}; times are of the CPU"
    )


def _trials(found: Mapping[str, Any]) -> Iterator[str]:
    if found:
        yield (
            f"{found['trials']:,} trials with live tools and verifiers, {found['jobs']} at a time:"
            f" {found['rate']:.1f} a second by the clock, with their files in memory"
            f" {found['memory_rate']:.1f}"
        )
        yield (
            f"A container of bubblewrap, made, used for one process and removed:"
            f" {found['start_ms']:.1f} ms by the clock; the process alone {found['plain_ms']:.1f}"
        )


def _vendor(vendor: Vendor, rows: list[Row]) -> Iterator[str]:
    limit = statistics.median(row.limit for row in rows)
    yield f"{vendor.title}: the SDK on a mock transport makes {limit:,.0f} calls a CPU second"
    yield _ROW.format(*HEADINGS).rstrip()
    for row in rows:
        sampled = "~" if row.played < row.calls else ""
        yield _ROW.format(
            NAMES.get(row.name, row.name),
            f"{row.calls:,}",
            sampled + _rate(row.rate),
            _rate(row.ratio, places=2),
            f"{row.opening_ms:,.0f}" if row.opening_ms >= 10 else f"{row.opening_ms:.1f}",
            f"{row.memory_mb:,.0f}",
            f"{row.file_bytes / 1e6:.1f}",
            f"{row.file_bytes / row.calls:,.0f}",
            f"{row.wrong}",
        )
    short = [row for row in rows if row.played < row.calls]
    if short:
        least = min(row.played for row in short)
        yield f"~ sampled: not every call was played (at least {least:,} of them)"


def _rate(value: float, *, places: int = 0) -> str:
    """With two digits that count, where it is small."""
    if value < 10 ** (1 - places):
        return f"{value:.2g}"
    return f"{value:,.{places}f}"


def verdicts(demands: Iterable[Demand]) -> Iterator[str]:
    """The requirements with what was found."""
    yield f"{'required':<66} {'limit':>8}  {'found':>7}"
    for demand in demands:
        word = {True: "holds", False: "does not hold", None: "not measured"}[demand.holds]
        yield f"{demand.text:<66} {demand.limit:>8}  {demand.found:>7}  {word}"

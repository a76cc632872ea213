"""Replay speed over the length of the recording, as a picture for the documentation."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator

from benchmarks.replay import Results
from benchmarks.tables import NAMES

VENDOR = "openai"
SERIES = {
    "direct": "#0b6e4f",
    "http": "#2f6fde",
    "llm-cassette": "#b26a00",
    "cassette-sdk": "#8a5fb0",
    "vcrpy JSON": "#c23b3b",
}
"""What is drawn; both forms of vcrpy's file are as fast as each other."""
WIDTH, HEIGHT = 720, 360
LEFT, RIGHT, TOP, BOTTOM = 64, 150, 44, 44
GREY = "#6b7280"


def svg(results: Results) -> str:
    """Both axes are logarithmic."""
    rows = [row for row in results.rows if row.vendor == VENDOR and row.name in SERIES]
    sizes = sorted({row.calls for row in rows})
    limit = statistics.median(row.limit for row in rows)
    low = math.floor(math.log10(min(row.rate for row in rows)))
    high = math.ceil(math.log10(max(row.rate for row in rows)))

    def x(calls: float) -> float:
        share = math.log10(calls / sizes[0]) / (math.log10(sizes[-1] / sizes[0]) or 1)
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    def y(rate: float) -> float:
        share = (math.log10(rate) - low) / (high - low)
        return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)

    def drawing() -> Iterator[str]:
        yield _text(LEFT, 22, "Replayed calls per CPU second, OpenAI SDK", size=14, weight="600")
        for power in range(low, high + 1):
            rate = 10.0**power
            yield _line(LEFT, y(rate), WIDTH - RIGHT, y(rate), "#d7dbe0")
            yield _text(LEFT - 8, y(rate) + 4, f"{rate:,g}", anchor="end")
        for calls in sizes:
            yield _text(x(calls), HEIGHT - BOTTOM + 18, f"{calls:,}", anchor="middle")
        middle = (LEFT + WIDTH - RIGHT) / 2
        yield _text(middle, HEIGHT - 8, "calls in the recording", anchor="middle")
        yield _line(LEFT, y(limit), WIDTH - RIGHT, y(limit), GREY, dashes="5 4")
        yield _text(LEFT + 6, y(limit) - 6, "limit: the SDK alone")
        for name, colour in SERIES.items():
            points = sorted((row.calls, row.rate) for row in rows if row.name == name)
            if points:
                path = " ".join(f"{x(calls):.1f},{y(rate):.1f}" for calls, rate in points)
                style = f'fill="none" stroke="{colour}" stroke-width="2.5"'
                yield f'<polyline points="{path}" {style}/>'
                for calls, rate in points:
                    place = f'cx="{x(calls):.1f}" cy="{y(rate):.1f}"'
                    yield f'<circle {place} r="3.5" fill="{colour}"/>'
                calls, rate = points[-1]
                # Below its line where other lines go on beside it.
                below = 4 if calls == sizes[-1] else 17
                title = NAMES.get(name, name)
                yield _text(x(calls) + 9, y(rate) + below, title, fill=colour, weight="600")

    start = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'font-family="system-ui, sans-serif" role="img" aria-label="Replay speed">'
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>'
    )
    return "\n".join([start, *drawing(), "</svg>", ""])


def _text(
    x: float,
    y: float,
    text: str,
    *,
    anchor: str = "start",
    fill: str = GREY,
    size: int = 12,
    weight: str = "400",
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" font-weight="{weight}" '
        f'text-anchor="{anchor}" fill="{fill}">{text}</text>'
    )


def _line(x1: float, y1: float, x2: float, y2: float, colour: str, dashes: str = "none") -> str:
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
        f'stroke="{colour}" stroke-dasharray="{dashes}"/>'
    )

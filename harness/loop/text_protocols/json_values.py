"""JSON values as they stand in a model's text, and the calls among them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from harness.schema.record import storable

# strict=False: small models write raw line breaks inside strings, and mean them.
_DECODER = json.JSONDecoder(strict=False)
# Only what a value may start with: each failure of the decoder counts the lines before it.
_OPENING = re.compile(r"""\{(?=\s*["}])|\[(?=\s*["{\[\]\-0-9tfnNI])""")
_MAX_LISTS = 20
"""Calls in deeper lists of lists are no calls; a model that repeats brackets gets no deeper."""


@dataclass(frozen=True, slots=True)
class Found:
    """A JSON value in a text, and where it stands."""

    value: object
    start: int
    end: int


def json_values(text: str) -> Iterator[Found]:
    """Every outermost JSON object or list in a text."""
    position = 0
    while match := _OPENING.search(text, position):
        try:
            value, end = _DECODER.raw_decode(text, match.start())
        except ValueError:
            position = match.start() + 1
            continue
        except RecursionError:  # a model that repeats one bracket; trying each would take minutes
            return
        yield Found(value, match.start(), end)
        position = end


def json_value_at(text: str, position: int) -> Found | None:
    """The JSON value that starts exactly here, if one does."""
    try:
        value, end = _DECODER.raw_decode(text, position)
    except (ValueError, RecursionError):
        return None
    return Found(value, position, end)


def calls_in(value: object, depth: int = 0) -> list[tuple[str, str]]:
    """Names and raw arguments of `{"name": …, "arguments": …}`, or of a list of nothing else."""
    if isinstance(value, list):
        inside = [calls_in(item, depth + 1) for item in value] if depth < _MAX_LISTS else []
        return [call for calls in inside for call in calls] if all(inside) else []
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        return []
    if set(value) != {"name", "arguments"}:
        return []
    arguments = value["arguments"]
    raw = arguments if isinstance(arguments, str) else dumped(arguments)
    return [] if raw is None else [(storable(value["name"]), storable(raw))]


def dumped(value: object) -> str | None:
    """A value as JSON text; None when it is nested too deeply to be written."""
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return None

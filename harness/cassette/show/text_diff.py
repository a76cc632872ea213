"""JSON as lines that people read and compare."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator

from harness.cassette.request.canonical import canonical_json
from harness.schema.record import Json

_LONG_LINE = 160
_SHOWN_BEFORE = 40
"""Characters of a long line that are shown before the first change in it."""
_MAX_DIFF_LINES = 60
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Also the marks that turn the direction of writing: what is shown may not be what is there."""
_SENTENCE_END = re.compile(r"(?<=[.;:!?]) ")


def harmless(text: str) -> str:
    """Text that does nothing to a terminal: an error may be printed by anybody."""
    return _CONTROL.sub(_as_escape, text)


def _as_escape(found: re.Match[str]) -> str:
    code = ord(found.group())
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def text_lines(value: Json, indent: str = "") -> Iterator[str]:
    """A value as lines in which one changed word changes one line."""
    if value is None and not indent:
        return
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _entry(f"{indent}{key}:", item, indent)
    elif isinstance(value, list):
        for item in value:
            yield from _entry(f"{indent}-", item, indent)
    elif isinstance(value, str):
        for line in value.split("\n"):
            parts = _SENTENCE_END.split(line) if len(line) > _LONG_LINE else [line]
            yield from (indent + part for part in parts)
    else:
        yield indent + canonical_json(value).decode()


def _entry(head: str, item: Json, indent: str) -> Iterator[str]:
    nested = list(text_lines(item, indent + "  "))
    if isinstance(item, (dict, list)) and item:
        yield head
        yield from nested
    elif len(nested) == 1:
        yield f"{head} {nested[0].strip()}"
    else:
        yield head
        yield from nested


def difference(before: Json, now: Json) -> str:
    """A unified diff of two values, cut where it is long; empty where they read the same."""
    lines = list(
        difflib.unified_diff(
            list(text_lines(before)), list(text_lines(now)), "recorded", "now", n=2, lineterm=""
        )
    )
    if len(lines) > _MAX_DIFF_LINES:
        more = len(lines) - _MAX_DIFF_LINES
        lines = [*lines[:_MAX_DIFF_LINES], f"... {more} more lines"]
    return harmless("\n".join(_short(lines)))


def _short(lines: list[str]) -> Iterator[str]:
    """Long lines cut to where they change."""
    for at, line in enumerate(lines):
        if len(line) <= _LONG_LINE:
            yield line
            continue
        start = max(
            0, _changes_at(line, lines[at - 1 : at] + lines[at + 1 : at + 2]) - _SHOWN_BEFORE
        )
        sign, text = line[0], line[1:]
        shown = text[start : start + _LONG_LINE]
        cut = "…" if start + _LONG_LINE < len(text) else ""
        yield f"{sign}{'…' if start else ''}{shown}{cut}"


def _changes_at(line: str, beside: list[str]) -> int:
    """Where a line parts from its other version, if that stands beside it; else its start."""
    for other in beside:
        if {line[0], other[:1]} == {"-", "+"}:
            pairs = enumerate(zip(line[1:], other[1:], strict=False))
            return next((at for at, (a, b) in pairs if a != b), min(len(line), len(other)) - 1)
    return 0

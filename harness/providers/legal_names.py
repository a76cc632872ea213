"""Ids and names of tool calls within the characters that vendors allow, and back."""

from __future__ import annotations

import re
from functools import lru_cache

from harness.schema.record import storable

EMPTY = "_x_"
"""How the empty text travels."""

# `_x2E_` stands for a dot. An underscore that would begin such a sequence by chance is written as
# one itself, so that every text has exactly one spelling and ordinary names keep theirs.
_NEEDS_ESCAPE = re.compile(r"[^a-zA-Z0-9_-]|_(?=x[0-9A-F]{2,6}[^a-zA-Z0-9-])")
_ESCAPED = re.compile(r"_x([0-9A-F]{2,6})_")


@lru_cache(maxsize=1024)
def legal(text: str) -> str:
    """The text in letters, digits, `_` and `-`; unchanged if it is that already."""
    if not text:
        return EMPTY
    if text == EMPTY:
        return "_x5F_x_"
    return _NEEDS_ESCAPE.sub(lambda match: f"_x{ord(match[0]):02X}_", storable(text))


def original(wire: str) -> str:
    """The text that `legal` made this of, or the text itself."""
    if "_x" not in wire:
        return wire
    if wire == EMPTY:
        return ""
    try:
        text = _ESCAPED.sub(lambda match: chr(int(match[1], 16)), wire)
    except ValueError:
        return wire
    return text if legal(text) == wire else wire

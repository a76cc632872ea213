"""JSON as models and tools write it: read strictly, since it ends up in files."""

from __future__ import annotations

import json

from harness.schema.record import Json

MAX_DEPTH = 100
"""Deeper nesting is a model that repeats itself, and breaks readers of our files."""


def read_json(text: str) -> Json:
    """The value in a text.

    Raises:
        ValueError: it is not JSON, or nothing that a JSON file can hold (NaN, half a surrogate
            pair, endless nesting).
    """
    try:
        value: Json = json.loads(text)
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if _depth(value) > MAX_DEPTH:
        raise ValueError("nested too deeply")
    return value


def _depth(value: Json) -> int:
    depth = 0
    level = [value]
    while level := [child for item in level for child in _children(item)]:
        depth += 1
    return depth


def _children(value: Json) -> list[Json]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []

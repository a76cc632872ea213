"""Arguments of a tool call for vendors that carry them as an object, not as the model's text."""

from __future__ import annotations

import json

from harness.schema.record import JsonObject

INVALID_ARGUMENTS = "INVALID_JSON"
"""Key under which arguments that are no JSON object travel, as Anthropic's manual advises."""


def as_object(text: str) -> JsonObject:
    """Raw arguments as the object that the vendor wants, wrapped when they are not one."""
    try:
        value = json.loads(text)
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        return {INVALID_ARGUMENTS: text}
    return value if isinstance(value, dict) else {INVALID_ARGUMENTS: text}


def as_text(value: JsonObject) -> str:
    """The raw arguments behind such an object."""
    wrapped = value.get(INVALID_ARGUMENTS)
    if len(value) == 1 and isinstance(wrapped, str):
        return wrapped
    return json.dumps(value, ensure_ascii=False)

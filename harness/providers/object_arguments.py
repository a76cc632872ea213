"""Arguments of a tool call for vendors that want an object, be it in JSON or in a text."""

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


def as_object_text(text: str) -> str:
    """The raw arguments where they are an object or nothing, else the text of such an object.

    vLLM and llama.cpp read the arguments of earlier calls, and refuse every request of a
    conversation that holds others.
    """
    value = as_object(text) if text else {}
    return json.dumps(value, ensure_ascii=False) if value == {INVALID_ARGUMENTS: text} else text

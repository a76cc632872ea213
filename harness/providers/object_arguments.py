"""Arguments of a tool call for vendors that want an object, be it in JSON or in a text."""

from __future__ import annotations

import json
import math

from harness.schema.record import JsonObject

INVALID_ARGUMENTS = "INVALID_JSON"
"""Key under which arguments that are no JSON object travel, as Anthropic's manual advises."""


def as_object(text: str) -> JsonObject:
    """Raw arguments as the object that the vendor wants, wrapped when they are not one."""
    value = _parsed(text)
    return {INVALID_ARGUMENTS: text} if value is None else value


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
    if not text or _parsed(text) is not None:
        return text
    return json.dumps({INVALID_ARGUMENTS: text}, ensure_ascii=False)


def _parsed(text: str) -> JsonObject | None:
    """The JSON object in a text; None where there is none that can be sent."""
    try:
        value = _STRICT.decode(text)
        # Only an escape can hide half a surrogate pair from the check of the text itself.
        if "\\u" in text or text.count("{") + text.count("[") > _FLAT:
            json.dumps(value, ensure_ascii=False).encode()
        else:
            text.encode()
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is no JSON number")
    return number


_STRICT = json.JSONDecoder(parse_constant=_finite, parse_float=_finite)
_FLAT = 100
"""Brackets with which no value can be nested too deeply to be written."""

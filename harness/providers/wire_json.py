"""JSON on the wire: how the dialects write it, read it and spell it canonically."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TypeVar

from pydantic_core import to_json

from harness.errors import MalformedAnswerError
from harness.schema.record import Json, JsonObject

_CACHE_MARKS = frozenset({"cache_control", "prompt_cache_breakpoint"})

Kind = TypeVar("Kind", str, list[Json], dict[str, Json])


def sendable(body: JsonObject) -> JsonObject:
    """The same body, with `?` for half surrogate pairs, which no JSON file or request can carry."""
    try:
        to_json(body)
    except ValueError:
        # It has such a pair, or something else that this encoder alone refuses.
        return _replaced(body)
    return body


def _replaced(body: JsonObject) -> JsonObject:
    text = json.dumps(body, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        cleaned: JsonObject = json.loads(text.encode(errors="replace"))
        return cleaned
    return body


def parsed(text: str) -> Json:
    """The JSON in a text, or the text itself when it holds none."""
    try:
        value: Json = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value


def field(holder: JsonObject, key: str, kind: type[Kind], where: str) -> Kind:
    """A field that the vendor's format promises.

    Raises:
        MalformedAnswerError: it is absent or of another type.
    """
    value = holder.get(key)
    if not isinstance(value, kind):
        raise MalformedAnswerError(
            f"{where}: {key!r} is {value!r}, expected {kind.__name__};"
            " check that the endpoint speaks this provider's format"
        )
    return value


def items(values: Iterable[Json], where: str) -> list[JsonObject]:
    """The values, all of which must be objects.

    Raises:
        MalformedAnswerError: one is not.
    """
    found = []
    for value in values:
        if not isinstance(value, dict):
            raise MalformedAnswerError(f"{where}: {value!r} is not an object")
        found.append(value)
    return found


def count(holder: JsonObject, key: str) -> int | None:
    """A number of tokens, or None when none is reported."""
    value = holder.get(key)
    return value if isinstance(value, int) else None


def object_schema(schema: JsonObject) -> JsonObject:
    """The schema of a tool's arguments, which vendors want to call itself one of an object."""
    return schema if schema.get("type") == "object" else {**schema, "type": "object"}


def messages_of(body: JsonObject, key: str = "messages") -> list[JsonObject] | None:
    """The messages of a request, or None when they are not what any vendor accepts."""
    messages = body.get(key)
    if not isinstance(messages, list):
        return None
    found = [message for message in messages if isinstance(message, dict)]
    return found if len(found) == len(messages) else None


def without_nulls(holder: JsonObject) -> JsonObject:
    """A copy without explicit nulls and cache marks, at this level only."""
    if None in holder.values() or not _CACHE_MARKS.isdisjoint(holder):
        return {k: v for k, v in holder.items() if v is not None and k not in _CACHE_MARKS}
    return dict(holder)


def blocks(content: Json) -> Json:
    """Content spelled as a list of blocks: a string is one text block, an empty one is none."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    if isinstance(content, list):
        return [without_nulls(part) if isinstance(part, dict) else part for part in content]
    return content


def parameters_of(body: JsonObject, key: str = "messages") -> JsonObject:
    """Everything but the messages. `stream: true` counts, since its answer has another form."""
    parameters = {k: v for k, v in without_nulls(body).items() if k != key}
    if parameters.get("stream") is False:
        del parameters["stream"]
    return parameters

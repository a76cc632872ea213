"""The base of everything that crosses a file or process boundary."""

from __future__ import annotations

from typing import TypeAlias

from pydantic import BaseModel, ConfigDict, JsonValue

Json: TypeAlias = JsonValue
"""Any JSON value."""

JsonObject: TypeAlias = dict[str, JsonValue]
"""A JSON object."""


class Record(BaseModel):
    """Immutable, and strict about unknown keys: a typing mistake is never silently accepted."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")


def storable(text: str) -> str:
    """The text with `?` for half surrogate pairs, which no file or request can carry."""
    return text.encode(errors="replace").decode()

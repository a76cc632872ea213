"""What a tool gave, as the one result that the model and the run see."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from contextvars import ContextVar
from typing import TypeGuard

from pydantic import BaseModel

from harness.errors import error_line
from harness.schema.record import Json, storable
from harness.schema.signals import Blocked, RunRequest, Signal, Suspend
from harness.values import Effect, ToolOutcome

ENDS_WITH_RUN: ContextVar[bool] = ContextVar("harness_tool_ends_with_run", default=False)
"""Whether the call that is made here has what is left of the run's time, and not its timeout."""


def as_outcome(value: object) -> ToolOutcome:
    """The outcome of a call that gave this value.

    An outcome is taken as it is; a signal, a suspension or a block becomes what the call asks of
    the run; a text is the result, and anything else its JSON with sorted keys.
    """
    try:
        outcome = value if isinstance(value, ToolOutcome) else _wrap(value)
        asks = None if outcome.asks is None else _storable(outcome.asks)
        return dataclasses.replace(outcome, content=storable(outcome.content), asks=asks)
    except (TypeError, ValueError, RecursionError) as error:
        return ToolOutcome(content=f"the result is no JSON: {error}", status="failed")


def raised(error: BaseException) -> ToolOutcome:
    """The outcome of a call that raised."""
    return ToolOutcome(content=storable(error_line(error)), status="raised")


def timed_out(timeout_s: float) -> str:
    """What is said of the call that is made here, and that took all of its time.

    What is left of a run's time differs from run to run, and so would what the model reads.
    """
    if ENDS_WITH_RUN.get():
        return "timed out: the run's time is used up"
    return f"timed out after {timeout_s:g} s"


def _wrap(value: object) -> ToolOutcome:
    if isinstance(value, Blocked):
        return ToolOutcome(content=value.reason, status="failed", asks=value)
    if isinstance(value, Signal | Suspend):
        return ToolOutcome(content=_shown(value), asks=value)
    return ToolOutcome(content=as_text(value))


def _storable(request: RunRequest) -> RunRequest:
    text = json.dumps(request.model_dump(), ensure_ascii=False, allow_nan=False)
    return type(request).model_validate_json(storable(text))


def _shown(request: RunRequest) -> str:
    match request:
        case Signal(name=name, data=None):
            return name
        case Suspend(correlation_id=name, data=None):
            return name
        case Signal(data=data) | Suspend(data=data):
            return as_text(data)
        case Blocked(reason=reason):
            return reason


def are_effects(value: object) -> TypeGuard[Sequence[Effect]]:
    """Whether a value says what a call does outside the loop."""
    if isinstance(value, str) or not isinstance(value, Sequence):
        return False
    return all(isinstance(entry, Effect) for entry in value)


def as_text(value: object) -> str:
    """A text as it is, anything else as JSON with sorted keys.

    Raises:
        TypeError, ValueError, RecursionError: it is no JSON.
    """
    if isinstance(value, str):
        return value
    return json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False, default=_fields)


def _fields(value: object) -> Json | dict[str, object]:
    """The fields of a pydantic model or a dataclass."""
    if isinstance(value, BaseModel):
        dumped: Json = value.model_dump(mode="json", by_alias=True)
        return dumped
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    raise TypeError(f"a value of type {type(value).__name__} has no JSON form")

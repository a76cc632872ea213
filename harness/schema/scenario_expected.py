"""What a scenario expects: only the keys that are given are compared."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from harness.schema.loop_config import TerminationReason
from harness.schema.record import Json, JsonObject, Record
from harness.schema.trajectory import CallTag, EventKind


def _call_number(key: str | int) -> int:
    if not str(key).isdecimal() or int(key) < 1:
        raise PydanticCustomError("call_number", "keys are numbers of model calls, from 1")
    return int(key)


class UsageExpected(Record):
    """Tokens; only the keys given are compared."""

    input: int | None = None
    output: int | None = None
    cache_write: int | None = None
    cache_read: int | None = None
    missing_calls: int = 0


class ResultExpected(Record):
    """One tool result."""

    id: str
    is_error: bool = False
    contains: str = ""


class TranscriptExpected(Record):
    """The transcript that the run gives back."""

    roles: tuple[Literal["user", "assistant"], ...] = ()
    tool_results: tuple[ResultExpected, ...] = ()
    """Of its last user turn, in order."""


class RequestExpected(Record):
    """What the provider was sent with one model call."""

    roles: tuple[Literal["user", "assistant", "tool"], ...] = ()
    tools: tuple[str, ...] = ()
    """Names of the offered tools, in order."""
    tool_results: tuple[ResultExpected, ...] = ()
    """Of the last user turn, in order."""
    contains: tuple[str, ...] = ()
    last_user_contains: str = ""


class Expected(Record):
    """What must come of a scenario; only the keys given are compared."""

    config_error: str | None = Field(default=None, min_length=1)
    """Building the loop fails with a message that contains this; nothing else is compared."""
    termination_reason: TerminationReason | None = None
    signal: str | None = None
    signal_data: Json = None
    truncated: bool = False
    wrapped_up: bool = False
    output: Json = None
    final_text: str = ""
    confirmed: bool | None = None
    output_seen: bool = False
    iterations: int = 0
    model_calls: int = 0
    attempts: int = 0
    tool_calls_made: int = 0
    tools_used: tuple[str, ...] = ()
    tools_executed: tuple[str, ...] = ()
    usage: UsageExpected = UsageExpected()
    usage_by_tag: dict[CallTag, UsageExpected] = Field(default_factory=dict)
    error_contains: str = ""
    callback_errors: int = 0
    events: tuple[EventKind, ...] = ()
    """These, in this order; others may stand between them."""
    event_counts: dict[EventKind, int] = Field(default_factory=dict)
    forbidden_events: tuple[EventKind, ...] = ()
    terminal_events: int = 1
    paused_before_call: int | None = None
    """Number of the model call that a pause held back."""
    tool_arguments: dict[str, tuple[JsonObject, ...]] = Field(default_factory=dict)
    transcript: TranscriptExpected = TranscriptExpected()
    requests: dict[Annotated[int, BeforeValidator(_call_number)], RequestExpected] = Field(
        default_factory=dict
    )
    """By model call, counted from 1."""

    @model_validator(mode="after")
    def _expects_something(self) -> Self:
        others = self.model_fields_set - {"config_error"}
        if self.config_error is not None:
            if others:
                raise PydanticCustomError(
                    "expect",
                    "config_error stands alone: where the loop is refused, nothing is compared"
                    " with {others}",
                    {"others": ", ".join(name for name in _KEYS if name in others)},
                )
        elif not any(self._compares(name) for name in others):
            raise PydanticCustomError(
                "expect", "expects nothing; give a key to compare, as in termination_reason"
            )
        return self

    def _compares(self, name: str) -> bool:
        """Whether the value of a key can be missed at all."""
        value = getattr(self, name)
        if isinstance(value, Record):
            return bool(value.model_fields_set)
        return name not in _HOLD_WHEN_EMPTY or bool(value)


_KEYS = tuple(Expected.model_fields)
_HOLD_WHEN_EMPTY = frozenset(
    {
        *("error_contains", "events", "event_counts", "forbidden_events"),
        *("tool_arguments", "requests", "usage_by_tag"),
    }
)

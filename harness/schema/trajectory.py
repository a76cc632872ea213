"""What happened in one run of the loop."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from harness.schema.loop_config import TerminationReason
from harness.schema.messages import Message
from harness.schema.record import Json, JsonObject, Record

EventKind = Literal[
    "run_started",
    "attempt_started",
    "iteration_started",
    "model_request",
    "model_response",
    "model_error",
    "tool_detected",
    "tool_started",
    "tool_completed",
    "tool_failed",
    "tool_timed_out",
    "confirmation_asked",
    "nudged",
    "validation_started",
    "validation_failed",
    "validation_passed",
    "attempt_completed",
    "iteration_completed",
    "run_completed",
]

CallTag = Literal["main", "confirm", "nudge"]
"""What a model call was for."""


class Event(Record):
    """Something that happened, in order. Events observe and never change a run."""

    kind: EventKind
    iteration: int
    """Counted from 1 over the run; 0 before the first."""
    at_s: float
    """Seconds since the run began."""
    data: JsonObject = Field(default_factory=dict)


class UsageTotal(Record):
    """Tokens summed over model calls; a bucket nobody reported stays None."""

    input: int | None = None
    output: int | None = None
    cache_write: int | None = None
    cache_read: int | None = None
    missing_calls: int = 0
    """Answered calls that reported no usage."""


class Trajectory(Record):
    """The whole run: how it ended, what it gave, what was said."""

    termination_reason: TerminationReason
    output_seen: bool = False
    """Whether there is an output; `{}`, `[]` and null are outputs too."""
    output: Json = None
    final_text: str = ""
    confirmed: bool | None = None
    """Answer to the confirmation question; None when it was never asked."""
    truncated: bool = False
    """Whether the accepted text was cut at its token limit."""
    system: str | None = None
    messages: tuple[Message, ...] = ()
    iterations: int = 0
    attempts: int = 0
    model_calls: int = 0
    failed_calls: int = 0
    """Model calls that failed."""
    tool_calls_made: int = 0
    tools_used: tuple[str, ...] = ()
    """Unique names, in first-use order."""
    tools_executed: tuple[str, ...] = ()
    """Every execution, in order."""
    validation_failures: tuple[str, ...] = ()
    usage: UsageTotal = UsageTotal()
    usage_by_tag: dict[CallTag, UsageTotal] = Field(default_factory=dict)
    models: tuple[str, ...] = ()
    """Unique names under which models answered."""
    error: str | None = None
    callback_errors: tuple[str, ...] = ()
    events: tuple[Event, ...] = ()
    duration_s: float = 0

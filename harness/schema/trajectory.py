"""What happened in one run of the loop."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from harness.schema.loop_config import TerminationReason
from harness.schema.messages import Message
from harness.schema.record import Json, JsonObject, Record

EventKind = Literal[
    "run_started",
    "attempt_started",
    "iteration_started",
    "model_request",
    "model_delta",
    "model_response",
    "model_error",
    "tool_detected",
    "tool_started",
    "tool_completed",
    "tool_failed",
    "tool_timed_out",
    "tool_denied",
    "confirmation_asked",
    "nudged",
    "validation_started",
    "validation_failed",
    "validation_passed",
    "limit_warning",
    "window_applied",
    "hook_failed",
    "paused",
    "resumed",
    "attempt_completed",
    "iteration_completed",
    "run_completed",
    "step_started",
    "step_judged",
]

CallTag = Literal["main", "confirm", "nudge", "wrap_up", "compaction"]
"""What a model call was for."""


class Event(Record):
    """Something that happened, in order. Events observe and never change a run."""

    kind: EventKind
    iteration: int
    """Counted from 1 over the run; 0 before the first."""
    at_s: float
    """Seconds since the run began."""
    data: JsonObject = Field(default_factory=dict)
    """Facts about it; of the `model_delta`s of an answer only the first is kept."""
    run_id: str = ""
    payload: Any = Field(default=None, exclude=True, repr=False)
    """The live object it is about, for observers; never written to a file.

    `model_request`: ModelRequest. `model_response`: ModelTurn. `tool_started`: ToolInvocation.
    `tool_completed`, `tool_failed`, `tool_timed_out`: ToolOutcome. `run_completed`: Trajectory.
    """


class UsageTotal(Record):
    """Tokens summed over model calls; a bucket nobody reported stays None."""

    input: int | None = None
    output: int | None = None
    cache_write: int | None = None
    cache_read: int | None = None
    missing_calls: int = 0
    """Answered calls that reported no usage."""


class SuspendedRun(Record):
    """A run that waits for an answer from outside; resuming goes on with all its counts."""

    run_id: str
    correlation_id: str
    data: Json = None
    """What the tool that asked to suspend gave along."""
    system: str | None
    messages: tuple[Message, ...]
    iterations: int
    attempts: int
    attempt_iterations: int
    model_calls: int
    failed_calls: int
    tools_executed: tuple[str, ...]
    files_modified: tuple[str, ...] = ()
    lines_changed: int = 0
    usage: UsageTotal
    usage_by_tag: dict[CallTag, UsageTotal]
    models: tuple[str, ...] = ()
    final_text: str = ""
    validation_failures: tuple[str, ...] = ()
    has_draft: bool = False
    draft: Json = None
    """Output handed in for reflection and not submitted yet."""
    elapsed_s: float


class Trajectory(Record):
    """The whole run: how it ended, what it gave, what was said."""

    termination_reason: TerminationReason
    run_id: str = ""
    signal: str | None = None
    """Name of the signal that ended the run, or that the callback at the hard limit gave."""
    signal_data: Json = None
    output_seen: bool = False
    """Whether there is an output; `{}`, `[]` and null are outputs too."""
    output: Json = None
    final_text: str = ""
    confirmed: bool | None = None
    """Answer to the confirmation question; None when it was never asked."""
    truncated: bool = False
    """Whether the accepted text was cut at its token limit."""
    wrapped_up: bool = False
    """Whether a last call without tools gave the final text."""
    suspended: SuspendedRun | None = None
    """What a suspended run needs to be resumed."""
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

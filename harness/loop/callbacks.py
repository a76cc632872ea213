"""The events of a run as callbacks, under the names that executeAgent gave them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from harness.schema.loop_config import SUCCEEDED, TerminationReason
from harness.schema.record import Json, JsonObject
from harness.schema.trajectory import Event, Trajectory
from harness.values import ToolInvocation, ToolOutcome


@dataclass(frozen=True, slots=True)
class Callbacks:
    """An observer that calls a function per kind of event; any may be left out.

    They are called in this order: attempt start, (tool call, tool result) for each call that ran,
    validation start, validation failure, validation end, attempt end, then success or failure.
    What one raises is collected in the trajectory's `callback_errors` and breaks nothing.
    """

    on_attempt_start: Callable[[int], None] | None = None
    """Takes the attempt's number, from 1."""
    on_tool_call: Callable[[str, JsonObject], None] | None = None
    """Takes name and arguments, before the call runs. Reflection handlers are told of as well."""
    on_tool_result: Callable[[str, str], None] | None = None
    """Takes name and text of the result, also of a call that raised or timed out."""
    on_validation_start: Callable[[], None] | None = None
    on_validation_failure: Callable[[str], None] | None = None
    """Takes what is wrong with the output."""
    on_validation_end: Callable[[bool], None] | None = None
    """Takes whether the output passed."""
    on_attempt_end: Callable[[int], None] | None = None
    """Takes the attempt's number, from 1."""
    on_success: Callable[[Trajectory], None] | None = None
    """Takes a run that completed or was ended by a signal."""
    on_failure: Callable[[Trajectory], None] | None = None
    """Takes a run that ended in any other way; a suspended one has not ended yet."""

    def __call__(self, event: Event) -> None:
        """Call the function that the event belongs to."""
        match event.kind, event.payload:
            case "attempt_started", _:
                _call(self.on_attempt_start, event.data["attempt"])
            case "attempt_completed", _:
                _call(self.on_attempt_end, event.data["attempt"])
            case "validation_started", _:
                _call(self.on_validation_start)
            case "validation_passed", _:
                _call(self.on_validation_end, True)
            case "validation_failed", _:
                self._failed_validation(event.data["complaint"])
            case "tool_started", ToolInvocation(name=name, arguments=arguments):
                _call(self.on_tool_call, name, arguments)
            case (("tool_completed" | "tool_failed" | "tool_timed_out"), ToolOutcome(content=text)):
                _call(self.on_tool_result, event.data["name"], text)
            case "run_completed", Trajectory(termination_reason=reason):
                if reason is not TerminationReason.SUSPENDED:
                    good = reason in SUCCEEDED
                    _call(self.on_success if good else self.on_failure, event.payload)

    def _failed_validation(self, complaint: Json) -> None:
        raised = []
        for function, told in (
            (self.on_validation_failure, complaint),
            (self.on_validation_end, False),
        ):
            try:
                _call(function, told)
            except Exception as error:  # noqa: BLE001 - raised below, with what the other one raises
                raised.append(error)
        if raised:
            raise ExceptionGroup("callbacks about a failed validation", raised)


def _call(function: Callable[..., None] | None, *arguments: object) -> None:
    if function is not None:
        function(*arguments)

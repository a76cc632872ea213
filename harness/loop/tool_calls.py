"""Answering the tool calls of one turn: every call gets exactly one result, in order."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field

from harness.errors import InfrastructureError, ReplayMissError
from harness.loop.budget import blocks_tool_call
from harness.loop.events import EventLog
from harness.loop.written_json import read_json
from harness.protocols import OutputSpec, ToolInvocation, ToolOutcome, ToolProvider
from harness.schema.json_schema import schema_violation
from harness.schema.loop_config import SUBMIT_TOOL, LoopConfig, TerminationReason
from harness.schema.messages import ToolCall, ToolResult, ToolSpec
from harness.schema.record import Json, JsonObject, storable

SUBMIT = ToolSpec(
    name=SUBMIT_TOOL,
    description="Submit your last draft as the final result.",
    parameters={"type": "object", "properties": {}},
)


@dataclass(frozen=True, slots=True)
class Ending:
    """Why a run is over."""

    reason: TerminationReason
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Draft:
    """An output the model handed in; any JSON value counts, empty ones too."""

    value: Json


@dataclass(slots=True)
class AnsweredTurn:
    """The answers to one turn's calls, and what they decided."""

    results: list[ToolResult] = field(default_factory=list)
    ending: Ending | None = None
    draft: Draft | None = None
    submitted: bool = False
    handed_in: list[int] = field(default_factory=list)
    """Positions of output and submit calls, whose results a failed validation replaces."""

    def reject(self, text: str) -> None:
        """Make a text the error result of what was handed in."""
        for position in self.handed_in:
            self.results[position] = self.results[position].model_copy(
                update={"content": text, "is_error": True}
            )


class ToolCallAnswerer:
    """Checks and runs calls: cap, arguments, schema, budget, then the tool."""

    def __init__(
        self,
        tools: ToolProvider | None,
        output: OutputSpec | None,
        config: LoopConfig,
        events: EventLog,
    ) -> None:
        self.tools = tools
        self.output = output
        self.config = config
        self.events = events
        self.executed: list[str] = []
        self.failed_in_row = 0
        self.cancelled: str | None = None

    def offered(self) -> tuple[ToolSpec, ...]:
        """What the next model call is offered: helpers, then output, then submit."""
        helpers = self.tools.specs() if self.tools else ()
        if self.output is None:
            return helpers
        closing = (self.output.tool, SUBMIT) if self.config.reflection else (self.output.tool,)
        return (*helpers, *closing)

    def answer(self, calls: Sequence[ToolCall]) -> AnsweredTurn:
        """Answer all calls of a turn in order; a call that ends the run stops the later ones."""
        turn = AnsweredTurn()
        specs = {spec.name: spec for spec in self.offered()}
        for position, call in enumerate(calls):
            self.events.emit("tool_detected", id=call.id, name=call.name, arguments=call.arguments)
            if self.cancelled is not None and turn.ending is None:
                turn.ending = Ending(TerminationReason.CANCELLED, self.cancelled or None)
            if turn.ending is not None:
                result = _error(call, f"Not run: the run ended ({turn.ending.reason}).")
            else:
                result = self._answer_one(call, position, specs.get(call.name), turn)
            turn.results.append(result)
        return turn

    def _answer_one(
        self, call: ToolCall, position: int, spec: ToolSpec | None, turn: AnsweredTurn
    ) -> ToolResult:
        cap = self.config.max_tool_calls_per_turn
        if cap is not None and position >= cap:
            return _error(call, f"Not run: at most {cap} tool calls per turn are allowed.")
        if spec is None:
            offered = ", ".join(known.name for known in self.offered()) or "none"
            return self._failed(call, turn, f"Unknown tool {call.name!r}. Tools: {offered}.")
        arguments = _parse(call.arguments)
        if isinstance(arguments, str):
            return self._failed(call, turn, f"Malformed arguments: {arguments}")
        if self.output is not None and spec is self.output.tool:
            return self._take_draft(call, arguments, position, turn)
        if spec is SUBMIT:
            turn.submitted = True
            turn.handed_in.append(position)
            return ToolResult(call_id=call.id, name=call.name, content="Submitted.")
        violation = schema_violation(arguments, spec.parameters)
        if violation is not None:
            return self._failed(call, turn, f"Arguments do not fit the tool's schema: {violation}")
        blocked = blocks_tool_call(self.config.budget, len(self.executed))
        if blocked is not None:
            turn.ending = Ending(TerminationReason.BUDGET_EXCEEDED, blocked)
            return _error(call, f"Not run: {blocked}.")
        return self._run(call, arguments, position, turn)

    def _take_draft(
        self, call: ToolCall, arguments: JsonObject, position: int, turn: AnsweredTurn
    ) -> ToolResult:
        if turn.draft is None or self.config.multi_output == "last":
            turn.draft = Draft(arguments)
        turn.handed_in.append(position)
        if not self.config.reflection:
            return ToolResult(call_id=call.id, name=call.name, content="Accepted.")
        self.events.emit("tool_started", id=call.id, name=call.name)
        assert self.output is not None
        assert self.output.reflection_handler is not None
        try:
            preview = self.output.reflection_handler(copy.deepcopy(arguments))
            if not isinstance(preview, str):
                found = type(preview).__name__
                raise TypeError(f"the reflection handler must return text, not {found}")
        except Exception as error:  # noqa: BLE001 - the model sees what its draft did
            why = storable(str(error))
            self.events.emit("tool_failed", id=call.id, name=call.name, error=why)
            return _error(call, f"The draft could not be shown: {why}")
        self.events.emit("tool_completed", id=call.id, name=call.name)
        self.failed_in_row = 0
        return ToolResult(call_id=call.id, name=call.name, content=storable(preview))

    def _run(
        self, call: ToolCall, arguments: JsonObject, position: int, turn: AnsweredTurn
    ) -> ToolResult:
        assert self.tools is not None
        self.executed.append(call.name)
        self.events.emit("tool_started", id=call.id, name=call.name)
        invocation = ToolInvocation(
            call_id=call.id,
            name=call.name,
            arguments=arguments,
            position=position,
            timeout_s=self.config.tool_timeout_s,
        )
        try:
            outcome = self.tools.invoke(invocation)
        except (ReplayMissError, InfrastructureError) as error:
            return self._broke_off(call, turn, error)
        if outcome.status == "timed_out":
            self.events.emit("tool_timed_out", id=call.id, name=call.name)
        if outcome.status != "ok" or self._says_failed(outcome):
            if outcome.status != "timed_out":
                self.events.emit("tool_failed", id=call.id, name=call.name, error=outcome.content)
            return self._failed(call, turn, outcome.content)
        self.events.emit("tool_completed", id=call.id, name=call.name)
        self.failed_in_row = 0
        return ToolResult(call_id=call.id, name=call.name, content=outcome.content)

    def _broke_off(
        self, call: ToolCall, turn: AnsweredTurn, error: ReplayMissError | InfrastructureError
    ) -> ToolResult:
        self.events.emit("tool_failed", id=call.id, name=call.name, error=str(error))
        missed = isinstance(error, ReplayMissError)
        reason = TerminationReason.REPLAY_MISS if missed else TerminationReason.INFRASTRUCTURE_ERROR
        turn.ending = Ending(reason, str(error))
        return _error(call, "Not run: the run broke off.")

    def _says_failed(self, outcome: ToolOutcome) -> bool:
        if not self.config.semantic_failures:
            return False
        try:
            parsed = read_json(outcome.content)
        except ValueError:
            return False
        return isinstance(parsed, dict) and parsed.get("success") is False

    def _failed(self, call: ToolCall, turn: AnsweredTurn, text: str) -> ToolResult:
        """A failed call: counted, and the run's end where the settings say so."""
        self.failed_in_row += 1
        threshold = self.config.error_threshold
        if self.config.tool_error == "fail":
            turn.ending = Ending(TerminationReason.TOOL_ERROR, f"{call.name}: {text}")
        elif threshold and self.failed_in_row >= threshold:
            why = f"{threshold} failed tool calls in a row; the last: {call.name}: {text}"
            turn.ending = Ending(TerminationReason.ERROR, why)
        return _error(call, text)


def not_run(calls: Sequence[ToolCall], why: str) -> list[ToolResult]:
    """The answers to calls that the run's end kept from running."""
    return [_error(call, f"Not run: {why}.") for call in calls]


def _error(call: ToolCall, text: str) -> ToolResult:
    return ToolResult(call_id=call.id, name=call.name, content=text, is_error=True)


def _parse(arguments: str) -> JsonObject | str:
    """The arguments object, or what is wrong with the text."""
    try:
        parsed = read_json(arguments) if arguments.strip() else {}
    except ValueError as error:
        return f"not valid JSON, which takes plain values only ({error})"
    if not isinstance(parsed, dict):
        return f"an object is needed, not {type(parsed).__name__}"
    return parsed

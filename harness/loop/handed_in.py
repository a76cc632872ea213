"""Calls that hand in a result instead of running a tool: output, submit, task complete."""

from __future__ import annotations

import copy

from harness.loop.answered_turn import AnsweredTurn
from harness.loop.endings import Draft
from harness.loop.events import EventLog
from harness.loop.guards import CallInHand
from harness.protocols import OutputSpec
from harness.schema.loop_config import SUBMIT_TOOL, LoopConfig
from harness.schema.messages import ToolSpec
from harness.schema.record import JsonObject, storable
from harness.values import ToolInvocation, ToolOutcome

SUBMIT = ToolSpec(
    name=SUBMIT_TOOL,
    description="Submit your last draft as the final result.",
    parameters={"type": "object", "properties": {}},
)
TASK_COMPLETE = ToolSpec(
    name="task_complete",
    description="Say that the task is complete.",
    parameters={"type": "object", "properties": {}},
)
"""How the terminus2 protocol ends a run."""


def offered_by_loop(output: OutputSpec | None, config: LoopConfig) -> tuple[ToolSpec, ...]:
    """The tools that are none of the user's."""
    completing = (TASK_COMPLETE,) if config.text_protocol == "terminus2" else ()
    if output is None:
        return completing
    closing = (output.tool, SUBMIT) if config.reflection else (output.tool,)
    return (*closing, *completing)


class HandedIn:
    """Takes the calls that the loop itself offers."""

    def __init__(self, output: OutputSpec | None, config: LoopConfig, events: EventLog) -> None:
        self.output = output
        self.config = config
        self.events = events

    def specs(self) -> tuple[ToolSpec, ...]:
        """What is offered after the helpers."""
        return offered_by_loop(self.output, self.config)

    @property
    def completes_by_call(self) -> bool:
        """Whether the model says by a call, and never by a text, that the task is complete."""
        return TASK_COMPLETE in self.specs()

    def takes(self, name: str) -> bool:
        """Whether a call of this name hands something in."""
        return any(spec.name == name for spec in self.specs())

    def closes(self, name: str) -> bool:
        """Whether such a call ends the iterations of an attempt."""
        shown_first = self.config.reflection and name != SUBMIT_TOOL
        return self.takes(name) and not shown_first

    def take(self, in_hand: CallInHand, turn: AnsweredTurn) -> bool:
        """Answer the call and note what it hands in; says whether a draft was shown."""
        position = in_hand.position
        if self.output is not None and in_hand.call.name == self.output.tool.name:
            return self._take_draft(in_hand, turn)
        if in_hand.call.name == TASK_COMPLETE.name:
            turn.completes_at = position
            turn.put_handed_in(position, "Accepted.")
        else:
            turn.submitted = True
            turn.put_handed_in(position, "Submitted.")
        return False

    def _take_draft(self, in_hand: CallInHand, turn: AnsweredTurn) -> bool:
        if turn.draft is None or self.config.multi_output == "last":
            turn.draft = Draft(in_hand.arguments)
        if not self.config.reflection:
            turn.put_handed_in(in_hand.position, "Accepted.")
            return False
        outcome = self._preview(in_hand)
        failed = outcome.status != "ok"
        turn.put_handed_in(in_hand.position, outcome.content, is_error=failed)
        return not failed

    def _preview(self, in_hand: CallInHand) -> ToolOutcome:
        """Show the draft; tool events tell of it, though it is no tool."""
        call = in_hand.call
        invocation = ToolInvocation(
            call.id, call.name, in_hand.arguments, in_hand.position, self.config.tool_timeout_s
        )
        self.events.emit("tool_started", payload=invocation, id=call.id, name=call.name)
        outcome = self._show(in_hand.arguments)
        if outcome.status == "ok":
            self.events.emit("tool_completed", payload=outcome, id=call.id, name=call.name)
        else:
            self.events.emit(
                "tool_failed", payload=outcome, id=call.id, name=call.name, error=outcome.content
            )
        return outcome

    def _show(self, arguments: JsonObject) -> ToolOutcome:
        assert self.output is not None
        assert self.output.reflection_handler is not None
        try:
            preview = self.output.reflection_handler(copy.deepcopy(arguments))
            if not isinstance(preview, str):
                found = type(preview).__name__
                raise TypeError(f"the reflection handler must return text, not {found}")
        except Exception as error:  # noqa: BLE001 - the model sees what its draft did
            why = storable(str(error))
            return ToolOutcome(f"The draft could not be shown: {why}", status="raised")
        return ToolOutcome(storable(preview))

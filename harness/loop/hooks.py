"""Hooks: the user's functions that intercept a run, kept from breaking it."""

from __future__ import annotations

import copy
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple

from harness.errors import error_line
from harness.loop.events import EventLog
from harness.loop.given import is_list_of
from harness.loop.written_json import read_json
from harness.protocols import Hook
from harness.schema.messages import Message, ModelTurn, ToolSpec
from harness.schema.record import JsonObject, storable
from harness.schema.trajectory import Trajectory
from harness.values import (
    Approval,
    IterationPlan,
    ModelRequest,
    PendingCall,
    SkipModel,
    SkipTool,
    ToolOutcome,
)

Point = Literal[
    "before_run",
    "after_run",
    "before_iteration",
    "before_model",
    "after_model",
    "before_tool",
    "approve_tool",
    "after_tool",
    "pause_check",
]

MAX_FAILURES = 3
"""Failures in a row after which a hook's function is no longer called."""

HookFailures = Counter[tuple[int, Point]]
"""Failures in a row by hook and point. It lives as long as the engine, not as a run."""


Conversation = Sequence[Message]


class Entry(NamedTuple):
    """A hook's function at a point."""

    number: int
    hook: Hook
    point: Point


class HookChain:
    """The hooks of one run, called in order; one that raises is isolated."""

    def __init__(self, hooks: Sequence[Hook], failures: HookFailures, events: EventLog) -> None:
        self.hooks = tuple(hooks)
        self.failures = failures
        self.events = events

    def before_run(self, messages: Sequence[Message]) -> Sequence[Message]:
        """The conversation to start with."""
        for entry in self._at("before_run"):
            messages = self._ask(entry, Conversation, messages) or messages
        return messages

    def after_run(self, trajectory: Trajectory) -> Trajectory:
        """What the run gives back."""
        for entry in self._at("after_run"):
            trajectory = self._ask(entry, Trajectory, trajectory) or trajectory
        return trajectory

    def before_iteration(self, plan: IterationPlan) -> IterationPlan:
        """What the iteration is run with; texts to append add up."""
        texts = []
        for entry in self._at("before_iteration"):
            answer = self._ask(entry, IterationPlan, plan)
            if answer is not None:
                texts.append(answer.append_user)
                plan = replace(answer, append_user="")
        return replace(plan, append_user="\n".join(text for text in texts if text))

    def before_model(self, request: ModelRequest) -> ModelRequest | SkipModel:
        """The request to make, or the answer in the model's place."""
        for entry in self._at("before_model"):
            answer = self._ask(entry, ModelRequest | SkipModel, request)
            if isinstance(answer, SkipModel):
                return SkipModel(storable(answer.text))
            request = answer or request
        return request

    def after_model(self, turn: ModelTurn) -> None:
        """Show what the model answered."""
        for entry in self._at("after_model"):
            self._ask(entry, object, turn)

    def before_tool(self, call: PendingCall) -> PendingCall | SkipTool:
        """The call with the arguments to run it with, or its result without running it."""
        for entry in self._at("before_tool"):
            answer = self._ask(entry, dict | SkipTool, _copied(call))
            if isinstance(answer, SkipTool):
                return answer
            if answer is not None:
                call = replace(call, arguments=answer)
        return call

    def approve(self, call: PendingCall) -> Approval | None:
        """What the approvers decide together; None when there is none with an opinion.

        The first that rejects, or raises, decides. Arguments that one changes reach the next. An
        approver is never switched off.
        """
        decided: Approval | None = None
        for hook in self.hooks:
            if hook.approve_tool is None:
                continue
            try:
                answer = hook.approve_tool(_copied(call))
                if isinstance(answer, Approval) and answer.arguments is not None:
                    answer = replace(answer, arguments=_as_json(answer.arguments))
            except Exception as error:  # noqa: BLE001 - an approver that raises denies
                why = error_line(error)
                self._tell(hook, "approve_tool", why)
                return Approval(approved=False, reason=f"the approver failed: {why}")
            if answer is None:
                continue
            approval = answer if isinstance(answer, Approval) else Approval(answer is True)
            if approval.approved is not True:
                return approval
            if approval.arguments is not None:
                call = replace(call, arguments=approval.arguments)
            decided = replace(approval, arguments=call.arguments)
        return decided

    def after_tool(self, call: PendingCall, outcome: ToolOutcome) -> ToolOutcome:
        """The outcome that the model sees."""
        for entry in self._at("after_tool"):
            answer = self._ask(entry, ToolOutcome | str, _copied(call), outcome)
            if isinstance(answer, str):
                outcome = replace(outcome, content=answer)
            elif answer is not None:
                outcome = answer
        return outcome

    def pause_reason(self, iteration: int) -> str | None:
        """Why to pause before this iteration, or None; the first reason given counts."""
        for entry in self._at("pause_check"):
            reason: str | None = self._ask(entry, str, iteration)
            if reason is not None:
                return reason
        return None

    def _at(self, point: Point) -> list[Entry]:
        """The hooks that take part at a point; those that keep failing there do not."""
        return [
            Entry(number, hook, point)
            for number, hook in enumerate(self.hooks)
            if getattr(hook, point) is not None and self.failures[number, point] < MAX_FAILURES
        ]

    def _ask(self, entry: Entry, kind: Any, *arguments: object) -> Any:
        """What a hook gives, of this kind; None when it changes nothing, or raised."""
        try:
            answer = getattr(entry.hook, entry.point)(*arguments)
            if answer is not None and not _is(answer, kind):
                raise TypeError(f"{entry.point} cannot give {type(answer).__name__}")
            if isinstance(answer, dict):
                answer = _as_json(answer)
        except Exception as error:  # noqa: BLE001 - a hook never breaks a run
            self.failures[entry.number, entry.point] += 1
            self._tell(entry.hook, entry.point, error_line(error))
            return None
        self.failures[entry.number, entry.point] = 0
        return answer

    def _tell(self, hook: Hook, point: Point, error: str) -> None:
        self.events.emit("hook_failed", hook=hook.name, point=point, error=error)
        self.events.note(f"hook {hook.name}.{point}: {error}")


def _as_json(arguments: JsonObject) -> JsonObject:
    """Arguments as the tool would have got them from the model: a copy, of JSON only."""
    copied = read_json(json.dumps(arguments, allow_nan=False))
    assert isinstance(copied, dict)
    return copied


def _copied(call: PendingCall) -> PendingCall:
    """The call to show: who changes what it is shown has not changed what will be run."""
    return replace(call, arguments=copy.deepcopy(call.arguments))


def _is(answer: object, kind: Any) -> bool:
    if kind is Conversation:
        return isinstance(answer, Sequence) and all(isinstance(item, Message) for item in answer)
    match answer:
        case IterationPlan(append_user=text) if not isinstance(text, str):
            return False
        case IterationPlan() | ModelRequest():
            lists = is_list_of(answer.messages, Message) and is_list_of(answer.tools, ToolSpec)
            return lists and isinstance(answer.model, str) and isinstance(answer, kind)
        case SkipTool(result=text) | SkipModel(text=text) | ToolOutcome(content=text):
            return isinstance(answer, kind) and isinstance(text, str)
    return isinstance(answer, kind)

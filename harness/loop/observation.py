"""Observations: what a memory keeps of a run, one per model call and one per tool call."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Literal

from harness.schema.messages import Message, ModelTurn
from harness.schema.record import Json, JsonObject, Record
from harness.schema.trajectory import Event
from harness.values import ToolInvocation, ToolOutcome


class Observation(Record):
    """One thing that was seen in a run."""

    id: str
    """The run's id and a number; no two observations of one observer share it."""
    run_id: str
    agent: str
    event_type: Literal["llm_response", "tool_call", "error"]
    """`error` is a model call that failed, or a tool call that broke the run off."""
    content: str
    """The model's text, the tool's result, or the error."""
    metadata: JsonObject
    """`iteration`; of an answer `tag`, `stop` and `tool_calls`; of a tool call `call_id`, `name`,
    `arguments`, `status` and `duration_s`."""
    at_s: float
    """Seconds since the run began."""


class Observations:
    """An observer that makes one observation per model call and one per tool call that ran.

    What `record` raises is collected in the trajectory's `callback_errors` and breaks nothing.
    """

    def __init__(self, record: Callable[[Observation], None], agent: str = "") -> None:
        """Begin to observe.

        Args:
            record: Keeps an observation; it sees texts as they are, so redacting is up to it.
            agent: Name that the observations carry.
        """
        self._record = record
        self._agent = agent
        self._numbers = itertools.count(1)
        # A list each, first started first: some models give two calls of a turn one id.
        self._running: dict[tuple[str, str], list[JsonObject]] = {}

    def __call__(self, event: Event) -> None:
        """Record what the event tells of, if it ends a model call or a tool call."""
        match event.kind, event.payload:
            case "model_response", ModelTurn() as turn:
                self._answer(event, turn)
            case "tool_started", ToolInvocation() as invocation:
                key = (event.run_id, invocation.call_id)
                self._running.setdefault(key, []).append(invocation.arguments)
            case (("tool_completed" | "tool_failed" | "tool_timed_out"), ToolOutcome() as outcome):
                self._result(event, outcome)
            case "tool_failed", _:
                self._ended(event)
                self._observe(event, "error", str(event.data["error"]), {})
            case "model_error", _:
                self._observe(event, "error", str(event.data["error"]), {})

    def _answer(self, event: Event, turn: ModelTurn) -> None:
        message = Message(role="assistant", content=turn.content)
        called: list[Json] = [call.name for call in message.tool_calls]
        metadata: JsonObject = {
            "tag": event.data.get("tag"),
            "stop": turn.stop.value,
            "tool_calls": called,
        }
        self._observe(event, "llm_response", message.text, metadata)

    def _result(self, event: Event, outcome: ToolOutcome) -> None:
        metadata: JsonObject = {
            "call_id": str(event.data["id"]),
            "name": event.data["name"],
            "arguments": self._ended(event),
            "status": outcome.status,
            "duration_s": outcome.duration_s,
        }
        self._observe(event, "tool_call", outcome.content, metadata)

    def _ended(self, event: Event) -> JsonObject:
        """Arguments of the call that ended; results come in call order."""
        key = (event.run_id, str(event.data["id"]))
        started = self._running.get(key)
        if not started:
            return {}
        arguments = started.pop(0)
        if not started:
            del self._running[key]
        return arguments

    def _observe(
        self,
        event: Event,
        event_type: Literal["llm_response", "tool_call", "error"],
        content: str,
        metadata: JsonObject,
    ) -> None:
        self._record(
            Observation(
                id=f"{event.run_id}-{next(self._numbers)}",
                run_id=event.run_id,
                agent=self._agent,
                event_type=event_type,
                content=content,
                metadata={"iteration": event.iteration, **metadata},
                at_s=event.at_s,
            )
        )

"""Which model call gave which message of a transcript."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from harness.schema.messages import Usage
from harness.schema.trajectory import Event, Trajectory

_BUCKETS = ("input", "output", "cache_write", "cache_read")


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """One answered model call."""

    iteration: int
    usage: Usage | None


def answers_of(trajectory: Trajectory) -> dict[int, ModelAnswer]:
    """Index of an assistant message -> the call that gave it, where that is certain.

    A turn with calls is found by their ids. Text-only turns are told apart by their order alone,
    and an empty answer leaves no message: so they are numbered only if none is missing.
    """
    responses = [event for event in trajectory.events if event.kind == "model_response"]
    calls = _calls_by_iteration(trajectory.events)
    by_calls = {ids: event for event in responses if (ids := calls[event.iteration])}
    found: dict[int, ModelAnswer] = {}
    unplaced: list[int] = []
    for index, message in enumerate(trajectory.messages):
        if message.role != "assistant":
            continue
        event = by_calls.pop(tuple(call.id for call in message.tool_calls), None)
        if event is None:
            unplaced.append(index)
        else:
            found[index] = _answer(event)
    rest = [event for event in responses if not calls[event.iteration]]
    if len(rest) == len(unplaced):
        found |= {index: _answer(event) for index, event in zip(unplaced, rest, strict=True)}
    return found


def _calls_by_iteration(events: Sequence[Event]) -> dict[int, tuple[str, ...]]:
    calls: dict[int, tuple[str, ...]] = defaultdict(tuple)
    for event in events:
        identifier = event.data.get("id")
        if event.kind == "tool_detected" and isinstance(identifier, str):
            calls[event.iteration] += (identifier,)
    return calls


def _answer(event: Event) -> ModelAnswer:
    reported = event.data.get("usage")
    if not isinstance(reported, dict):
        return ModelAnswer(event.iteration, None)
    counts = {
        bucket: value for bucket in _BUCKETS if isinstance(value := reported.get(bucket), int)
    }
    return ModelAnswer(event.iteration, Usage(**counts))

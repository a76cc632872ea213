"""Which model call gave which message of a transcript."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness.schema.messages import Message, Usage
from harness.schema.trajectory import Event, Trajectory

_BUCKETS = ("input", "output", "cache_write", "cache_read")


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """One answered model call."""

    iteration: int
    usage: Usage | None
    tag: str
    event: int
    """Place of its `model_response` among the events."""


@dataclass(frozen=True, slots=True)
class _Response:
    answer: ModelAnswer
    calls: tuple[str, ...]
    """Ids of the calls that the loop took from it."""


def answers_of(trajectory: Trajectory) -> dict[int, ModelAnswer]:
    """Index of an assistant message -> the call that gave it, where that is certain.

    As many answers as messages are paired in order. Else a turn with calls is found by their ids,
    from the end, since a conversation may begin with turns of before this run. Text-only turns
    are told apart by their order alone, and an empty answer leaves no message: so those between
    two turns with calls are placed only if none of them is missing.
    """
    responses = list(_responses(trajectory.events))
    said = [i for i, message in enumerate(trajectory.messages) if message.role == "assistant"]
    found = _all_in_order(trajectory.messages, said, responses)
    if found:
        return found
    rest: list[_Response] = []
    last = len(said)
    for response in reversed(responses):
        at = _place(trajectory.messages, said[:last], response.calls)
        if at is None:
            rest.insert(0, response)
            continue
        found |= _in_order(said[at + 1 : last], rest)
        found[said[at]] = response.answer
        last, rest = at, []
    before = said[:last]
    if len(rest) < len(before) and not _skipped_calls(trajectory.events):
        before = before[len(before) - len(rest) :]
    return found | _in_order(before, rest)


def answer_of(event: Event, place: int) -> ModelAnswer:
    """What a `model_response` says of its call."""
    reported = event.data.get("usage")
    usage = None
    if isinstance(reported, dict):
        counts = {b: value for b in _BUCKETS if isinstance(value := reported.get(b), int)}
        usage = Usage(**counts)
    return ModelAnswer(event.iteration, usage, str(event.data.get("tag", "main")), place)


def _responses(events: Sequence[Event]) -> Iterator[_Response]:
    """The answers that may be messages, with the calls that were detected right after each."""
    answer: ModelAnswer | None = None
    calls: tuple[str, ...] = ()
    for place, event in enumerate(events):
        if event.kind == "tool_detected":
            calls += (str(event.data.get("id")),)
        elif event.kind == "model_response":
            if answer is not None:
                yield _Response(answer, calls)
            answer, calls = answer_of(event, place), ()
            answer = None if answer.tag == "compaction" else answer
    if answer is not None:
        yield _Response(answer, calls)


def _place(messages: Sequence[Message], said: Sequence[int], calls: tuple[str, ...]) -> int | None:
    """Where among `said` the last turn with these calls stands."""
    if not calls:
        return None
    for at in range(len(said) - 1, -1, -1):
        if _calls(messages[said[at]]) == calls:
            return at
    return None


def _all_in_order(
    messages: Sequence[Message], said: Sequence[int], responses: Sequence[_Response]
) -> dict[int, ModelAnswer]:
    """Each message with the answer of its place; none where calls or counts do not agree."""
    pairs = zip(said, responses, strict=False)
    agree = all(not one.calls or _calls(messages[index]) == one.calls for index, one in pairs)
    return _in_order(said, responses) if agree else {}


def _calls(message: Message) -> tuple[str, ...]:
    return tuple(call.id for call in message.tool_calls)


def _in_order(said: Sequence[int], responses: Sequence[_Response]) -> dict[int, ModelAnswer]:
    if len(said) != len(responses):
        return {}
    return {index: one.answer for index, one in zip(said, responses, strict=True)}


def _skipped_calls(events: Sequence[Event]) -> bool:
    """Whether a hook may have answered in the model's place: such a turn is no model call's."""
    started = {event.iteration for event in events if event.kind == "iteration_started"}
    return bool(started - {event.iteration for event in events if event.kind == "model_request"})

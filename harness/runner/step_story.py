"""The story of a task of several steps: its steps' stories, one after another."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from harness.schema.messages import Message, ToolCall, ToolResult
from harness.schema.record import JsonObject
from harness.schema.results import Verdict
from harness.schema.trajectory import CallTag, Event, EventKind, Trajectory, UsageTotal

_BUCKETS = ("input", "output", "cache_write", "cache_read")


def joined(before: Trajectory | None, now: Trajectory, *, step: str, number: int) -> Trajectory:
    """The story so far with one more step's.

    Counts, tokens and times are sums; how it ended and what was handed in is the last step's.

    Args:
        before: the story of the steps before; None for the first.
        now: the step's own.
        step: its name.
        number: counted from 1.
    """
    story = before or Trajectory(termination_reason=now.termination_reason, run_id=now.run_id)
    now = _with_ids_of_its_own(now, _ids(story.messages), number)
    # Where the step begins in the conversation: steps that were never answered leave no other mark.
    started: JsonObject = {"step": step, "number": number, "messages": len(story.messages)}
    return now.model_copy(
        update={
            "messages": (*story.messages, *now.messages),
            "iterations": story.iterations + now.iterations,
            "attempts": story.attempts + now.attempts,
            "model_calls": story.model_calls + now.model_calls,
            "failed_calls": story.failed_calls + now.failed_calls,
            "tool_calls_made": story.tool_calls_made + now.tool_calls_made,
            "tools_used": tuple(dict.fromkeys((*story.tools_used, *now.tools_used))),
            "tools_executed": (*story.tools_executed, *now.tools_executed),
            "validation_failures": (*story.validation_failures, *now.validation_failures),
            "usage": _sum(story.usage, now.usage),
            "usage_by_tag": _sums(story.usage_by_tag, now.usage_by_tag),
            "models": tuple(dict.fromkeys((*story.models, *now.models))),
            "callback_errors": (*story.callback_errors, *now.callback_errors),
            "events": (*_noted(story, "step_started", started).events, *_later(now, story)),
            "duration_s": story.duration_s + now.duration_s,
        }
    )


def judged(story: Trajectory, step: str, verdict: Verdict | None, stop: str | None) -> Trajectory:
    """The story with what the verifier said of its last step.

    Args:
        story: so far.
        step: name of its last step.
        verdict: the verifier's word on it.
        stop: why the next steps are not begun, if they are not.
    """
    said = verdict or Verdict()
    data: JsonObject = {
        "step": step,
        "rewards": dict(said.rewards),
        "error": said.error,
        "stop": stop,
    }
    return _noted(story, "step_judged", data)


def _noted(story: Trajectory, kind: EventKind, data: JsonObject) -> Trajectory:
    event = Event(
        kind=kind,
        iteration=story.iterations,
        at_s=_end(story),
        data=data,
        run_id=story.run_id,
    )
    return story.model_copy(update={"events": (*story.events, event)})


def _later(now: Trajectory, story: Trajectory) -> Iterable[Event]:
    for event in now.events:
        at_s = round(event.at_s + _end(story), 6)
        iteration = event.iteration + story.iterations
        yield event.model_copy(update={"iteration": iteration, "at_s": at_s})


def _end(story: Trajectory) -> float:
    """When the story so far ended: the last thing told is a little later than its duration."""
    return max([story.duration_s, *(event.at_s for event in story.events[-1:])])


def _ids(messages: Iterable[Message]) -> set[str]:
    return {call.id for message in messages for call in message.tool_calls}


def _with_ids_of_its_own(now: Trajectory, taken: set[str], number: int) -> Trajectory:
    """Calls of another step may have the same ids; in one story a result must find its call."""
    new = {name: f"{name}~{number}" for name in _ids(now.messages) & taken}
    if not new:
        return now
    messages = tuple(
        message.model_copy(update={"content": tuple(_renamed(message.content, new))})
        for message in now.messages
    )
    events = tuple(
        event.model_copy(update={"data": event.data | {"id": new[name]}})
        if isinstance(name := event.data.get("id"), str) and name in new
        else event
        for event in now.events
    )
    return now.model_copy(update={"messages": messages, "events": events})


def _renamed(blocks: Sequence[object], new: dict[str, str]) -> Iterable[object]:
    for block in blocks:
        if isinstance(block, ToolCall) and block.id in new:
            yield block.model_copy(update={"id": new[block.id]})
        elif isinstance(block, ToolResult) and block.call_id in new:
            yield block.model_copy(update={"call_id": new[block.call_id]})
        else:
            yield block


def _sum(one: UsageTotal, other: UsageTotal) -> UsageTotal:
    sums: dict[str, int | None] = {}
    for bucket in _BUCKETS:
        values = [value for total in (one, other) if (value := getattr(total, bucket)) is not None]
        sums[bucket] = sum(values) if values else None
    return UsageTotal(**sums, missing_calls=one.missing_calls + other.missing_calls)


def _sums(
    one: dict[CallTag, UsageTotal], other: dict[CallTag, UsageTotal]
) -> dict[CallTag, UsageTotal]:
    tags = dict.fromkeys((*one, *other))
    return {tag: _sum(one.get(tag, UsageTotal()), other.get(tag, UsageTotal())) for tag in tags}

"""Whether a scenario came out as its file expects, one line per difference."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from harness.schema.messages import Message, ToolResult
from harness.schema.record import Json, JsonObject
from harness.schema.results import Score
from harness.schema.scenario import Scenario
from harness.schema.scenario_expected import (
    Expected,
    RequestExpected,
    ResultExpected,
    TranscriptExpected,
    UsageExpected,
)
from harness.schema.trajectory import EventKind, Trajectory, UsageTotal
from harness.values import ModelRequest

NAME = "scenario"


@dataclass(frozen=True, slots=True)
class SentRequest:
    """One model call as the provider got it."""

    request: ModelRequest
    roles: tuple[str, ...]
    """Of its messages, in the scenario's wire format; the system prompt is none of them."""
    problem: str | None = None
    """Why no vendor would take it."""


@dataclass(frozen=True, slots=True)
class PlayedScenario:
    """What was seen of the run that the expectations are about."""

    trajectory: Trajectory | None
    """None where there was no run to speak of; `failure` says why."""
    config_error: str | None = None
    """Why the loop could not be built."""
    failure: str | None = None
    """What went wrong with playing it."""
    requests: tuple[SentRequest, ...] = ()
    events: tuple[EventKind, ...] = ()
    """With those that a trajectory does not keep."""
    tool_arguments: Mapping[str, Sequence[JsonObject]] = field(default_factory=dict)
    paused_before_call: int | None = None
    model_calls: int = 0
    """Over all runs of the scenario."""


@dataclass(frozen=True, slots=True)
class Mismatch:
    """One expectation that does not hold."""

    field: str
    expected: str
    got: str


def score_scenario(scenario: Scenario, played: PlayedScenario) -> Score:
    """1 where everything is as expected; else 0, with a line for each difference."""
    found = list(mismatches(scenario.expect, played))
    if found:
        found += _hints(scenario, played)
    lines = [f"{scenario.id}: {one.field}: expected {one.expected}, got {one.got}" for one in found]
    return Score(value=0.0 if lines else 1.0, explanation="\n".join(lines))


def _hints(scenario: Scenario, played: PlayedScenario) -> Iterator[Mismatch]:
    """What is no difference by itself, and may explain one."""
    trajectory = played.trajectory
    if trajectory is None:
        return
    told = {"termination_reason", "error_contains"} & scenario.expect.model_fields_set
    if trajectory.error is not None and not told:
        yield Mismatch("error", "none", _said(trajectory.error))
    turns = sum(turn.repeat is None for turn in scenario.turns)
    if played.model_calls < turns:
        yield Mismatch("turns", f"all {turns} used", str(played.model_calls))


def mismatches(expect: Expected, played: PlayedScenario) -> Iterator[Mismatch]:
    """Every expectation that does not hold, in the order of the keys in the documentation."""
    if expect.config_error is not None or played.config_error is not None:
        yield from _config_error(expect.config_error, played)
        return
    if played.failure is not None:
        yield Mismatch("run", "a result", played.failure)
    if played.trajectory is None:
        return
    for name in Expected.model_fields:
        if name in expect.model_fields_set:
            yield from _COMPARED[name](expect, played, played.trajectory)
    for number, sent in enumerate(played.requests, 1):
        if sent.problem is not None:
            yield Mismatch(f"requests[{number}]", "one that a vendor takes", sent.problem)


def _config_error(expected: str | None, played: PlayedScenario) -> Iterator[Mismatch]:
    got = played.config_error
    if expected is None:
        yield Mismatch("config_error", "none", _said(got))
    elif got is None:
        yield Mismatch("config_error", _containing(expected), "none")
    elif expected not in got:
        yield Mismatch("config_error", _containing(expected), _said(got))


Compare = Callable[[Expected, PlayedScenario, Trajectory], Iterator[Mismatch]]


def _field(name: str) -> Compare:
    """Compare a field of the trajectory that has the same name."""

    def compare(expect: Expected, _: PlayedScenario, trajectory: Trajectory) -> Iterator[Mismatch]:
        yield from _differing(name, getattr(expect, name), getattr(trajectory, name))

    return compare


def _usage(expect: Expected, _: PlayedScenario, trajectory: Trajectory) -> Iterator[Mismatch]:
    yield from _tokens("usage", expect.usage, trajectory.usage)


def _usage_by_tag(
    expect: Expected, _: PlayedScenario, trajectory: Trajectory
) -> Iterator[Mismatch]:
    for tag, usage in expect.usage_by_tag.items():
        got = trajectory.usage_by_tag.get(tag)
        if got is None:
            there = ", ".join(trajectory.usage_by_tag) or "no call"
            yield Mismatch(f"usage_by_tag.{tag}", "a model call of this kind", there)
        else:
            yield from _tokens(f"usage_by_tag.{tag}", usage, got)


def _tokens(name: str, expected: UsageExpected, got: UsageTotal) -> Iterator[Mismatch]:
    for bucket in UsageExpected.model_fields:
        if bucket in expected.model_fields_set:
            wanted, used = getattr(expected, bucket), getattr(got, bucket)
            yield from _differing(f"{name}.{bucket}", wanted, used)


def _ending(expect: Expected, _: PlayedScenario, trajectory: Trajectory) -> Iterator[Mismatch]:
    wanted, got = expect.termination_reason, trajectory.termination_reason
    if wanted != got:
        why = f" ({_said(trajectory.error)})" if trajectory.error is not None else ""
        yield Mismatch("termination_reason", _json(wanted), f"{_json(got)}{why}")


def _error(expect: Expected, _: PlayedScenario, trajectory: Trajectory) -> Iterator[Mismatch]:
    if expect.error_contains not in (trajectory.error or ""):
        yield Mismatch("error_contains", _said(expect.error_contains), _said(trajectory.error))


def _callback_errors(
    expect: Expected, _: PlayedScenario, trajectory: Trajectory
) -> Iterator[Mismatch]:
    yield from _differing(
        "callback_errors", expect.callback_errors, len(trajectory.callback_errors)
    )


def _events(expect: Expected, played: PlayedScenario, _: Trajectory) -> Iterator[Mismatch]:
    done = 0
    for place, kind in enumerate(expect.events):
        if kind not in played.events[done:]:
            before = f" after {_list(expect.events[:place])}" if place else ""
            yield Mismatch("events", f"{kind}{before}", _list(played.events[done:]))
            return
        done = played.events.index(kind, done) + 1


def _event_counts(expect: Expected, played: PlayedScenario, _: Trajectory) -> Iterator[Mismatch]:
    counts = Counter(played.events)
    for kind, wanted in expect.event_counts.items():
        yield from _differing(f"event_counts.{kind}", wanted, counts[kind])


def _forbidden(expect: Expected, played: PlayedScenario, _: Trajectory) -> Iterator[Mismatch]:
    counts = Counter(played.events)
    for kind in expect.forbidden_events:
        yield from _differing(f"forbidden_events.{kind}", 0, counts[kind])


def _terminal(expect: Expected, played: PlayedScenario, _: Trajectory) -> Iterator[Mismatch]:
    got = played.events.count("run_completed")
    yield from _differing("terminal_events", expect.terminal_events, got)


def _paused(expect: Expected, played: PlayedScenario, _: Trajectory) -> Iterator[Mismatch]:
    got = played.paused_before_call
    yield from _differing("paused_before_call", expect.paused_before_call, got)


def _arguments(expect: Expected, played: PlayedScenario, _: Trajectory) -> Iterator[Mismatch]:
    for tool, wanted in expect.tool_arguments.items():
        got = list(played.tool_arguments.get(tool, ()))
        yield from _differing(f"tool_arguments.{tool}", list(wanted), got)


def _transcript(expect: Expected, _: PlayedScenario, trajectory: Trajectory) -> Iterator[Mismatch]:
    roles = tuple(message.role for message in trajectory.messages)
    yield from _talk("transcript", expect.transcript, trajectory.messages, roles)


def _requests(expect: Expected, played: PlayedScenario, _: Trajectory) -> Iterator[Mismatch]:
    made = len(played.requests)
    for number, wanted in expect.requests.items():
        if 1 <= number <= made:
            yield from _request(f"requests[{number}]", wanted, played.requests[number - 1])
        else:
            got = f"{made} model {'call' if made == 1 else 'calls'}"
            yield Mismatch(f"requests[{number}]", "a model call", got)


def _request(name: str, expected: RequestExpected, sent: SentRequest) -> Iterator[Mismatch]:
    messages = sent.request.messages
    yield from _talk(name, expected, messages, sent.roles)
    if "tools" in expected.model_fields_set:
        offered = tuple(tool.name for tool in sent.request.offered)
        yield from _differing(f"{name}.tools", expected.tools, offered)
    texts = [_text(message) for message in messages]
    for wanted in expected.contains:
        if not any(wanted in text for text in texts):
            yield Mismatch(f"{name}.contains", _said(wanted), _said(" | ".join(texts)))
    last = _last_user(messages)
    said = _text(last) if last else ""
    if expected.last_user_contains not in said:
        wanted = expected.last_user_contains
        yield Mismatch(f"{name}.last_user_contains", _said(wanted), _said(said))


def _talk(
    name: str,
    expected: RequestExpected | TranscriptExpected,
    messages: Sequence[Message],
    roles: tuple[str, ...],
) -> Iterator[Mismatch]:
    if "roles" in expected.model_fields_set:
        yield from _differing(f"{name}.roles", expected.roles, roles)
    if "tool_results" in expected.model_fields_set:
        last = _last_user(messages)
        results = last.tool_results if last else ()
        yield from _results(f"{name}.tool_results", expected.tool_results, results)


def _results(
    name: str, expected: Sequence[ResultExpected], got: Sequence[ToolResult]
) -> Iterator[Mismatch]:
    wanted_ids, ids = [one.id for one in expected], [one.call_id for one in got]
    if wanted_ids != ids:
        yield Mismatch(name, _list(wanted_ids), _list(ids))
        return
    for position, (wanted, result) in enumerate(zip(expected, got, strict=True)):
        where = f"{name}[{position}]"
        if "is_error" in wanted.model_fields_set:
            yield from _differing(f"{where}.is_error", wanted.is_error, result.is_error)
        if wanted.contains not in result.content:
            yield Mismatch(f"{where}.contains", _said(wanted.contains), _said(result.content))


def _last_user(messages: Sequence[Message]) -> Message | None:
    return next((message for message in reversed(messages) if message.role == "user"), None)


def _text(message: Message) -> str:
    """All that a message says, tool results included."""
    return "\n".join([*(result.content for result in message.tool_results), message.text])


def _differing(name: str, expected: object, got: object) -> Iterator[Mismatch]:
    # As JSON: True is not 1 there, and 1 is not 1.0.
    wanted, found = _json(expected), _json(got)
    if wanted != found:
        yield Mismatch(name, wanted, found)


def _json(value: object) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def _said(text: Json) -> str:
    """A text on one line, cut where it is long."""
    whole = _json(text)
    return whole if len(whole) <= _LONGEST else f"{whole[:_LONGEST]}…"


_LONGEST = 300


def _containing(text: str) -> str:
    return f"one that contains {_said(text)}"


def _list(names: Sequence[str]) -> str:
    return f"[{', '.join(names)}]"


_COMPARED: dict[str, Compare] = {
    name: _field(name) for name in Expected.model_fields if name in Trajectory.model_fields
} | {
    "termination_reason": _ending,
    "usage": _usage,
    "usage_by_tag": _usage_by_tag,
    "error_contains": _error,
    "callback_errors": _callback_errors,
    "events": _events,
    "event_counts": _event_counts,
    "forbidden_events": _forbidden,
    "terminal_events": _terminal,
    "paused_before_call": _paused,
    "tool_arguments": _arguments,
    "transcript": _transcript,
    "requests": _requests,
}
"""How each key of `expect` is compared."""

"""The steps of a task that has several, each as if it were a trial of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from harness.loop.usage import add_usage
from harness.report.exported import price_of, times_of
from harness.report.turn_numbers import answer_of
from harness.schema.loop_config import TerminationReason
from harness.schema.messages import Message
from harness.schema.record import Json
from harness.schema.results import RunRecord, TrialRecord, Verdict
from harness.schema.trajectory import Event, Trajectory, UsageTotal
from harness.scorers.efficiency import cost_usd
from harness.scorers.outcome import outcome


@dataclass(frozen=True, slots=True)
class PlayedStep:
    """One step: its name, its line as the log would have it, and its story."""

    name: str
    trial: TrialRecord
    trajectory: Trajectory


def steps_of(run: RunRecord, trial: TrialRecord, trajectory: Trajectory) -> tuple[PlayedStep, ...]:
    """The steps that were played; none where the task has a single one."""
    return tuple(_steps(run, trial, trajectory))


def _steps(run: RunRecord, trial: TrialRecord, trajectory: Trajectory) -> Iterator[PlayedStep]:
    events = trajectory.events
    starts = [place for place, event in enumerate(events) if event.kind == "step_started"]
    first = [_count(events[place].data.get("messages")) for place in starts]
    for number, place in enumerate(starts):
        is_last = number == len(starts) - 1
        end = len(events) if is_last else starts[number + 1]
        stop = len(trajectory.messages) if is_last else first[number + 1]
        name = str(events[place].data.get("step"))
        part = events[place:end]
        yield _step(run, trial, trajectory, name, part, (first[number], stop), is_last=is_last)


def _count(value: Json) -> int:
    return value if isinstance(value, int) else 0


def _step(
    run: RunRecord,
    trial: TrialRecord,
    whole: Trajectory,
    name: str,
    events: Sequence[Event],
    bounds: tuple[int, int],
    *,
    is_last: bool,
) -> PlayedStep:
    begin, stop = bounds
    own = [event for event in events if event.kind not in ("step_started", "step_judged")]
    ended = next((event for event in own if event.kind == "run_completed"), None)
    started_s, ended_s = events[0].at_s, (ended or events[-1]).at_s
    usage = _usage(own)
    last = _last_text(whole.messages[begin:stop])
    story: dict[str, Any] = {
        "messages": whole.messages[begin:stop],
        "events": tuple(_from(event, started_s) for event in own),
        "usage": usage,
        "model_calls": sum(event.kind == "model_request" for event in own),
        "failed_calls": sum(event.kind == "model_error" for event in own),
        "duration_s": round(ended_s - started_s, 6),
    }
    if not is_last:
        story |= {"final_text": last, "output_seen": False, "output": None, "signal": None}
    trajectory = whole.model_copy(update=story)
    times = times_of(trial, whole)
    verdict = _verdict(events)
    line: dict[str, Any] = {
        "trial_id": f"{trial.trial_id}/{name}",
        "verdict": verdict,
        "outcome": outcome(verdict),
        "usage": usage,
        "model_calls": trajectory.model_calls,
        "tool_calls_made": sum(event.kind == "tool_started" for event in own),
        "iterations": sum(event.kind == "iteration_started" for event in own),
        "attempts": sum(event.kind == "attempt_started" for event in own),
        "cost_usd": cost_usd(usage, price_of(run, trial)),
        "duration_s": trajectory.duration_s,
        "finished_at": times.started + timedelta(seconds=ended_s) if times else None,
    }
    if not is_last and ended is not None:
        line |= {"termination_reason": _reason(ended), "error": ended.data.get("error")}
    return PlayedStep(name, trial.model_copy(update=line), trajectory)


def _from(event: Event, start_s: float) -> Event:
    return event.model_copy(update={"at_s": round(event.at_s - start_s, 6)})


def _usage(events: Sequence[Event]) -> UsageTotal:
    total = UsageTotal()
    for place, event in enumerate(events):
        if event.kind == "model_response":
            total = add_usage(total, answer_of(event, place).usage)
    return total


def _last_text(messages: Sequence[Message]) -> str:
    texts = (message.text for message in reversed(messages) if message.role == "assistant")
    return next(texts, "")


def _verdict(events: Sequence[Event]) -> Verdict | None:
    data = next((event.data for event in events if event.kind == "step_judged"), None)
    if data is None:
        return None
    given, error = data.get("rewards"), data.get("error")
    rewards = given.items() if isinstance(given, dict) else ()
    numbers = {name: value for name, value in rewards if isinstance(value, int | float)}
    if not numbers and error is None:
        return None
    return Verdict(rewards=numbers, error=error if isinstance(error, str) else None)


def _reason(ended: Event) -> TerminationReason:
    try:
        return TerminationReason(str(ended.data.get("reason")))
    except ValueError:
        return TerminationReason.COMPLETED

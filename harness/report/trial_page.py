"""The page of one trial: its facts, and its conversation."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from harness.analysis import numbers
from harness.report.conversation import (
    Passage,
    ResultKind,
    TurnView,
    passage,
    pretty,
    result_kinds,
)
from harness.report.marks import Mark, ending_label
from harness.schema.loop_config import TerminationReason
from harness.schema.record import Json
from harness.schema.results import RequestChange, TrialRecord, Untold
from harness.schema.trajectory import Trajectory
from harness.scorers.scenario import NAME as SCENARIO

SCORE_TERMS = frozenset(
    ("reward", "ending", "iterations", "attempts", "tool_calls", "tokens", "cost_usd", "validation")
)
DiffKind = Literal["added", "removed", "place", "same"]


@dataclass(frozen=True, slots=True)
class Fact:
    """One line of a list of facts."""

    label: str
    value: str
    term: str = ""
    """Its key in the glossary, if it has one."""


@dataclass(frozen=True, slots=True)
class ScoreView:
    """One score."""

    label: str
    term: str
    """Its key in the glossary; empty for a score that is not of this package."""
    value: str
    explanation: str


@dataclass(frozen=True, slots=True)
class ErrorLine:
    """One line of an explained miss or failure."""

    kind: DiffKind
    text: str


@dataclass(frozen=True, slots=True)
class ChangeView:
    """Something that is not as it is recorded: in one line, and as a diff."""

    summary: str
    lines: tuple[ErrorLine, ...]


@dataclass(frozen=True, slots=True)
class SystemPrompt:
    """A system prompt, shown once for all trials that have it."""

    anchor: str
    number: int
    text: str
    variants: tuple[str, ...]
    trials: int


@dataclass(frozen=True, slots=True)
class TrialPage:
    """Everything on one trial's page."""

    anchor: str
    trial_id: str
    task: str
    lead: str
    mark: Mark
    state: str
    """What the verifier says."""
    ending: str
    ending_key: str
    is_mixed: bool
    differences: tuple[str, ...]
    """What a scenario expects and did not get."""
    error: tuple[ErrorLine, ...]
    """The explanation, line by line; empty where the run ended by itself."""
    error_title: str
    tool_changes: tuple[ChangeView, ...]
    request_changes: tuple[ChangeView, ...]
    facts: tuple[Fact, ...]
    ignored: tuple[str, ...]
    """What the task's files ask for and was not done."""
    scores: tuple[ScoreView, ...]
    unscored: str
    """Said once instead of the scores where every score says the same; else empty."""
    output: Passage | None
    """The structured result that was handed in."""
    system: SystemPrompt | None
    turns: tuple[TurnView, ...] | None
    """None where the trajectory file is not there."""
    parting: str
    """How the conversation relates to that of the baseline; empty if there is none."""
    other_variants: tuple[Mark, ...]
    other_repeats: tuple[Mark, ...]
    previous: Mark | None
    next: Mark | None


def facts(trial: TrialRecord, trajectory: Trajectory | None) -> tuple[Fact, ...]:
    """What trials.jsonl says, as people read it."""
    usage = trial.usage
    buckets = (
        ("in", usage.input),
        ("cache write", usage.cache_write),
        ("cache read", usage.cache_read),
        ("out", usage.output),
    )
    tokens = ", ".join(f"{numbers.count(n)} {name}" for name, n in buckets if n is not None)
    if usage.missing_calls and tokens:
        tokens += f" ({numbers.plural(usage.missing_calls, 'call')} reported none)"
    failed = trajectory.failed_calls if trajectory else 0
    kinds: Mapping[ResultKind, int] = result_kinds(trajectory) if trajectory else {}
    is_scenario = SCENARIO in trial.scores
    found = [
        Fact("Iterations", _told(trial, "iterations", trial.iterations), "iterations"),
        Fact("Attempts", numbers.count(trial.attempts), "attempts"),
        Fact("Model calls", _model_calls(trial, failed), "model_calls"),
        Fact("Tool calls", _tool_calls(trial, kinds), "tool_calls"),
        Fact("Validation failures", numbers.count(trial.validation_failures), "validation"),
        Fact("Tokens", tokens or "not reported", "tokens"),
    ]
    if refused := _not_executed(kinds):
        found.insert(4, Fact("Calls not executed", refused))
    if not is_scenario:
        found.append(Fact("Cost", numbers.dollars(trial.cost_usd), "cost_usd"))
    found.append(Fact("Duration", numbers.seconds(trial.duration_s), "duration"))
    if not is_scenario:
        found += [
            Fact("Answered by", ", ".join(trial.response_models) or numbers.ABSENT),
            Fact("Cassette", trial.cassette or "none", "cassette"),
        ]
    if trial.sandbox is not None:
        found.append(Fact("Sandbox", trial.sandbox))
    if trial.own_verifier:
        found.append(Fact("Verifier", "on a machine of its own"))
    if trial.confirmed is not None:
        said = "yes" if trial.confirmed else "no: accepted without a clear answer"
        at = [fact.label for fact in found].index("Tokens")
        found.insert(at, Fact("Confirmed", said, "confirmed"))
    return (*found, *_replay_facts(trial), *(_ending_facts(trajectory) if trajectory else ()))


def _replay_facts(trial: TrialRecord) -> Iterator[Fact]:
    """What is not as it is recorded."""
    if trial.tool_differences:
        calls = numbers.plural(trial.tool_differences, "call")
        yield Fact(
            "Tools run again",
            f"{calls} gave something else than what is recorded; first: "
            f"{trial.first_tool_difference}",
        )
    if trial.request_differences:
        calls = numbers.plural(trial.request_differences, "model call")
        yield Fact("Asked otherwise", f"{calls} said something else than what is recorded")
    if trial.unused:
        answers = numbers.plural(trial.unused, "recorded answer")
        yield Fact("Left over", f"{answers}: the loop ended before the recording does")


def _ending_facts(trajectory: Trajectory) -> list[Fact]:
    """How the run ended, where there is more to say than its ending."""
    found = []
    if trajectory.signal is not None:
        found.append(Fact("Signal", _with_data(trajectory.signal, trajectory.signal_data)))
    if trajectory.suspended is not None:
        waiting = trajectory.suspended
        found.append(Fact("Waits for", _with_data(waiting.correlation_id, waiting.data)))
    last = trajectory.events[-1] if trajectory.events else None
    if last is not None and last.data.get("phase") is not None:
        phase = str(last.data["phase"]).replace("_", " ")
        found.append(Fact("Cancelled during", phase))
    if trajectory.termination_reason is TerminationReason.DURATION_EXCEEDED:
        spent = numbers.seconds(trajectory.duration_s)
        said = f"{spent}, which counts for its limit; of what is replayed, as it was recorded"
        found.append(Fact("Agent's time", said))
    if trajectory.wrapped_up:
        found.append(Fact("Wrapped up", "yes: a last call without tools gave the final text"))
    if trajectory.truncated:
        found.append(Fact("Truncated", "the final text was cut at its token limit"))
    shown = {
        f"hook {event.data.get('hook')}.{event.data.get('point')}: {event.data.get('error')}"
        for event in trajectory.events
        if event.kind == "hook_failed"
    }
    if errors := [error for error in trajectory.callback_errors if error not in shown]:
        found.append(Fact("Callback errors", "; ".join(errors)))
    return found


def _with_data(name: str, data: Json) -> str:
    return name if data is None else f"{name}, with {json.dumps(data, ensure_ascii=False)}"


def difference_lines(trial: TrialRecord) -> tuple[str, ...]:
    """What a scenario expects and did not get, without its name before each line."""
    score = trial.scores.get(SCENARIO)
    lines = score.explanation.splitlines() if score is not None else ()
    return tuple(line.removeprefix(f"{trial.task}: ") for line in lines)


def scores(trial: TrialRecord) -> tuple[ScoreView, ...]:
    """Every score of the trial; of a scenario none, since only its differences count."""
    if SCENARIO in trial.scores:
        return ()
    return tuple(
        ScoreView(
            label="cost" if name == "cost_usd" else name.replace("_", " "),
            term=name if name in SCORE_TERMS else "",
            value=score_value(name, score.value),
            explanation=score.explanation,
        )
        for name, score in trial.scores.items()
    )


def unscored(trial: TrialRecord) -> str:
    """Why there is no score at all, if every scorer gives the same reason."""
    reasons = {score.explanation for score in trial.scores.values()}
    if len(reasons) != 1 or any(score.value is not None for score in trial.scores.values()):
        return ""
    reason = reasons.pop().replace(
        trial.termination_reason.value, ending_label(trial.termination_reason)
    )
    return reason[:1].upper() + reason[1:]


def score_value(name: str, value: float | str | bool | None) -> str:
    """A score as people read it."""
    if value is None:
        return numbers.ABSENT
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value.replace("_", " ")
    if name == "cost_usd":
        return numbers.dollars(value)
    return f"{value:,.0f}" if value == int(value) else f"{value:,.4g}"


def error_lines(error: str | None) -> tuple[ErrorLine, ...]:
    """An explanation with the lines of its diff, if it has one, told apart."""
    lines = (error or "").splitlines()
    return tuple(ErrorLine(_diff_kind(line) if len(lines) > 1 else "same", line) for line in lines)


def tool_changes(trial: TrialRecord) -> tuple[ChangeView, ...]:
    """What tools gave when they ran again, beside what is recorded."""
    return tuple(
        ChangeView(change.summary, error_lines(change.difference)) for change in trial.tool_changes
    )


def request_changes(trial: TrialRecord) -> tuple[ChangeView, ...]:
    """What model calls said, beside those whose answers they were given; equal ones once."""
    alike: dict[tuple[str, ...], list[RequestChange]] = {}
    for change in trial.request_changes:
        alike.setdefault(changed_lines(change), []).append(change)
    more = trial.request_differences - len(trial.request_changes)
    told = [
        ChangeView(_request_summary(changes), error_lines(changes[0].difference))
        for changes in alike.values()
    ]
    if more > 0:
        calls = numbers.plural(more, "later model call")
        told.append(ChangeView(f"{calls} said something else too, not shown here.", ()))
    return tuple(told)


def changed_lines(change: RequestChange) -> tuple[str, ...]:
    """What of a diff is the same in another place: its lines without what stands around them."""
    lines = change.difference.splitlines()[2:]
    return tuple(line for line in lines if _diff_kind(line) in ("added", "removed"))


def _request_summary(changes: Sequence[RequestChange]) -> str:
    """Which calls, and what of the first, in one line."""
    first = changes[0]
    if len(changes) == 1:
        return f"Model call {first.call} is not as recorded, in {first.cause}:"
    calls = ", ".join(str(change.call) for change in changes)
    return f"{len(changes)} model calls ({calls}) are not as recorded, in the same way; the first:"


def handed_in(trajectory: Trajectory | None) -> Passage | None:
    """The structured output; a bare text answer is in the conversation already."""
    if trajectory is None or not trajectory.output_seen:
        return None
    output = trajectory.output
    if isinstance(output, dict) and set(output) == {"response"}:
        return None
    return passage(pretty(output))


def _told(trial: TrialRecord, name: Untold, number: int) -> str:
    return numbers.ABSENT if name in trial.untold else numbers.count(number)


def _model_calls(trial: TrialRecord, failed: int) -> str:
    parts = [f"{numbers.count(trial.served)} from the cassette"] if trial.served else []
    if trial.recorded:
        parts.append(f"{numbers.count(trial.recorded)} live")
    if failed:
        parts.append(f"{numbers.count(failed)} failed")
    where = f" ({', '.join(parts)})" if parts else ""
    return f"{_told(trial, 'model_calls', trial.model_calls)}{where}"


def _tool_calls(trial: TrialRecord, kinds: Mapping[ResultKind, int]) -> str:
    used = f" ({', '.join(trial.tools_used)})" if trial.tools_used else ""
    failed = kinds.get("error", 0)
    return f"{_told(trial, 'tool_calls', trial.tool_calls_made)}{used}" + (
        f", {numbers.count(failed)} failed" if failed else ""
    )


def _not_executed(kinds: Mapping[ResultKind, int]) -> str:
    """Calls that no tool was invoked for; they are no failures of the tool."""
    told: tuple[tuple[ResultKind, str], ...] = (("denied", "denied"), ("not_run", "not run"))
    return ", ".join(f"{numbers.count(n)} {word}" for kind, word in told if (n := kinds.get(kind)))


def _diff_kind(line: str) -> DiffKind:
    if line.startswith("@@"):
        return "place"
    if line.startswith("+"):
        return "added"
    return "removed" if line.startswith("-") else "same"

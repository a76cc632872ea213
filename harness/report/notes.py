"""What the loop did besides the conversation: each a note at its place between the turns."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from harness.analysis import numbers
from harness.report.turn_numbers import ModelAnswer, answer_of
from harness.schema.messages import Usage
from harness.schema.trajectory import Event, Trajectory

NoteKind = Literal["model", "plain", "warning"]

PURPOSES = {
    "compaction": "Compaction",
    "wrap_up": "Last call",
    "confirm": "Model call (confirm)",
    "nudge": "Model call (nudge)",
}

EMPTY = "The answer was empty."
UNTOLD = "The answer was empty, or which message it is cannot be told."


@dataclass(frozen=True, slots=True)
class NoteView:
    """Something the loop did or that happened to it."""

    kind: NoteKind
    title: str
    text: str = ""
    number: int | None = None
    """Iteration."""
    usage: str = ""
    """Tokens of the model call, if it is one."""
    type: Literal["note"] = "note"


def notes_of(
    trajectory: Trajectory, answers: Mapping[int, ModelAnswer]
) -> dict[int, tuple[NoteView, ...]]:
    """Index of a message -> the notes that stand before it; one past the last: at the end.

    Args:
        trajectory: what happened.
        answers: which model call gave which message. A call that gave none is a note itself.
    """
    places = {answer.event: index for index, answer in answers.items()}
    end = len(trajectory.messages)
    said = sum(message.role == "assistant" for message in trajectory.messages)
    gave = EMPTY if said == len(answers) else UNTOLD
    found: dict[int, list[NoteView]] = defaultdict(list)
    following = end
    for place in range(len(trajectory.events) - 1, -1, -1):
        if place in places:
            following = places[place]
            continue
        event = trajectory.events[place]
        note = _note(event, place, trajectory, gave)
        if note is not None:
            # What the step's agent was asked stands between its start and its first answer.
            is_between = event.kind in ("step_started", "step_judged") and 0 < following < end
            found[following - 1 if is_between else following].insert(0, note)
    earlier = _earlier_calls(trajectory)
    if earlier is not None:
        found[0].insert(0, earlier)
    return {index: tuple(notes) for index, notes in found.items()}


def tokens_text(usage: Usage | None) -> str:
    """What one model call took."""
    if usage is None:
        return "usage not reported"
    known: Sequence[tuple[str, int | None]] = (
        ("in", usage.input),
        ("cache write", usage.cache_write),
        ("cache read", usage.cache_read),
        ("out", usage.output),
    )
    parts = [f"{numbers.count(tokens)} {name}" for name, tokens in known if tokens is not None]
    return f"tokens: {', '.join(parts)}" if parts else "usage not reported"


def _note(event: Event, place: int, trajectory: Trajectory, gave: str) -> NoteView | None:
    data = {name: str(value) for name, value in event.data.items() if value is not None}
    match event.kind:
        case "model_response":
            return _model_call(answer_of(event, place), gave)
        case "model_error":
            return _failed_call(event, trajectory)
        case "window_applied":
            title = f"Sent {data.get('sent')} of {data.get('of')} messages"
            return NoteView("plain", title, number=event.iteration or None)
        case "limit_warning":
            made, soft = data.get("iterations"), data.get("soft_limit")
            text = f"After iteration {made}; soft_limit is {soft}."
            return NoteView("warning", "Soft limit reached", text)
        case "step_started":
            return NoteView("plain", f"Step {data.get('number')}: {data.get('step')}")
        case "step_judged":
            return _step_judged(event)
        case "paused":
            return NoteView("plain", "Paused", data.get("reason", ""))
        case "resumed":
            return NoteView("plain", "Resumed")
        case "hook_failed":
            where = f"{data.get('hook')}, {data.get('point')}"
            return NoteView("warning", "Hook failed", f"{where}: {data.get('error', '')}")
        case _:
            return None


def _failed_call(event: Event, trajectory: Trajectory) -> NoteView | None:
    error = event.data.get("error")
    # The one that ended the run is told above the conversation.
    if error == trajectory.error:
        return None
    text = "" if error is None else str(error)
    return NoteView("warning", "Model call failed", text, event.iteration or None)


def _step_judged(event: Event) -> NoteView:
    rewards, stop = event.data.get("rewards"), event.data.get("stop")
    named = rewards.items() if isinstance(rewards, dict) else ()
    said = ", ".join(f"{name} {value:g}" for name, value in named if isinstance(value, int | float))
    lines = [said or str(event.data.get("error") or "There is no verdict.")]
    if stop is not None:
        lines.append(f"The next steps were not begun: {stop}.")
    kind: NoteKind = "plain" if stop is None else "warning"
    return NoteView(kind, f"Verifier of step {event.data.get('step')}", "\n".join(lines))


def _model_call(answer: ModelAnswer, gave: str) -> NoteView:
    is_compaction = answer.tag == "compaction"
    text = "The model was asked to sum up the older turns." if is_compaction else gave
    title = PURPOSES.get(answer.tag, "Model call")
    return NoteView("model", title, text, answer.iteration or None, tokens_text(answer.usage))


def _earlier_calls(trajectory: Trajectory) -> NoteView | None:
    """Of a run that was taken up again: its sums hold calls whose events are another run's."""
    begun = sum(event.kind == "model_request" for event in trajectory.events)
    earlier = trajectory.model_calls - begun
    if not trajectory.events or earlier <= 0:
        return None
    calls = numbers.plural(earlier, "model call")
    return NoteView(
        "plain", "Taken up again", f"{calls} made before are in the sums and not shown one by one."
    )

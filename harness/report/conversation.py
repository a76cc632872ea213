"""A trial's conversation, turn by turn, with each result under the call it answers."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from harness.loop.confirmation import GO_ON
from harness.loop.run import TRUNCATED, WRAP_UP
from harness.report.notes import NoteView, notes_of, tokens_text
from harness.report.turn_numbers import ModelAnswer, answers_of
from harness.schema.messages import Message, Text, ToolCall, ToolResult, VendorBlock
from harness.schema.record import Json
from harness.schema.trajectory import Trajectory

OF_THE_LOOP = frozenset((GO_ON, TRUNCATED, WRAP_UP))
"""What the loop says without an event of its own."""
LONG_LINES = 24
LONG_CHARACTERS = 2400
"""Longer texts scroll inside their own box."""

ResultKind = Literal["result", "error", "rejection", "denied", "not_run"]
Speech = Literal["instruction", "question", "reminder", "rejection", "loop", "user", "assistant"]

TITLES: dict[Speech, str] = {
    "instruction": "Instruction",
    "question": "Confirmation question",
    "reminder": "Reminder",
    "rejection": "Validation failed",
    "loop": "From the loop",
    "user": "User",
    "assistant": "",
}
RESULT_TITLES: dict[ResultKind, str] = {
    "result": "Result",
    "error": "Error",
    "rejection": "Rejected",
    "denied": "Denied",
    "not_run": "Not run",
}


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of text as it was said."""

    text: str
    is_long: bool


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a call: strings as they are, everything else as JSON."""

    name: str
    value: Passage


@dataclass(frozen=True, slots=True)
class ResultView:
    """What a tool call was answered with."""

    name: str
    kind: ResultKind
    title: str
    content: Passage
    type: Literal["result"] = "result"


@dataclass(frozen=True, slots=True)
class SpeechView:
    """Text of either side."""

    kind: Speech
    title: str
    content: Passage
    type: Literal["speech"] = "speech"


@dataclass(frozen=True, slots=True)
class CallView:
    """A tool call with its result."""

    name: str
    arguments: tuple[Argument, ...]
    raw: Passage | None
    """The arguments as written, where they are not a JSON object."""
    result: ResultView | None
    type: Literal["call"] = "call"


@dataclass(frozen=True, slots=True)
class VendorView:
    """A block that only one vendor's API knows, as JSON."""

    title: str
    content: Passage
    type: Literal["vendor"] = "vendor"


PartView = SpeechView | CallView | ResultView | VendorView | NoteView


@dataclass(frozen=True, slots=True)
class TurnView:
    """One message of the transcript; or, of the role `loop`, what the loop did between two."""

    role: Literal["user", "assistant", "loop"]
    number: int | None
    """Iteration; None where it is not a model's answer of this run, or cannot be told."""
    usage: str
    """Tokens of the model call; empty where there was none."""
    parts: tuple[PartView, ...]
    is_parting: bool
    """Whether here begins what differs from the baseline's conversation."""
    purpose: str = ""
    """What the model was asked for, where that was no iteration."""


def conversation(trajectory: Trajectory, shared: int | None) -> tuple[TurnView, ...]:
    """The turns of a trajectory.

    Args:
        trajectory: what happened.
        shared: messages that the baseline's trial has in common from the start; None where there
            is nothing to compare with.
    """
    return tuple(_turns(trajectory, shared))


def shared_messages(first: Trajectory, second: Trajectory) -> int:
    """How many messages two conversations have in common from their start."""
    if first.system != second.system:
        return 0
    count = 0
    for one, other in zip(first.messages, second.messages, strict=False):
        if one != other:
            break
        count += 1
    return count


def result_kinds(trajectory: Trajectory) -> Counter[ResultKind]:
    """How many tool results there are of each kind."""
    said = Wording(trajectory)
    return Counter(
        said.result(result).kind
        for message in trajectory.messages
        for result in message.tool_results
    )


def _turns(trajectory: Trajectory, shared: int | None) -> Iterator[TurnView]:
    answers = answers_of(trajectory)
    notes = notes_of(trajectory, answers)
    messages = trajectory.messages
    said = Wording(trajectory)
    parting = False
    for index, message in enumerate(messages):
        yield from _noted(notes, index)
        parting = parting or (bool(shared) and index == shared)
        parts = tuple(_parts(messages, index, said))
        if not parts:
            continue
        answer = answers.get(index)
        purpose = _purpose(answer, trajectory)
        yield TurnView(
            role=message.role,
            number=answer.iteration if answer and not purpose else None,
            usage=tokens_text(answer.usage) if answer else "",
            parts=parts,
            is_parting=parting,
            purpose=purpose,
        )
        parting = False
    yield from _noted(notes, len(messages))


def _noted(notes: Mapping[int, tuple[NoteView, ...]], index: int) -> Iterator[TurnView]:
    if index in notes:
        yield TurnView("loop", None, "", notes[index], is_parting=False)


def _purpose(answer: ModelAnswer | None, trajectory: Trajectory) -> str:
    if answer is None or answer.tag != "wrap_up":
        return ""
    return "asked to wrap up" if trajectory.wrapped_up else "reply before it was suspended"


def _parts(messages: Sequence[Message], index: int, said: Wording) -> Iterator[PartView]:
    message = messages[index]
    results = _results_after(messages, index)
    called = _called_before(messages, index)
    for block in message.content:
        match block:
            case Text(text=text):
                if text:
                    kind = said.speech(text, index) if message.role == "user" else "assistant"
                    yield SpeechView(kind, TITLES[kind], passage(text))
            case ToolCall():
                result = results.get(block.id)
                yield _call(block, said.result(result) if result else None)
            case ToolResult():
                if block.call_id not in called:
                    yield said.result(block)
            case VendorBlock(dialect=dialect) if dialect.startswith("text-"):
                pass  # A text protocol's wording of the calls that are shown already.
            case VendorBlock(dialect=dialect, data=data):
                kind_of = data.get("type")
                title = f"{kind_of if isinstance(kind_of, str) else 'block'} ({dialect})"
                yield VendorView(title, passage(pretty(data)))


def _results_after(messages: Sequence[Message], index: int) -> dict[str, ToolResult]:
    """Results up to the next turn with calls: models give the same id twice."""
    found: dict[str, ToolResult] = {}
    for message in messages[index + 1 :]:
        if message.tool_calls:
            break
        found = {result.call_id: result for result in message.tool_results} | found
    return found


def _called_before(messages: Sequence[Message], index: int) -> set[str]:
    """Ids of the calls that the results of a message answer."""
    for message in reversed(messages[:index]):
        if message.tool_calls:
            return {call.id for call in message.tool_calls}
    return set()


class Wording:
    """Tells what the loop said from what it says about itself in events."""

    def __init__(self, trajectory: Trajectory) -> None:
        self.questions = _said(trajectory, "confirmation_asked", "prompt")
        self.reminders = _said(trajectory, "nudged", "text")
        self.rejections = tuple(
            f"Validation failed: {why}" for why in trajectory.validation_failures
        )
        self.denials: dict[str, set[str]] = {}
        for event in trajectory.events:
            if event.kind == "tool_denied":
                texts = self.denials.setdefault(str(event.data.get("id")), set())
                texts.add(f"Denied: {event.data.get('reason')}.")
        self.failures = _said(trajectory, "tool_failed", "error")
        """What tools that ran said themselves."""
        self.instructions = {0, *_said(trajectory, "step_started", "messages", int)}
        """Places of the messages that say what the task, or a step of it, is."""

    def speech(self, text: str, index: int) -> Speech:
        """What kind of user text this is, in the message at this place."""
        if index in self.instructions:
            return "instruction"
        if text.startswith(self.rejections):
            return "rejection"
        if text in self.questions:
            return "question"
        if text in self.reminders:
            return "reminder"
        return "loop" if text in OF_THE_LOOP else "user"

    def result(self, result: ToolResult) -> ResultView:
        """A result, its kind told."""
        kind = self._kind(result)
        return ResultView(result.name, kind, RESULT_TITLES[kind], passage(result.content))

    def _kind(self, result: ToolResult) -> ResultKind:
        if not result.is_error:
            return "result"
        if result.content.startswith(self.rejections):
            return "rejection"
        if result.content in self.denials.get(result.call_id, ()):
            return "denied"
        if result.content.startswith("Not run: ") and result.content not in self.failures:
            return "not_run"
        return "error"


def _said(trajectory: Trajectory, kind: str, key: str, of: type = str) -> set[Json]:
    return {
        said
        for event in trajectory.events
        if event.kind == kind and isinstance(said := event.data.get(key), of)
    }


def _call(call: ToolCall, result: ResultView | None) -> CallView:
    try:
        parsed = json.loads(call.arguments) if call.arguments.strip() else {}
    except (ValueError, RecursionError):
        parsed = None
    if not isinstance(parsed, dict):
        return CallView(call.name, (), passage(call.arguments), result)
    arguments = tuple(Argument(name, passage(shown(value))) for name, value in parsed.items())
    return CallView(call.name, arguments, None, result)


def shown(value: Json) -> str:
    """A string as it is, unless it would be taken for another value; everything else as JSON."""
    if isinstance(value, str):
        return value if value and not _is_json_scalar(value) else json.dumps(value)
    return pretty(value)


def pretty(value: Json) -> str:
    """JSON over several lines, unless it is short."""
    flat = json.dumps(value, ensure_ascii=False)
    return flat if len(flat) <= 60 else json.dumps(value, ensure_ascii=False, indent=2)


def passage(text: str) -> Passage:
    """Text, and whether it needs a box of its own."""
    return Passage(text, text.count("\n") >= LONG_LINES or len(text) > LONG_CHARACTERS)


def _is_json_scalar(text: str) -> bool:
    try:
        return not isinstance(json.loads(text), (dict, list))
    except (ValueError, RecursionError):
        return False

"""A trial's conversation, turn by turn, with each result under the call it answers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from harness.analysis import numbers
from harness.report.turn_numbers import ModelAnswer, answers_of
from harness.schema.messages import Message, Text, ToolCall, ToolResult, VendorBlock
from harness.schema.record import Json
from harness.schema.trajectory import Trajectory

LONG_LINES = 24
LONG_CHARACTERS = 2400
"""Longer texts scroll inside their own box."""

Speech = Literal["instruction", "question", "reminder", "rejection", "loop", "assistant"]

TITLES: dict[Speech, str] = {
    "instruction": "Instruction",
    "question": "Confirmation question",
    "reminder": "Reminder",
    "rejection": "Validation failed",
    "loop": "From the loop",
    "assistant": "",
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
    kind: Literal["result", "error", "rejection"]
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


@dataclass(frozen=True, slots=True)
class TurnView:
    """One message of the transcript."""

    role: Literal["user", "assistant"]
    number: int | None
    """Iteration; None where it is not a model's answer of this run, or cannot be told."""
    usage: str
    """Tokens of the model call; empty where there was none."""
    parts: tuple[SpeechView | CallView | ResultView | VendorView, ...]
    is_parting: bool
    """Whether here begins what differs from the baseline's conversation."""


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


def _turns(trajectory: Trajectory, shared: int | None) -> Iterator[TurnView]:
    answers = answers_of(trajectory)
    results = {
        result.call_id: result for message in trajectory.messages for result in message.tool_results
    }
    called = {call.id for message in trajectory.messages for call in message.tool_calls}
    said = _Wording(trajectory)
    parting = False
    for index, message in enumerate(trajectory.messages):
        parting = parting or (bool(shared) and index == shared)
        parts = tuple(_parts(message, said, results, called, is_first=index == 0))
        if not parts:
            continue
        answer = answers.get(index)
        yield TurnView(
            role=message.role,
            number=answer.iteration if answer else None,
            usage=_usage(answer),
            parts=parts,
            is_parting=parting,
        )
        parting = False


def _parts(
    message: Message,
    said: _Wording,
    results: dict[str, ToolResult],
    called: set[str],
    *,
    is_first: bool,
) -> Iterator[SpeechView | CallView | ResultView | VendorView]:
    for block in message.content:
        match block:
            case Text(text=text):
                if text:
                    kind = _speech(message, text, said, is_first)
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


def _speech(message: Message, text: str, said: _Wording, is_first: bool) -> Speech:
    if message.role == "assistant":
        return "assistant"
    return "instruction" if is_first else said.speech(text)


class _Wording:
    """Tells what the loop said from what it says about itself in events."""

    def __init__(self, trajectory: Trajectory) -> None:
        self.questions = _said(trajectory, "confirmation_asked", "prompt")
        self.reminders = _said(trajectory, "nudged", "text")
        self.rejections = tuple(
            f"Validation failed: {why}" for why in trajectory.validation_failures
        )

    def speech(self, text: str) -> Speech:
        """What kind of user text this is."""
        if text.startswith(self.rejections):
            return "rejection"
        if text in self.questions:
            return "question"
        return "reminder" if text in self.reminders else "loop"

    def result(self, result: ToolResult) -> ResultView:
        """A result, its kind told."""
        if not result.is_error:
            return ResultView(result.name, "result", "Result", passage(result.content))
        if result.content.startswith(self.rejections):
            return ResultView(result.name, "rejection", "Rejected", passage(result.content))
        return ResultView(result.name, "error", "Error", passage(result.content))


def _said(trajectory: Trajectory, kind: str, key: str) -> set[Json]:
    return {
        text
        for event in trajectory.events
        if event.kind == kind and isinstance(text := event.data.get(key), str)
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


def _usage(answer: ModelAnswer | None) -> str:
    if answer is None:
        return ""
    if answer.usage is None:
        return "usage not reported"
    known: Sequence[tuple[str, int | None]] = (
        ("in", answer.usage.input),
        ("cache write", answer.usage.cache_write),
        ("cache read", answer.usage.cache_read),
        ("out", answer.usage.output),
    )
    parts = [f"{numbers.count(tokens)} {name}" for name, tokens in known if tokens is not None]
    return f"tokens: {', '.join(parts)}" if parts else "usage not reported"

"""A conversation in OpenAI's chat format becomes the model calls that it took."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from harness.cassette.convert.exchange import Exchange, Observation
from harness.cassette.format import StoredResponse
from harness.cassette.request.canonical import model_request, writable
from harness.providers.openai_chat import OpenAIChat
from harness.redaction import Redactor
from harness.schema.record import Json, JsonObject

_ROLES = ("system", "developer", "user", "assistant", "tool")


@dataclass(frozen=True, slots=True)
class Answer:
    """What is known of a model's answer beside the message."""

    model: str | None = None
    usage: JsonObject | None = None
    """Token counts, in OpenAI's words."""
    latency_s: float = 0.0
    recorded_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Transcript:
    """A whole conversation."""

    messages: Sequence[JsonObject]
    """In OpenAI's chat format."""
    answers: Mapping[int, Answer]
    """Which of the messages a model gave as the answer to all those before."""
    tools: Json = None
    """The tools that were offered, in OpenAI's chat format."""
    screens: Mapping[int, str] = field(default_factory=dict)
    """What the calls of an answer gave together, where each has no result of its own."""

    @property
    def unanswered(self) -> int:
        """How many messages come after the last answer: no model call has seen them."""
        return len(self.messages) - 1 - max(self.answers, default=-1)


def every_assistant(messages: Sequence[JsonObject], model: str | None) -> Transcript:
    """A conversation in which the model said all that the assistant says."""
    said = (i for i, message in enumerate(messages) if message.get("role") == "assistant")
    return Transcript(messages, {i: Answer(model) for i in said})


def exchanges(transcript: Transcript, redactor: Redactor) -> tuple[Exchange, ...]:
    """Its model calls in order, without secrets.

    Raises:
        ValueError: a message is not of the format; the text names it.
    """
    for number, message in enumerate(transcript.messages):
        _check(message, f"messages[{number}]")
    if not transcript.answers:
        raise ValueError("no message is an answer of a model")
    return tuple(_exchange(transcript, place, redactor) for place in sorted(transcript.answers))


def _check(message: JsonObject, where: str) -> None:
    role = message.get("role")
    if role not in _ROLES:
        raise ValueError(f"{where}.role: {role!r} is none of {', '.join(_ROLES)}")
    if role == "assistant" and not isinstance(message.get("content"), str | None):
        # Other formats answer in blocks. Guessing what they mean would replay something else.
        raise ValueError(f"{where}.content: expected the answer's text, as in OpenAI's chat format")
    calls = message.get("tool_calls")
    if calls is not None and not (isinstance(calls, list) and all(map(_is_call, calls))):
        raise ValueError(f"{where}.tool_calls: expected a list of calls, each with a 'function'")


def _is_call(call: Json) -> bool:
    function = call.get("function") if isinstance(call, dict) else None
    return (
        isinstance(function, dict)
        and isinstance(function.get("name"), str)
        and isinstance(function.get("arguments"), str)
    )


def _exchange(transcript: Transcript, place: int, redactor: Redactor) -> Exchange:
    answer = transcript.answers[place]
    asked = writable([*transcript.messages[:place]])
    request: JsonObject = {"messages": asked}
    if answer.model is not None:
        request["model"] = answer.model
    if transcript.tools:
        request["tools"] = writable(transcript.tools)
    identity = model_request(OpenAIChat(), request).redacted(redactor.json)
    response = redactor.json(writable(_completion(transcript.messages[place], answer, place)))
    return Exchange(
        identity,
        StoredResponse(
            status=200, headers={"content-type": "application/json"}, type="json", body=response
        ),
        latency_s=answer.latency_s,
        recorded_at=answer.recorded_at,
        observations=tuple(_observations(transcript, place, redactor)),
    )


def _completion(message: JsonObject, answer: Answer, number: int) -> JsonObject:
    """The answer as OpenAI's endpoint gives it."""
    calls = bool(message.get("tool_calls"))
    choice: JsonObject = {
        "index": 0,
        "message": {"role": "assistant", "content": None, **message},
        "finish_reason": "tool_calls" if calls else "stop",
    }
    completion: JsonObject = {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": int(answer.recorded_at.timestamp()) if answer.recorded_at else 0,
        "choices": [choice],
    }
    known: JsonObject = {"model": answer.model, "usage": answer.usage}
    return completion | {key: value for key, value in known.items() if value is not None}


def _observations(transcript: Transcript, place: int, redactor: Redactor) -> Iterator[Observation]:
    """What the calls of an answer gave."""
    calls = transcript.messages[place].get("tool_calls")
    wanted = calls if isinstance(calls, list) else []
    given = _given(transcript, place, wanted)
    for position, call in enumerate(wanted):
        if not isinstance(call, dict) or position not in given:
            continue
        function = call["function"]
        arguments = _arguments(function)
        if isinstance(function, dict) and arguments is not None:
            clean = redactor.json(arguments)
            if isinstance(clean, dict):
                content = redactor.text(given[position])
                together = place in transcript.screens and len(wanted) > 1
                yield Observation(position, str(function["name"]), clean, content, together)


def _given(transcript: Transcript, place: int, calls: Sequence[Json]) -> dict[int, str]:
    """The results by the place of their call: the tool messages that follow, or one screen."""
    if place in transcript.screens:
        # It was read when the last call had run.
        return dict.fromkeys(range(len(calls) - 1), "") | {
            len(calls) - 1: transcript.screens[place]
        }
    by_id: dict[Json, str] = {}
    for reply in transcript.messages[place + 1 :]:
        if reply.get("role") == "assistant":
            break
        if reply.get("role") == "tool":
            by_id.setdefault(str(reply.get("tool_call_id")), text_of(reply.get("content")))
    ids = [str(call.get("id")) if isinstance(call, dict) else "" for call in calls]
    return {position: by_id[name] for position, name in enumerate(ids) if name in by_id}


def _arguments(function: Json) -> JsonObject | None:
    """The arguments of a call; None where they are no object, so that no tool can have run."""
    if not isinstance(function, dict):
        return None
    try:
        value = writable(json.loads(str(function["arguments"])))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def text_of(content: Json) -> str:
    """A tool message's content as text."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(
            str(part["text"]) if isinstance(part, dict) and "text" in part else json.dumps(part)
            for part in content
        )
    return "" if content is None else json.dumps(content)

"""Answers in Google's generate-content format, whole or streamed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence

from harness.errors import MalformedAnswerError
from harness.providers import failures
from harness.providers.legal_names import legal, original
from harness.providers.object_arguments import as_text
from harness.providers.wire_json import count, field, items
from harness.schema.messages import (
    Block,
    ModelTurn,
    StopReason,
    Text,
    ToolCall,
    Usage,
    VendorBlock,
)
from harness.schema.record import Json, JsonObject
from harness.values import ModelDelta

NAME = "google-generate"

NEXT_PART = "next_part"
"""Key of a vendor block that holds what came beside the text or call after it: its signature."""

FINISHED = {
    "STOP": StopReason.END_TURN,
    "MAX_TOKENS": StopReason.MAX_TOKENS,
    "CONTINUATION": StopReason.MAX_TOKENS,
    "SAFETY": StopReason.REFUSAL,
    "RECITATION": StopReason.REFUSAL,
    "LANGUAGE": StopReason.REFUSAL,
    "BLOCKLIST": StopReason.REFUSAL,
    "PROHIBITED_CONTENT": StopReason.REFUSAL,
    "SPII": StopReason.REFUSAL,
    "IMAGE_SAFETY": StopReason.REFUSAL,
    "IMAGE_PROHIBITED_CONTENT": StopReason.REFUSAL,
    "IMAGE_RECITATION": StopReason.REFUSAL,
    "ESCALATION": StopReason.REFUSAL,
    "PUP_LIMITED_DISABLED": StopReason.REFUSAL,
    "MODEL_ARMOR": StopReason.REFUSAL,
}
UNDECLARED_CALL = "UNEXPECTED_TOOL_CALL"
"""The model called a function that was not declared; where the call is there, it is answered."""


def turn_of(body: JsonObject) -> ModelTurn:
    """The neutral turn in a whole answer.

    Raises:
        MalformedAnswerError: it is not what the format allows, or the model's call was no call.
        ModelCallError: it says that the answer failed, as gateways do with HTTP 200.
    """
    if body.get("error"):
        raise failures.reported(body["error"], "the answer")
    usage = _usage(body.get("usageMetadata"))
    version = body.get("modelVersion")
    model = version if isinstance(version, str) else None
    candidates = items(_list(body, "candidates"), "candidates")
    if not candidates:
        return ModelTurn(
            content=(Text(text=_blocked(body)),), stop=StopReason.REFUSAL, usage=usage, model=model
        )
    answer = candidates[0]
    content = answer.get("content")
    parts = items(_list(content, "parts"), "parts") if isinstance(content, dict) else []
    blocks = _blocks(parts, _source(body))
    called = any(isinstance(block, ToolCall) for block in blocks)
    return ModelTurn(
        content=tuple(blocks), stop=_stop(answer, called=called), usage=usage, model=model
    )


class GoogleAssembler:
    """Puts one streamed answer together: each event is an answer that holds a piece."""

    def __init__(self) -> None:
        self._body: JsonObject = {}
        self._answer: JsonObject = {}
        self._content: JsonObject = {}
        self._parts: list[JsonObject] = []
        self._calls = 0

    def add(self, event: JsonObject) -> Sequence[ModelDelta]:
        """Take the next event; gives what it shows to a reader.

        Raises:
            ModelCallError: the event says that the answer failed.
            MalformedAnswerError: the event is not a piece of an answer.
        """
        if event.get("error"):
            raise failures.reported(event["error"], "the stream")
        self._body |= {key: value for key, value in event.items() if key != "candidates"}
        deltas: list[ModelDelta] = []
        for answer in items(_list(event, "candidates"), "candidates")[:1]:
            self._answer |= {key: value for key, value in answer.items() if key != "content"}
            content = answer.get("content")
            if isinstance(content, dict):
                self._content |= {key: value for key, value in content.items() if key != "parts"}
                for part in items(_list(content, "parts"), "parts"):
                    deltas += self._part(part)
        return deltas

    def body(self) -> JsonObject:
        """The answer as it would have come without streaming.

        Raises:
            MalformedAnswerError: the stream ended before the answer did.
        """
        if not self._answer.get("finishReason"):
            if _block_reason(self._body):
                return self._body
            raise MalformedAnswerError(
                "the stream ended without a 'finishReason'; the connection may have been cut"
            )
        content = self._content | {"parts": _joined(self._parts)}
        return self._body | {"candidates": [self._answer | {"content": content}]}

    def _part(self, part: JsonObject) -> list[ModelDelta]:
        call = part.get("functionCall")
        if isinstance(call, dict):
            read = _tool_call(call, _source(self._body | {"parts": [*self._parts]}), self._calls)
            self._calls += 1
            # Its place in the stream is known only here, and the turn must name it as the delta.
            self._parts.append(part | {"functionCall": call | {"id": legal(read.id)}})
            return [
                ModelDelta("call_start", read.name, read.id),
                ModelDelta("call_arguments", read.arguments, read.id),
                ModelDelta("call_done", call_id=read.id),
            ]
        self._parts.append(part)
        text = part.get("text")
        if isinstance(text, str) and text and not part.get("thought"):
            return [ModelDelta("text", text)]
        return []


def _list(holder: JsonObject, key: str) -> list[Json]:
    """A list that may be absent; the vendor leaves out what is empty."""
    return [] if holder.get(key) is None else field(holder, key, list, "the answer")


def _joined(parts: Iterable[JsonObject]) -> list[Json]:
    """Neighbours of plain text, or of plain thought, as one part; signed parts stay apart."""
    joined: list[JsonObject] = []
    for part in parts:
        if joined and _is_plain(part) and _is_plain(joined[-1]):
            last = joined[-1]
            if last.get("thought") == part.get("thought"):
                joined[-1] = last | {"text": f"{last['text']}{part['text']}"}
                continue
        joined.append(part)
    return [*joined]


def _is_plain(part: JsonObject) -> bool:
    return isinstance(part.get("text"), str) and part.keys() <= {"text", "thought"}


def _blocks(parts: Iterable[JsonObject], source: Json) -> list[Block]:
    blocks: list[Block] = []
    calls = 0
    for part in items(_joined(parts), "parts"):
        beside = {key: part[key] for key in part if key not in ("text", "functionCall")}
        core: Block
        if "functionCall" in part:
            call = field(part, "functionCall", dict, "part")
            core = _tool_call(call, source, calls)
            calls += 1
        elif isinstance(part.get("text"), str) and not part.get("thought"):
            core = Text(text=field(part, "text", str, "part"))
        else:
            blocks.append(VendorBlock(dialect=NAME, data=part))
            continue
        if core == Text(text=""):
            # A signature may come with no text at all, and wants to go back like that.
            if beside:
                blocks.append(VendorBlock(dialect=NAME, data=part))
            continue
        if beside:
            blocks.append(VendorBlock(dialect=NAME, data={NEXT_PART: beside}))
        blocks.append(core)
    return blocks


def _tool_call(call: JsonObject, source: Json, index: int) -> ToolCall:
    given = call.get("id")
    args = {} if call.get("args") is None else field(call, "args", dict, "functionCall")
    return ToolCall(
        id=original(given) if isinstance(given, str) and given else _made_id(source, index),
        name=original(field(call, "name", str, "functionCall")),
        arguments=as_text(args),
    )


def _made_id(source: Json, index: int) -> str:
    """An id for a call that has none: the same whenever the same answer is read."""
    digest = hashlib.sha256(json.dumps(source, sort_keys=True).encode()).hexdigest()
    return f"call_{digest[:24]}_{index}"


def _source(body: JsonObject) -> Json:
    """What tells an answer from all others of a run."""
    return body.get("responseId") or body


def _stop(answer: JsonObject, *, called: bool) -> StopReason:
    reason = answer.get("finishReason")
    if called and reason in ("STOP", UNDECLARED_CALL):
        return StopReason.TOOL_USE
    if not isinstance(reason, str) or reason not in FINISHED:
        said = answer.get("finishMessage")
        raise MalformedAnswerError(
            f"the answer: 'finishReason' is {reason!r}{f' ({said})' if said else ''},"
            f" expected one of {', '.join(FINISHED)}"
        )
    return FINISHED[reason]


def _blocked(body: JsonObject) -> str:
    """What the vendor says about a prompt that it did not let through."""
    reason = _block_reason(body)
    if not reason:
        raise MalformedAnswerError(
            f"the answer holds no candidates: {json.dumps(body)[:200]};"
            " check that the endpoint speaks this provider's format"
        )
    feedback = field(body, "promptFeedback", dict, "the answer")
    return str(feedback.get("blockReasonMessage") or f"The prompt was blocked: {reason}.")


def _block_reason(body: JsonObject) -> Json:
    feedback = body.get("promptFeedback")
    return feedback.get("blockReason") if isinstance(feedback, dict) else None


def _usage(usage: Json) -> Usage | None:
    if not isinstance(usage, dict):
        return None
    cached = count(usage, "cachedContentTokenCount")
    prompt = _sum(usage, "promptTokenCount", "toolUsePromptTokenCount")
    total = Usage(
        # The prompt's count includes what the cache held.
        input=None if prompt is None else max(0, prompt - (cached or 0)),
        output=_sum(usage, "candidatesTokenCount", "thoughtsTokenCount"),
        cache_read=cached,
    )
    return None if total == Usage() else total


def _sum(usage: JsonObject, *keys: str) -> int | None:
    found = [number for key in keys if (number := count(usage, key)) is not None]
    return sum(found) if found else None

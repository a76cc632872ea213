"""A streamed answer in Anthropic's messages format, put together again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from harness.errors import MalformedAnswerError
from harness.providers import failures, wire_json
from harness.providers.legal_names import original
from harness.providers.object_arguments import as_object
from harness.schema.record import JsonObject
from harness.values import ModelDelta

GROWN = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
    "input_json_delta": "partial_json",
}
"""Which field each delta makes longer; it has the same name in the delta and in the block."""


@dataclass(slots=True)
class _OpenBlock:
    """A content block, with the pieces that came after its start."""

    start: JsonObject
    pieces: dict[str, list[str]] = field(default_factory=dict)
    citations: list[JsonObject] = field(default_factory=list)

    def whole(self) -> JsonObject:
        grown = {key: "".join(pieces) for key, pieces in self.pieces.items()}
        raw_input = grown.pop("partial_json", "")
        block = dict(self.start)
        for key, text in grown.items():
            before = block.get(key)
            block[key] = f"{before}{text}" if isinstance(before, str) else text
        if raw_input:
            block["input"] = as_object(raw_input)
        if self.citations:
            block["citations"] = [*self.citations]
        return block


class AnthropicAssembler:
    """Takes the events from `message_start` to `message_stop`."""

    def __init__(self) -> None:
        self._message: JsonObject | None = None
        self._blocks: dict[int, _OpenBlock] = {}
        self._ended = False

    def add(self, event: JsonObject) -> Sequence[ModelDelta]:
        """Take the next event. Kinds of events that the format may grow later say nothing.

        Raises:
            ModelCallError: the event is an error, or no event of this format.
        """
        kind = event.get("type")
        if kind == "error":
            raise failures.reported(event.get("error"), "the stream")
        if kind == "message_start":
            self._message = dict(wire_json.field(event, "message", dict, "message_start"))
        elif kind == "content_block_start":
            return self._start(event)
        elif kind == "content_block_delta":
            return self._grow(event)
        elif kind == "content_block_stop":
            block = self._block(event).start
            return [ModelDelta("call_done", call_id=_call_id(block))] if _is_call(block) else ()
        elif kind == "message_delta":
            self._update(event)
        elif kind == "message_stop":
            self._ended = True
        return ()

    def body(self) -> JsonObject:
        """The message as the vendor gives it without streaming.

        Raises:
            MalformedAnswerError: it has not ended.
        """
        if self._message is None or not self._ended:
            raise MalformedAnswerError("the stream ended before the answer did")
        content = [block.whole() for _, block in sorted(self._blocks.items())]
        return {**self._message, "content": [*content]}

    def _start(self, event: JsonObject) -> Sequence[ModelDelta]:
        block = wire_json.field(event, "content_block", dict, "content_block_start")
        index = event.get("index")
        if not isinstance(index, int):
            raise MalformedAnswerError(f"content_block_start: 'index' is {index!r}, not a number")
        self._blocks[index] = _OpenBlock(block)
        text = block.get("text")
        if block.get("type") == "text" and isinstance(text, str) and text:
            return [ModelDelta("text", text)]
        if _is_call(block):
            name = wire_json.field(block, "name", str, "tool_use block")
            return [ModelDelta("call_start", original(name), _call_id(block))]
        return ()

    def _grow(self, event: JsonObject) -> Sequence[ModelDelta]:
        block = self._block(event)
        delta = wire_json.field(event, "delta", dict, "content_block_delta")
        kind = delta.get("type")
        if kind == "citations_delta":
            block.citations.append(wire_json.field(delta, "citation", dict, kind))
            return ()
        if not isinstance(kind, str) or kind not in GROWN:
            # Left out, it would silently be missing in the answer.
            raise MalformedAnswerError(
                f"the stream has a delta of the unknown type {kind!r}; ask without streaming"
            )
        key = GROWN[kind]
        piece = wire_json.field(delta, key, str, kind)
        block.pieces.setdefault(key, []).append(piece)
        if kind == "text_delta":
            return [ModelDelta("text", piece)]
        if kind == "input_json_delta" and _is_call(block.start):
            return [ModelDelta("call_arguments", piece, _call_id(block.start))]
        return ()

    def _update(self, event: JsonObject) -> None:
        """The end of the message: why it stopped, and counts that are totals so far."""
        if self._message is None:
            raise MalformedAnswerError("the stream has a message_delta before its message_start")
        self._message |= wire_json.field(event, "delta", dict, "message_delta")
        before, totals = self._message.get("usage"), event.get("usage")
        if isinstance(totals, dict):
            known = before if isinstance(before, dict) else {}
            self._message["usage"] = known | {k: v for k, v in totals.items() if v is not None}

    def _block(self, event: JsonObject) -> _OpenBlock:
        index = event.get("index")
        block = self._blocks.get(index) if isinstance(index, int) else None
        if block is None:
            raise MalformedAnswerError(
                f"the stream has a {event.get('type')} for block {index!r}, which never started"
            )
        return block


def _is_call(block: JsonObject) -> bool:
    return block.get("type") == "tool_use"


def _call_id(block: JsonObject) -> str:
    return original(wire_json.field(block, "id", str, "tool_use block"))

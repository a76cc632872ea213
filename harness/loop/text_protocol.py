"""Tool calls as text, for models that were not trained on native tool calls.

A provider of this kind stands in front of the real one, so the engine sees ordinary calls and
results and the model sees ordinary text.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from harness.protocols import ModelRequest, Provider, TextProtocol
from harness.schema.messages import (
    Block,
    Message,
    ModelTurn,
    StopReason,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
    VendorBlock,
)
from harness.schema.record import Json, storable


class TextProtocolProvider:
    """Turns a provider of plain text into one with tool calls. One object serves one run."""

    def __init__(self, inner: Provider, protocol: TextProtocol) -> None:
        self.inner = inner
        self.protocol = protocol
        self.ids = itertools.count(1)

    def complete(self, request: ModelRequest) -> ModelTurn:
        """Answer a request: tools go into the system prompt, calls come out of the text."""
        parts = [request.system, self.protocol.instructions(request.tools)]
        turn = self.inner.complete(
            replace(
                request,
                system="\n\n".join(part for part in parts if part) or None,
                messages=tuple(self._as_text(message) for message in request.messages),
                tools=(),
            )
        )
        return self._with_calls(turn) if request.tools else turn

    def _as_text(self, message: Message) -> Message:
        for block in message.content:
            if isinstance(block, VendorBlock) and block.dialect == self._dialect:
                written = str(block.data["text"])
                if len(self.protocol.parse(written)[1]) == len(message.tool_calls):
                    return Message(role=message.role, content=(Text(text=written),))
        rendered = [self._render(block) for block in message.content]
        text = "\n\n".join(part for part in rendered if part)
        others = tuple(block for block in message.content if isinstance(block, VendorBlock))
        return Message(role=message.role, content=(*others, Text(text=text)))

    def _render(self, block: Block) -> str:
        match block:
            case Text():
                return block.text
            case ToolCall():
                return self.protocol.render_call(block)
            case ToolResult():
                return self.protocol.render_result(block)
            case VendorBlock():
                return ""

    def _with_calls(self, turn: ModelTurn) -> ModelTurn:
        written = Message(role="assistant", content=turn.content).text
        text, calls = self.protocol.parse(written)
        if not calls:
            return turn
        others = tuple(block for block in turn.content if isinstance(block, VendorBlock))
        # What the model really wrote goes back to it word for word on later turns, unless the
        # engine dropped some of its calls.
        as_written = VendorBlock(dialect=self._dialect, data={"text": written})
        found = tuple(
            ToolCall(id=f"call_{next(self.ids)}", name=name, arguments=arguments)
            for name, arguments in calls
        )
        texts = (Text(text=text),) if text else ()
        stop = StopReason.TOOL_USE if turn.stop is StopReason.END_TURN else turn.stop
        content = (*others, *texts, *found, as_written)
        return turn.model_copy(update={"content": content, "stop": stop})

    @property
    def _dialect(self) -> str:
        return f"text-{self.protocol.name}"


@dataclass(frozen=True, slots=True)
class _Found:
    """A JSON value in a text, and where it stands."""

    value: object
    start: int
    end: int


class JsonProtocol:
    """One JSON object per call, bare or fenced: `{"name": …, "arguments": {…}}`, or a list."""

    name = "json"

    def instructions(self, tools: Sequence[ToolSpec]) -> str:
        """A call to copy for each tool, and the rule at the end, where small models heed it."""
        if not tools:
            return ""
        lines = ["Tools, and how to call them:"]
        for tool in tools:
            call = {"name": tool.name, "arguments": _example(tool.parameters)}
            written = _QUOTED_PLACEHOLDER.sub(r"\1", json.dumps(call, ensure_ascii=False))
            lines += [f"- {tool.description}", f"  {written}"]
        lines.append(
            "Call one tool at a time: answer with one such JSON object and nothing else. "
            "Its result comes in the next message."
        )
        return "\n".join(lines)

    def parse(self, text: str) -> tuple[str, tuple[tuple[str, str], ...]]:
        """Find the calls; a text that looks like a call but does not parse is a malformed one."""
        calls: list[tuple[str, str]] = []
        around: list[str] = []
        position = 0
        for found in [*_json_values(text), _Found(None, len(text), len(text))]:
            inside = _calls_in(found.value)
            if inside or found.start == len(text):
                before, malformed = _without_malformed_call(text[position : found.start])
                around.append(before)
                calls.extend([*malformed, *inside])
                position = found.end
        return _EMPTY_FENCE.sub("", "".join(around)).strip(), tuple(calls)

    def render_call(self, call: ToolCall) -> str:
        """The object the model would have written."""
        return f'{{"name": {json.dumps(call.name)}, "arguments": {call.arguments or "{}"}}}'

    def render_result(self, result: ToolResult) -> str:
        """Introduced by the call's id and name."""
        word = "Error from" if result.is_error else "Result of"
        return f"{word} {result.call_id} ({result.name}):\n{result.content}"


PROTOCOLS: Mapping[str, TextProtocol] = {"json": JsonProtocol()}
"""What `loop.text_protocol` may name."""

_LOOKS_LIKE_CALL = re.compile(
    r'\{\s*"name"\s*:\s*"(?P<name>[^"\n]+)"\s*,\s*"arguments"\s*:(?P<rest>.*)', re.DOTALL
)
_EMPTY_FENCE = re.compile(r"```[a-zA-Z]*\s*```")
_QUOTED_PLACEHOLDER = re.compile(r'"(<(?:integer|number|boolean)>)"')
_OPEN_FENCE = re.compile(r"```[a-zA-Z]*\s*\Z")


def _example(schema: Json) -> Json:
    """A value in the shape of a JSON Schema, with placeholders."""
    if not isinstance(schema, dict):
        return "..."
    if isinstance(choices := schema.get("enum"), list):
        return "|".join(str(choice) for choice in choices)
    properties = schema.get("properties")
    if isinstance(properties, dict):
        return {name: _example(inner) for name, inner in properties.items()}
    match schema.get("type"):
        case "object":
            return {}
        case "array":
            return [_example(schema.get("items"))]
        case "integer" | "number" | "boolean" as plain:
            # A number here would be copied as the answer, and quotes would be copied too.
            return f"<{plain}>"
    description = schema.get("description")
    return description if isinstance(description, str) else "..."


def _json_values(text: str) -> Iterator[_Found]:
    """Every outermost JSON object or list in a text."""
    # strict=False: small models write raw line breaks inside strings, and mean them.
    decoder = json.JSONDecoder(strict=False)
    position = 0
    while match := re.compile(r"[{\[]").search(text, position):
        try:
            value, end = decoder.raw_decode(text, match.start())
        except ValueError:
            position = match.start() + 1
            continue
        except RecursionError:  # a model that repeats one bracket; trying each would take minutes
            return
        yield _Found(value, match.start(), end)
        position = end


def _without_malformed_call(text: str) -> tuple[str, list[tuple[str, str]]]:
    """The text before what looks like a call but is none, and that call."""
    match = _LOOKS_LIKE_CALL.search(text)
    if match is None:
        return text, []
    before = _OPEN_FENCE.sub("", text[: match.start()])
    try:
        json.loads(match[0])
    except (ValueError, RecursionError):
        return before, [(match["name"], match[0])]
    # An object with more keys than a call has: its tail can never pass for arguments.
    return before, [(match["name"], match["rest"])]


def _calls_in(value: object) -> list[tuple[str, str]]:
    if isinstance(value, list):
        inside = [_calls_in(item) for item in value]
        return [call for calls in inside for call in calls] if all(inside) else []
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        return []
    if set(value) != {"name", "arguments"}:
        return []
    arguments = value["arguments"]
    raw = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return [(storable(value["name"]), storable(raw))]

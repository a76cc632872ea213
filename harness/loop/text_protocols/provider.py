"""A provider that stands in front of one that only speaks text.

The engine sees ordinary calls and results, and the model sees ordinary text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from harness.loop.foreign import as_turn
from harness.protocols import OnDelta, Provider, TextProtocol
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
from harness.values import ModelDelta, ModelRequest, ParsedText

_OWN_ID = re.compile(r"call_([0-9]{1,18})")


class TextProtocolProvider:
    """Turns a provider of plain text into one with tool calls. One object serves one run."""

    def __init__(self, inner: Provider, protocol: TextProtocol) -> None:
        self.inner = inner
        self.protocol = protocol
        self._last_id = 0
        # A conversation is asked about again and again: each message is turned into text once.
        # The message is kept beside its text, so that its id() stays its own.
        self._texts: dict[int, tuple[Message, Message, str]] = {}

    def complete(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelTurn:
        """Answer a request: tools go into the system prompt, calls come out of the text."""
        tools = request.offered
        parts = (request.system, self.protocol.instructions(tools), _must_call(request))
        turn = self.inner.complete(
            replace(
                request,
                system="\n\n".join(part for part in parts if part) or None,
                messages=self._as_texts(request.messages, tools),
                tools=(),
                tool_choice="auto",
            ),
            on_delta,
        )
        if not tools:
            return turn
        turn = self._with_calls(as_turn(turn), tools)
        if on_delta is not None:
            _show_calls(turn, on_delta)
        return turn

    def _as_texts(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec]
    ) -> tuple[Message, ...]:
        texts = []
        notes = ""
        for message in messages:
            rendered, notes = self._as_text(message, notes, tools)
            texts.append(rendered)
        return tuple(texts)

    def _as_text(
        self, message: Message, notes: str, tools: Sequence[ToolSpec]
    ) -> tuple[Message, str]:
        """A message as the model reads it, and what it is told about it before the results."""
        known = self._texts.get(id(message))
        if known is None:
            for call in message.tool_calls:
                self._saw(call.id)
            known = (message, *self._render_message(message, notes, tools))
            self._texts[id(message)] = known
        return known[1], known[2]

    def _render_message(
        self, message: Message, notes: str, tools: Sequence[ToolSpec]
    ) -> tuple[Message, str]:
        written = self._written(message)
        parsed = ParsedText("") if written is None else self.protocol.parse(written, tools)
        if written is not None and len(parsed.calls) == len(message.tool_calls):
            text = written
        else:
            results = message.tool_results
            rendered = [self.protocol.render_results(results, notes)] if results else []
            rendered += [self._render(block) for block in message.content]
            text = "\n\n".join(part for part in rendered if part)
        others = tuple(block for block in _others(message) if not self._is_own(block))
        texts = (Text(text=text),) if text or not others else ()
        return Message(role=message.role, content=(*others, *texts)), parsed.notes

    def _written(self, message: Message) -> str | None:
        for block in message.content:
            if isinstance(block, VendorBlock) and self._is_own(block):
                return str(block.data["text"])
        return None

    def _render(self, block: Block) -> str:
        match block:
            case Text():
                return block.text
            case ToolCall():
                return self.protocol.render_call(block)
            case ToolResult() | VendorBlock():
                # Results stand before all else in their turn, and are rendered together.
                return ""

    def _with_calls(self, turn: ModelTurn, tools: Sequence[ToolSpec]) -> ModelTurn:
        answer = Message(role="assistant", content=turn.content)
        written = answer.text
        parsed = self.protocol.parse(written, tools)
        if not parsed.calls and parsed.text == written:
            return turn
        # What the model really wrote goes back to it word for word on later turns, unless the
        # engine dropped some of its calls.
        as_written = VendorBlock(dialect=self._dialect, data={"text": written})
        found = tuple(
            ToolCall(id=self._next_id(), name=name, arguments=arguments)
            for name, arguments in parsed.calls
        )
        texts = (Text(text=parsed.text),) if parsed.text else ()
        ended = bool(found) and turn.stop is StopReason.END_TURN
        stop = StopReason.TOOL_USE if ended else turn.stop
        content = (*_others(answer), *texts, *found, as_written)
        return turn.model_copy(update={"content": content, "stop": stop})

    def _next_id(self) -> str:
        self._last_id += 1
        return f"call_{self._last_id}"

    def _saw(self, call_id: str) -> None:
        """Never give an id again, whoever gave it: this run may be another one taken up."""
        own = _OWN_ID.fullmatch(call_id)
        if own is not None:
            self._last_id = max(self._last_id, int(own[1]))

    def _is_own(self, block: VendorBlock) -> bool:
        return block.dialect == self._dialect

    @property
    def _dialect(self) -> str:
        return f"text-{self.protocol.name}"


def _others(message: Message) -> tuple[VendorBlock, ...]:
    return tuple(block for block in message.content if isinstance(block, VendorBlock))


def _must_call(request: ModelRequest) -> str:
    """The tool choice in words; nothing else can enforce it."""
    if not request.offered or request.tool_choice == "auto":
        return ""
    if request.tool_choice == "required":
        return "Every answer must call a tool."
    return f"Your next answer must call the tool `{request.tool_choice}`."


def _show_calls(turn: ModelTurn, on_delta: OnDelta) -> None:
    for call in Message(role="assistant", content=turn.content).tool_calls:
        on_delta(ModelDelta("call_start", call.name, call.id))
        on_delta(ModelDelta("call_arguments", call.arguments, call.id))
        on_delta(ModelDelta("call_done", "", call.id))

"""The neutral transcript: what the loop and every model dialect agree on."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from harness.schema.record import JsonObject, Record


class Text(Record):
    """Plain text."""

    type: Literal["text"] = "text"
    text: str


class ToolCall(Record):
    """A tool the model asks for."""

    type: Literal["tool_call"] = "tool_call"
    id: str
    """Unique within a run; the result names it."""
    name: str
    arguments: str
    """The arguments as the model wrote them: JSON text, maybe malformed."""


class ToolResult(Record):
    """The one answer to a tool call."""

    type: Literal["tool_result"] = "tool_result"
    call_id: str
    name: str
    content: str
    is_error: bool = False


class VendorBlock(Record):
    """Something only one dialect understands (thinking, images, raw text); passed through whole."""

    type: Literal["vendor"] = "vendor"
    dialect: str
    data: JsonObject


Block = Annotated[Text | ToolCall | ToolResult | VendorBlock, Field(discriminator="type")]


class Message(Record):
    """One turn. A user turn holds tool results first, then text."""

    role: Literal["user", "assistant"]
    content: tuple[Block, ...]

    @property
    def text(self) -> str:
        """All text of the turn, in order."""
        return "".join(block.text for block in self.content if isinstance(block, Text))

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls of the turn, in order."""
        return tuple(block for block in self.content if isinstance(block, ToolCall))

    @property
    def tool_results(self) -> tuple[ToolResult, ...]:
        """The results of the turn, in order."""
        return tuple(block for block in self.content if isinstance(block, ToolResult))


class ToolSpec(Record):
    """A tool as it is offered to a model."""

    name: str
    description: str
    parameters: JsonObject
    """JSON Schema of the arguments object."""


class StopReason(StrEnum):
    """Why the model stopped writing."""

    END_TURN = "end_turn"
    TOOL_USE = "tool_use"
    MAX_TOKENS = "max_tokens"
    REFUSAL = "refusal"
    PAUSE_TURN = "pause_turn"
    STOP_SEQUENCE = "stop_sequence"


class Usage(Record):
    """Tokens of one model call; None is "not reported", which is not 0."""

    input: int | None = None
    """Input tokens that were neither read from nor written to a cache."""
    output: int | None = None
    cache_write: int | None = None
    cache_read: int | None = None


class ModelTurn(Record):
    """What a model answered to one request."""

    content: tuple[Block, ...]
    stop: StopReason
    usage: Usage | None = None
    """None when the vendor reported nothing at all."""
    model: str | None = None
    """The model's name as the vendor answered it."""

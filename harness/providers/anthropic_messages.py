"""Anthropic's messages format."""

from __future__ import annotations

import json

from harness.errors import MalformedAnswerError
from harness.protocols import ModelRequest
from harness.providers.wire_json import (
    blocks,
    count,
    field,
    items,
    messages_of,
    parameters_of,
    sendable,
    without_nulls,
)
from harness.schema.messages import (
    Block,
    Message,
    ModelTurn,
    StopReason,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
    Usage,
    VendorBlock,
)
from harness.schema.record import Json, JsonObject

NAME = "anthropic-messages"

STOP_REASONS = {
    "end_turn": StopReason.END_TURN,
    "tool_use": StopReason.TOOL_USE,
    "max_tokens": StopReason.MAX_TOKENS,
    "model_context_window_exceeded": StopReason.MAX_TOKENS,
    "stop_sequence": StopReason.STOP_SEQUENCE,
    "pause_turn": StopReason.PAUSE_TURN,
    "refusal": StopReason.REFUSAL,
}

INVALID_ARGUMENTS = "INVALID_JSON"
"""Key under which arguments that are no JSON object travel, as the vendor's manual advises."""


class AnthropicMessages:
    """The dialect of `POST /v1/messages`."""

    name = NAME
    endpoint = "/messages"

    def to_request(self, request: ModelRequest) -> JsonObject:
        """The JSON body of the request."""
        body: JsonObject = {"model": request.model, "max_tokens": request.max_output_tokens}
        if request.system and not request.system.isspace():
            body["system"] = request.system
        body["messages"] = _messages(request.messages)
        if request.tools:
            body["tools"] = [_tool(spec) for spec in request.tools]
        if request.temperature is not None:
            body["temperature"] = request.temperature
        return sendable(body)

    def from_response(self, body: JsonObject) -> ModelTurn:
        """The neutral turn in the answer.

        Raises:
            MalformedAnswerError: the body is not a message.
        """
        body = sendable(body)
        error = body.get("error")
        where = f"the answer says {error!r}" if error else "the answer"
        content = items(field(body, "content", list, where), "content")
        model = body.get("model")
        return ModelTurn(
            content=tuple(_block(block) for block in content),
            stop=_stop(body.get("stop_reason")),
            usage=_usage(body.get("usage")),
            model=model if isinstance(model, str) else None,
        )

    def split(self, body: JsonObject) -> tuple[JsonObject, list[JsonObject]]:
        """Canonical parameters, the system text among them, and canonical messages."""
        messages = messages_of(body)
        if messages is None:
            return without_nulls(body), []
        parameters = parameters_of(body)
        if "system" in parameters:
            parameters["system"] = blocks(parameters["system"])
        tools = parameters.get("tools")
        if isinstance(tools, list):
            parameters["tools"] = blocks(tools)
        return parameters, [_canonical_message(message) for message in messages]


def _messages(messages: tuple[Message, ...]) -> list[Json]:
    """Alternating turns: neighbours of one role are merged, results first, and none is empty."""
    turns: list[tuple[str, list[Block]]] = []
    for message in messages:
        content = [block for block in message.content if _is_sent(block)]
        if not content:
            continue
        if turns and turns[-1][0] == message.role:
            turns[-1][1].extend(content)
        else:
            turns.append((message.role, content))
    wire: list[Json] = []
    for role, content in turns:
        content.sort(key=lambda block: not isinstance(block, ToolResult))
        wire.append({"role": role, "content": [_wire_block(block) for block in content]})
    return wire


def _is_sent(block: Block) -> bool:
    """Leave out what the vendor refuses: blank text, and blocks of other vendors."""
    if isinstance(block, Text):
        return bool(block.text) and not block.text.isspace()
    return not isinstance(block, VendorBlock) or block.dialect == NAME


def _wire_block(block: Block) -> JsonObject:
    if isinstance(block, Text):
        return {"type": "text", "text": block.text}
    if isinstance(block, ToolCall):
        arguments = _arguments(block.arguments)
        return {"type": "tool_use", "id": block.id, "name": block.name, "input": arguments}
    if isinstance(block, VendorBlock):
        return block.data
    result: JsonObject = {"type": "tool_result", "tool_use_id": block.call_id}
    if block.content:
        result["content"] = block.content
    if block.is_error:
        result["is_error"] = True
    return result


def _arguments(text: str) -> JsonObject:
    """Raw arguments as the object that the vendor wants, wrapped when they are not one."""
    try:
        value = json.loads(text)
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        return {INVALID_ARGUMENTS: text}
    return value if isinstance(value, dict) else {INVALID_ARGUMENTS: text}


def _raw_arguments(value: JsonObject) -> str:
    wrapped = value.get(INVALID_ARGUMENTS)
    if len(value) == 1 and isinstance(wrapped, str):
        return wrapped
    return json.dumps(value, ensure_ascii=False)


def _tool(spec: ToolSpec) -> JsonObject:
    return {"name": spec.name, "description": spec.description, "input_schema": spec.parameters}


def _block(block: JsonObject) -> Block:
    kind = block.get("type")
    if kind == "text":
        return Text(text=field(block, "text", str, "text block"))
    if kind == "tool_use":
        return ToolCall(
            id=field(block, "id", str, "tool_use block"),
            name=field(block, "name", str, "tool_use block"),
            arguments=_raw_arguments(field(block, "input", dict, "tool_use block")),
        )
    return VendorBlock(dialect=NAME, data=block)


def _stop(reason: Json) -> StopReason:
    if not isinstance(reason, str) or reason not in STOP_REASONS:
        raise MalformedAnswerError(
            f"the answer: 'stop_reason' is {reason!r}, expected one of {', '.join(STOP_REASONS)}"
        )
    return STOP_REASONS[reason]


def _usage(usage: Json) -> Usage | None:
    if not isinstance(usage, dict):
        return None
    total = Usage(
        input=count(usage, "input_tokens"),
        output=count(usage, "output_tokens"),
        cache_write=count(usage, "cache_creation_input_tokens"),
        cache_read=count(usage, "cache_read_input_tokens"),
    )
    return None if total == Usage() else total


def _canonical_message(message: JsonObject) -> JsonObject:
    canonical = without_nulls(message)
    content = blocks(canonical.get("content"))
    if isinstance(content, list):
        canonical["content"] = [_canonical_block(block) for block in content]
    return canonical


def _canonical_block(block: Json) -> Json:
    if not isinstance(block, dict) or block.get("type") != "tool_result":
        return block
    defaults: JsonObject = {"content": [], "is_error": False}
    canonical = block | {"content": blocks(block.get("content"))}
    return {k: v for k, v in canonical.items() if v is not None and v != defaults.get(k)}

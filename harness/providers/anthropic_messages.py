"""Anthropic's messages format."""

from __future__ import annotations

from collections.abc import Sequence

from harness.errors import MalformedAnswerError
from harness.providers import failures
from harness.providers.anthropic_stream import AnthropicAssembler
from harness.providers.legal_names import legal, original
from harness.providers.object_arguments import as_object, as_text
from harness.providers.unique_ids import with_unique_ids
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
    ToolSpec,
    Usage,
    VendorBlock,
)
from harness.schema.record import Json, JsonObject
from harness.values import ModelRequest

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

THINKING = frozenset({"thinking", "redacted_thinking"})

NEXT_BLOCK = "next_block"
"""Key of a vendor block that holds what came beside the text after it: its citations."""

SILENT_ERROR = "The tool failed without a message."
"""Stands where a tool failed and said nothing, which the vendor refuses."""

CONTINUE = Text(text="Continue.")
"""Stands where the vendor demands a user turn and the conversation holds nothing to send there."""

WORDS = """
additionalProperties api_error assistant authentication_error budget_tokens cache_control
cache_creation cache_creation_input_tokens cache_read_input_tokens citation citations
citations_delta cited_text code_execution container content_block content_block_delta
content_block_start content_block_stop context_management description diagnostics
disable_parallel_tool_use document encrypted_content end_turn ephemeral ephemeral_1h_input_tokens
ephemeral_5m_input_tokens inference_geo input_json_delta input_schema input_tokens
invalid_request_error is_error max_tokens mcp_servers media_type message_delta message_start
message_stop messages metadata model_context_window_exceeded not_found_error output_config
output_tokens output_tokens_details overloaded_error partial_json pause_turn permission_error
properties rate_limit_error redacted_thinking request_id request_too_large required search_result
server_tool_use service_tier signature signature_delta stop_details stop_reason stop_sequence
stop_sequences temperature text_delta thinking thinking_delta thinking_tokens tool_choice
tool_result tool_use tool_use_id user_profile_id web_fetch web_search web_search_requests
web_search_tool_result workspace_id
"""


class AnthropicMessages:
    """The dialect of `POST /v1/messages`."""

    name = NAME
    endpoint = "/messages"
    base_url = "https://api.anthropic.com"
    path = "/v1/messages"
    messages_key = "messages"
    uncounted = frozenset({"inference_geo", "metadata", "service_tier", "user_profile_id"})
    volatile = frozenset({"id"})
    last_events = frozenset({"message_stop", "error"})
    words = WORDS

    def to_request(self, request: ModelRequest, *, stream: bool = False) -> JsonObject:
        """The JSON body of the request."""
        body: JsonObject = {"model": request.model, "max_tokens": request.max_output_tokens}
        if request.system and not request.system.isspace():
            body["system"] = request.system
        messages = [
            _wire_turn(role, content) for role, content in _turns(with_unique_ids(request.messages))
        ]
        body["messages"] = [*messages]
        if request.tools:
            body["tools"] = [_tool(spec) for spec in request.tools]
            if request.tool_choice != "auto":
                body["tool_choice"] = _tool_choice(request.tool_choice)
        if request.temperature is not None:
            body["temperature"] = request.temperature
        if stream:
            body["stream"] = True
        if request.cache_marks:
            _mark(body, messages)
        return sendable(body)

    def from_response(self, body: JsonObject) -> ModelTurn:
        """The neutral turn in the answer.

        Raises:
            MalformedAnswerError: the body is not a message.
            ModelCallError: it says that the answer failed, as gateways do with HTTP 200.
        """
        body = sendable(body)
        if body.get("error"):
            raise failures.reported(body["error"], "the answer")
        content = items(field(body, "content", list, "the answer"), "content")
        model = body.get("model")
        return ModelTurn(
            content=tuple(read for block in content for read in _blocks(block)),
            stop=_stop(body.get("stop_reason")),
            usage=_usage(body.get("usage")),
            model=model if isinstance(model, str) else None,
        )

    def assembler(self) -> AnthropicAssembler:
        """What puts the events of one streamed answer together."""
        return AnthropicAssembler()

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


def _turns(messages: Sequence[Message]) -> list[tuple[str, list[Block]]]:
    """Alternating turns, the first of them the user's; none is empty."""
    turns: list[tuple[str, list[Block]]] = []
    for message in messages:
        content = _sent(message)
        if not content:
            continue
        if turns and turns[-1][0] == message.role:
            turns[-1][1].extend(content)
        else:
            turns.append((message.role, content))
    if not turns or turns[0][0] == "assistant":
        turns.insert(0, ("user", [CONTINUE]))
    if turns[-1][0] == "assistant":
        if messages[-1].role == "user":
            turns.append(("user", [CONTINUE]))
        else:
            _strip_end(turns[-1][1])
    return [(role, _ordered(role, content)) for role, content in turns]


def _sent(message: Message) -> list[Block]:
    """A message without what the vendor refuses: blank text, and thinking that leads to nothing."""
    content = [block for block in message.content if _is_sent(block)]
    if not _has_vendors(content):
        return content
    by_text = [*(isinstance(after, Text) for after in content[1:]), False]
    content = [b for b, kept in zip(content, by_text, strict=False) if kept or not _beside(b)]
    while content and _is_thinking(content[-1]):
        content.pop()
    return content


def _is_sent(block: Block) -> bool:
    if block.type == "text":
        return bool(block.text) and not block.text.isspace()
    return block.type != "vendor" or block.dialect == NAME


def _has_vendors(content: list[Block]) -> bool:
    return "vendor" in [block.type for block in content]


def _is_thinking(block: Block) -> bool:
    return isinstance(block, VendorBlock) and block.data.get("type") in THINKING


def _beside(block: Block) -> JsonObject:
    """What belongs to the text after it, when it is a block that holds that."""
    kept = block.data.get(NEXT_BLOCK) if isinstance(block, VendorBlock) else None
    return kept if isinstance(kept, dict) else {}


def _strip_end(content: list[Block]) -> None:
    """The vendor refuses white space at the end of an answer that the model is to go on with."""
    last = content[-1]
    if isinstance(last, Text):
        content[-1] = Text(text=last.text.rstrip())


def _ordered(role: str, content: list[Block]) -> list[Block]:
    """Results first in a user turn, thinking first in the model's."""
    if role == "user":
        return sorted(content, key=_is_no_result)
    if not _has_vendors(content):
        return content
    # The vendor's own tools run within a turn: what the model thought of their results stays.
    own_tools = any(
        isinstance(b, VendorBlock) and not _is_thinking(b) and not _beside(b) for b in content
    )
    if own_tools or _is_thinking(content[0]):
        return content
    return sorted(content, key=lambda block: not _is_thinking(block))


def _is_no_result(block: Block) -> bool:
    return block.type != "tool_result"


def _wire_turn(role: str, content: list[Block]) -> JsonObject:
    if not _has_vendors(content):
        return {"role": role, "content": [_wire_block(block) for block in content]}
    wire: list[Json] = []
    beside: JsonObject = {}
    for block in content:
        if kept := _beside(block):
            beside = kept
        else:
            wire.append(_wire_block(block) | beside)
            beside = {}
    return {"role": role, "content": wire}


def _mark(body: JsonObject, messages: Sequence[JsonObject]) -> None:
    """Let the vendor cache up to the system prompt, and up to the end of the last user turn."""
    if "system" in body:
        body["system"] = [_marked({"type": "text", "text": body["system"]})]
    content = next(turn["content"] for turn in reversed(messages) if turn["role"] == "user")
    if isinstance(content, list) and isinstance(content[-1], dict):
        content[-1] = _marked(content[-1])


def _marked(block: JsonObject) -> JsonObject:
    """A copy, since the block may be the caller's, and with the caller's mark if it has one."""
    mark: JsonObject = {"type": "ephemeral"}
    return {"cache_control": mark, **block}


def _wire_block(block: Block) -> JsonObject:
    if block.type == "text":
        return {"type": "text", "text": block.text}
    if block.type == "tool_call":
        return {
            "type": "tool_use",
            "id": legal(block.id),
            "name": legal(block.name),
            "input": as_object(block.arguments),
        }
    if block.type == "vendor":
        return block.data
    result: JsonObject = {"type": "tool_result", "tool_use_id": legal(block.call_id)}
    if block.is_error:
        is_blank = not block.content or block.content.isspace()
        result |= {"content": SILENT_ERROR if is_blank else block.content, "is_error": True}
    elif block.content:
        result["content"] = block.content
    return result


def _tool(spec: ToolSpec) -> JsonObject:
    schema = spec.parameters
    if schema.get("type") != "object":
        schema = schema | {"type": "object"}
    return {"name": legal(spec.name), "description": spec.description, "input_schema": schema}


def _tool_choice(choice: str) -> JsonObject:
    if choice == "required":
        return {"type": "any"}
    return {"type": "none"} if choice == "none" else {"type": "tool", "name": legal(choice)}


def _blocks(block: JsonObject) -> list[Block]:
    kind = block.get("type")
    if kind == "text":
        beside = {k: v for k, v in block.items() if k not in ("type", "text") and v}
        text = Text(text=field(block, "text", str, "text block"))
        kept = VendorBlock(dialect=NAME, data={NEXT_BLOCK: beside})
        return [kept, text] if beside else [text]
    if kind == "tool_use":
        return [
            ToolCall(
                id=original(field(block, "id", str, "tool_use block")),
                name=original(field(block, "name", str, "tool_use block")),
                arguments=as_text(field(block, "input", dict, "tool_use block")),
            )
        ]
    return [VendorBlock(dialect=NAME, data=block)]


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
    canonical = dict(block)
    content = canonical["content"] = blocks(block.get("content"))
    if content is None or content == []:
        del canonical["content"]
    if canonical.get("is_error") in (False,):
        del canonical["is_error"]
    return canonical

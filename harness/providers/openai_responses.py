"""OpenAI's responses format."""

from __future__ import annotations

from harness.errors import MalformedAnswerError
from harness.providers import failures
from harness.providers.legal_names import legal, original
from harness.providers.object_arguments import as_object_text
from harness.providers.openai_chat import OpenAIChat
from harness.providers.openai_responses_stream import OpenAIResponsesAssembler
from harness.providers.openai_usage import usage_of
from harness.providers.unique_ids import with_unique_ids
from harness.providers.wire_json import (
    field,
    items,
    messages_of,
    object_schema,
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
    VendorBlock,
)
from harness.schema.record import Json, JsonObject
from harness.values import ModelRequest

NAME = "openai-responses"

INCOMPLETE = {
    "max_output_tokens": StopReason.MAX_TOKENS,
    "content_filter": StopReason.REFUSAL,
}

MESSAGE_KEYS = frozenset({"type", "role", "content", "id", "status"})
"""Keys of a message that are not kept: neutral blocks express them, or nothing reads them again."""

WORDS = """
access_programs additionalProperties annotations arguments assistant background background_options
cache_write_tokens cached_tokens completed completed_at content_filter content_index
context_management conversation created_at description developer encrypted_content file_search
file_search_call frequency_penalty function function_call function_call_output image_url in_progress
incomplete incomplete_details input_file input_image input_text input_tokens input_tokens_details
instructions invalid_request_error item_reference json_object json_schema logprobs max_output_tokens
max_tool_calls metadata moderation obfuscation output_index output_text output_tokens
output_tokens_details parallel_tool_calls parameters presence_penalty previous_response_id
prompt_cache_breakpoint prompt_cache_key prompt_cache_options prompt_cache_retention properties
reasoning reasoning.encrypted_content reasoning_text reasoning_tokens required response
response.completed response.content_part.added response.content_part.done response.created
response.failed response.function_call_arguments.delta response.function_call_arguments.done
response.in_progress response.incomplete response.output_item.added response.output_item.done
response.output_text.delta response.output_text.done response.queued
response.reasoning_summary_part.added response.reasoning_summary_part.done
response.reasoning_summary_text.delta response.reasoning_summary_text.done
response.reasoning_text.delta response.reasoning_text.done response.refusal.delta
response.refusal.done safety_identifier sequence_number service_tier stream_options summary_index
summary_text temperature tool_choice top_logprobs total_tokens truncation verbosity web_search
web_search_call
"""


class OpenAIResponses:
    """The dialect of `POST /responses`, with nothing kept at the vendor's."""

    name = NAME
    endpoint = "/responses"
    base_url = OpenAIChat.base_url
    path = endpoint
    messages_key = "input"
    uncounted = OpenAIChat.uncounted
    # The ids of its items are sent back.
    volatile: frozenset[str] = frozenset()
    last_events = frozenset({"response.completed", "response.failed", "response.incomplete"})
    words = WORDS

    def to_request(self, request: ModelRequest, *, stream: bool = False) -> JsonObject:
        """The JSON body of the request."""
        body: JsonObject = {"model": request.model}
        if request.system:
            body["instructions"] = request.system
        body["input"] = [
            item
            for message in with_unique_ids(request.messages)
            for item in (_said(message) if message.role == "assistant" else _asked(message))
        ]
        if request.tools:
            body["tools"] = [_tool(spec) for spec in request.tools]
            if request.tool_choice != "auto":
                body["tool_choice"] = _tool_choice(request.tool_choice)
        body["max_output_tokens"] = request.max_output_tokens
        if request.temperature is not None:
            body["temperature"] = request.temperature
        # The conversation is ours. Reasoning comes encrypted by itself; asked for it, the vendor
        # refuses the request where the model does not reason.
        body["store"] = False
        if stream:
            body["stream"] = True
        return sendable(body)

    def from_response(self, body: JsonObject) -> ModelTurn:
        """The neutral turn in the answer.

        Raises:
            MalformedAnswerError: the body is not a response.
            ModelCallError: the response says that it failed.
        """
        body = sendable(body)
        if body.get("error"):
            raise failures.reported(body["error"], "the answer")
        output = items(field(body, "output", list, "the answer"), "output")
        content = [block for item in output for block in _blocks(item)]
        model = body.get("model")
        return ModelTurn(
            content=tuple(content),
            stop=_stop(body, output),
            usage=usage_of(body.get("usage"), "input_tokens", "output_tokens"),
            model=model if isinstance(model, str) else None,
        )

    def assembler(self) -> OpenAIResponsesAssembler:
        """What puts a streamed answer together."""
        return OpenAIResponsesAssembler()

    def split(self, body: JsonObject) -> tuple[JsonObject, list[JsonObject]]:
        """Canonical parameters, the instructions among them, and canonical input items."""
        if isinstance(body.get("input"), str):
            body = body | {"input": [{"role": "user", "content": body["input"]}]}
        found = messages_of(body, "input")
        if found is None:
            return without_nulls(body), []
        parameters = parameters_of(body, "input")
        tools = parameters.get("tools")
        if isinstance(tools, list):
            parameters["tools"] = [without_nulls(t) if isinstance(t, dict) else t for t in tools]
        return parameters, [_canonical_item(item) for item in found]


def _asked(message: Message) -> list[Json]:
    """One output per result, then a user message for the rest."""
    wire: list[Json] = [
        {"type": "function_call_output", "call_id": block.call_id, "output": block.content}
        for block in message.content
        if block.type == "tool_result"
    ]
    parts: list[Json] = []
    for block in message.content:
        if block.type == "text" and block.text:
            parts.append({"type": "input_text", "text": block.text})
        elif block.type == "vendor" and block.dialect == NAME:
            parts.append(block.data)
    if parts or not wire:
        wire.append({"type": "message", "role": "user", "content": parts or ""})
    return wire


def _said(message: Message) -> list[Json]:
    """The items of an assistant turn, in order; neighbouring texts share a message."""
    wire: list[JsonObject] = []
    parts: list[Json] | None = None
    extra: JsonObject = {}
    for block in message.content:
        if block.type == "text" and block.text:
            if parts is None:
                parts = []
                wire.append({"type": "message", "role": "assistant", "content": parts, **extra})
                extra = {}
            parts.append({"type": "output_text", "text": block.text})
        elif block.type == "tool_call":
            parts = None
            wire.append(_wire_call(block))
        elif block.type == "vendor" and block.dialect == NAME:
            parts = None
            if "type" not in block.data:
                extra = block.data
            elif not _is_stored_elsewhere(block.data):
                wire.append(block.data)
    # The vendor refuses reasoning that led to nothing, as in a turn that was cut.
    while wire and wire[-1].get("type") == "reasoning":
        wire.pop()
    return [*wire]


def _is_stored_elsewhere(item: JsonObject) -> bool:
    """Whether it is no more than the id of reasoning, which the vendor did not store for us."""
    return item.get("type") == "reasoning" and not (
        item.get("encrypted_content") or item.get("content")
    )


def _wire_call(call: ToolCall) -> JsonObject:
    return {
        "type": "function_call",
        "call_id": call.id,
        "name": legal(call.name),
        "arguments": as_object_text(call.arguments),
    }


def _tool(spec: ToolSpec) -> JsonObject:
    return {
        "type": "function",
        "name": legal(spec.name),
        "description": spec.description,
        "parameters": object_schema(spec.parameters),
        # Left out, the vendor makes every property required and forbids all others.
        "strict": False,
    }


def _tool_choice(choice: str) -> Json:
    return choice if choice in ("required", "none") else {"type": "function", "name": legal(choice)}


def _blocks(item: JsonObject) -> list[Block]:
    kind = item.get("type")
    if kind == "function_call":
        where = "function call"
        return [
            ToolCall(
                id=field(item, "call_id", str, where),
                name=original(field(item, "name", str, where)),
                arguments=field(item, "arguments", str, where),
            )
        ]
    if kind != "message":
        return [VendorBlock(dialect=NAME, data=item)]
    extra = {k: v for k, v in item.items() if k not in MESSAGE_KEYS and v is not None}
    found: list[Block] = [VendorBlock(dialect=NAME, data=extra)] if extra else []
    for part in items(field(item, "content", list, "message"), "content"):
        key = "refusal" if part.get("type") == "refusal" else "text"
        text = field(part, key, str, "part of a message")
        if text:
            found.append(Text(text=text))
    return found


def _stop(body: JsonObject, output: list[JsonObject]) -> StopReason:
    status = body.get("status")
    if status == "incomplete":
        details = body.get("incomplete_details")
        reason = details.get("reason") if isinstance(details, dict) else None
        if not isinstance(reason, str) or reason not in INCOMPLETE:
            raise MalformedAnswerError(
                f"the answer is incomplete: reason {reason!r}, expected one of"
                f" {', '.join(INCOMPLETE)}"
            )
        return INCOMPLETE[reason]
    if status != "completed":
        raise MalformedAnswerError(
            f"the answer: 'status' is {status!r}, expected completed or incomplete"
        )
    if any(_is_refusal(part) for item in output for part in _parts(item)):
        return StopReason.REFUSAL
    if any(item.get("type") == "function_call" for item in output):
        return StopReason.TOOL_USE
    return StopReason.END_TURN


def _parts(item: JsonObject) -> list[Json]:
    content = item.get("content")
    return content if isinstance(content, list) else []


def _is_refusal(part: Json) -> bool:
    return isinstance(part, dict) and part.get("type") == "refusal"


def _canonical_item(item: JsonObject) -> JsonObject:
    canonical = without_nulls(item)
    if canonical.get("type", "message") == "message":
        canonical["type"] = "message"
        kind = "output_text" if canonical.get("role") == "assistant" else "input_text"
        canonical["content"] = _canonical_content(canonical.get("content"), kind)
    elif canonical["type"] == "function_call_output":
        canonical["output"] = _canonical_content(canonical.get("output"), "input_text")
    return canonical


def _canonical_content(content: Json, kind: str) -> Json:
    if isinstance(content, str):
        return [{"type": kind, "text": content}] if content else []
    if not isinstance(content, list):
        return content
    return [_canonical_part(part) if isinstance(part, dict) else part for part in content]


def _canonical_part(part: JsonObject) -> JsonObject:
    """A part as it is sent; annotations and probabilities of an answer may be empty or absent."""
    empty = ("annotations", "logprobs")
    return {k: v for k, v in without_nulls(part).items() if k not in empty or v != []}

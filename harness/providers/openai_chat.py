"""OpenAI's chat completions format, as many local servers speak it too."""

from __future__ import annotations

from typing import Literal

from harness.errors import MalformedAnswerError
from harness.providers import failures
from harness.providers.legal_names import legal, original
from harness.providers.object_arguments import as_object_text
from harness.providers.openai_chat_stream import OpenAIChatAssembler, made_id
from harness.providers.openai_usage import usage_of
from harness.providers.unique_ids import with_unique_ids
from harness.providers.wire_json import (
    blocks,
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

NAME = "openai-chat"

STOP_REASONS = {
    "stop": StopReason.END_TURN,
    "tool_calls": StopReason.TOOL_USE,
    "function_call": StopReason.TOOL_USE,
    "length": StopReason.MAX_TOKENS,
    "content_filter": StopReason.REFUSAL,
}

NEUTRAL_KEYS = frozenset({"role", "content", "tool_calls", "refusal"})
"""Keys of an answer that neutral blocks express; the others are kept as a vendor block."""

CALL_KEYS = frozenset({"id", "type", "index", "function"})
"""The same for a tool call of an answer."""

NEXT_CALL = "next_call"
"""Key of a vendor block that holds what came beside the call after it: Google's signature."""

WORDS = """
accepted_prediction_tokens additionalProperties annotations arguments assistant audio_tokens
cache_write_tokens cached_tokens chat.completion chat.completion.chunk completion_tokens
completion_tokens_details content_filter description developer finish_reason frequency_penalty
function function_call functions image_url include_usage input_audio invalid_request_error
json_object json_schema logit_bias logprobs max_completion_tokens max_tokens messages metadata
modalities moderation obfuscation parallel_tool_calls parameters predicted_ms predicted_n
predicted_per_second predicted_per_token_ms prediction presence_penalty prompt_cache_breakpoint
prompt_cache_key prompt_cache_options prompt_cache_retention prompt_ms prompt_n prompt_per_second
prompt_per_token_ms prompt_tokens prompt_tokens_details properties reasoning reasoning_content
reasoning_details reasoning_effort reasoning_tokens rejected_prediction_tokens required
response_format safety_identifier service_tier stream_options system_fingerprint temperature
tool_call_id tool_calls tool_choice top_logprobs total_tokens verbosity web_search_options
"""


class OpenAIChat:
    """The dialect of `POST /chat/completions`."""

    name = NAME
    endpoint = "/chat/completions"
    base_url = "https://api.openai.com/v1"
    path = endpoint
    messages_key = "messages"
    uncounted = frozenset(
        {
            "metadata", "prompt_cache_key", "prompt_cache_options", "prompt_cache_retention",
            "safety_identifier", "service_tier", "store", "user",
        }
    )  # fmt: skip
    volatile = frozenset({"id", "created", "obfuscation"})
    last_events = frozenset({"[DONE]"})
    words = WORDS

    def __init__(self, *, system_role: Literal["system", "developer"] = "system") -> None:
        """Choose the role of system text; local servers know `system` only."""
        self._system_role = system_role

    def to_request(self, request: ModelRequest, *, stream: bool = False) -> JsonObject:
        """The JSON body of the request."""
        messages: list[Json] = []
        if request.system:
            messages.append({"role": self._system_role, "content": request.system})
        for message in with_unique_ids(request.messages):
            messages.extend(_assistant(message) if message.role == "assistant" else _user(message))
        body: JsonObject = {"model": request.model, "messages": messages}
        if request.tools:
            body["tools"] = [_tool(spec) for spec in request.tools]
            if request.tool_choice != "auto":
                body["tool_choice"] = _tool_choice(request.tool_choice)
        # The vendor's newer models refuse max_tokens; llama.cpp and vLLM know both names.
        body["max_completion_tokens"] = request.max_output_tokens
        if request.temperature is not None:
            body["temperature"] = request.temperature
        if stream:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        return sendable(body)

    def from_response(self, body: JsonObject) -> ModelTurn:
        """The neutral turn in the answer.

        Raises:
            MalformedAnswerError: the body is not a chat completion.
            ModelCallError: it says that the answer failed, as gateways do with HTTP 200.
        """
        body = sendable(body)
        if body.get("error"):
            raise failures.reported(body["error"], "the answer")
        choices = items(field(body, "choices", list, "the answer"), "choices")
        if not choices:
            raise MalformedAnswerError("the answer has no choices; ask the model again")
        if choices[0].get("error"):
            raise failures.reported(choices[0]["error"], "the answer")
        message = field(choices[0], "message", dict, "choice")
        refusal = message.get("refusal")
        model = body.get("model")
        return ModelTurn(
            content=tuple(_content(message, body.get("id"))),
            stop=StopReason.REFUSAL if refusal else _stop(choices[0].get("finish_reason")),
            usage=usage_of(body.get("usage"), "prompt_tokens", "completion_tokens"),
            model=model if isinstance(model, str) else None,
        )

    def assembler(self) -> OpenAIChatAssembler:
        """What puts a streamed answer together."""
        return OpenAIChatAssembler()

    def split(self, body: JsonObject) -> tuple[JsonObject, list[JsonObject]]:
        """Canonical parameters and messages; the system text is the first message."""
        messages = messages_of(body)
        if messages is None:
            return without_nulls(body), []
        parameters = parameters_of(body)
        tools = parameters.get("tools")
        if isinstance(tools, list):
            parameters["tools"] = [_canonical_function(tool) for tool in tools]
        return parameters, [_canonical_message(message) for message in messages]


def _assistant(message: Message) -> list[Json]:
    texts = [block.text for block in message.content if block.type == "text"]
    wire: JsonObject = {"role": "assistant", "content": "".join(texts)}
    calls: list[Json] = []
    beside: JsonObject = {}
    for block in message.content:
        if block.type == "vendor" and block.dialect == NAME:
            kept = block.data.get(NEXT_CALL)
            if isinstance(kept, dict):
                beside = kept
            else:
                wire.update(block.data)
        elif block.type == "tool_call":
            calls.append(_wire_call(block) | beside)
            beside = {}
    if calls:
        wire["tool_calls"] = calls
    return [wire]


def _wire_call(call: ToolCall) -> JsonObject:
    return {
        "id": call.id,
        "type": "function",
        "function": {"name": legal(call.name), "arguments": as_object_text(call.arguments)},
    }


def _user(message: Message) -> list[Json]:
    """One tool message per result, then a user message for the rest."""
    wire: list[Json] = [
        {"role": "tool", "tool_call_id": block.call_id, "content": block.content}
        for block in message.content
        if block.type == "tool_result"
    ]
    parts: list[Json] = []
    texts = []
    for block in message.content:
        if block.type == "text":
            parts.append({"type": "text", "text": block.text})
            texts.append(block.text)
        elif block.type == "vendor" and block.dialect == NAME:
            parts.append(block.data)
    if len(parts) > len(texts):
        wire.append({"role": "user", "content": parts})
    elif texts or not wire:
        wire.append({"role": "user", "content": "\n\n".join(texts)})
    return wire


def _tool(spec: ToolSpec) -> JsonObject:
    return {
        "type": "function",
        "function": {
            "name": legal(spec.name),
            "description": spec.description,
            "parameters": object_schema(spec.parameters),
        },
    }


def _tool_choice(choice: str) -> Json:
    if choice in ("required", "none"):
        return choice
    return {"type": "function", "function": {"name": legal(choice)}}


def _content(message: JsonObject, answer_id: Json) -> list[Block]:
    found: list[Block] = []
    extra = {k: v for k, v in message.items() if k not in NEUTRAL_KEYS and v not in (None, [], "")}
    if extra:
        found.append(VendorBlock(dialect=NAME, data=extra))
    for key in ("content", "refusal"):
        if message.get(key) is not None:
            text = field(message, key, str, "message")
            if text:
                found.append(Text(text=text))
    if message.get("tool_calls") is not None:
        calls = items(field(message, "tool_calls", list, "message"), "tool_calls")
        for number, call in enumerate(calls):
            beside = {k: v for k, v in call.items() if k not in CALL_KEYS and v}
            if beside:
                found.append(VendorBlock(dialect=NAME, data={NEXT_CALL: beside}))
            found.append(_call(call, made_id(answer_id, number)))
    return found


def _call(call: JsonObject, own_id: str) -> ToolCall:
    function = field(call, "function", dict, "tool call")
    # Some local servers leave out the id, or the arguments of a call that has none.
    return ToolCall(
        id=field(call, "id", str, "tool call") if call.get("id") not in (None, "") else own_id,
        name=original(field(function, "name", str, "tool call")),
        arguments=""
        if function.get("arguments") is None
        else field(function, "arguments", str, "tool call"),
    )


def _stop(reason: Json) -> StopReason:
    if not isinstance(reason, str) or reason not in STOP_REASONS:
        raise MalformedAnswerError(
            f"choice: 'finish_reason' is {reason!r}, expected one of {', '.join(STOP_REASONS)}"
        )
    return STOP_REASONS[reason]


def _canonical_message(message: JsonObject) -> JsonObject:
    canonical = without_nulls(message)
    calls = canonical.get("tool_calls")
    if isinstance(calls, list):
        canonical["tool_calls"] = [_canonical_function(call) for call in calls]
    if "content" in canonical:
        canonical["content"] = blocks(canonical["content"])
        # Null and an empty text mean the same beside calls, and servers differ in which they want.
        if calls and canonical["content"] == []:
            del canonical["content"]
    return canonical


def _canonical_function(holder: Json) -> Json:
    """A tool or a tool call; what is inside arguments and schemas is left as it is."""
    if not isinstance(holder, dict):
        return holder
    canonical = without_nulls(holder)
    function = canonical.get("function")
    if isinstance(function, dict):
        canonical["function"] = without_nulls(function)
    return canonical

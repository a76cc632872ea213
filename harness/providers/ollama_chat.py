"""Ollama's own chat format."""

from __future__ import annotations

from harness.errors import MalformedAnswerError
from harness.providers.object_arguments import as_object, as_text
from harness.providers.ollama_stream import OllamaAssembler, failure_in
from harness.providers.wire_json import (
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

NAME = "ollama-chat"

NEUTRAL_KEYS = frozenset({"role", "content", "tool_calls"})
"""Keys of an answer that neutral blocks express; the others are kept as a vendor block."""

OPTIONAL_KEYS = frozenset({"content", "thinking", "images", "tool_calls", "tool_name"})
"""Keys of a message that mean the same absent and empty."""

WORDS = """
additionalProperties arguments assistant created_at description done_reason embedding_only
eval_count eval_duration frequency_penalty function keep_alive load_duration logits_all logprobs
low_vram main_gpu messages mirostat mirostat_eta mirostat_tau num_batch num_keep num_predict
num_thread parameters penalize_newline presence_penalty prompt_eval_count prompt_eval_duration
properties repeat_last_n repeat_penalty required temperature thinking tool_call_id tool_calls
tool_name top_logprobs total_duration typical_p use_mlock use_mmap vocab_only
"""


class OllamaChat:
    """The dialect of `POST /api/chat`.

    Ollama cannot be told to call a tool. Asked for one tool it is offered that tool alone; asked
    for any, it is offered them all and may still answer in text.
    """

    name = NAME
    endpoint = "/api/chat"
    base_url = "http://127.0.0.1:11434"
    path = endpoint
    messages_key = "messages"
    uncounted = frozenset({"keep_alive"})
    volatile = frozenset(
        {
            "created_at", "total_duration", "load_duration", "prompt_eval_duration",
            "eval_duration",
        }
    )  # fmt: skip
    # It streams lines of JSON.
    last_events: frozenset[str] = frozenset()
    words = WORDS

    def to_request(self, request: ModelRequest, *, stream: bool = False) -> JsonObject:
        """The JSON body of the request."""
        messages: list[Json] = []
        if request.system:
            messages.append({"role": "system", "content": request.system})
        for message in request.messages:
            messages.extend(_assistant(message) if message.role == "assistant" else _user(message))
        body: JsonObject = {"model": request.model, "messages": messages}
        tools = [_tool(spec) for spec in _offered(request)]
        if tools:
            body["tools"] = [*tools]
        # Without it the vendor streams.
        body["stream"] = stream
        options: JsonObject = {"num_predict": request.max_output_tokens}
        if request.temperature is not None:
            options["temperature"] = request.temperature
        body["options"] = options
        return sendable(body)

    def from_response(self, body: JsonObject) -> ModelTurn:
        """The neutral turn in the answer.

        Raises:
            MalformedAnswerError: the body is not a finished chat answer.
            ModelCallError: it says that the answer failed, as gateways do with HTTP 200.
        """
        body = sendable(body)
        if body.get("error"):
            raise failure_in(body, "the answer")
        message = field(body, "message", dict, "the answer")
        if body.get("done") is not True:
            raise MalformedAnswerError("the answer is not done; ask the model again")
        content = _content(message)
        calls = any(isinstance(block, ToolCall) for block in content)
        model = body.get("model")
        return ModelTurn(
            content=tuple(content),
            stop=_stop(body.get("done_reason"), calls=calls),
            usage=_usage(body),
            model=model if isinstance(model, str) else None,
        )

    def assembler(self) -> OllamaAssembler:
        """What puts the lines of one streamed answer together."""
        return OllamaAssembler()

    def split(self, body: JsonObject) -> tuple[JsonObject, list[JsonObject]]:
        """Canonical parameters and messages; the system text is the first message."""
        messages = messages_of(body)
        if messages is None:
            return without_nulls(body), []
        parameters = parameters_of({"stream": True} | without_nulls(body))
        options = parameters.get("options")
        if isinstance(options, dict):
            parameters["options"] = without_nulls(options)
        tools = parameters.get("tools")
        if isinstance(tools, list):
            parameters["tools"] = [_canonical_function(tool) for tool in tools]
        return parameters, [_canonical_message(message) for message in messages]


def _offered(request: ModelRequest) -> tuple[ToolSpec, ...]:
    """The tools that the model may call; see the class."""
    chosen = tuple(spec for spec in request.offered if spec.name == request.tool_choice)
    return chosen or request.offered


def _assistant(message: Message) -> list[Json]:
    wire: JsonObject = {"role": "assistant", "content": message.text}
    for block in message.content:
        if isinstance(block, VendorBlock) and block.dialect == NAME:
            wire.update(block.data)
    calls: list[Json] = [
        {"id": call.id, "function": {"name": call.name, "arguments": as_object(call.arguments)}}
        for call in message.tool_calls
    ]
    if calls:
        wire["tool_calls"] = calls
    return [wire]


def _user(message: Message) -> list[Json]:
    """One tool message per result, then a user message for the rest."""
    # Servers that know no ids read the name and the order.
    wire: list[Json] = [
        {
            "role": "tool",
            "content": result.content,
            "tool_name": result.name,
            "tool_call_id": result.call_id,
        }
        for result in message.tool_results
    ]
    texts = [block.text for block in message.content if isinstance(block, Text)]
    extra: JsonObject = {}
    images: list[Json] = []
    for block in message.content:
        if isinstance(block, VendorBlock) and block.dialect == NAME:
            extra |= block.data
            more = block.data.get("images")
            images += more if isinstance(more, list) else []
    if images:
        extra["images"] = images
    if texts or extra or not wire:
        wire.append({"role": "user", "content": "\n\n".join(texts), **extra})
    return wire


def _tool(spec: ToolSpec) -> JsonObject:
    return {
        "type": "function",
        "function": {
            "name": spec.name,
            "description": spec.description,
            "parameters": spec.parameters,
        },
    }


def _content(message: JsonObject) -> list[Block]:
    found: list[Block] = []
    extra = {k: v for k, v in message.items() if k not in NEUTRAL_KEYS and v not in (None, [], "")}
    if extra:
        found.append(VendorBlock(dialect=NAME, data=extra))
    if message.get("content") is not None:
        text = field(message, "content", str, "message")
        if text:
            found.append(Text(text=text))
    if message.get("tool_calls") is not None:
        calls = items(field(message, "tool_calls", list, "message"), "tool_calls")
        found += [_call(call, position) for position, call in enumerate(calls)]
    return found


def _call(call: JsonObject, position: int) -> ToolCall:
    function = field(call, "function", dict, "tool call")
    # The live client has put an id into every call, one that fits the conversation.
    id_ = field(call, "id", str, "tool call") if call.get("id") else f"call_{position}"
    return ToolCall(
        id=id_,
        name=field(function, "name", str, "tool call"),
        arguments=as_text(field(function, "arguments", dict, "tool call")),
    )


def _stop(reason: Json, *, calls: bool) -> StopReason:
    """Older servers give no reason, and none has one of its own for calls."""
    if reason == "length":
        return StopReason.MAX_TOKENS
    if reason in (None, "", "stop"):
        return StopReason.TOOL_USE if calls else StopReason.END_TURN
    raise MalformedAnswerError(
        f"the answer: 'done_reason' is {reason!r}, expected 'stop' or 'length'"
    )


def _usage(body: JsonObject) -> Usage | None:
    total = Usage(input=count(body, "prompt_eval_count"), output=count(body, "eval_count"))
    return None if total == Usage() else total


def _canonical_message(message: JsonObject) -> JsonObject:
    canonical = {
        k: v
        for k, v in without_nulls(message).items()
        if k not in OPTIONAL_KEYS or v not in ("", [])
    }
    calls = canonical.get("tool_calls")
    if isinstance(calls, list):
        canonical["tool_calls"] = [_canonical_function(call) for call in calls]
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

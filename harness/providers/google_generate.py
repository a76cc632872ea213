"""Google's generate-content format, as the Gemini API speaks it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from harness.errors import ModelCallError
from harness.providers.google_answer import NAME, NEXT_PART, GoogleAssembler, turn_of
from harness.providers.legal_names import legal
from harness.providers.object_arguments import as_object
from harness.providers.wire_json import sendable, without_nulls
from harness.schema.messages import (
    Block,
    Message,
    ModelTurn,
    ToolCall,
    ToolResult,
    ToolSpec,
    VendorBlock,
)
from harness.schema.record import Json, JsonObject
from harness.values import ModelRequest

ROLES = {"user": "user", "assistant": "model"}

CONTINUE: JsonObject = {"text": "Continue."}
"""Stands where the vendor wants a turn of the user's and the conversation has none."""

SIGNS_CALLS = re.compile(r"(models/)?gemini-([3-9]|\d\d)")
"""Models that refuse a turn whose first call bears no signature."""

NO_SIGNATURE = "skip_thought_signature_validator"
"""What the vendor takes for the signature of a call that another model made."""

MODEL = re.compile(r"[\w.@/-]+")

PATH_KEYS = ("model", "stream")
"""What a body says here and the URL says on the wire: `models/M:generateContent`."""

WORDS = """
additionalProperties allowedFunctionNames audioTimestamp audioTranscriptionConfig
automaticContinuation avgLogprobs behavior BLOCKLIST blockReason blockReasonMessage cachedContent
cachedContentTokenCount cacheTokensDetails candidateCount candidates candidatesTokenCount
candidatesTokensDetails category citationMetadata codeExecution codeExecutionResult computerUse
contents continuationToken createTime description enableAffectiveDialog enableEnhancedCivicAnswers
executableCode fileData fileSearch finishMessage finishReason frequencyPenalty functionCall
functionCallingConfig functionDeclarations functionResponse generateContent generationConfig
googleMaps googleSearch googleSearchRetrieval groundingMetadata imageConfig
includeServerSideToolInvocations includeThoughts inlineData logprobs logprobsResult
MALFORMED_FUNCTION_CALL MAX_TOKENS maxOutputTokens mediaResolution mimeType modality
modelArmorConfig modelSelectionConfig modelStatus modelVersion overwrittenThreshold parameters
parametersJsonSchema partialArgs partMetadata presencePenalty probability probabilityScore
PROHIBITED_CONTENT promptFeedback promptTokenCount promptTokensDetails properties RECITATION
required response responseFormat responseId responseJsonSchema responseLogprobs responseMimeType
responseModalities responseSchema retrieval retrievalConfig routingConfig safetyRatings
safetySettings scheduling serviceTier severity severityScore speechConfig stopSequences
streamFunctionCallArguments streamGenerateContent systemInstruction temperature thinkingBudget
thinkingConfig thinkingLevel thoughtSignature thoughtsTokenCount threshold tokenCount toolConfig
toolUsePromptTokenCount toolUsePromptTokensDetails totalTokenCount trafficType translationConfig
UNEXPECTED_TOOL_CALL urlContext urlContextMetadata usageMetadata videoMetadata willContinue
"""


class GoogleGenerate:
    """The dialect of `POST /v1/models/M:generateContent`."""

    name = NAME
    endpoint = ":generateContent"
    base_url = "https://generativelanguage.googleapis.com"
    path = "/v1beta"
    messages_key = "contents"
    uncounted = frozenset({"labels", "serviceTier"})
    volatile = frozenset({"responseId"})
    last_events: frozenset[str] = frozenset()
    words = WORDS

    def to_request(self, request: ModelRequest, *, stream: bool = False) -> JsonObject:
        """The JSON body of the request, with the model and `stream`, which travel in the URL.

        Raises:
            ModelCallError: the model's name is none that a URL can carry.
        """
        if not MODEL.fullmatch(request.model) or ".." in request.model:
            raise ModelCallError(
                f"{request.model!r} cannot be the name of a model here; see the vendor's list"
            )
        body: JsonObject = {"model": request.model}
        if stream:
            body["stream"] = True
        if request.system and not request.system.isspace():
            body["systemInstruction"] = {"parts": [{"text": request.system}]}
        signs = SIGNS_CALLS.match(request.model) is not None
        body["contents"] = _contents(request.messages, signs=signs)
        if request.tools:
            body["tools"] = [{"functionDeclarations": [_tool(spec) for spec in request.tools]}]
            if request.tool_choice != "auto":
                body["toolConfig"] = {"functionCallingConfig": _calling(request.tool_choice)}
        generation: JsonObject = {"maxOutputTokens": request.max_output_tokens}
        if request.temperature is not None:
            generation["temperature"] = request.temperature
        body["generationConfig"] = generation
        return sendable(body)

    def from_response(self, body: JsonObject) -> ModelTurn:
        """The neutral turn in the answer.

        Raises:
            MalformedAnswerError: the body is not an answer, or the model's call was no call.
        """
        return turn_of(sendable(body))

    def assembler(self) -> GoogleAssembler:
        """What puts a streamed answer together."""
        return GoogleAssembler()

    def split(self, body: JsonObject) -> tuple[JsonObject, list[JsonObject]]:
        """Canonical parameters, the model and the system text among them, and canonical turns."""
        contents = body.get("contents")
        if not isinstance(contents, list) or not all(isinstance(turn, dict) for turn in contents):
            return without_nulls(body), []
        parameters = {
            key: value
            for key, value in without_nulls(body).items()
            if key != "contents" and value not in ({}, [], False)
        }
        model = parameters.get("model")
        if isinstance(model, str):
            parameters["model"] = _canonical_model(model)
        system = parameters.get("systemInstruction")
        if isinstance(system, dict):
            parameters["systemInstruction"] = without_nulls({**system, "role": None})
        if parameters.get("toolConfig") == {"functionCallingConfig": {"mode": "AUTO"}}:
            del parameters["toolConfig"]
        return parameters, [_canonical_turn(turn) for turn in contents if isinstance(turn, dict)]


def _contents(messages: Sequence[Message], *, signs: bool) -> list[Json]:
    """Alternating turns from the user's to the user's, results first; none is empty."""
    turns: list[tuple[str, list[JsonObject]]] = []
    for message in messages:
        role = ROLES[message.role]
        parts = list(_parts(message.content))
        if not parts:
            continue
        if turns and turns[-1][0] == role:
            turns[-1][1].extend(parts)
        else:
            turns.append((role, parts))
    if not turns or turns[0][0] == "model":
        turns.insert(0, ("user", [CONTINUE]))
    if turns[-1][0] == "model":
        turns.append(("user", [CONTINUE]))
    wire: list[Json] = []
    for role, parts in turns:
        parts.sort(key=lambda part: "functionResponse" not in part)
        wire.append({"role": role, "parts": [*(_signed(parts) if signs else parts)]})
    return wire


def _signed(parts: Sequence[JsonObject]) -> list[JsonObject]:
    """The parts of a turn whose first call bears a signature; further ones need none."""
    signed = [*parts]
    place = next((n for n, part in enumerate(parts) if "functionCall" in part), None)
    if place is not None:
        mark: JsonObject = {"thoughtSignature": NO_SIGNATURE}
        signed[place] = mark | parts[place]
    return signed


def _parts(content: Iterable[Block]) -> Iterable[JsonObject]:
    """The parts of a turn, without empty text and what belongs to other vendors."""
    beside: JsonObject = {}
    for block in content:
        if isinstance(block, VendorBlock):
            if block.dialect != NAME:
                continue
            kept = block.data.get(NEXT_PART)
            if isinstance(kept, dict):
                beside = kept
                continue
            yield block.data
        elif isinstance(block, ToolResult):
            yield {"functionResponse": _response(block)}
        elif isinstance(block, ToolCall):
            yield {"functionCall": _call(block), **beside}
        elif block.text:
            yield {"text": block.text, **beside}
        beside = {}


def _call(call: ToolCall) -> JsonObject:
    return {"id": legal(call.id), "name": legal(call.name), "args": as_object(call.arguments)}


def _response(result: ToolResult) -> JsonObject:
    key = "error" if result.is_error else "result"
    return {
        "id": legal(result.call_id),
        "name": legal(result.name),
        "response": {key: result.content},
    }


def _tool(spec: ToolSpec) -> JsonObject:
    schema = spec.parameters
    if schema.get("type") != "object":
        schema = schema | {"type": "object"}
    return {
        "name": legal(spec.name),
        "description": spec.description,
        "parametersJsonSchema": schema,
    }


def _calling(choice: str) -> JsonObject:
    if choice == "none":
        return {"mode": "NONE"}
    if choice == "required":
        return {"mode": "ANY"}
    return {"mode": "ANY", "allowedFunctionNames": [legal(choice)]}


def _canonical_model(model: str) -> str:
    """What stays of a name where it is read out of the URL."""
    collection, _, name = model.rpartition("/")
    is_tuned = collection.rpartition("/")[2] == "tunedModels"
    return f"tunedModels/{name}" if is_tuned else name


def _canonical_turn(turn: JsonObject) -> JsonObject:
    canonical = {"role": "user"} | without_nulls(turn)
    parts = canonical.get("parts")
    if isinstance(parts, list):
        canonical["parts"] = [_canonical_part(part) for part in parts]
    return canonical


def _canonical_part(part: Json) -> Json:
    if not isinstance(part, dict):
        return part
    canonical = without_nulls(part)
    for key in ("functionCall", "functionResponse"):
        inner = canonical.get(key)
        if isinstance(inner, dict):
            canonical[key] = {k: v for k, v in without_nulls(inner).items() if v != {}}
    return canonical

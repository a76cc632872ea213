"""Which secrets are removed before anything is written or compared."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from functools import cache

from pydantic import TypeAdapter

from harness.cassette.format import Line
from harness.schema.record import Json, Record
from harness.schema.results import RunRecord, TrialRecord
from harness.schema.trajectory import Trajectory

_LOG = logging.getLogger("harness.cassette")

MIN_SECRET_CHARS = 8

# Words of the vendors' formats, beside our own: without them no recording could be read again.
_VENDOR_WORDS = """
additionalProperties allowedFunctionNames arguments assistant blockReason cache_control
cache_creation_input_tokens cache_read_input_tokens cached_tokens cachedContentTokenCount candidates
candidatesTokenCount chat.completion chat.completion.chunk choices citations_delta completed
completion_tokens content_block content_block_delta content_block_start content_block_stop
content_filter contents created_at description developer done_reason encrypted_content end_turn
eval_count finish_reason finishReason function function_call function_call_output functionCall
functionCallingConfig functionDeclarations functionResponse generateContent generationConfig
image_url incomplete incomplete_details inlineData input_json_delta input_schema input_text
input_tokens input_tokens_details instructions is_error logprobs max_completion_tokens
max_output_tokens MAX_TOKENS max_tokens maxOutputTokens message_delta message_start message_stop
messages model_context_window_exceeded modelVersion num_predict output_text output_tokens
output_tokens_details parameters parametersJsonSchema pause_turn prompt_eval_count prompt_tokens
prompt_tokens_details promptFeedback promptTokenCount properties reasoning.encrypted_content
reasoning_content redacted_thinking refusal required response.completed response.created
response.failed response.function_call_arguments.delta response.incomplete
response.output_item.added response.output_item.done response.output_text.delta responseId
server_tool_use signature_delta stop_reason stop_sequence streamGenerateContent system_fingerprint
systemInstruction temperature text_delta thinking thinking_delta thoughtSignature thoughtsTokenCount
tool_call_id tool_calls tool_choice tool_name tool_result tool_use tool_use_id toolConfig
total_tokens totalTokenCount usageMetadata
"""


def secrets_in(environ: Mapping[str, str], names: Iterable[str] = ()) -> dict[str, str]:
    """Variable and value of every `*_API_KEY` of 8 characters or more: what must reach no file.

    A value that is part of a word of the file formats, or of a name that is in the files anyway,
    is a placeholder and no secret: files without that word could not be read. A warning says so.

    Args:
        environ: Environment variables.
        names: Names that files and trials go by.
    """
    values = {
        name: value.strip()
        for name, value in environ.items()
        if name.upper().endswith("_API_KEY") and len(value.strip()) >= MIN_SECRET_CHARS
    }
    words = {*names, *_format_words()} if values else set()
    ordinary = {name for name, value in values.items() if any(value in word for word in words)}
    for name in sorted(ordinary):
        _LOG.warning(
            "the value of %s is a word that recordings and run logs are made of: it is not "
            "removed from them",
            name,
        )
    return {name: value for name, value in values.items() if name not in ordinary}


@cache
def _format_words() -> frozenset[str]:
    """Keys and fixed values of everything that is written."""
    ours: TypeAdapter[Record] = TypeAdapter(Line | Trajectory | TrialRecord | RunRecord)
    return frozenset((*_VENDOR_WORDS.split(), *_words(ours.json_schema())))


def _words(schema: Json) -> Iterator[str]:
    if isinstance(schema, list):
        for item in schema:
            yield from _words(item)
    if not isinstance(schema, dict):
        return
    for key, value in schema.items():
        if key == "properties" and isinstance(value, dict):
            yield from value
        found = value if key == "enum" and isinstance(value, list) else [value]
        if key in ("enum", "const"):
            yield from (word for word in found if isinstance(word, str))
        yield from _words(value)

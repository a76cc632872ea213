from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ollama
import pytest
from anthropic.resources.messages import Messages
from google.genai import types as google_types
from openai.resources.chat.completions import Completions
from openai.resources.responses import Responses

from harness.cassette.file.view import read
from harness.errors import MalformedAnswerError
from harness.protocols import Dialect
from harness.providers.catalog import (
    VENDORS,
    all_dialects,
    dialect_of,
    live_client,
    recorded_turn,
)
from harness.providers.openai_chat import OpenAIChat
from harness.providers.openai_responses import OpenAIResponses
from harness.providers.sdk_client import SdkClient
from harness.schema.messages import Message, Text, ToolCall, ToolResult, ToolSpec
from harness.schema.record import Json
from harness.schema.suite import ModelConfig
from harness.values import ModelRequest
from tests.providers.lookalikes import anthropic, google, openai_chat, openai_responses
from tests.providers.lookalikes import ollama as ollama_server

ROOT = Path(__file__).parents[2]

RICH = ModelRequest(
    model="m",
    system="Be brief.",
    messages=(
        Message(role="user", content=(Text(text="List."),)),
        Message(
            role="assistant",
            content=(Text(text="I look."), ToolCall(id="c1", name="ls", arguments="{}")),
        ),
        Message(
            role="user", content=(ToolResult(call_id="c1", name="ls", content="a", is_error=True),)
        ),
    ),
    tools=(
        ToolSpec(
            name="ls",
            description="List.",
            parameters={"type": "object", "properties": {}, "additionalProperties": False},
        ),
    ),
    tool_choice="ls",
    temperature=0,
    cache_marks=True,
)

ANSWERS: dict[str, list[Any]] = {
    "anthropic-messages": [anthropic.ANSWER, *anthropic.events(anthropic.ANSWER)],
    "google-generate": [google.ANSWER],
    "ollama-chat": [ollama_server.ANSWER],
    "openai-chat": [openai_chat.ANSWER, *openai_chat.chunks(openai_chat.ANSWER)],
    "openai-responses": [
        openai_responses.ANSWER, *openai_responses.numbered(openai_responses.ANSWER),
    ],
}  # fmt: skip

dialects = pytest.mark.parametrize("dialect", all_dialects(), ids=lambda one: one.name)


def test_every_provider_that_a_model_may_name_is_in_the_catalog() -> None:
    named = ModelConfig.model_json_schema()["properties"]["provider"]["enum"]
    vendors = sorted(set(named) - {"scripted"})
    assert sorted(VENDORS) == vendors
    spoken = {dialect_of(ModelConfig(provider=name, name="m")).name for name in vendors}
    assert spoken < {dialect.name for dialect in all_dialects()}


def test_no_two_dialects_are_spoken_at_one_path() -> None:
    ends = [dialect.endpoint for dialect in all_dialects()]
    assert not [one for one in ends for other in ends if one is not other and one.endswith(other)]


@pytest.mark.parametrize(
    ("settings", "dialect"),
    [
        ({}, "openai-chat"),
        ({"api": "chat"}, "openai-chat"),
        ({"api": "responses", "system_role": "developer"}, "openai-responses"),
    ],
)
def test_the_api_setting_chooses_openais_dialect(settings: Any, dialect: str) -> None:
    assert dialect_of(ModelConfig(provider="openai", name="m", **settings)).name == dialect


def recorded(*events: Any) -> list[Any]:
    """Events as a cassette keeps them."""
    return [{"event": "x", "data": event} for event in events] + [{"data": "[DONE]"}]


def test_a_recorded_answer_is_read_whether_it_was_streamed_or_not() -> None:
    chat, responses = OpenAIChat(), OpenAIResponses()
    for turn in (
        recorded_turn(chat, openai_chat.ANSWER),
        recorded_turn(chat, recorded(*openai_chat.chunks(openai_chat.ANSWER))),
        recorded_turn(responses, openai_responses.ANSWER),
        recorded_turn(responses, recorded(*openai_responses.numbered(openai_responses.ANSWER))),
    ):
        assert turn.content == (Text(text="Hi ☃"),)
        assert turn.usage is not None


@pytest.mark.parametrize("answer", [None, 5, "<html>", [], ["x"], [{"data": "x"}], {}])
def test_a_recording_that_holds_no_answer_is_malformed(answer: Any) -> None:
    with pytest.raises(MalformedAnswerError):
        recorded_turn(OpenAIChat(), answer)


@pytest.mark.parametrize(
    ("provider", "vendor"),
    [
        ("anthropic", "anthropic"),
        ("google", "gcp.gemini"),
        ("ollama", "ollama"),
        ("openai", "openai"),
    ],
)
def test_a_live_client_names_its_vendor_as_telemetry_does(provider: Any, vendor: str) -> None:
    client = live_client(ModelConfig(provider=provider, name="m"), "no-key")
    assert isinstance(client, SdkClient)
    assert client.vendor == vendor


@dialects
def test_a_dialect_says_all_that_recordings_must_know_of_its_vendor(dialect: Dialect) -> None:
    known = {name: getattr(dialect, name) for name in Dialect.__annotations__}
    assert not [name for name, value in known.items() if value == ""]
    assert dialect.path.endswith(dialect.endpoint) or dialect.endpoint.startswith(":")
    body = dialect.to_request(RICH)
    assert dialect.messages_key in body
    parameters, messages = dialect.split({dialect.messages_key: body[dialect.messages_key]})
    assert messages
    assert dialect.messages_key not in parameters
    assert not dialect.uncounted & {dialect.messages_key, "model"}


@pytest.mark.parametrize("provider", VENDORS)
def test_a_client_goes_to_its_vendors_own_address_unless_told_another(provider: Any) -> None:
    model = ModelConfig(provider=provider, name="m")
    client = live_client(model, "no-key")
    assert isinstance(client, SdkClient)
    assert client.url == dialect_of(model).base_url


def keys(value: Json) -> Iterator[str]:
    """All keys but those of tools' arguments."""
    if isinstance(value, list):
        for item in value:
            yield from keys(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            if key not in ("properties", "input", "args", "arguments") or isinstance(item, list):
                yield from keys(item)


def unknown(dialect: Dialect, found: Iterator[str] | list[str]) -> list[str]:
    words = dialect.words.split()
    return sorted({key for key in found if len(key) >= 8 and not any(key in w for w in words)})


@dialects
def test_the_keys_of_requests_and_answers_are_among_a_dialects_words(dialect: Dialect) -> None:
    sent: list[Json] = [dialect.to_request(RICH, stream=stream) for stream in (False, True)]
    assert unknown(dialect, keys([*sent, *ANSWERS[dialect.name]])) == []


SENT_BY_SDKS: dict[str, Any] = {
    "anthropic-messages": inspect.signature(Messages.create).parameters,
    "google-generate": [
        field.alias for field in google_types.GenerationConfig.model_fields.values()
    ],
    "ollama-chat": [
        *inspect.signature(ollama.Client.chat).parameters, *ollama.Options.model_fields,
    ],
    "openai-chat": inspect.signature(Completions.create).parameters,
    "openai-responses": inspect.signature(Responses.create).parameters,
}  # fmt: skip


@dialects
def test_what_a_vendors_sdk_may_send_is_among_the_words(dialect: Dialect) -> None:
    sent = [name for name in SENT_BY_SDKS[dialect.name] if not name.startswith("extra_")]
    assert len(sent) > 10
    assert unknown(dialect, sent) == []


def test_the_keys_of_the_shipped_recordings_are_among_the_words() -> None:
    known = {dialect.name: dialect for dialect in all_dialects()}
    seen = set()
    for path in (ROOT / "cassettes").rglob("*.jsonl"):
        view = read(path)
        for one in view.interactions.values():
            seen.add(one.endpoint)
            body = view.parameters[one.line.parameters].body
            found = keys([body, *one.line.add, one.line.response.body])
            assert unknown(known[one.endpoint], found) == [], path
    assert seen

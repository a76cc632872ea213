from __future__ import annotations

from typing import Any

import pytest

from harness.errors import MalformedAnswerError
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
from harness.schema.messages import Text
from harness.schema.suite import ModelConfig
from tests.providers.lookalikes import openai_chat, openai_responses


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

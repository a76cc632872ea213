"""Live calls to an endpoint that speaks one of OpenAI's formats, over the vendor's SDK."""

from __future__ import annotations

from functools import cache
from typing import Literal

import openai
from openai.resources.chat.completions import Completions
from openai.resources.responses import Responses

from harness.providers.deadline import keep_limits
from harness.providers.openai_chat import OpenAIChat
from harness.providers.openai_responses import OpenAIResponses
from harness.providers.sdk_client import SdkClient
from harness.providers.stainless import Sdk, sdk_client

SDK = Sdk(
    status_error=openai.APIStatusError,
    connection_error=openai.APIConnectionError,
    any_error=openai.OpenAIError,
    json_stream=openai.Stream[object],
)


def client(
    *,
    base_url: str | None = None,
    api_key: str | None = None,
    api: Literal["chat", "responses"] = "chat",
    system_role: Literal["system", "developer"] = "system",
    timeout_s: float = 600,
) -> SdkClient:
    """A client of an endpoint; without one it is the vendor's own.

    Without a key the SDK looks for one itself.
    """
    url = base_url or OpenAIChat.base_url
    sdk = _sdk(url, api_key, timeout_s)
    if api == "responses":
        respond = sdk.responses.with_raw_response.create
        return sdk_client(SDK, OpenAIResponses(), url, respond, Responses.create)
    complete = sdk.chat.completions.with_raw_response.create
    dialect = OpenAIChat(system_role=system_role)
    return sdk_client(SDK, dialect, url, complete, Completions.create)


@cache
def _sdk(base_url: str, api_key: str | None, timeout_s: float) -> openai.OpenAI:
    """One SDK client per endpoint and key: building one costs more than a replayed call."""
    made = openai.OpenAI(base_url=base_url, api_key=api_key, timeout=timeout_s)
    keep_limits(made._client)
    return made

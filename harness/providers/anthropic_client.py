"""Live calls to an endpoint that speaks Anthropic's messages, over the vendor's SDK."""

from __future__ import annotations

from functools import cache

import anthropic
from anthropic.resources.messages import Messages

from harness.providers.anthropic_messages import AnthropicMessages
from harness.providers.deadline import keep_limits
from harness.providers.sdk_client import SdkClient
from harness.providers.stainless import Sdk, sdk_client

SDK = Sdk(
    status_error=anthropic.APIStatusError,
    connection_error=anthropic.APIConnectionError,
    any_error=anthropic.AnthropicError,
    json_stream=anthropic.Stream[object],
)


def client(*, base_url: str | None = None, api_key: str, timeout_s: float = 600) -> SdkClient:
    """A client of an endpoint; without one it is the vendor's own."""
    url = base_url or AnthropicMessages.base_url
    create = _sdk(url, api_key, timeout_s).messages.with_raw_response.create
    return sdk_client(SDK, AnthropicMessages(), url, create, Messages.create)


@cache
def _sdk(base_url: str, api_key: str, timeout_s: float) -> anthropic.Anthropic:
    """One SDK client per endpoint and key: building one costs more than a replayed call."""
    made = anthropic.Anthropic(base_url=base_url, api_key=api_key, timeout=timeout_s)
    keep_limits(made._client)
    # This SDK alone finds out only when it is called.
    if made.api_key is None and made.auth_token is None and made.credentials is None:
        raise anthropic.AnthropicError("no API key was given or found")
    return made

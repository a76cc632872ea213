"""Live calls to an endpoint that speaks Anthropic's messages, over the vendor's SDK."""

from __future__ import annotations

import inspect
from functools import cache

import anthropic
from anthropic.resources.messages import Messages

from harness.providers.anthropic_messages import AnthropicMessages
from harness.providers.sdk_client import SdkClient

DEFAULT_BASE_URL = "https://api.anthropic.com"

ARGUMENTS = frozenset(inspect.signature(Messages.create).parameters)


def client(*, base_url: str | None, api_key: str, timeout_s: float = 600) -> SdkClient:
    """A client of an endpoint; without one it is the vendor's own."""
    url = base_url or DEFAULT_BASE_URL
    return SdkClient(
        url=url,
        dialect=AnthropicMessages(),
        create=_sdk(url, api_key, timeout_s).messages.with_raw_response.create,
        arguments=ARGUMENTS,
        status_error=anthropic.APIStatusError,
        connection_error=anthropic.APIConnectionError,
        any_error=anthropic.AnthropicError,
    )


@cache
def _sdk(base_url: str, api_key: str, timeout_s: float) -> anthropic.Anthropic:
    """One SDK client per endpoint and key: building one costs more than a replayed call."""
    return anthropic.Anthropic(base_url=base_url, api_key=api_key, timeout=timeout_s)

"""Live calls to an endpoint that speaks OpenAI's chat completions, over the vendor's SDK."""

from __future__ import annotations

import inspect
from functools import cache

import openai
from openai.resources.chat.completions import Completions

from harness.providers.openai_chat import OpenAIChat
from harness.providers.sdk_client import SdkClient

DEFAULT_BASE_URL = "https://api.openai.com/v1"

ARGUMENTS = frozenset(inspect.signature(Completions.create).parameters)


def client(*, base_url: str | None, api_key: str, timeout_s: float = 600) -> SdkClient:
    """A client of an endpoint; without one it is the vendor's own."""
    url = base_url or DEFAULT_BASE_URL
    return SdkClient(
        url=url,
        dialect=OpenAIChat(),
        create=_sdk(url, api_key, timeout_s).chat.completions.with_raw_response.create,
        arguments=ARGUMENTS,
        status_error=openai.APIStatusError,
        connection_error=openai.APIConnectionError,
        any_error=openai.OpenAIError,
    )


@cache
def _sdk(base_url: str, api_key: str, timeout_s: float) -> openai.OpenAI:
    """One SDK client per endpoint and key: building one costs more than a replayed call."""
    return openai.OpenAI(base_url=base_url, api_key=api_key, timeout=timeout_s)

"""Live calls to an endpoint that speaks Anthropic's messages, over the vendor's SDK."""

from __future__ import annotations

import inspect
from functools import cache
from typing import Any

import anthropic
from anthropic.resources.messages import Messages

from harness.errors import ModelCallError
from harness.protocols import ModelRequest
from harness.providers import failures
from harness.providers.anthropic_messages import AnthropicMessages
from harness.schema.messages import ModelTurn

DEFAULT_BASE_URL = "https://api.anthropic.com"

ARGUMENTS = frozenset(inspect.signature(Messages.create).parameters)


class AnthropicClient:
    """Answers model requests over HTTP."""

    def __init__(self, *, base_url: str | None, api_key: str, timeout_s: float = 600) -> None:
        """Take an endpoint; without one it is the vendor's own."""
        self._base_url = base_url or DEFAULT_BASE_URL
        self._sdk = _sdk(self._base_url, api_key, timeout_s)
        self._dialect = AnthropicMessages()

    def complete(self, request: ModelRequest) -> ModelTurn:
        """Answer one request.

        Raises:
            ModelCallError: the call failed.
        """
        body = self._dialect.to_request(request)
        known: dict[str, Any] = {k: v for k, v in body.items() if k in ARGUMENTS}
        unknown = {k: v for k, v in body.items() if k not in ARGUMENTS}
        try:
            answer = self._sdk.messages.with_raw_response.create(
                **known, extra_body=unknown or None
            )
        except anthropic.APIStatusError as error:
            raise failures.answered(
                error.status_code, error.response.text, self._base_url
            ) from error
        except anthropic.APIConnectionError as error:
            raise failures.unreachable(error, self._base_url) from error
        except anthropic.AnthropicError as error:
            raise ModelCallError(f"{self._base_url}: {error}") from error
        text = answer.http_response.text
        return self._dialect.from_response(failures.answer_object(text, self._base_url))


@cache
def _sdk(base_url: str, api_key: str, timeout_s: float) -> anthropic.Anthropic:
    """One SDK client per endpoint and key: building one costs more than a replayed call."""
    return anthropic.Anthropic(base_url=base_url, api_key=api_key, timeout=timeout_s)

"""Live calls through a vendor's SDK; which SDK is the caller's business."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from harness.errors import ModelCallError
from harness.protocols import Dialect, ModelRequest
from harness.providers import failures
from harness.schema.messages import ModelTurn


@dataclass(frozen=True, slots=True)
class SdkClient:
    """Answers model requests over HTTP."""

    url: str
    dialect: Dialect
    create: Callable[..., Any]
    """The SDK's call; returns the raw response."""
    arguments: frozenset[str]
    """What the call takes by name; all else goes into the body as it is."""
    status_error: type[Any]
    connection_error: type[Exception]
    any_error: type[Exception]

    def complete(self, request: ModelRequest) -> ModelTurn:
        """Answer one request.

        Raises:
            ModelCallError: the call failed.
        """
        body = self.dialect.to_request(request)
        known: dict[str, Any] = {k: v for k, v in body.items() if k in self.arguments}
        unknown = {k: v for k, v in body.items() if k not in self.arguments}
        try:
            answer = self.create(**known, extra_body=unknown or None)
        except self.status_error as error:
            raise failures.answered(error.status_code, error.response.text, self.url) from error
        except self.connection_error as error:
            raise failures.unreachable(error, self.url) from error
        except self.any_error as error:
            raise ModelCallError(f"{self.url}: {error}") from error
        return self.dialect.from_response(
            failures.answer_object(answer.http_response.text, self.url)
        )

"""What is kept of an answer, by its status; and errors that are held until they are got over."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from harness.cassette.canonical import CanonicalRequest
from harness.cassette.format import StoredResponse

# A refused key is replaced, and 404 and 405 come from a wrong base_url or model name. Where a
# server listens is no part of a request's identity: they would be served when it was put right.
_NEVER = frozenset({401, 403, 404, 405, 407})
# Overload and time-outs say nothing about the agent, and are tried again.
_RETRYABLE = frozenset({408, 409, 429})
_WAITS = frozenset({"retry-after", "retry-after-ms", "x-should-retry"})


def keeping(status: int, *, keep_errors: bool) -> Literal["never", "held", "kept"]:
    """What becomes of an answer: `held` until the same request gets one that is kept."""
    if status in _NEVER:
        return "never"
    if (status in _RETRYABLE or status >= 500) and not keep_errors:
        return "held"
    return "kept"


@dataclass(frozen=True, slots=True)
class LiveAnswer:
    """An answer that came from the live model, and its request, without secrets."""

    request: CanonicalRequest
    response: StoredResponse
    latency_s: float
    first_byte_s: float | None

    def for_good(self) -> StoredResponse:
        """An error as it answers every such request: nobody waits, since nothing will change."""
        headers = {n: v for n, v in self.response.headers.items() if n not in _WAITS}
        headers["x-should-retry"] = "false"
        return self.response.model_copy(update={"headers": headers})

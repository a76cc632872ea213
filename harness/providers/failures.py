"""What an HTTP answer or a broken connection means, whichever vendor it came from."""

from __future__ import annotations

from harness.errors import (
    AuthenticationError,
    ContextExceededError,
    HarnessError,
    MalformedAnswerError,
    ModelCallError,
    OverloadedError,
    RateLimitedError,
    ReplayMissError,
)
from harness.providers.wire_json import parsed
from harness.schema.record import Json, JsonObject

REPLAY_MISS = "replay_miss"
"""Type or code of the error with which a cassette answers what it does not hold."""

CONTEXT_CODES = frozenset({"context_length_exceeded", "exceed_context_size_error"})
CONTEXT_PHRASES = (
    "prompt is too long",
    "exceed context limit",
    "maximum context length",
    "context window",
    "context size",
)


def answered(status: int, text: str, endpoint: str) -> ModelCallError:
    """The failure behind an HTTP status and the body that came with it."""
    body = parsed(text)
    error = body.get("error") if isinstance(body, dict) else None
    detail = error if isinstance(error, dict) else {}
    kinds = {detail.get(key) for key in ("type", "code") if isinstance(detail.get(key), str)}
    message = str(detail.get("message") or error or body or "no explanation")
    if REPLAY_MISS in kinds:
        return ReplayMissError(message)
    # Gateways answer with whole HTML pages.
    said = f"{endpoint} answered HTTP {status}: {' '.join(message.split())[:500]}"
    if status in (401, 403):
        return AuthenticationError(f"{said}; check the API key")
    if status == 429:
        return RateLimitedError(f"{said}; wait, or run fewer jobs")
    if status >= 500 or status == 408:
        return OverloadedError(said)
    if status == 400 and _is_too_long(kinds, message):
        return ContextExceededError(said)
    return ModelCallError(said)


def unreachable(error: Exception, endpoint: str) -> HarnessError:
    """The failure behind a connection that broke; an error of ours that an SDK wrapped is it."""
    cause = error.__cause__
    if isinstance(cause, HarnessError):
        return cause
    reason = f"{error} ({cause})" if cause and str(cause) else str(error)
    return OverloadedError(f"cannot reach {endpoint}: {reason}; check that it is serving")


def answer_object(text: str, endpoint: str) -> JsonObject:
    """The JSON object in a successful answer.

    Raises:
        MalformedAnswerError: it holds none.
    """
    body = parsed(text)
    if not isinstance(body, dict):
        raise MalformedAnswerError(
            f"{endpoint} answered {text[:200]!r}, not a JSON object;"
            " check that base_url is the API's, with its version where it wants one"
        )
    return body


def _is_too_long(kinds: set[Json], message: str) -> bool:
    lowered = message.lower()
    return bool(kinds & CONTEXT_CODES) or any(phrase in lowered for phrase in CONTEXT_PHRASES)

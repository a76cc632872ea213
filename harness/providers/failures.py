"""What an HTTP answer, an error event or a broken connection means, whichever vendor's it is."""

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
    "context length",
    "context window",
    "context size",
    "maximum model length",
    "exceeds the maximum number of tokens",
)

REFUSAL_CODES = frozenset(
    {
        "content_filter",
        "content_policy_violation",
        "image_content_policy_violation",
        "bio_policy",
        "misalignment_policy_violation",
    }
)
REFUSAL_PHRASES = (
    "flagged as potentially violating",
    "input was flagged",
    "content management policy",
    "blocked by content filtering policy",
)

STATUS_OF_KIND = {
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "insufficient_quota": 429,
    "slow_down": 429,
    "authentication_error": 401,
    "invalid_api_key": 401,
    "permission_error": 403,
    "overloaded_error": 529,
    "server_is_overloaded": 503,
    "timeout_error": 504,
    "api_error": 500,
    "server_error": 500,
    "internal_error": 500,
    "invalid_request_error": 400,
}
"""HTTP status that an error of this type or code has where it does not come in a stream."""


class RefusedError(ModelCallError):
    """The vendor's content policy turned the request down; the client makes a refusal of it."""


def answered(status: int, text: str, endpoint: str) -> ModelCallError:
    """The failure behind an HTTP status and the body that came with it."""
    body = parsed(text)
    # Google's endpoint in OpenAI's format puts its errors into a list.
    body = body[0] if isinstance(body, list) and len(body) == 1 else body
    error = body.get("error") if isinstance(body, dict) else None
    return _failure(status, error or body, f"{endpoint} answered HTTP {status}")


def reported(error: Json, source: str) -> ModelCallError:
    """The failure behind an error that came within an answer, where there is no HTTP status."""
    if isinstance(error, dict) and isinstance(error.get("error"), dict):
        error = error["error"]
    detail = error if isinstance(error, dict) else {}
    code = detail.get("code")
    if isinstance(code, int):
        status = code
    else:
        known = (STATUS_OF_KIND[kind] for kind in _kinds(detail) if kind in STATUS_OF_KIND)
        status = next(known, 0)
    return _failure(status, error, f"{source} reported an error")


def unreachable(error: Exception, endpoint: str) -> HarnessError:
    """The failure behind a connection that broke; an error of ours that an SDK wrapped is it."""
    cause = error.__cause__
    if isinstance(cause, HarnessError):
        return cause
    reason = f"{error} ({cause})" if cause and str(cause) else str(error)
    return OverloadedError(f"cannot reach {endpoint}: {reason}; check that it is serving")


def answer_object(answer: Json, endpoint: str) -> JsonObject:
    """A successful answer, which must be a JSON object.

    Raises:
        MalformedAnswerError: it is not.
    """
    if not isinstance(answer, dict):
        raise MalformedAnswerError(
            f"{endpoint} answered {str(answer)[:200]!r}, not a JSON object;"
            " check that base_url is the API's, with its version where it wants one"
        )
    return answer


def _failure(status: int, error: Json, happened: str) -> ModelCallError:
    detail = error if isinstance(error, dict) else {}
    kinds = set(_kinds(detail))
    message = str(detail.get("message") or error or "no explanation")
    if REPLAY_MISS in kinds:
        return ReplayMissError(message)
    # Gateways answer with whole HTML pages.
    said = f"{happened}: {' '.join(message.split())[:500]}"
    lowered = message.lower()
    refused = kinds & REFUSAL_CODES or any(phrase in lowered for phrase in REFUSAL_PHRASES)
    if refused and status in (0, 400, 403):
        return RefusedError(message)
    if status in (401, 403):
        return AuthenticationError(f"{said}; check the API key")
    if status == 429:
        return RateLimitedError(f"{said}; wait, or run fewer jobs")
    if status >= 500 or status == 408:
        return OverloadedError(said)
    too_long = kinds & CONTEXT_CODES or any(phrase in lowered for phrase in CONTEXT_PHRASES)
    if status == 413 or (too_long and status in (0, 400)):
        return ContextExceededError(said)
    return ModelCallError(said)


def _kinds(detail: JsonObject) -> list[str]:
    """What the error calls itself, the most exact name first."""
    names = (detail.get("code"), detail.get("type"))
    return [name for name in names if isinstance(name, str)]

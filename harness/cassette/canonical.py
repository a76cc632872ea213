"""What identifies a request: a canonical form and its digests."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from harness.providers.catalog import all_dialects
from harness.schema.record import Json, JsonObject

_DIALECTS = all_dialects()

DIGEST_CHARS = 24
"""Hex digits of the digests that stand in cassettes (96 bits)."""


def canonical_json(value: Json) -> bytes:
    """JSON with sorted keys and no spaces; `0` and `0.0` stay different."""
    text = json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )
    return text.encode()


def digest(value: Json) -> str:
    """SHA-256 of the canonical JSON, in hex."""
    return hashlib.sha256(canonical_json(value)).hexdigest()


def parse_json(data: str | bytes) -> Json:
    """Parse strict JSON: no NaN or infinity, and no half of a surrogate pair.

    Raises:
        ValueError: it is not JSON, or cannot be written again as it is.
    """
    value: Json = json.loads(data, parse_constant=_refuse, parse_float=_finite)
    if isinstance(data, str):
        data = data.encode("utf-8", "surrogatepass")
    if b"\\ud" in data or b"\\uD" in data:
        canonical_json(value)
    return value


def writable(value: Json) -> Json:
    """The value itself, or with what no JSON text can hold replaced."""
    try:
        canonical_json(value)
    except ValueError:
        return _replaced(value)
    return value


def _replaced(value: Json) -> Json:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, list):
        return [_replaced(item) for item in value]
    if isinstance(value, dict):
        return {str(_replaced(key)): _replaced(item) for key, item in value.items()}
    return value


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is too large")
    return number


EMPTY_CHAIN = hashlib.sha256(b"").hexdigest()[:DIGEST_CHARS]
"""The chain digest before the first message."""


def chain_after(chain: str, message: JsonObject) -> str:
    """The chain digest of a conversation that goes on with one more message."""
    content = chain.encode() + canonical_json(message)
    return hashlib.sha256(content).hexdigest()[:DIGEST_CHARS]


@dataclass(frozen=True, slots=True)
class CanonicalRequest:
    """A request as its identity sees it; made by `CanonicalRequest.of`."""

    endpoint: str
    """Name of the dialect, or `METHOD URL` for anything that is not a model endpoint."""
    parameters: JsonObject
    messages: tuple[JsonObject, ...]
    is_model_call: bool
    parameters_digest: str
    """Of endpoint and parameters."""
    chain: tuple[str, ...]
    """Digest of the conversation after each message, without the parameters."""
    digest: str

    @classmethod
    def of(
        cls,
        endpoint: str,
        parameters: JsonObject,
        messages: Iterable[JsonObject],
        *,
        is_model_call: bool,
    ) -> CanonicalRequest:
        """Compute the digests of a request."""
        messages = tuple(messages)
        parameters_digest = digest([endpoint, parameters])[:DIGEST_CHARS]
        chain = []
        last = EMPTY_CHAIN
        for message in messages:
            last = chain_after(last, message)
            chain.append(last)
        key = digest([parameters_digest, last])[:DIGEST_CHARS]
        return cls(
            endpoint, parameters, messages, is_model_call, parameters_digest, tuple(chain), key
        )

    @property
    def chain_end(self) -> str:
        """Digest of the whole conversation."""
        return self.chain[-1] if self.chain else EMPTY_CHAIN

    def redacted(self, redact: Callable[[Json], Json]) -> CanonicalRequest:
        """The same request with every part passed through a redaction; itself if none changed."""
        endpoint = redact(self.endpoint)
        parameters = redact(self.parameters)
        messages = [redact(message) for message in self.messages]
        unchanged = (
            endpoint is self.endpoint
            and parameters is self.parameters
            and all(new is old for new, old in zip(messages, self.messages, strict=True))
        )
        if unchanged:
            return self
        return CanonicalRequest.of(
            str(endpoint), _object(parameters), map(_object, messages),
            is_model_call=self.is_model_call,
        )  # fmt: skip


def _object(value: Json) -> JsonObject:
    if not isinstance(value, dict):
        raise TypeError(f"expected a JSON object, not {type(value).__name__}")
    return value


def canonical_request(method: str, url: str, body: bytes) -> CanonicalRequest:
    """The identity of an HTTP request.

    At a model endpoint host, port and headers do not count; for anything else method, URL and
    body do.
    """
    is_json, value = _body_value(body)
    if is_json and isinstance(value, dict):
        path = urlsplit(url).path.rstrip("/")
        for dialect in _DIALECTS:
            spoken = _spoken(dialect.endpoint, path, value)
            if spoken is not None:
                parameters, messages = dialect.split(spoken)
                return CanonicalRequest.of(dialect.name, parameters, messages, is_model_call=True)
    name = f"{method.upper()} {url}"
    return CanonicalRequest.of(name, {"body": value}, (), is_model_call=False)


def _spoken(endpoint: str, path: str, body: JsonObject) -> JsonObject | None:
    """The body as the dialect of an endpoint reads it; None for other paths.

    An endpoint with a colon is a method of a model, `models/M:generateContent`, and its streamed
    form is `models/M:streamGenerateContent`: what the path says is part of the request.
    """
    if not endpoint.startswith(":"):
        return body if path.endswith(endpoint) else None
    resource, _, method = unquote(path).rpartition(":")
    collection, _, model = resource.rpartition("/")
    if collection.endswith("/tunedModels"):
        model = f"tunedModels/{model}"
    plain = endpoint[1:]
    if method == plain:
        return body | {"model": model}
    if method == f"stream{plain[0].upper()}{plain[1:]}":
        return body | {"model": model, "stream": True}
    return None


def _body_value(body: bytes) -> tuple[bool, Json]:
    """Whether a body is JSON, and its content."""
    if not body:
        return False, None
    try:
        return True, parse_json(body)
    except ValueError:
        pass
    try:
        # A half surrogate pair can be sent, but not be written: it is replaced for identity.
        return True, writable(json.loads(body, parse_constant=_refuse, parse_float=_finite))
    except ValueError:
        pass
    try:
        return False, {"text": body.decode()}
    except UnicodeDecodeError:
        return False, {"base64": base64.b64encode(body).decode()}

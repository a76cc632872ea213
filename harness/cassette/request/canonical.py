"""What identifies a request: a canonical form and its digests."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from pydantic_core import PydanticSerializationError, from_json, to_json

from harness.cassette.request.endpoints import model_call
from harness.protocols import Dialect
from harness.providers.catalog import all_dialects
from harness.redaction import unpacked
from harness.schema.record import Json, JsonObject

_DIALECTS = all_dialects()

DIGEST_CHARS = 24
"""Hex digits of the digests that stand in cassettes (96 bits)."""


_written = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
).encode


def canonical_json(value: Json) -> bytes:
    """JSON with sorted keys and no spaces; `0` and `0.0` stay different."""
    try:
        # The same text in two thirds of the time, but for floats with an exponent and deep nesting.
        return to_json(_in_order(value))
    except (_ExponentError, PydanticSerializationError, RecursionError):
        return _written(value).encode()


class _ExponentError(Exception):
    """There is a float in it that Python writes with an exponent, or that is no number."""


def _in_order(value: Any) -> Any:
    """The value with its keys sorted, at all levels."""
    # Every request passes here: exact types and plain loops halve the time.
    kind = type(value)
    if kind is dict:
        sorted_ = {}
        for key in sorted(value):
            item = value[key]
            sorted_[key] = item if type(item) is str else _in_order(item)
        return sorted_
    if kind is list:
        return [item if type(item) is str else _in_order(item) for item in value]
    if kind is float and not (value == 0 or 1e-4 <= abs(value) < 1e16):
        raise _ExponentError
    return value


def digest(value: Json) -> str:
    """SHA-256 of the canonical JSON, in hex."""
    return hashlib.sha256(canonical_json(value)).hexdigest()


MAX_DEPTH = 150
"""Levels of a body that is kept as JSON. A line adds a few, and every parser stops at some: what is
written must be read again."""


def shallow(value: Json) -> Json:
    """The value itself.

    Raises:
        ValueError: it has more than `MAX_DEPTH` levels.
    """
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(MAX_DEPTH):
        if not level:
            return value
        level = [
            item
            for each in level
            for item in (each.values() if isinstance(each, dict) else each)
            if type(item) is dict or type(item) is list
        ]
    if level:
        raise ValueError(f"more than {MAX_DEPTH} levels")
    return value


def parse_body(data: str | bytes) -> Json:
    """Parse the JSON of a body, as `parse_json` does.

    Raises:
        ValueError: it is not JSON, or cannot be written so that it is read again as it is.
    """
    return shallow(parse_json(data))


def parse_json(data: str | bytes) -> Json:
    """Parse strict JSON: no NaN or infinity, and no half of a surrogate pair.

    Raises:
        ValueError: it is not JSON, or cannot be written again as it is.
    """
    try:
        value: Json = json.loads(data, parse_constant=_refuse, parse_float=_finite)
    except RecursionError as error:
        raise ValueError("too many levels") from error
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
    sent: str | None = None
    """Digest of a model call as it was sent, if that is known; see `sent_digest`."""

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
        about = parameters_digest(endpoint, parameters)
        chain = chain_of(messages)
        key = request_digest(about, chain[-1] if chain else EMPTY_CHAIN)
        return cls(endpoint, parameters, messages, is_model_call, about, chain, key)

    @property
    def chain_end(self) -> str:
        """Digest of the whole conversation."""
        return self.chain[-1] if self.chain else EMPTY_CHAIN

    def redacted(self, redact: Callable[[Json], Json]) -> CanonicalRequest:
        """The same request with every part passed through a redaction; itself if none changed."""
        # All at once: one look over the whole is far cheaper than one for each message.
        parts: Json = [self.endpoint, self.parameters, *self.messages]
        clean = redact(parts)
        if clean is parts or not isinstance(clean, list):
            return self
        endpoint, parameters, *messages = clean
        return CanonicalRequest.of(
            str(endpoint), _object(parameters), map(_object, messages),
            is_model_call=self.is_model_call,
        )  # fmt: skip


def _object(value: Json) -> JsonObject:
    if not isinstance(value, dict):
        raise TypeError(f"expected a JSON object, not {type(value).__name__}")
    return value


def model_request(
    dialect: Dialect,
    body: JsonObject,
    make: Callable[..., CanonicalRequest] = CanonicalRequest.of,
) -> CanonicalRequest:
    """The identity of a model call, from the body that is sent."""
    parameters, messages = dialect.split(body)
    if not dialect.uncounted.isdisjoint(parameters):
        parameters = {key: v for key, v in parameters.items() if key not in dialect.uncounted}
    return make(dialect.name, parameters, messages, is_model_call=True)


def sent_digest(url: str, body: bytes) -> str:
    """Digest of a request's path and body, byte for byte; where the server is does not count."""
    path = url.partition("?")[0].split("/", 3)[-1]
    return hashlib.sha256(b"%s\n%s" % (path.encode(), body)).hexdigest()[:DIGEST_CHARS]


def canonical_request(
    method: str,
    url: str,
    body: bytes,
    make: Callable[..., CanonicalRequest] = CanonicalRequest.of,
) -> CanonicalRequest:
    """The identity of an HTTP request.

    For a model call host, port and headers do not count; for anything else method, URL and body
    do.
    """
    try:
        return _identity(method, url, {"body": _quickly(body)}, make)
    except ValueError:
        return _identity(method, url, _parameters(body), make)


def _identity(
    method: str, url: str, parameters: JsonObject, make: Callable[..., CanonicalRequest]
) -> CanonicalRequest:
    body = parameters.get("body")
    if isinstance(body, dict):
        for dialect in _DIALECTS:
            called = model_call(dialect, method, url, body)
            if called is not None:
                return model_request(dialect, called, make)
    return CanonicalRequest.of(f"{method.upper()} {url}", parameters, (), is_model_call=False)


def _quickly(body: bytes) -> Json:
    """JSON parsed in half the time; what it refuses may still be JSON.

    It takes numbers that are too large for a float, but no digest can be made of them.
    """
    return shallow(from_json(body, allow_inf_nan=False, cache_strings="keys"))


def _parameters(body: bytes) -> JsonObject:
    """A body as JSON in `body`, or else as what it is."""
    if not body:
        return {"body": None}
    body = body if (plain := unpacked(body)) is None else plain
    try:
        return {"body": parse_body(body)}
    except ValueError:
        pass
    try:
        # A half surrogate pair can be sent, but not be written: it is replaced for identity.
        value = json.loads(body, parse_constant=_refuse, parse_float=_finite)
        return {"body": writable(shallow(value))}
    except (ValueError, RecursionError):
        pass
    try:
        return {"text": body.decode()}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(body).decode()}


def parameters_digest(endpoint: str, parameters: JsonObject) -> str:
    """The digest of all of a request but its conversation."""
    return digest([endpoint, parameters])[:DIGEST_CHARS]


def chain_of(messages: Iterable[JsonObject], start: str = EMPTY_CHAIN) -> tuple[str, ...]:
    """The digest of a conversation after each message, going on from that of its beginning."""
    chain = []
    for message in messages:
        start = chain_after(start, message)
        chain.append(start)
    return tuple(chain)


def request_digest(parameters: str, chain: str) -> str:
    """The digest of a request, by those of its parameters and its whole conversation."""
    return digest([parameters, chain])[:DIGEST_CHARS]

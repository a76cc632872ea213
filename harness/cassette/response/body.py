"""HTTP bodies as readable JSON, and back."""

from __future__ import annotations

import base64
import http
import zlib
from collections.abc import Mapping
from typing import Any

from pydantic_core import to_json

from harness.cassette.format import StoredResponse
from harness.cassette.request.canonical import parse_body
from harness.cassette.response.events import (
    EventReader,
    event_pieces,
    is_json_lines,
    is_server_sent,
)
from harness.redaction import Redactor
from harness.schema.record import Json, JsonObject

_KEPT_HEADERS = frozenset(
    {
        "content-type",
        "location",
        "request-id",
        "retry-after",
        "retry-after-ms",
        "x-request-id",
        "x-should-retry",
    }
)
_PACKED = frozenset({"gzip", "x-gzip", "deflate"})


def store_response(
    status: int,
    headers: Mapping[str, str],
    body: bytes,
    redactor: Redactor,
    *,
    reader: EventReader | None = None,
    cut: bool = False,
) -> StoredResponse:
    """An answer as it is kept: structured where it can be, and without secrets.

    Args:
        status: HTTP status.
        headers: All of them.
        body: As it came, packed or not.
        redactor: Removes secrets.
        reader: What has read the body as it came, and so knows when each event did.
        cut: Whether the agent closed the stream before its end.
    """
    lower = {name.lower(): value for name, value in headers.items()}
    kept = {name: lower[name] for name in sorted(_KEPT_HEADERS & lower.keys())}
    encoding = lower.get("content-encoding", "").strip().lower()
    plain = _unpacked(body, encoding)
    if plain is None:
        kept["content-encoding"] = lower["content-encoding"]
        plain = body
    clean = redactor.json(dict(kept))
    reader = reader or reader_of(plain, lower.get("content-type", ""))
    kind, content = _structured(plain, reader, cut=cut)
    pieces = None if reader is None or kind == "events" else without_secrets(reader, redactor)
    if pieces is not None:
        # What else the stream held is the lesser loss.
        kind, content = "events", pieces
    elif kind == "base64":
        content = base64.b64encode(redactor.data(plain)).decode()
    else:
        content = redactor.events(content) if kind == "events" else redactor.json(content)
    return StoredResponse.model_validate(
        {"status": status, "headers": clean, "type": kind, "body": content, "cut": cut}
    )


def unpacker(encoding: str) -> zlib._Decompress | None:
    """What unpacks a body piece by piece; None for one that is not packed, or in another way."""
    packed = encoding.strip().lower() in _PACKED
    return zlib.decompressobj(wbits=zlib.MAX_WBITS | 32) if packed else None


def is_packed(body: bytes, encoding: str) -> bool:
    """Whether a body still has the encoding that its header names."""
    unpack = unpacker(encoding)
    if unpack is None:
        try:
            body.decode()
        except UnicodeDecodeError:
            return True
        return False
    try:
        unpack.decompress(body, 1)
    except zlib.error:
        return False
    return bool(body)


def _unpacked(body: bytes, encoding: str) -> bytes | None:
    """The plain body; None where it is packed in a way that cannot be undone here."""
    if encoding in ("", "identity"):
        return body
    unpack = unpacker(encoding)
    if unpack is None:
        return None
    try:
        return unpack.decompress(body) + unpack.flush()
    except zlib.error:
        return None


def reader_of(body: bytes, content_type: str) -> EventReader | None:
    """What has read a whole body; None where it is no stream."""
    if not (is_server_sent(content_type) or is_json_lines(content_type)):
        return None
    reader = EventReader(content_type)
    reader.feed(body)
    return reader


def without_secrets(reader: EventReader, redactor: Redactor) -> list[Json] | None:
    """The whole events that were read, without secrets; None where there are none in them.

    What broke off may hold the end of one: it is looked at, too.
    """
    events = reader.all_read()
    clean = redactor.events(events)
    if clean is events or not isinstance(clean, list):
        return None
    return clean[: len(reader.events)]


def _structured(body: bytes, reader: EventReader | None, *, cut: bool) -> tuple[str, Json]:
    events = None if reader is None else reader.close(cut=cut)
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return "base64", None
    if reader is not None:
        return ("text", text) if events is None else ("events", events)
    if text[:1] in "{[" and text:
        try:
            return "json", parse_body(text)
        except ValueError:
            pass
    return "text", text


def response_bytes(response: StoredResponse) -> bytes:
    """The content of a kept answer, as a client receives it."""
    if response.type == "json":
        return to_json(response.body)
    if response.type == "events":
        content_type = response.headers.get("content-type", "")
        return b"".join(piece for _, piece in event_pieces(response.body, content_type))
    if response.type == "base64":
        return base64.b64decode(str(response.body))
    return str(response.body).encode()


def vcr_response(response: StoredResponse) -> dict[str, Any]:
    """A kept answer in vcrpy's shape, its body as bytes."""
    try:
        phrase = http.HTTPStatus(response.status).phrase
    except ValueError:
        phrase = ""
    return {
        "status": {"code": response.status, "message": phrase},
        "headers": {name: [value] for name, value in response.headers.items()},
        "body": {"string": response_bytes(response)},
    }


def answering_model(response: StoredResponse) -> str | None:
    """The model's name as it answered; None where the answer does not say it."""
    parts: list[Json] = [response.body]
    if response.type == "events" and isinstance(response.body, list):
        parts = [event.get("data") for event in response.body if isinstance(event, dict)]
    for source in (source for part in parts for source in _objects(part)):
        for name in ("model", "modelVersion"):
            if isinstance(found := source.get(name), str):
                return found
    return None


def _objects(part: Json) -> list[JsonObject]:
    """A body or event, and the message that the first event of a stream wraps."""
    if not isinstance(part, dict):
        return []
    message = part.get("message")
    return [part, message] if isinstance(message, dict) else [part]

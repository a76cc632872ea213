"""HTTP bodies as readable JSON, and back."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping

from harness.cassette.canonical import parse_json
from harness.cassette.format import StoredResponse
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


def store_response(
    status: int, headers: Mapping[str, str], body: bytes, redactor: Redactor
) -> StoredResponse:
    """An answer as it is kept: structured where it can be, and without secrets."""
    lower = {name.lower(): value for name, value in headers.items()}
    kept = {name: lower[name] for name in sorted(_KEPT_HEADERS & lower.keys())}
    plain = _decompress(body, lower.get("content-encoding", ""))
    if plain is None:
        kept["content-encoding"] = lower["content-encoding"]
        plain = body
    clean = {name: redactor.text(value) for name, value in kept.items()}
    kind, content = _structured(plain, lower.get("content-type", ""))
    if kind == "base64":
        content = base64.b64encode(redactor.data(plain)).decode()
    else:
        content = redactor.json(content)
    return StoredResponse.model_validate(
        {"status": status, "headers": clean, "type": kind, "body": content}
    )


def _decompress(body: bytes, encoding: str) -> bytes | None:
    match encoding.strip().lower():
        case "" | "identity":
            return body
        case "gzip" | "x-gzip" | "deflate":
            try:
                return zlib.decompress(body, wbits=zlib.MAX_WBITS | 32)
            except zlib.error:
                return None
        case _:
            return None


def _structured(body: bytes, content_type: str) -> tuple[str, Json]:
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return "base64", None
    if "event-stream" in content_type:
        events = _parse_events(text)
        return ("text", text) if events is None else ("events", events)
    if text[:1] in "{[" and text:
        try:
            return "json", parse_json(text)
        except ValueError:
            pass
    return "text", text


def response_bytes(response: StoredResponse) -> bytes:
    """The content of a kept answer, as a client receives it."""
    if response.type == "json":
        return json.dumps(response.body, ensure_ascii=False, separators=(",", ":")).encode()
    if response.type == "events" and isinstance(response.body, list):
        return b"".join(_event_bytes(event) for event in response.body if isinstance(event, dict))
    if response.type == "base64":
        return base64.b64decode(str(response.body))
    return str(response.body).encode()


def _parse_events(text: str) -> list[Json] | None:
    """Server-sent events in order; None where the text holds something that would be lost."""
    events: list[Json] = []
    event: JsonObject = {}
    data: list[str] = []
    for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        if not line:
            if event or data:
                events.append(_with_data(event, data))
            event, data = {}, []
            continue
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            data.append(value)
        elif name in ("event", "id", "retry"):
            event[name] = value
        elif name:
            return None
    if data == ["[DONE]"]:
        events.append(_with_data(event, data))
        event, data = {}, []
    # An event without its empty line never reached the client's handler: a stream that was cut.
    return None if event or data else events


def _with_data(event: JsonObject, data: list[str]) -> JsonObject:
    if not data:
        return event
    text = "\n".join(data)
    if text[:1] in ("{", "["):
        try:
            value = parse_json(text)
        except ValueError:
            value = None
        if value is not None:
            return {**event, "data": value}
    return {**event, "text": text}


def _event_bytes(event: JsonObject) -> bytes:
    lines = [f"{name}: {event[name]}" for name in ("event", "id", "retry") if name in event]
    if "data" in event:
        lines.append(
            "data: " + json.dumps(event["data"], ensure_ascii=False, separators=(",", ":"))
        )
    elif "text" in event:
        lines += [f"data: {line}" for line in str(event["text"]).split("\n")]
    return ("\n".join(lines) + "\n\n").encode()


def response_facts(response: StoredResponse) -> tuple[str | None, str | None, Json]:
    """Model, fingerprint and usage, wherever the answer says them."""
    parts: list[Json] = [response.body]
    if response.type == "events" and isinstance(response.body, list):
        parts = [event.get("data") for event in response.body if isinstance(event, dict)]
    model: str | None = None
    fingerprint: str | None = None
    usage: Json = None
    for part in parts:
        for source in _objects(part):
            model = model or _text(source.get("model"))
            fingerprint = fingerprint or _text(source.get("system_fingerprint"))
            found = source.get("usage")
            if isinstance(found, dict):
                usage = {**usage, **found} if isinstance(usage, dict) else found
    return model, fingerprint, usage


def _objects(part: Json) -> list[JsonObject]:
    """A body or event, and the message that the first event of a stream wraps."""
    if not isinstance(part, dict):
        return []
    message = part.get("message")
    return [part, message] if isinstance(message, dict) else [part]


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) else None

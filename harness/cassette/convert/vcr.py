"""The interactions of vcrpy's cassettes, and ours."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from typing import Any

from harness.cassette.convert.exchange import Exchange
from harness.cassette.convert.spelling import Sent
from harness.cassette.format import StoredResponse
from harness.cassette.request.canonical import canonical_request
from harness.cassette.request.each_message_once import redacting
from harness.cassette.response.body import is_packed, store_response, vcr_response
from harness.redaction import Redactor

_VERSION = 1
"""Of the file format, the same since vcrpy 1.0."""


def exchange_from_vcr(interaction: Mapping[str, Any], redactor: Redactor) -> Exchange:
    """One interaction as vcrpy's files hold it, without secrets.

    Raises:
        ValueError: it is not one; the text says what is wrong.
    """
    request = _mapping(interaction, "request")
    method, url = request.get("method"), request.get("uri")
    if not isinstance(method, str) or not isinstance(url, str):
        raise ValueError("the request has no 'method' and 'uri'")
    identity = canonical_request(method, url, _request_body(request))
    response = _mapping(interaction, "response")
    return Exchange(redacting(redactor)(identity), _stored(response, redactor))


def _stored(response: Mapping[str, Any], redactor: Redactor) -> StoredResponse:
    headers = {name.lower(): value for name, value in _headers(response).items()}
    body = _response_body(response)
    if not is_packed(body, headers.get("content-encoding", "")):
        headers.pop("content-encoding", None)
    return store_response(_status(response), headers, body, redactor)


def interaction_to_vcr(sent: Sent, response: StoredResponse) -> dict[str, Any]:
    """A request and its answer as vcrpy's files hold them: bodies are texts where they can be."""
    answer = vcr_response(response)
    answer["body"]["string"] = _readable(answer["body"]["string"])
    return {
        "request": {
            "method": sent.method,
            "uri": sent.url,
            "body": _readable(sent.body) if sent.body else None,
            "headers": {"content-type": [sent.content_type]} if sent.content_type else {},
        },
        "response": answer,
    }


def vcr_cassette(interactions: list[dict[str, Any]]) -> dict[str, Any]:
    """A whole cassette as vcrpy's serializers take it."""
    return {"version": _VERSION, "interactions": interactions}


def vcr_interactions(data: object) -> list[Mapping[str, Any]]:
    """The interactions of what one of vcrpy's serializers has read.

    Raises:
        ValueError: it is no cassette, or holds nothing; the text says so.
    """
    if isinstance(data, list) and data and isinstance(data[0], dict) and "request" in data[0]:
        raise ValueError("written by vcrpy before 1.0; run: python -m vcr.migration FILE")
    if not isinstance(data, dict) or not isinstance(data.get("interactions"), list):
        raise ValueError("not a vcrpy cassette: it has no list of 'interactions'")
    if data.get("version", _VERSION) != _VERSION:
        raise ValueError(f"version {data['version']!r} is not known here, only {_VERSION}")
    found: list[Mapping[str, Any]] = data["interactions"]
    if not found:
        raise ValueError("the cassette is empty: there is nothing to import")
    for number, item in enumerate(found, start=1):
        if not isinstance(item, dict):
            raise ValueError(f"interaction {number}: not a mapping")
    return found


def _mapping(holder: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = holder.get(key)
    if not isinstance(value, dict):
        raise ValueError(f"it has no {key!r}")
    return value


def _request_body(request: Mapping[str, Any]) -> bytes:
    if "parsed_body" in request:
        return _json(request["parsed_body"])
    return _bytes(request.get("body"))


def _response_body(response: Mapping[str, Any]) -> bytes:
    """The content, which five generations of writers put in five places."""
    if "parsed_body" in response:
        return _json(response["parsed_body"])
    if "content" in response and "body" not in response:
        return _bytes(response["content"])
    body = response.get("body")
    if isinstance(body, dict):
        if "string" in body:
            return _bytes(body["string"])
        if "base64_string" in body:
            try:
                return base64.b64decode(body["base64_string"], validate=True)
            except (TypeError, ValueError, binascii.Error) as error:
                raise ValueError(f"the response's 'base64_string' is not base64: {error}") from None
    return _bytes(body)


def _bytes(value: Any) -> bytes:
    """A body as text, bytes, file, pieces of either, or as the JSON in it."""
    if value is None:
        return b""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    if isinstance(value, bytes):
        return value
    if hasattr(value, "read"):
        return _bytes(value.read())
    if isinstance(value, dict | list | int | float):
        return _json(value)
    if isinstance(value, tuple) or hasattr(value, "__next__"):
        return b"".join(map(_bytes, value))
    raise ValueError(f"a body is a {type(value).__name__}, not text or bytes")


def _json(value: Any) -> bytes:
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except (TypeError, ValueError) as error:
        raise ValueError(f"a body holds what no JSON can: {error}") from None


def _status(response: Mapping[str, Any]) -> int:
    status = response.get("status", response.get("status_code"))
    code = status.get("code") if isinstance(status, dict) else status
    if isinstance(code, bool) or not isinstance(code, int):
        raise ValueError(f"the response's status is {code!r}, not a number")
    return code


def _headers(response: Mapping[str, Any]) -> dict[str, str]:
    headers = response.get("headers") or {}
    if not isinstance(headers, dict):
        raise ValueError("the response's 'headers' are no mapping")
    return {
        str(name): ", ".join(map(_text, values)) if isinstance(values, list) else _text(values)
        for name, values in headers.items()
    }


def _text(value: Any) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


def _readable(body: bytes) -> str | bytes:
    try:
        return body.decode()
    except UnicodeDecodeError:
        return body

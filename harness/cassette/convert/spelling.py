"""Canonical requests as a client sends them, and canonical messages as people write them."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from urllib.parse import quote

from harness.protocols import Dialect
from harness.providers.catalog import dialects_by_name
from harness.schema.record import Json, JsonObject

_JSON = "application/json"

_DIALECTS = dialects_by_name()


@dataclass(frozen=True, slots=True)
class Sent:
    """An HTTP request, but for the headers that say who sends it."""

    method: str
    url: str
    body: bytes
    content_type: str | None


def is_model_endpoint(endpoint: str) -> bool:
    """Whether recorded requests to an endpoint are model calls."""
    return endpoint in _DIALECTS


def sent_request(
    endpoint: str,
    parameters: JsonObject,
    messages: list[JsonObject],
    *,
    base_url: str | None = None,
) -> Sent:
    """A recorded request as a vendor's SDK sends it, spelled as its documentation does.

    Args:
        endpoint: Name of the dialect, or `METHOD URL`.
        parameters: Its canonical parameters.
        messages: Its canonical messages, or as `plain_message` spells them.
        base_url: What the SDK was given as its base URL; None for the vendor's own.
    """
    if not is_model_endpoint(endpoint):
        method, _, url = endpoint.partition(" ")
        return _other(method, url, parameters)
    dialect = _DIALECTS[endpoint]
    base = (base_url or dialect.base_url).rstrip("/")
    body = dict(parameters)
    path = _method_path(dialect, body) if dialect.endpoint.startswith(":") else dialect.path
    if "deployment" in body:  # Azure's: it was in the path
        path = f"/deployments/{quote(str(body.pop('deployment')), safe='')}{dialect.endpoint}"
    plain = [plain_message(message) for message in messages]
    body[dialect.messages_key] = [*plain]
    if endpoint == "anthropic-messages" and "system" in body:
        body["system"] = _plain(body["system"])
    if endpoint == "openai-responses" and len(plain) == 1 and plain[0].get("role") == "user":
        body["input"] = plain[0]["content"]
    return Sent("POST", base + path, _dumped(body), _JSON)


def plain_message(message: JsonObject) -> JsonObject:
    """A canonical message with text as text: blocks only where it holds more than that."""
    if "id" in message:  # a message out of an answer of OpenAI's responses, sent back
        return message
    plain = {key: value for key, value in message.items() if (key, value) != ("type", "message")}
    if "content" in plain:
        plain["content"] = _plain(plain["content"])
    elif plain.get("role") == "assistant" and "tool_calls" in plain:
        plain = {"role": "assistant", "content": None, **plain}
    if plain.get("type") == "function_call_output":
        plain["output"] = _plain(plain.get("output"))
    return plain


def _plain(content: Json) -> Json:
    if not isinstance(content, list):
        return content
    if not content:
        return ""
    if len(content) == 1:
        [block] = content
        if isinstance(block, dict) and block.keys() == {"type", "text"}:
            return block["text"]
    return [_plain_result(block) for block in content]


def _plain_result(block: Json) -> Json:
    if isinstance(block, dict) and block.get("type") == "tool_result" and "content" in block:
        return {**block, "content": _plain(block["content"])}
    return block


def _method_path(dialect: Dialect, body: JsonObject) -> str:
    """The path, for which model and manner of answering leave the body."""
    model = str(body.pop("model", ""))
    name = model if "/" in model else f"models/{model}"
    method = dialect.endpoint[1:]
    if body.pop("stream", False):
        method = f"stream{method[0].upper()}{method[1:]}?alt=sse"
    return f"{dialect.path}/{quote(name)}:{method}"


def _other(method: str, url: str, parameters: JsonObject) -> Sent:
    match parameters:
        case {"text": str(text)}:
            return Sent(method, url, text.encode(), None)
        case {"base64": str(data)}:
            return Sent(method, url, base64.b64decode(data), None)
        case {"body": body} if body is not None:
            return Sent(method, url, _dumped(body), _JSON)
        case _:
            return Sent(method, url, b"", None)


def _dumped(body: Json) -> bytes:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()

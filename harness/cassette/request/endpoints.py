"""Which requests are model calls, and what their URLs say beside their bodies."""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

from harness.protocols import Dialect
from harness.providers.wire_json import messages_of
from harness.schema.record import JsonObject


def model_call(dialect: Dialect, method: str, url: str, body: JsonObject) -> JsonObject | None:
    """The body of a call in a dialect, with what the path says; None where it is no such call.

    Other services have paths like those of models: it is one only if its body is one's, too.
    """
    if method.upper() != "POST":
        return None
    path = urlsplit(url).path.rstrip("/")
    called = (_of_named_model if dialect.endpoint.startswith(":") else _at_end)(dialect, path, body)
    return called if called is not None and _is_a_models(dialect, called) else None


def _is_a_models(dialect: Dialect, body: JsonObject) -> bool:
    asked = body.get(dialect.messages_key)
    has_messages = messages_of(body, dialect.messages_key) is not None or (
        dialect.messages_key == "input" and isinstance(asked, str)
    )
    return has_messages and any(isinstance(body.get(key), str) for key in ("model", "deployment"))


def _at_end(dialect: Dialect, path: str, body: JsonObject) -> JsonObject | None:
    """For Azure the path names the model: `/deployments/NAME/chat/completions`."""
    if not path.endswith(dialect.endpoint):
        return None
    _, found, name = path.removesuffix(dialect.endpoint).rpartition("/deployments/")
    return body | {"deployment": unquote(name)} if found and "/" not in name else body


def _of_named_model(dialect: Dialect, path: str, body: JsonObject) -> JsonObject | None:
    """For Google the endpoint is a method of a model, `models/M:generateContent`.

    Its streamed form is `models/M:streamGenerateContent`.
    """
    resource, _, method = unquote(path).rpartition(":")
    collection, _, model = resource.rpartition("/")
    if collection.endswith("/tunedModels"):
        model = f"tunedModels/{model}"
    plain = dialect.endpoint[1:]
    if method == plain:
        return body | {"model": model}
    if method == f"stream{plain[0].upper()}{plain[1:]}":
        return body | {"model": model, "stream": True}
    return None

"""Live calls to Ollama's own chat endpoint, over the vendor's package."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache

import httpx
import ollama

from harness.errors import ConfigurationError, HarnessError
from harness.providers import failures
from harness.providers.ollama_chat import OllamaChat
from harness.providers.sdk_client import SdkClient
from harness.providers.wire_json import messages_of, parsed
from harness.schema.record import Json, JsonObject

DEFAULT_BASE_URL = "http://127.0.0.1:11434"


def client(*, base_url: str | None = None, api_key: str = "", timeout_s: float = 600) -> SdkClient:
    """A client of an endpoint; without one it is the server of this machine.

    Raises:
        ConfigurationError: the base URL is none.
    """
    url = base_url or DEFAULT_BASE_URL
    http = _http(url, api_key, timeout_s)

    def failure(error: Exception) -> HarnessError:
        if isinstance(error, httpx.HTTPStatusError):
            return failures.answered(error.response.status_code, error.response.text, url)
        return failures.unreachable(error, url)

    return SdkClient(
        url=url,
        dialect=OllamaChat(),
        send=http.answer,
        stream=http.events,
        errors=(httpx.HTTPError, httpx.InvalidURL),
        failure=failure,
    )


class JsonClient(ollama.Client):
    """The package's client with bodies and answers as they are.

    Its `chat` sends and gives only what its types know: no ids of calls, and of a tool's schema no
    more than the names, types and descriptions of its arguments.
    """

    def answer(self, body: JsonObject) -> Json:
        """The answer to one request."""
        response = self._client.post(OllamaChat.endpoint, json=body)
        response.raise_for_status()
        return CallIds(body).given(parsed(response.text))

    @contextmanager
    def events(self, body: JsonObject) -> Iterator[Iterable[Json]]:
        """The lines of a streamed answer."""
        ids = CallIds(body)
        with self._client.stream("POST", OllamaChat.endpoint, json=body) as response:
            if not response.is_success:
                response.read()
                response.raise_for_status()
            yield (ids.given(parsed(line)) for line in _lines(response.iter_bytes()))


class CallIds:
    """Makes up ids for the calls of one answer, where the server gives none.

    They depend on nothing but the conversation's ids and the answer's own time, so that a replay
    makes up the same ones; the time keeps them apart from those that have left the conversation.
    """

    def __init__(self, body: JsonObject) -> None:
        messages = messages_of(body) or []
        self._taken = {id_ for message in messages for id_ in _ids(message)}
        self._next = len(self._taken) + 1

    def given(self, answer: Json) -> Json:
        """The answer, or a piece of it, with an id in every call."""
        message = answer.get("message") if isinstance(answer, dict) else None
        calls = message.get("tool_calls") if isinstance(message, dict) else None
        if not (isinstance(answer, dict) and isinstance(message, dict) and isinstance(calls, list)):
            return answer
        time = str(answer.get("created_at") or "")
        named = [
            {**call, "id": call.get("id") or self._new(time)} if isinstance(call, dict) else call
            for call in calls
        ]
        return answer | {"message": message | {"tool_calls": named}}

    def _new(self, time: str) -> str:
        stamp = hashlib.sha256(time.encode(errors="replace")).hexdigest()[:6]
        while (id_ := f"call_{self._next}_{stamp}") in self._taken:
            self._next += 1
        self._taken.add(id_)
        return id_


def _ids(message: JsonObject) -> list[str]:
    calls = message.get("tool_calls")
    if not isinstance(calls, list):
        return []
    found = [call.get("id") for call in calls if isinstance(call, dict)]
    return [id_ for id_ in found if isinstance(id_, str)]


def _lines(pieces: Iterable[bytes]) -> Iterator[str]:
    """Lines at line feeds only: httpx also parts them at U+0085, which JSON has within strings."""
    rest: list[bytes] = []
    for piece in pieces:
        *whole, last = piece.split(b"\n")
        for line in whole:
            text = b"".join((*rest, line)).decode(errors="replace").strip()
            rest.clear()
            if text:
                yield text
        rest.append(last)
    text = b"".join(rest).decode(errors="replace").strip()
    if text:
        yield text


@cache
def _http(base_url: str, api_key: str, timeout_s: float) -> JsonClient:
    """One client per endpoint and key, which keeps its connections."""
    headers = {"authorization": f"Bearer {api_key}"} if api_key else {}
    try:
        client = JsonClient(host=base_url, headers=headers, timeout=timeout_s)
    except (ValueError, httpx.InvalidURL) as error:
        raise ConfigurationError(f"base_url {base_url!r} is no URL: {error}") from error
    if not api_key:
        # The package reads a key from the environment by itself.
        client._client.headers.pop("authorization", None)
    return client

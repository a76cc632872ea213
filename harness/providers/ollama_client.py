"""Live calls to Ollama's own chat endpoint, over the vendor's package."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache

import httpx
import ollama

from harness.errors import ConfigurationError, HarnessError
from harness.providers import failures
from harness.providers.deadline import keep_limits
from harness.providers.ollama_call_ids import CallIds
from harness.providers.ollama_chat import OllamaChat
from harness.providers.sdk_client import SdkClient
from harness.providers.wire_json import parsed
from harness.schema.record import Json, JsonObject


def client(*, base_url: str | None = None, api_key: str = "", timeout_s: float = 600) -> SdkClient:
    """A client of an endpoint; without one it is the server of this machine.

    Raises:
        ConfigurationError: the base URL is none.
    """
    url = base_url or OllamaChat.base_url
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
    keep_limits(client._client)
    if not api_key:
        # The package reads a key from the environment by itself.
        client._client.headers.pop("authorization", None)
    return client

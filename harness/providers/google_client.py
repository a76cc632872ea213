"""Live calls to an endpoint that speaks Google's generate-content format, over the vendor's SDK."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import httpx2
from google import genai
from google.genai import errors, types

from harness.errors import AuthenticationError, HarnessError, MalformedAnswerError, ModelCallError
from harness.providers import failures
from harness.providers.deadline import keep_limits
from harness.providers.google_generate import PATH_KEYS, GoogleGenerate
from harness.providers.sdk_client import SdkClient
from harness.providers.wire_json import parsed
from harness.schema.record import Json, JsonObject

API_VERSION = "v1"

VERSION = re.compile(r"/(v\d\w*)/?$")
"""How a base URL ends that chooses another version of the API, for instance `/v1beta`."""

BAD_KEY = "API_KEY_INVALID"
"""Reason that comes with HTTP 400 where the key is wrong."""

NOT_GOOGLES = (AttributeError, TypeError, ValueError)
"""What the SDK lets through when an answer is not of its format."""


def client(*, base_url: str | None, api_key: str, timeout_s: float = 600) -> SdkClient:
    """A client of an endpoint; without one it is the vendor's own."""
    url = base_url or GoogleGenerate.base_url
    sdk = _sdk(url, api_key, timeout_s)

    def failure(error: Exception) -> HarnessError:
        return _failure(error, url)

    return SdkClient(
        url=url,
        dialect=GoogleGenerate(),
        send=sdk.send,
        stream=sdk.stream,
        errors=(errors.APIError, httpx2.HTTPError, httpx2.InvalidURL, *NOT_GOOGLES),
        failure=failure,
    )


@dataclass(frozen=True, slots=True)
class _Sdk:
    """The two calls of the SDK's client, with bodies and answers as they are."""

    client: genai.Client

    def send(self, body: JsonObject) -> Json:
        model, sent = _parted(body)
        answer = self.client.models.generate_content(
            model=model,
            # The SDK's own types refuse fields that they do not know, so the whole body goes in as
            # it is, over the one thing that the SDK insists on.
            contents="-",
            config=types.GenerateContentConfig(
                http_options=types.HttpOptions(extra_body=sent),
                should_return_http_response=True,
                automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
            ),
        )
        raw = answer.sdk_http_response
        return parsed((raw.body if raw else None) or "")

    @contextmanager
    def stream(self, body: JsonObject) -> Iterator[Iterable[Json]]:
        model, sent = _parted(body)
        path = f"{model}:streamGenerateContent?alt=sse"
        # The public call gives each event as the SDK's types, without what they do not know.
        chunks = self.client._api_client.request_streamed("post", path, sent)
        with closing(chunks):
            yield (parsed(chunk.body or "") for chunk in chunks)


@cache
def _sdk(base_url: str, api_key: str, timeout_s: float) -> _Sdk:
    """One SDK client per endpoint and key: building one costs more than a replayed call."""
    version = VERSION.search(base_url)
    http = httpx2.Client(follow_redirects=True)
    keep_limits(http)
    options = types.HttpOptions(
        base_url=base_url[: version.start()] if version else base_url,
        api_version=version[1] if version else API_VERSION,
        timeout=int(timeout_s * 1000),
        # As often as the other vendors' SDKs try.
        retry_options=types.HttpRetryOptions(attempts=3, initial_delay=0.5, jitter=0.25),
        # Otherwise an environment variable chooses the library, and with it the errors.
        httpx_client=http,
    )
    return _Sdk(genai.Client(vertexai=False, api_key=api_key, http_options=options))


def _parted(body: JsonObject) -> tuple[str, dict[str, Any]]:
    """The model's resource name, which is part of the URL, and the rest of the body."""
    model = str(body["model"])
    if not model.startswith(("models/", "tunedModels/")):
        model = f"models/{model}"
    return model, {key: value for key, value in body.items() if key not in PATH_KEYS}


def _failure(error: Exception, url: str) -> HarnessError:
    if isinstance(error, errors.APIError):
        details: Json = error.details
        text = details if isinstance(details, str) else json.dumps(details)
        if BAD_KEY in text:
            return AuthenticationError(f"{url} answered: {error.message}; check the API key")
        return failures.answered(error.code, text, url)
    if isinstance(error, httpx2.HTTPError):
        return failures.unreachable(error, url)
    if isinstance(error, errors.UnknownApiResponseError):
        return MalformedAnswerError(f"{url} streamed what is no JSON: {error}")
    return ModelCallError(f"{url}: {error}")

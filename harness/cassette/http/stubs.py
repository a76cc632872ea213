"""The client libraries that vcrpy patches: requests, urllib3, aiohttp, urllib and others."""

from __future__ import annotations

import asyncio
import functools
import importlib
import json
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from vcr.cassette import Cassette  # type: ignore[import-untyped]
from vcr.request import Request  # type: ignore[import-untyped]

from harness.cassette.http.answer import Answer, Live, answer_to, not_comparable
from harness.cassette.http.streams import left_s
from harness.cassette.response.body import is_packed, store_response, vcr_response


@dataclass(frozen=True, slots=True)
class _AiohttpCall:
    """A call of aiohttp that is under way."""

    json: Any
    """What it sends as JSON; None where it does not."""
    given: list[Answer] = field(default_factory=list)
    """The answers given to it."""


_IN_AIOHTTP: ContextVar[_AiohttpCall | None] = ContextVar("harness_in_aiohttp", default=None)


class Router(Cassette):  # type: ignore[misc]  # vcrpy is untyped
    """Stands where vcrpy's stubs expect a cassette; these are the members that they use."""

    write_protected = False

    def _load(self) -> None:
        """Nothing to load: sessions bring their recordings."""

    def _save(self, force: bool = False) -> None:
        """Nothing to save: each interaction is on disk already."""

    def can_play_response_for(self, request: Request) -> bool:
        """Whether the request is answered here."""
        return isinstance(_found(request), Answer)

    def play_response(self, request: Request) -> dict[str, Any]:
        """The answer, in vcrpy's shape."""
        answer = _found(request)
        assert isinstance(answer, Answer)
        if answer.ending == "timeout":
            raise TimeoutError("Injected fault: the answer never came.")
        if answer.ending == "cut":
            raise ConnectionResetError("Injected fault: the connection broke.")
        if (rest := answer.missing_rest()) is not None:
            # These clients read an answer to its end before the agent sees its beginning.
            raise ConnectionResetError(str(rest)) from rest
        call = _IN_AIOHTTP.get()
        if call is not None:
            call.given.append(answer)
        else:
            time.sleep(left_s(answer, _end_s(answer)))
        return vcr_response(answer.response)

    def append(self, request: Request, response: dict[str, Any]) -> None:
        """Record a live answer."""
        live = _found(request)
        if not isinstance(live, Live):
            return
        headers = {name.lower(): ", ".join(values) for name, values in response["headers"].items()}
        status, body = response["status"]["code"], response["body"].get("string", b"")
        if not is_packed(body, headers.get("content-encoding", "")):
            # aiohttp and urllib3 unpack a body before it is seen here, and leave the header.
            headers.pop("content-encoding", None)
        session = live.use.session
        with session.remembering():
            stored = store_response(status, headers, body, session.redactor)
        live.record(stored)


def aiohttp_patches() -> Iterator[tuple[type, str, Callable[..., Any]]]:
    """The patch of aiohttp, whose waiting must not stop the event loop."""
    with suppress(ImportError):
        client = importlib.import_module("aiohttp.client").ClientSession
        stub = importlib.import_module("vcr.stubs.aiohttp_stubs")
        yield client, "_request", _waiting(stub.vcr_request(Router(path=None), client._request))


def _waiting(request: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    @functools.wraps(request)
    async def waiting(*args: Any, **kwargs: Any) -> Any:
        call = _AiohttpCall(kwargs.get("json"))
        token = _IN_AIOHTTP.set(call)
        try:
            response = await request(*args, **kwargs)
        finally:
            _IN_AIOHTTP.reset(token)
        await asyncio.sleep(sum(left_s(answer, _end_s(answer)) for answer in call.given))
        return response

    return waiting


def _found(request: Request) -> Answer | Live | None:
    """What became of a request; kept with it, since some stubs ask twice."""
    if not hasattr(request, "harness_found"):
        request.harness_found = _answer_to(request)
    found: Answer | Live | None = request.harness_found
    return found


def _answer_to(request: Request) -> Answer | Live | None:
    try:
        body = _body(request)
    except (TypeError, ValueError, RecursionError) as error:
        return not_comparable(request.method, request.uri, error)
    return answer_to(request.method, request.uri, body)


def _body(request: Request) -> bytes:
    body = request.body
    call = _IN_AIOHTTP.get()
    if call is not None and call.json is not None and body is not None:
        # The stub does not say whether it was given as `json=` or as `data=`.
        return json.dumps(call.json, default=str).encode()
    if hasattr(body, "read"):
        return bytes(body.read())
    if isinstance(body, Iterator):
        return b"".join(body)
    if body is None:
        return b""
    if isinstance(body, bytes | bytearray | memoryview):
        return bytes(body)
    if isinstance(body, Mapping | list | tuple):
        return urlencode([*body.items()] if isinstance(body, Mapping) else body).encode()
    raise TypeError(f"it is of type {type(body).__name__!r}")


def _end_s(answer: Answer) -> float:
    """These clients get the whole answer at once: when its last piece came."""
    return max((at_s for at_s, _ in answer.pieces()), default=answer.wait_s)

"""Ways around the cassette: an HTTP request that no patched library has seen is refused.

A connection or its class may be older than the patch, and httpcore may be used without httpx. What
goes to the network that way would neither be recorded nor, on replay, be missed.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from http.client import HTTPConnection
from typing import Any

from harness.cassette.http.routing import candidates, missed
from harness.cassette.http.streams import installed

_SEEN: ContextVar[bool] = ContextVar("harness_seen", default=False)


@contextmanager
def seen() -> Iterator[None]:
    """While a request is sent that is known to its cassette."""
    token = _SEEN.set(True)
    try:
        yield
    finally:
        _SEEN.reset(token)


def around_patches() -> Iterator[tuple[type, str, Callable[..., Any]]]:
    """Class, method, and what stands in its place while a cassette is open."""
    yield HTTPConnection, "putrequest", _putrequest(HTTPConnection.putrequest)
    for library in installed("httpcore2", "httpcore"):
        for name in ("ConnectionPool", "HTTPConnection"):
            plain, slow = getattr(library, name), getattr(library, f"Async{name}")
            yield plain, "handle_request", _handle(plain.handle_request)
            yield slow, "handle_async_request", _handle_async(slow.handle_async_request)


def _putrequest(put: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(put)
    def putrequest(connection: Any, method: str, url: str, *args: Any, **kwargs: Any) -> None:
        _refuse_unseen(method, f"{connection.host}:{connection.port}{url}")
        put(connection, method, url, *args, **kwargs)

    return putrequest


def _handle(handle: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    @functools.wraps(handle)
    def handle_request(pool: Any, request: Any) -> Any:
        _refuse_unseen(request.method.decode(), bytes(request.url).decode())
        return handle(pool, request)

    return handle_request


def _handle_async(
    handle: Callable[[Any, Any], Awaitable[Any]],
) -> Callable[[Any, Any], Awaitable[Any]]:
    @functools.wraps(handle)
    async def handle_async_request(pool: Any, request: Any) -> Any:
        _refuse_unseen(request.method.decode(), bytes(request.url).decode())
        return await handle(pool, request)

    return handle_async_request


def _refuse_unseen(method: str, url: str) -> None:
    if _SEEN.get() or not (uses := candidates()):
        return
    text = (
        f"{method} {url} would have gone to the network past the cassette: use httpx, requests or"
        " another client that is patched, and make http.client's connections inside `use`, by"
        " that module's name."
    )
    raise ConnectionRefusedError(missed(uses, "past the cassette", text))

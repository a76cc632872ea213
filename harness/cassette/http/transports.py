"""The transports of httpx and httpx2, which the vendors' SDKs stand on, with a cassette before."""

from __future__ import annotations

import functools
import time
from collections.abc import Awaitable, Callable, Iterator
from types import ModuleType
from typing import Any

import anyio

from harness.cassette.http.answer import Answer, Live, answer_to
from harness.cassette.http.around import seen
from harness.cassette.http.recording import Recording
from harness.cassette.http.streams import (
    LIBRARIES,
    AsyncTee,
    Paced,
    Tee,
    installed,
    left_s,
)
from harness.cassette.response.body import response_bytes
from harness.providers.deadline import TimeIsUp

_Handle = Callable[[Any, Any], Any]
_AsyncHandle = Callable[[Any, Any], Awaitable[Any]]

_NAMES = ("HTTPTransport", "AsyncHTTPTransport", "WSGITransport", "ASGITransport", "MockTransport")
_OTHERS = {
    "httpx_curl_cffi": ("CurlTransport", "AsyncCurlTransport"),
    "pyreqwest.compatibility.httpx": ("SyncHttpxTransport", "HttpxTransport"),
}
"""Transports for httpx by others, which vcrpy knows as well."""


def transport_patches() -> Iterator[tuple[type, str, _Handle]]:
    """Class, method, and what stands in its place while a cassette is open."""
    for library, transport in transports():
        if (handle := vars(transport).get("handle_request")) is not None:
            yield transport, "handle_request", _handle(library, handle)
        if (handle := vars(transport).get("handle_async_request")) is not None:
            yield transport, "handle_async_request", _handle_async(library, handle)


def transports() -> Iterator[tuple[ModuleType, type]]:
    """The classes of transports, each with the library whose requests it takes."""
    for library in LIBRARIES:
        for name in _NAMES:
            yield library, getattr(library, name)
        if library.__name__ == "httpx":
            for other, names in _OTHERS.items():
                for module in installed(other):
                    for name in names:
                        yield library, getattr(module, name)


def _handle(library: ModuleType, handle: _Handle) -> _Handle:
    @functools.wraps(handle)
    def answer(transport: Any, request: Any) -> Any:
        found = answer_to(request.method, str(request.url), request.read())
        if found is None:
            return handle(transport, request)
        if isinstance(found, Answer):
            if found.timed:
                time.sleep(left_s(found, found.wait_s))
            return response_to(library, request, found)
        _ask_for_plain(request)
        try:
            with seen():
                response = handle(transport, request)
        except TimeIsUp:
            found.out_of_time()
            raise
        recording = _recording(found, response)
        if recording is not None:
            body = Tee(response.stream, recording)
            response.stream = body if response.is_success else library.ByteStream(_read(body))
        return response

    return answer


def _handle_async(library: ModuleType, handle: _AsyncHandle) -> _AsyncHandle:
    @functools.wraps(handle)
    async def answer(transport: Any, request: Any) -> Any:
        found = answer_to(request.method, str(request.url), await request.aread())
        if found is None:
            return await handle(transport, request)
        if isinstance(found, Answer):
            if found.timed:
                await anyio.sleep(left_s(found, found.wait_s))
            return response_to(library, request, found)
        _ask_for_plain(request)
        with seen():
            response = await handle(transport, request)
        recording = _recording(found, response)
        if recording is not None:
            body = AsyncTee(response.stream, recording)
            response.stream = (
                body if response.is_success else library.ByteStream(await _read_async(body))
            )
        return response

    return answer


def _ask_for_plain(request: Any) -> None:
    """Have the answer sent unpacked, as it is kept; but a signature may hold for the header."""
    if not request.headers.get("authorization", "").startswith("AWS4-"):
        request.headers["accept-encoding"] = "identity"


def _recording(live: Live, response: Any) -> Recording | None:
    """What records the answer as it is read; None where there is nothing left to read."""
    if response.is_informational:
        return None
    headers = dict(response.headers)
    if not response.is_stream_consumed:
        return Recording(live, response.status_code, headers)
    # A transport made it with its body: nobody will read its stream, and it is unpacked.
    headers.pop("content-encoding", None)
    recording = Recording(live, response.status_code, headers)
    recording.take(response.content)
    recording.end()
    return None


def _read(stream: Tee) -> bytes:
    """All of the body. The SDKs close an error that they try again without reading it."""
    try:
        return b"".join(stream)
    finally:
        stream.close()


async def _read_async(stream: AsyncTee) -> bytes:
    try:
        return b"".join([piece async for piece in stream])
    finally:
        await stream.aclose()


def response_to(library: ModuleType, request: Any, answer: Answer) -> Any:
    """An answer as the library's own kind of response."""
    if answer.ending == "timeout":
        raise library.ReadTimeout("Injected fault: the answer never came.", request=request)
    stored = answer.response
    if stored.is_out_of_time:
        raise TimeIsUp
    if answer.timed or answer.ending == "cut" or stored.cut:
        body = Paced(answer, functools.partial(_broken, library, request, answer))
    else:
        body = library.ByteStream(response_bytes(stored))
    return library.Response(stored.status, headers=stored.headers, stream=body)


def _broken(library: ModuleType, request: Any, answer: Answer) -> Exception | None:
    """What goes wrong after the last piece of an answer."""
    rest = None
    if answer.ending == "cut":
        text = "Injected fault: the connection broke in the middle of the answer."
    else:
        rest = answer.missing_rest()
        if rest is None:
            return None
        text = str(rest)
    error: Exception = library.RemoteProtocolError(text, request=request)
    error.__cause__ = rest
    return error

"""Ways that no patched client library sees: refused, and remembered as misses."""

from __future__ import annotations

import asyncio
import http.client
import json
from collections.abc import Callable
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import httpcore
import httpcore2
import httpx2
import pytest
import requests
from urllib3.connection import HTTPConnection as Urllib3Connection

from harness.cassette import use
from harness.errors import ReplayMissError
from harness.schema.results import RecordMode
from tests.cassette.loopback import LISTING, Upstream, upstream, user

CHAT = "/v1/chat/completions"
BODY = json.dumps({"model": "tiny", "messages": [user("one")]})

Prepared = Callable[[], object]


def with_a_connection_made_before(port: int) -> Prepared:
    connection = HTTPConnection("127.0.0.1", port)
    return lambda: connection.request("POST", CHAT, BODY)


def with_a_class_imported_before(port: int) -> Prepared:
    return lambda: HTTPConnection("127.0.0.1", port).request("POST", CHAT, BODY)


def with_urllib3s_class_imported_before(port: int) -> Prepared:
    return lambda: Urllib3Connection("127.0.0.1", port).request("POST", CHAT, BODY)


def with_a_pool_of(library: Any) -> Callable[[int], Prepared]:
    def prepared(port: int) -> Prepared:
        def ask() -> object:
            with library.ConnectionPool() as pool:
                return pool.request("POST", f"http://127.0.0.1:{port}{CHAT}", content=BODY.encode())

        return ask

    return prepared


def with_an_async_pool(port: int) -> Prepared:
    async def ask() -> object:
        async with httpcore2.AsyncConnectionPool() as pool:
            url = f"http://127.0.0.1:{port}{CHAT}"
            return await pool.request("POST", url, content=BODY.encode())

    return lambda: asyncio.run(ask())


def with_one_connection_of_httpcore(port: int) -> Prepared:
    def ask() -> object:
        origin = httpcore.Origin(b"http", b"127.0.0.1", port)
        with httpcore.HTTPConnection(origin) as connection:
            url = f"http://127.0.0.1:{port}{CHAT}"
            return connection.request("POST", url, content=BODY.encode())

    return ask


class OwnTransport(httpx2.HTTPTransport):
    """Asks httpcore itself, as one that retries or takes another way does."""

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        asked = httpcore2.Request(
            request.method, str(request.url), headers=request.headers.raw, content=request.read()
        )
        answer = self._pool.handle_request(asked)
        answer.read()
        return httpx2.Response(answer.status)


def with_a_transport_of_ones_own(port: int) -> Prepared:
    def ask() -> object:
        with httpx2.Client(transport=OwnTransport(verify=False)) as client:
            return client.post(f"http://127.0.0.1:{port}{CHAT}", content=BODY)

    return ask


@pytest.mark.parametrize("mode", ["none", "once"])
@pytest.mark.parametrize(
    "way",
    [
        with_a_connection_made_before,
        with_a_class_imported_before,
        with_urllib3s_class_imported_before,
        with_a_pool_of(httpcore),
        with_a_pool_of(httpcore2),
        with_an_async_pool,
        with_one_connection_of_httpcore,
        with_a_transport_of_ones_own,
    ],
)
def test_a_way_around_the_cassette_is_refused(
    tmp_path: Path, way: Callable[[int], Prepared], mode: RecordMode
):
    with upstream() as server:
        ask = way(server.port)
        with (
            pytest.raises(ReplayMissError, match=rf"POST .*:{server.port}{CHAT} would have gone"),
            use(tmp_path / "0.jsonl", mode) as session,
            pytest.raises(ConnectionRefusedError, match="past the cassette"),
        ):
            ask()
        assert server.asked == []
    assert [miss.cause for miss in session.misses] == ["past the cassette"]


def listing(server: Upstream) -> bytes:
    connection = HTTPConnection("127.0.0.1", server.port)
    connection.request("GET", "/listing")
    body = connection.getresponse().read()
    connection.close()
    return body


def test_every_way_is_open_while_no_cassette_is(tmp_path: Path):
    with upstream() as server:
        assert listing(server) == LISTING
        with use(tmp_path / "0.jsonl", "once"):
            requests.get(f"http://127.0.0.1:{server.port}/listing", timeout=9)
        assert listing(server) == LISTING


def test_a_connection_made_inside_is_an_ordinary_one_afterwards(tmp_path: Path):
    with upstream() as server:
        with use(tmp_path / "0.jsonl", "once") as session:
            connection = http.client.HTTPConnection("127.0.0.1", server.port)
            connection.request("GET", "/listing")
            assert connection.getresponse().read() == LISTING
        server.headers = {"x-request-id": "second"}
        connection.request("GET", "/listing")
        answer = connection.getresponse()
        assert (answer.status, answer.read()) == (200, LISTING)
        assert answer.headers["x-request-id"] == "second"
        connection.close()
    assert session.misses == []

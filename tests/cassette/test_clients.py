"""Client libraries that no vendor's SDK brings: recorded live, then replayed with no server."""

from __future__ import annotations

import asyncio
import json
import threading
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import aiohttp
import httpx
import pytest
import requests
import urllib3

from harness.cassette import use
from harness.errors import ReplayMissError
from harness.schema.results import RecordMode
from tests.cassette.loopback import BINARY, LISTING, Upstream, upstream, user

Answer = tuple[int, bytes]
Ask = Callable[[str, str, Any], Answer]


def with_requests(method: str, url: str, body: Any) -> Answer:
    answer = requests.request(method, url, json=body, timeout=9)
    return answer.status_code, answer.content


def with_requests_stream(method: str, url: str, body: Any) -> Answer:
    with requests.request(method, url, json=body, timeout=9, stream=True) as answer:
        return answer.status_code, b"\n".join(answer.iter_lines())


def with_httpx(method: str, url: str, body: Any) -> Answer:
    with httpx.Client(verify=False, follow_redirects=True) as client:
        answer = client.request(method, url, json=body)
        return answer.status_code, answer.content


def with_httpx_stream(method: str, url: str, body: Any) -> Answer:
    with (
        httpx.Client(verify=False, follow_redirects=True) as client,
        client.stream(method, url, json=body) as answer,
    ):
        return answer.status_code, b"".join(answer.iter_bytes())


def with_httpx_async(method: str, url: str, body: Any) -> Answer:
    async def ask() -> Answer:
        async with httpx.AsyncClient(verify=False, follow_redirects=True) as client:
            answer = await client.request(method, url, json=body)
            return answer.status_code, answer.content

    return asyncio.run(ask())


def with_aiohttp(method: str, url: str, body: Any) -> Answer:
    async def ask() -> Answer:
        async with (
            aiohttp.ClientSession() as session,
            session.request(method, url, json=body) as answer,
        ):
            return answer.status, await answer.read()

    return asyncio.run(ask())


def with_aiohttp_stream(method: str, url: str, body: Any) -> Answer:
    async def ask() -> Answer:
        async with (
            aiohttp.ClientSession() as session,
            session.request(method, url, json=body) as answer,
        ):
            return answer.status, b"".join([line async for line in answer.content])

    return asyncio.run(ask())


def with_urllib3(method: str, url: str, body: Any) -> Answer:
    with urllib3.PoolManager() as pool:
        answer = pool.request(method, url, json=body)
        return answer.status, answer.data


def with_urllib(method: str, url: str, body: Any) -> Answer:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data=data, method=method)
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


ALL = [
    with_requests,
    with_requests_stream,
    with_httpx,
    with_httpx_stream,
    with_httpx_async,
    with_aiohttp,
    with_aiohttp_stream,
    with_urllib3,
    with_urllib,
]
every_client = pytest.mark.parametrize("ask", ALL)

PLAIN = {"model": "tiny", "messages": [user("one")]}
STREAM = {**PLAIN, "stream": True}
CHAT = "/v1/chat/completions"


def record_and_replay(
    path: Path, run: Callable[[str], Any], prepare: Callable[[Upstream], None] = lambda _: None
) -> tuple[Any, Any]:
    """What the code got live, and replayed."""
    with upstream() as server, use(path, "once"):
        prepare(server)
        address = f"http://127.0.0.1:{server.port}"
        live = run(address)
    with use(path):
        return live, run(address)


def parsed(answer: Answer) -> object:
    return answer[0], json.loads(answer[1])


@every_client
def test_plain_answers(tmp_path: Path, ask: Ask):
    live, replayed = record_and_replay(
        tmp_path / "0.jsonl", lambda address: ask("POST", address + CHAT, PLAIN)
    )
    assert parsed(replayed) == parsed(live)


@every_client
def test_streams(tmp_path: Path, ask: Ask):
    def run(address: str) -> list[object]:
        status, body = ask("POST", address + CHAT, STREAM)
        data = [line[6:] for line in body.splitlines() if line]
        return [status, data[-1], *map(json.loads, data[:-1])]

    live, replayed = record_and_replay(tmp_path / "0.jsonl", run)
    assert replayed == live
    assert live[1] == b"[DONE]"


@every_client
@pytest.mark.parametrize("body", [PLAIN, STREAM])
def test_packed_answers_are_stored_as_json(tmp_path: Path, ask: Ask, body: Any):
    def prepare(server: Upstream) -> None:
        server.compress = True

    def run(address: str) -> Answer:
        return ask("POST", address + CHAT, body)

    path = tmp_path / "0.jsonl"
    live, replayed = record_and_replay(path, run, prepare)
    if ask is not with_urllib:
        assert b"".join(replayed[1].split())[:40] == b"".join(live[1].split())[:40]
    assert ('"type":"events"' if body is STREAM else '"type":"json"') in path.read_text()
    assert "content-encoding" not in path.read_text()


@every_client
def test_binary_answers(tmp_path: Path, ask: Ask):
    live, replayed = record_and_replay(
        tmp_path / "0.jsonl", lambda address: ask("GET", f"{address}/picture", None)
    )
    assert replayed == live
    # One of them reads lines, whatever ends them.
    assert live == (200, BINARY) or ask is with_requests_stream


@every_client
@pytest.mark.parametrize("status", [400, 429, 500])
def test_errors(tmp_path: Path, ask: Ask, status: int):
    def prepare(server: Upstream) -> None:
        server.statuses = [status]

    live, replayed = record_and_replay(
        tmp_path / "0.jsonl", lambda address: ask("POST", address + CHAT, PLAIN), prepare
    )
    assert parsed(replayed) == parsed(live)
    assert live[0] == status


@every_client
def test_a_page_that_is_missing_is_an_answer_too(tmp_path: Path, ask: Ask):
    live, replayed = record_and_replay(
        tmp_path / "0.jsonl", lambda address: ask("GET", f"{address}/missing", None)
    )
    assert replayed == live == (404, b"no such page")


@every_client
def test_redirects(tmp_path: Path, ask: Ask):
    live, replayed = record_and_replay(
        tmp_path / "0.jsonl", lambda address: ask("GET", f"{address}/moved", None)
    )
    assert parsed(replayed) == parsed(live) == (200, json.loads(LISTING))


@every_client
def test_threads(tmp_path: Path, ask: Ask):
    def run(address: str) -> list[object]:
        bodies = [{"model": "tiny", "messages": [user(str(number))]} for number in range(8)]
        with ThreadPoolExecutor(4) as pool:
            return list(map(parsed, pool.map(lambda b: ask("POST", address + CHAT, b), bodies)))

    live, replayed = record_and_replay(tmp_path / "0.jsonl", run)
    assert replayed == live
    assert len({str(answer) for answer in live}) == 8


@every_client
def test_a_miss_is_refused_at_once_and_remembered(tmp_path: Path, ask: Ask):
    path = tmp_path / "0.jsonl"
    block = use(path)
    session = block.__enter__()
    status, body = ask("POST", f"http://127.0.0.1:1{CHAT}", PLAIN)
    assert (status, json.loads(body)["error"]["type"]) == (400, "replay_miss")
    assert [miss.cause for miss in session.misses] == ["nothing recorded"]
    with pytest.raises(Exception, match="no recording"):
        block.__exit__(None, None, None)


def test_tasks_of_aiohttp(tmp_path: Path):
    async def one(session: aiohttp.ClientSession, url: str, text: str) -> object:
        body = {"model": "tiny", "messages": [user(text)]}
        async with session.post(url, json=body) as answer:
            return await answer.json()

    async def many(address: str) -> list[object]:
        async with aiohttp.ClientSession() as session:
            calls = (one(session, address + CHAT, str(n)) for n in range(20))
            return list(await asyncio.gather(*calls))

    live, replayed = record_and_replay(
        tmp_path / "0.jsonl", lambda address: asyncio.run(many(address))
    )
    assert replayed == live


@pytest.mark.parametrize("mode", ["none", "once"])
def test_a_body_that_cannot_be_compared_is_refused(tmp_path: Path, mode: RecordMode):
    async def send() -> int:
        form = aiohttp.FormData({"a": "b"})
        async with (
            aiohttp.ClientSession() as session,
            session.post("http://127.0.0.1:1/", data=form) as answer,
        ):
            return answer.status

    with (
        pytest.raises(ReplayMissError, match=r"cannot be compared .*'FormData'"),
        use(tmp_path / "0.jsonl", mode) as session,
    ):
        assert asyncio.run(send()) == 400
    assert [miss.cause for miss in session.misses] == ["no body"]


def test_a_list_is_a_body_of_aiohttp_too(tmp_path: Path):
    async def send() -> object:
        async with (
            aiohttp.ClientSession() as session,
            session.post("http://127.0.0.1:1/", json=[{"a": 1}]) as answer,
        ):
            return answer.status

    with (
        pytest.raises(ReplayMissError, match="no recording"),
        use(tmp_path / "0.jsonl") as session,
    ):
        assert asyncio.run(send()) == 400
    assert [miss.cause for miss in session.misses] == ["nothing recorded"]


class Counting(BaseHTTPRequestHandler):
    """Answers each request with another number."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.server.count = getattr(self.server, "count", 0) + 1  # type: ignore[attr-defined]
        self.send_response(200)
        self.end_headers()
        self.wfile.write(str(self.server.count).encode())  # type: ignore[attr-defined]

    def log_message(self, format: str, *args: object) -> None:
        """Tests are quiet."""


def test_a_form_of_aiohttp_is_not_the_json_that_looks_like_it(tmp_path: Path):
    async def sent(**body: Any) -> str:
        async with aiohttp.ClientSession() as session, session.post(url, **body) as response:
            return await response.text()

    bodies: list[dict[str, Any]] = [
        {"json": {"a": "1"}}, {"data": {"a": "1"}}, {"json": "a"}, {"data": "a"},
        {"data": [("a", "1"), ("b", "2")]}, {"json": [["a", "1"]]},
    ]  # fmt: skip
    path = tmp_path / "0.jsonl"
    with HTTPServer(("127.0.0.1", 0), Counting) as server:
        url = f"http://127.0.0.1:{server.server_port}/"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            with use(path, "once"):
                said = [asyncio.run(sent(**body)) for body in bodies]
        finally:
            server.shutdown()
            thread.join()
    assert said == [str(number) for number in range(1, len(bodies) + 1)]
    with use(path):
        assert [asyncio.run(sent(**body)) for body in reversed(bodies)] == said[::-1]

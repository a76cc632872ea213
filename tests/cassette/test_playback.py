"""Recorded answers in their own time, and spoiled on request, through real clients."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import anthropic
import httpx
import httpx2
import openai
import pytest
import requests

from harness.cassette import use
from harness.errors import BadInputError
from tests.cassette.loopback import (
    Upstream,
    ask_anthropic,
    ask_openai,
    cheap,
    cheap_async,
    upstream,
    user,
)

NOWHERE = 1
TOOK_S = 0.06
"""How long the recorded answers took at least."""


def record(path: Path, run: Callable[[Upstream], object]) -> None:
    with upstream() as server, use(path, "once"):
        run(server)


def slowly(server: Upstream) -> None:
    server.before_event = lambda _: time.sleep(TOOK_S / 3)


def chunks(port: int, retries: int = 0) -> list[str]:
    url = f"http://127.0.0.1:{port}/v1"
    message: Any = user("one")
    with openai.OpenAI(api_key="k", base_url=url, max_retries=retries, **cheap()) as client:
        answer = client.chat.completions.create(model="t", messages=[message], stream=True)
        return [chunk.choices[0].delta.content or "" for chunk in answer]


def seconds(run: Callable[[], object]) -> float:
    started = time.monotonic()
    run()
    return time.monotonic() - started


def record_stream(path: Path) -> None:
    def run(server: Upstream) -> None:
        slowly(server)
        server.answers = ["a b c d"]
        assert chunks(server.port)[:4] == ["a", "b", "c", "d"]

    record(path, run)


@pytest.fixture
def stream(tmp_path: Path) -> Path:
    path = tmp_path / "stream.jsonl"
    record_stream(path)
    return path


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    path = tmp_path / "plain.jsonl"
    record(path, lambda server: ask_openai(server.port, user("one")))
    return path


def test_a_stream_comes_in_its_own_time(stream: Path):
    with use(stream, pace="recorded"):
        assert seconds(lambda: chunks(NOWHERE)) >= TOOK_S


def test_the_pieces_of_a_stream_come_one_by_one(stream: Path):
    times: list[float] = []
    with use(stream, pace="recorded"), httpx2.Client(verify=False) as client:
        body = {"model": "t", "messages": [user("one")], "stream": True}
        url = "http://x/v1/chat/completions"
        started = time.monotonic()
        with client.stream("POST", url, json=body) as answer:
            for _ in answer.iter_bytes():
                times.append(time.monotonic() - started)
    recorded = json.loads(stream.read_text().splitlines()[2])["response"]["body"]
    assert len(times) == len(recorded)
    assert all(time >= event["at_s"] - 0.001 for time, event in zip(times, recorded, strict=True))


def test_the_event_loop_runs_on_between_the_pieces_of_a_stream(stream: Path):
    turns = 0

    async def read() -> list[int]:
        message: Any = user("one")
        async with openai.AsyncOpenAI(
            api_key="k", base_url="http://x/v1", **cheap_async()
        ) as client:
            answer = await client.chat.completions.create(
                model="t", messages=[message], stream=True
            )
            return [turns async for _ in answer]

    async def both() -> list[int]:
        nonlocal turns
        task = asyncio.create_task(read())
        while not task.done():
            await asyncio.sleep(0.001)
            turns += 1
        return await task

    with use(stream, pace="recorded"):
        seen = asyncio.run(both())
    assert len(seen) == 5
    assert 0 < seen[0] < seen[-1]


@pytest.mark.parametrize("client", ["httpx", "requests", "aiohttp"])
def test_a_plain_answer_waits_as_long_as_it_took(tmp_path: Path, client: str):
    def ask(port: int) -> object:
        url = f"http://127.0.0.1:{port}/v1/chat/completions"
        body = {"model": "t", "messages": [user("one")]}
        match client:
            case "httpx":
                return httpx.post(url, json=body).json()
            case "requests":
                return requests.post(url, json=body, timeout=9).json()
        return asyncio.run(ask_aiohttp(url, body))

    path = tmp_path / "0.jsonl"
    with upstream() as server, use(path, "once"):
        server.before_answer = lambda: time.sleep(TOOK_S)
        live = ask(server.port)
        port = server.port
    with use(path, pace="recorded"):
        assert seconds(lambda: ask(port)) >= TOOK_S
    with use(path):
        assert ask(port) == live


async def ask_aiohttp(url: str, body: object) -> object:
    async with aiohttp.ClientSession() as session, session.post(url, json=body) as answer:
        return await answer.json()


def test_aiohttp_waits_without_stopping_the_event_loop(tmp_path: Path):
    path = tmp_path / "0.jsonl"
    body = {"model": "t", "messages": [user("one")]}

    async def ask(port: int) -> int:
        url = f"http://127.0.0.1:{port}/v1/chat/completions"
        task = asyncio.create_task(ask_aiohttp(url, body))
        turns = 0
        while not task.done():
            await asyncio.sleep(0.005)
            turns += 1
        return turns

    with upstream() as server, use(path, "once"):
        server.before_answer = lambda: time.sleep(TOOK_S)
        asyncio.run(ask(server.port))
    with use(path, pace="recorded"):
        assert asyncio.run(ask(NOWHERE)) > 3


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (429, openai.RateLimitError),
        (500, openai.InternalServerError),
        (401, openai.AuthenticationError),
        (400, openai.BadRequestError),
    ],
)
def test_an_injected_status_is_the_sdks_own_error(plain: Path, status: int, error: Any):
    with use(plain, faults=f"{status}@1") as session:
        with pytest.raises(error, match="Injected fault"):
            ask_openai(NOWHERE, user("one"))
        assert session.served == 0
        assert ask_openai(NOWHERE, user("one")) == "answer 1"


def test_anthropics_sdk_reads_an_injected_status(tmp_path: Path):
    path = tmp_path / "0.jsonl"
    record(path, lambda server: ask_anthropic(server.port, user("one")))
    with use(path, faults="529@1"), pytest.raises(anthropic.APIStatusError) as caught:
        ask_anthropic(NOWHERE, user("one"))
    assert caught.value.status_code == 529


def test_the_sdks_own_retry_gets_the_recorded_answer(plain: Path):
    with use(plain, faults="503@1") as session:
        assert ask_openai(NOWHERE, user("one"), retries=1) == "answer 1"
    assert (session.served, session.misses) == (1, [])


def test_an_injected_timeout_is_the_sdks_own_error_at_once(plain: Path):
    with use(plain, faults="timeout@1-2"):
        with pytest.raises(openai.APITimeoutError):
            ask_openai(NOWHERE, user("one"))
        with pytest.raises(httpx.ReadTimeout), httpx.Client(verify=False) as client:
            client.post("http://x/v1/chat/completions", json=plain_body())
        assert ask_openai(NOWHERE, user("one")) == "answer 1"


def plain_body() -> dict[str, Any]:
    return {"model": "tiny", "messages": [user("one")]}


def test_a_cut_stream_breaks_after_its_first_half_and_is_whole_when_asked_again(stream: Path):
    with use(stream, faults="cut@1"):
        url = "http://x/v1"
        message: Any = user("one")
        seen: list[str | None] = []
        with openai.OpenAI(api_key="k", base_url=url, max_retries=0, **cheap()) as client:
            answer = client.chat.completions.create(model="t", messages=[message], stream=True)
            with pytest.raises(openai.APIConnectionError):
                seen.extend(chunk.choices[0].delta.content for chunk in answer)
        assert chunks(NOWHERE)[:4] == ["a", "b", "c", "d"]


def test_a_cut_answer_breaks_in_async_code_as_well(plain: Path):
    async def ask() -> None:
        async with httpx2.AsyncClient(verify=False) as client:
            await client.post("http://x/v1/chat/completions", json=plain_body())

    with use(plain, faults="cut@1"), pytest.raises(httpx2.RemoteProtocolError):
        asyncio.run(ask())


def test_a_malformed_answer_is_no_json(plain: Path):
    with use(plain, faults="malformed@1"):
        answer = httpx2.post("http://x/v1/chat/completions", json=plain_body())
        assert answer.status_code == 200
        with pytest.raises(json.JSONDecodeError):
            answer.json()
        assert ask_openai(NOWHERE, user("one")) == "answer 1"


def test_a_malformed_stream_has_an_event_that_is_no_json(stream: Path):
    with use(stream, faults="malformed@1"):
        with pytest.raises(json.JSONDecodeError):
            chunks(NOWHERE)
        assert chunks(NOWHERE)[:4] == ["a", "b", "c", "d"]


@pytest.mark.parametrize("client", ["requests", "aiohttp"])
def test_other_clients_get_faults_as_errors_of_their_own(plain: Path, client: str):
    url = "http://x/v1/chat/completions"

    def ask() -> tuple[int, object]:
        if client == "requests":
            answer = requests.post(url, json=plain_body(), timeout=9)
            return answer.status_code, answer.json()
        return asyncio.run(ask_status())

    async def ask_status() -> tuple[int, object]:
        async with (
            aiohttp.ClientSession() as session,
            session.post(url, json=plain_body()) as answer,
        ):
            return answer.status, await answer.json()

    errors = {
        "requests": (requests.Timeout, requests.ConnectionError),
        "aiohttp": (TimeoutError, ConnectionError),
    }
    with use(plain, faults="429@1,timeout@2,cut@3,malformed@4"):
        assert ask()[0] == 429
        for error in errors[client]:
            with pytest.raises(error):
                ask()
        with pytest.raises(ValueError, match=r"Unterminated|Expecting"):
            ask()
        assert ask()[0] == 200


def test_only_model_calls_go_wrong(tmp_path: Path):
    path = tmp_path / "0.jsonl"

    def ask(port: int) -> tuple[int, str]:
        found = httpx2.get(f"http://127.0.0.1:{port}/listing").status_code
        return found, ask_openai(port, user("one"))

    with upstream() as server, use(path, "once"):
        ask(server.port)
        port = server.port
    with use(path, faults="400@1"), pytest.raises(openai.BadRequestError, match="Injected"):
        ask(port)


def test_faults_are_refused_while_recording(tmp_path: Path):
    with (
        pytest.raises(BadInputError, match="record mode 'none'"),
        use(tmp_path / "0.jsonl", "once", faults="429@1"),
    ):
        pass
    assert list(tmp_path.iterdir()) == []

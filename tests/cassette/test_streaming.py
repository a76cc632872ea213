"""What reaches the agent, and the disk, while an answer is recorded."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import anthropic
import httpx
import httpx2
import openai
import pytest
import requests

from harness.cassette import use
from harness.errors import ReplayMissError
from harness.schema.recording import Pace, RecordingRules
from tests.cassette.loopback import cheap, upstream, user

NOWHERE = 1
"""A port that nobody listens at."""
CHAT: dict[str, Any] = {"model": "t", "stream": True, "messages": [user("one")]}
PATIENCE_S = 20


class Gate:
    """Lets the server send one event at a time."""

    def __init__(self) -> None:
        self.opened_in_time = True
        self._permits = threading.Semaphore(1)

    def let_one_pass(self) -> None:
        self._permits.release()

    def wait(self, _: int) -> None:
        self.opened_in_time &= self._permits.acquire(timeout=PATIENCE_S)


def recorded(path: Path) -> list[dict[str, Any]]:
    """The interactions on disk, whether the recording is finished or not."""
    partial = path.with_name(path.name + ".partial")
    file = partial if partial.exists() else path
    lines = map(json.loads, file.read_text().splitlines()) if file.exists() else ()
    return [line for line in lines if line["kind"] == "interaction"]


def read_one_by_one(client: Any, port: int, gate: Gate) -> list[str]:
    found = []
    with client.stream("POST", f"http://127.0.0.1:{port}/v1/chat/completions", json=CHAT) as answer:
        for line in answer.iter_lines():
            if line:
                found.append(line)
                gate.let_one_pass()
    return found


async def read_one_by_one_async(client: Any, port: int, gate: Gate) -> list[str]:
    found = []
    url = f"http://127.0.0.1:{port}/v1/chat/completions"
    async with client, client.stream("POST", url, json=CHAT) as answer:
        async for line in answer.aiter_lines():
            if line:
                found.append(line)
                gate.let_one_pass()
    return found


@pytest.mark.parametrize("library", [httpx2, httpx])
@pytest.mark.parametrize("plain_code", [True, False])
def test_events_pass_while_the_next_one_is_not_there_yet(
    tmp_path: Path, library: Any, plain_code: bool
):
    gate = Gate()

    def read(port: int) -> list[str]:
        if plain_code:
            with library.Client(verify=False) as client:
                return read_one_by_one(client, port, gate)
        return asyncio.run(read_one_by_one_async(library.AsyncClient(verify=False), port, gate))

    with upstream() as server, use(tmp_path / "0.jsonl", "once"):
        server.before_event = gate.wait
        live = read(server.port)
    assert gate.opened_in_time
    with use(tmp_path / "0.jsonl"):
        assert list(map(parsed, read(NOWHERE))) == list(map(parsed, live))


def parsed(line: str) -> object:
    data = line.removeprefix("data: ")
    return data if data == "[DONE]" else json.loads(data)


def openai_stream(path: Path, port: int) -> Iterator[bool]:
    with openai.OpenAI(api_key="k", base_url=f"http://127.0.0.1:{port}/v1", **cheap()) as client:
        message: Any = user("one")
        chunks = client.chat.completions.create(model="t", messages=[message], stream=True)
        for _ in chunks:
            yield bool(recorded(path))


def anthropic_stream(path: Path, port: int) -> Iterator[bool]:
    with anthropic.Anthropic(api_key="k", base_url=f"http://127.0.0.1:{port}", **cheap()) as client:
        message: Any = user("one")
        events = client.messages.create(model="t", max_tokens=9, messages=[message], stream=True)
        for event in events:
            yield bool(recorded(path)) if event.type == "message_stop" else False


def ollama_stream(path: Path, port: int) -> Iterator[bool]:
    url = f"http://127.0.0.1:{port}/api/chat"
    with httpx.Client(verify=False) as client, client.stream("POST", url, json=CHAT) as answer:
        for line in answer.iter_lines():
            yield bool(recorded(path)) if json.loads(line)["done"] else False


def test_the_last_event_of_an_anthropic_stream_comes_after_its_recording(tmp_path: Path):
    path = tmp_path / "0.jsonl"
    with upstream() as server, use(path, "once"):
        server.before_event = lambda _: None
        assert list(anthropic_stream(path, server.port))[-1]


def test_the_last_line_of_an_ollama_stream_comes_after_its_recording(tmp_path: Path):
    path = tmp_path / "0.jsonl"
    with upstream() as server, use(path, "once"):
        server.before_event = lambda _: None
        assert list(ollama_stream(path, server.port))[-1]
    [line] = recorded(path)
    assert line["response"]["type"] == "events"
    with use(path):
        assert list(ollama_stream(path, NOWHERE))[-1]


def test_an_openai_stream_is_recorded_where_the_server_never_ends_it(tmp_path: Path):
    path = tmp_path / "0.jsonl"
    read = threading.Event()

    def never_end(number: int) -> None:
        # Five chunks and the end marker have been sent.
        if number == 6:
            assert read.wait(PATIENCE_S)

    with upstream() as server:
        server.answers = ["a b [DONE]\ndata: [DONE]"]
        server.before_event = never_end
        with use(path, "once"):
            seen = list(openai_stream(path, server.port))
            assert len(recorded(path)) == 1
        read.set()
    assert not any(seen)
    [line] = recorded(path)
    assert [event.get("text") for event in line["response"]["body"]] == [None] * 5 + ["[DONE]"]


@pytest.mark.parametrize(
    ("content_type", "events"),
    [
        (
            "text/event-stream",
            [b'data: {"type":"%s"}\n\n' % kind for kind in (b"error", b"message_stop", b"result")]
            + [b"data: [DONE]\n\n", b'data: {"text":"42"}\n\n'],
        ),
        ("application/x-ndjson", [b'{"task":1,"done":true}\n', b'{"task":2,"done":true}\n']),
    ],
)
def test_a_stream_of_no_model_is_recorded_to_its_end(
    tmp_path: Path, content_type: str, events: list[bytes]
):
    def answer(_: httpx.Request) -> httpx.Response:
        return httpx.Response(200, headers={"content-type": content_type}, content=iter(events))

    def pieces() -> bytes:
        with (
            httpx.Client(transport=httpx.MockTransport(answer)) as client,
            client.stream("POST", "http://tool/run", json={"q": 1}) as found,
        ):
            return b"".join(found.iter_bytes())

    path = tmp_path / "0.jsonl"
    with use(path, "once"):
        assert pieces() == b"".join(events)
    with use(path):
        assert pieces() == b"".join(events)


def test_a_plain_answer_is_recorded_before_the_agent_has_all_of_it(tmp_path: Path):
    path = tmp_path / "0.jsonl"
    with upstream() as server, use(path, "once"), httpx2.Client(verify=False) as client:
        url = f"http://127.0.0.1:{server.port}/v1/chat/completions"
        body = {**CHAT, "stream": False}
        with client.stream("POST", url, json=body) as answer:
            pieces = answer.iter_bytes()
            before = len(recorded(path))
            for _ in pieces:
                pass
            assert (before, len(recorded(path))) == (0, 1)


def test_each_event_has_the_time_it_came_at(tmp_path: Path):
    path = tmp_path / "0.jsonl"
    with upstream() as server, use(path, "once"):
        server.before_event = lambda _: None
        list(openai_stream(path, server.port))
    [line] = recorded(path)
    times = [event["at_s"] for event in line["response"]["body"]]
    assert times == sorted(times)
    assert 0 <= line["first_byte_s"] <= times[0] <= times[-1] <= round(line["latency_s"], 3)
    assert all(time == round(time, 3) for time in times)


def first_two(port: int) -> list[str]:
    with openai.OpenAI(api_key="k", base_url=f"http://127.0.0.1:{port}/v1", **cheap()) as client:
        message: Any = user("one")
        with client.chat.completions.create(model="t", messages=[message], stream=True) as chunks:
            return [next(chunks).choices[0].delta.content or "" for _ in range(2)]


def test_a_stream_that_the_agent_leaves_is_kept_as_far_as_it_came(tmp_path: Path):
    path = tmp_path / "0.jsonl"
    gate = Gate()
    with upstream() as server, use(path, "once"):
        server.answers = ["a b c d"]
        server.before_event = gate.wait
        gate.let_one_pass()
        live = first_two(server.port)
        gate.let_one_pass()
        gate.let_one_pass()
        gate.let_one_pass()
        gate.let_one_pass()
    [line] = recorded(path)
    assert line["response"]["cut"] is True
    assert len(line["response"]["body"]) == 2
    with use(path):
        assert first_two(NOWHERE) == live == ["a", "b"]


ENDS_HERE = 'ends where the agent closed the stream.*record_mode="all"'


def leave_after_two(path: Path) -> None:
    gate = Gate()
    gate.let_one_pass()
    with upstream() as server, use(path, "once"):
        server.answers = ["a b c d"]
        server.before_event = gate.wait
        first_two(server.port)
        for _ in range(9):
            gate.let_one_pass()


@pytest.mark.parametrize("pace", ["fast", "recorded"])
def test_an_agent_that_reads_on_where_a_recorded_one_stopped_is_told_so(tmp_path: Path, pace: Pace):
    path = tmp_path / "0.jsonl"
    leave_after_two(path)
    sessions = []

    def read_on() -> None:
        url = f"http://x:{NOWHERE}/v1"
        with use(path, pace=pace) as session:
            sessions.append(session)
            with openai.OpenAI(api_key="k", base_url=url, **cheap()) as client:
                message: Any = user("one")
                for chunk in client.chat.completions.create(
                    model="t", messages=[message], stream=True
                ):
                    pieces.append(chunk.choices[0].delta.content)

    pieces: list[str | None] = []
    with pytest.raises(ReplayMissError, match=re.compile(ENDS_HERE, re.DOTALL)) as caught:
        read_on()
    assert pieces == ["a", "b"]
    assert isinstance(caught.value.__cause__, openai.APIConnectionError)
    assert [miss.cause for miss in sessions[0].misses] == ["the end of a closed stream"]


def test_clients_that_get_answers_whole_are_refused_a_part_of_one(tmp_path: Path):
    path = tmp_path / "0.jsonl"
    leave_after_two(path)
    body = {"model": "t", "stream": True, "messages": [user("one")]}
    with (
        pytest.raises(ReplayMissError, match=re.compile(ENDS_HERE, re.DOTALL)),
        use(path),
    ):
        requests.post(f"http://x:{NOWHERE}/v1/chat/completions", json=body)


def test_a_body_that_was_never_read_is_missed_where_it_is_read(tmp_path: Path):
    path = tmp_path / "0.jsonl"

    def status(port: int, *, read: bool = False) -> int:
        url = f"http://127.0.0.1:{port}/v1/chat/completions"
        body = {**CHAT, "stream": False}
        with (
            httpx2.Client(verify=False) as client,
            client.stream("POST", url, json=body) as answer,
        ):
            if read:
                answer.read()
            return answer.status_code

    with upstream() as server, use(path, "once"):
        assert status(server.port) == 200
    with use(path) as session:
        assert status(NOWHERE) == 200
    assert session.served == 1
    with pytest.raises(ReplayMissError, match="ends where"), use(path):
        status(NOWHERE, read=True)


def test_a_stream_that_is_neither_read_nor_closed_is_kept_when_the_cassette_closes(tmp_path: Path):
    path = tmp_path / "0.jsonl"
    gate = Gate()
    with upstream() as server:
        server.before_event = gate.wait
        url = f"http://127.0.0.1:{server.port}/v1"
        message: Any = user("one")
        with openai.OpenAI(api_key="k", base_url=url, **cheap()) as client:
            with use(path, "once") as session:
                chunks = client.chat.completions.create(model="t", messages=[message], stream=True)
                next(chunks)
            assert session.recorded == 1
            for _ in range(9):
                gate.let_one_pass()
            chunks.close()
    [line] = recorded(path)
    assert line["response"]["cut"] is True


def test_a_connection_that_breaks_is_the_agents_error_and_not_recorded(tmp_path: Path):
    path = tmp_path / "0.jsonl"
    with upstream() as server, use(path, "new_episodes") as session:
        server.events_sent = 1
        with httpx2.Client(verify=False) as client, pytest.raises(httpx2.RemoteProtocolError):
            read_one_by_one(client, server.port, Gate())
    assert session.recorded == 0
    assert session.unanswered
    assert recorded(path) == []


def test_an_answer_that_is_cancelled_before_it_came_is_not_recorded(tmp_path: Path):
    path = tmp_path / "0.jsonl"
    gate = Gate()

    async def ask(port: int) -> None:
        async with httpx2.AsyncClient(verify=False) as client:
            url = f"http://127.0.0.1:{port}/v1/chat/completions"
            call = asyncio.create_task(client.post(url, json=CHAT))
            while not server.asked:
                await asyncio.sleep(0.001)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call

    with upstream() as server, use(path, "new_episodes") as session:
        server.before_event = gate.wait
        asyncio.run(ask(server.port))
        for _ in range(9):
            gate.let_one_pass()
    assert session.recorded == 0


def test_an_answer_that_comes_after_the_cassette_closed_is_only_passed_on(tmp_path: Path):
    release = threading.Event()

    async def run(port: int) -> tuple[int, int]:
        async with httpx2.AsyncClient(verify=False) as client:
            url = f"http://127.0.0.1:{port}/v1/chat/completions"
            with use(tmp_path / "0.jsonl", "once") as session:
                call = asyncio.create_task(client.post(url, json=CHAT))
                while not server.asked:
                    await asyncio.sleep(0.001)
            release.set()
            return (await call).status_code, session.recorded

    with upstream() as server:
        server.before_answer = lambda: release.wait(PATIENCE_S)
        assert asyncio.run(run(server.port)) == (200, 0)


def test_an_error_that_the_sdk_tries_again_unread_is_kept_whole(tmp_path: Path):
    def ask(port: int) -> str:
        url = f"http://127.0.0.1:{port}/v1"
        message: Any = user("one")
        with openai.OpenAI(api_key="k", base_url=url, max_retries=1, **cheap()) as client:
            answer = client.chat.completions.create(model="t", messages=[message], stream=True)
            return "".join(chunk.choices[0].delta.content or "" for chunk in answer)

    path = tmp_path / "0.jsonl"
    keep_errors = RecordingRules(keep_errors=True)
    with upstream() as server, use(path, "once", rules=keep_errors):
        server.statuses = [429]
        server.headers = {"retry-after-ms": "1"}
        live = ask(server.port)
    error, answer = (line["response"] for line in recorded(path))
    assert (error["status"], error["body"]["error"]["message"]) == (429, "refused")
    assert "cut" not in error
    assert answer["status"] == 200
    with use(path, rules=keep_errors):
        assert ask(NOWHERE) == live


def test_answers_of_a_mock_transport_are_recorded(tmp_path: Path):
    def answer(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, json={"n": json.loads(request.content)["n"]})

    async def parts() -> AsyncIterator[bytes]:
        yield b"one, "
        yield b"two"

    def streamed(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, content=parts())

    async def ask(transport: httpx2.MockTransport) -> list[object]:
        with httpx2.Client(transport=transport) as client:
            first = client.post("http://a/b", json={"n": 1}).json()
        async with httpx2.AsyncClient(transport=transport) as other:
            return [first, (await other.post("http://a/b", json={"n": 2})).json()]

    async def read(transport: httpx2.MockTransport) -> str:
        async with httpx2.AsyncClient(transport=transport) as client:
            return (await client.get("http://a/c")).text

    def refuse(request: httpx2.Request) -> httpx2.Response:
        raise AssertionError(request)

    path = tmp_path / "0.jsonl"
    with use(path, "once"):
        live = asyncio.run(ask(httpx2.MockTransport(answer)))
        assert asyncio.run(read(httpx2.MockTransport(streamed))) == "one, two"
    with use(path):
        assert asyncio.run(ask(httpx2.MockTransport(refuse))) == live == [{"n": 1}, {"n": 2}]
        assert asyncio.run(read(httpx2.MockTransport(refuse))) == "one, two"


def test_a_signed_request_is_sent_as_it_was_signed(tmp_path: Path):
    """Signatures of AWS hold for all headers; other requests ask for plain answers."""
    asked = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append(request.headers["accept-encoding"])
        return httpx2.Response(200, json={})

    with (
        use(tmp_path / "0.jsonl", "once"),
        httpx2.Client(transport=httpx2.MockTransport(answer)) as client,
    ):
        for signature in ("AWS4-HMAC-SHA256 x", "Bearer x"):
            headers = {"authorization": signature, "accept-encoding": "gzip"}
            client.post(f"http://a/{signature[:1]}", headers=headers)
    assert asked == ["gzip", "identity"]

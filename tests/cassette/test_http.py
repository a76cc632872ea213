from __future__ import annotations

import asyncio
import json
import threading
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import openai
import pytest

from harness.cassette.http import use
from harness.cassette.replay.session import Session
from tests.cassette.cells import open_store
from tests.cassette.loopback import (
    Upstream,
    ask_anthropic,
    ask_openai,
    cheap,
    cheap_async,
    upstream,
    user,
)

BAD_REQUEST = (openai.BadRequestError, anthropic.BadRequestError)
REFUSED = (openai.APIStatusError, anthropic.APIStatusError)
NOWHERE = 1
"""A port that nobody listens at."""

Ask = Callable[..., str]
both = pytest.mark.parametrize("ask", [ask_openai, ask_anthropic])


def record(path: Path, run: Callable[[Upstream], Any], variant: str = "baseline") -> Session:
    with upstream() as server, open_store(path, "new_episodes") as store:
        session = store.session(variant)
        with use(session):
            run(server)
        session.finish()
    return session


@both
def test_what_was_recorded_replays_with_the_server_gone(tmp_path: Path, ask: Ask):
    path = tmp_path / "suite" / "task" / "0.jsonl"
    answers: list[str] = []
    session = record(
        path, lambda s: answers.extend(ask(s.port, user(text)) for text in ("one", "two"))
    )
    assert (session.served, session.recorded) == (0, 2)
    with open_store(path) as store:
        session = store.session("baseline")
        with use(session):
            replayed = [ask(NOWHERE, user(text)) for text in ("one", "two")]
    assert (session.served, session.recorded) == (2, 0)
    assert replayed == answers == ["answer 1", "answer 2"]


def test_the_async_sdks_record_and_replay(tmp_path: Path):
    async def ask(port: int) -> list[str | None]:
        url = f"http://127.0.0.1:{port}"
        message: Any = user("one")
        async with openai.AsyncOpenAI(
            api_key="k", base_url=url + "/v1", max_retries=0, **cheap_async()
        ) as client:
            chat = await client.chat.completions.create(model="tiny", messages=[message])
        async with anthropic.AsyncAnthropic(
            api_key="k", base_url=url, max_retries=0, **cheap_async()
        ) as other:
            turn = await other.messages.create(model="tiny", max_tokens=9, messages=[message])
        assert turn.content[0].type == "text"
        return [chat.choices[0].message.content, turn.content[0].text]

    path = tmp_path / "0.jsonl"
    answers: list[str | None] = []
    record(path, lambda server: answers.extend(asyncio.run(ask(server.port))))
    with open_store(path) as store, use(store.session("baseline")):
        assert asyncio.run(ask(NOWHERE)) == answers == ["answer 1", "answer 2"]


@pytest.mark.parametrize("compress", [False, True])
def test_streams_record_and_replay(tmp_path: Path, compress: bool):
    def ask(port: int) -> list[str]:
        url = f"http://127.0.0.1:{port}"
        message: Any = user("one")
        with openai.OpenAI(api_key="k", base_url=url + "/v1", max_retries=0, **cheap()) as client:
            chunks = client.chat.completions.create(model="t", messages=[message], stream=True)
            first = [c.choices[0].delta.content or "" for c in chunks]
        with (
            anthropic.Anthropic(api_key="k", base_url=url, max_retries=0, **cheap()) as other,
            other.messages.stream(model="t", max_tokens=9, messages=[message]) as stream,
        ):
            return [*first, stream.get_final_text()]

    def run(server: Upstream) -> None:
        server.compress = compress
        server.answers = ["a b\u2028 c\nd", "☃ [DONE]"]
        answers.extend(ask(server.port))

    path = tmp_path / "0.jsonl"
    answers: list[str] = []
    record(path, run)
    with open_store(path) as store, use(store.session("baseline")):
        assert ask(NOWHERE) == answers == ["a", "b\u2028", "c\nd", "", "☃ [DONE]"]
    assert '"type":"events"' in path.read_text()


@both
def test_compressed_answers_are_stored_as_json(tmp_path: Path, ask: Ask):
    def run(server: Upstream) -> None:
        server.compress = True
        assert ask(server.port, user("one")) == "answer 1"

    path = tmp_path / "0.jsonl"
    record(path, run)
    assert '"type":"json"' in path.read_text()
    with open_store(path) as store, use(store.session("baseline")):
        assert ask(NOWHERE, user("one")) == "answer 1"


@both
def test_a_miss_is_a_bad_request_that_no_sdk_tries_again(tmp_path: Path, ask: Ask):
    with open_store(tmp_path / "0.jsonl") as store:
        session = store.session("baseline")
        with use(session), pytest.raises(BAD_REQUEST) as caught:
            ask(NOWHERE, user("one"), retries=5)
    assert len(session.misses) == 1
    assert "--record-mode new_episodes" in str(caught.value)
    assert isinstance(caught.value, BAD_REQUEST)
    assert "replay_miss" in caught.value.response.text
    assert caught.value.response.headers["x-should-retry"] == "false"


def test_an_async_miss_that_nobody_awaits_is_remembered(tmp_path: Path):
    async def agent() -> None:
        async def call() -> None:
            with suppress(Exception):
                url = f"http://127.0.0.1:{NOWHERE}"
                async with anthropic.AsyncAnthropic(
                    api_key="k", base_url=url, **cheap_async()
                ) as client:
                    message: Any = user("one")
                    await client.messages.create(model="t", max_tokens=9, messages=[message])

        task = asyncio.get_running_loop().create_task(call())
        while not task.done():
            await asyncio.sleep(0.001)

    with open_store(tmp_path / "0.jsonl") as store:
        session = store.session("baseline")
        with use(session):
            asyncio.run(agent())
    assert [miss.cause for miss in session.misses] == ["nothing recorded"]


def test_after_a_miss_everything_is_missed(tmp_path: Path):
    path = tmp_path / "0.jsonl"
    record(path, lambda server: ask_openai(server.port, user("one")))
    with open_store(path) as store:
        session = store.session("baseline")
        with use(session):
            for text in ("other", "one"):
                with pytest.raises(openai.BadRequestError):
                    ask_openai(NOWHERE, user(text))
    assert [miss.cause for miss in session.misses] == ["message 1 (user)", "after a miss"]
    assert session.served == 0


def test_identical_requests_of_a_trial_get_the_answers_in_order(tmp_path: Path):
    path = tmp_path / "0.jsonl"
    record(path, lambda s: [ask_openai(s.port, user("one")) for _ in range(2)])
    with open_store(path) as store:
        for variant in ("baseline", "another"):
            with use(store.session(variant)):
                replayed = [ask_openai(NOWHERE, user("one")) for _ in range(2)]
                assert replayed == ["answer 1", "answer 2"]
        session = store.session("baseline")
        with use(session):
            ask_openai(NOWHERE, user("one"))
            ask_openai(NOWHERE, user("one"))
            with pytest.raises(openai.BadRequestError):
                ask_openai(NOWHERE, user("one"))
    assert session.misses[0].cause == "repetition"


def test_threads_with_different_cassettes_do_not_mix(tmp_path: Path):
    def run(number: int, port: int, mode: Any) -> list[str]:
        with open_store(tmp_path / f"{number}.jsonl", mode) as store:
            session = store.session("baseline")
            with use(session):
                answers = [ask_openai(port, user(f"{number}.{i}")) for i in range(4)]
            session.finish()
        return answers

    def in_threads(port: int, mode: Any) -> list[list[str]]:
        with ThreadPoolExecutor(6) as pool:
            return list(pool.map(lambda number: run(number, port, mode), range(6)))

    with upstream() as server:
        recorded = in_threads(server.port, "new_episodes")
    assert in_threads(NOWHERE, "none") == recorded
    for number in range(6):
        lines = (tmp_path / f"{number}.jsonl").read_text().splitlines()
        assert sum('"kind":"interaction"' in line for line in lines) == 4


def test_asyncio_tasks_with_different_cassettes_do_not_mix(tmp_path: Path):
    async def run(number: int, port: int, mode: Any) -> list[str | None]:
        url = f"http://127.0.0.1:{port}/v1"
        answers = []
        with open_store(tmp_path / f"{number}.jsonl", mode) as store:
            session = store.session("baseline")
            with use(session):
                async with openai.AsyncOpenAI(
                    api_key="k", base_url=url, max_retries=0, **cheap_async()
                ) as client:
                    for turn in range(3):
                        message: Any = user(f"{number}.{turn}")
                        chat = await client.chat.completions.create(model="t", messages=[message])
                        answers.append(chat.choices[0].message.content)
        return answers

    async def all_of(port: int, mode: Any) -> list[list[str | None]]:
        return await asyncio.gather(*(run(number, port, mode) for number in range(4)))

    with upstream() as server:
        recorded = asyncio.run(all_of(server.port, "new_episodes"))
    assert asyncio.run(all_of(NOWHERE, "none")) == recorded


def test_a_pool_thread_means_the_only_open_cassette(tmp_path: Path):
    path = tmp_path / "0.jsonl"
    record(path, lambda server: ask_openai(server.port, user("one")))
    with (
        open_store(path) as store,
        use(store.session("baseline")),
        ThreadPoolExecutor(1) as pool,
    ):
        assert pool.submit(ask_openai, NOWHERE, user("one")).result() == "answer 1"


def test_a_thread_that_could_mean_several_cassettes_is_refused(tmp_path: Path):
    with (
        upstream() as server,
        open_store(tmp_path / "0.jsonl", "new_episodes") as first,
        open_store(tmp_path / "1.jsonl", "new_episodes") as second,
    ):
        sessions = [first.session("baseline"), second.session("baseline")]
        with (
            use(sessions[0]),
            use(sessions[1]),
            ThreadPoolExecutor(1) as pool,
        ):
            call = pool.submit(ask_openai, server.port, user("one"))
            with pytest.raises(openai.BadRequestError, match="copy_context"):
                call.result()
        assert server.asked == []
        assert [[miss.cause for miss in s.misses] for s in sessions] == [["no context"]] * 2
        for session in sessions:
            session.finish()


@both
def test_a_refused_request_is_part_of_the_recording(tmp_path: Path, ask: Ask):
    def run(server: Upstream) -> None:
        server.statuses = [400]
        with pytest.raises(BAD_REQUEST, match="refused"):
            ask(server.port, user("one"))

    path = tmp_path / "0.jsonl"
    session = record(path, run)
    assert (session.recorded, session.unanswered) == (1, False)
    with open_store(path) as store:
        session = store.session("baseline")
        with use(session), pytest.raises(BAD_REQUEST, match="refused"):
            ask(NOWHERE, user("one"))
    assert session.misses == []


@both
@pytest.mark.parametrize("status", [401, 403, 404, 405])
def test_a_refused_key_and_a_wrong_address_are_not_recorded(tmp_path: Path, ask: Ask, status: int):
    def run(server: Upstream) -> None:
        server.statuses = [status]
        with pytest.raises(REFUSED) as caught:
            ask(server.port, user("one"))
        assert isinstance(caught.value, REFUSED)
        assert caught.value.status_code == status
        assert ask(server.port, user("one")) == "answer 2"

    path = tmp_path / "0.jsonl"
    assert record(path, run).recorded == 1
    with open_store(path) as store, use(store.session("baseline")):
        assert ask(NOWHERE, user("one")) == "answer 2"


def test_a_connection_error_reaches_the_agent_and_is_not_recorded(tmp_path: Path):
    path = tmp_path / "0.jsonl"
    with open_store(path, "new_episodes") as store:
        session = store.session("baseline")
        with use(session), pytest.raises(openai.APIConnectionError):
            ask_openai(NOWHERE, user("one"))
        session.finish(complete=False)
    assert session.unanswered
    assert session.misses == []
    assert list(tmp_path.iterdir()) == []


def test_other_endpoints_and_clients_are_recorded_by_method_url_and_body(tmp_path: Path):
    def ask(url: str) -> list[Any]:
        with httpx2.Client(verify=False) as client:
            found = [client.post(f"{url}/a", json={"n": n}).json() for n in (0, 0.0)]
        request = urllib.request.Request(f"{url}/b", data=b"{}", method="POST")
        with urllib.request.urlopen(request) as answer:
            found.append(json.loads(answer.read()))
        return found

    path = tmp_path / "0.jsonl"
    answers: list[Any] = []
    urls: list[str] = []

    def run(server: Upstream) -> None:
        urls.append(f"http://127.0.0.1:{server.port}")
        answers.extend(ask(urls[0]))

    session = record(path, run)
    assert session.recorded == 3
    assert session.last is None
    with open_store(path) as store, use(store.session("baseline")):
        assert ask(urls[0]) == answers


def test_headers_that_say_who_asks_are_not_stored(tmp_path: Path):
    def run(server: Upstream) -> None:
        server.headers = {"set-cookie": "session=1", "x-request-id": "req-7", "x-org": "acme"}
        ask_openai(server.port, user("one"))

    path = tmp_path / "0.jsonl"
    record(path, run)
    text = path.read_text()
    assert "req-7" in text
    assert "session=1" not in text
    assert "acme" not in text
    assert "unused" not in text


def test_the_patch_is_there_only_while_a_cassette_is_in_use(tmp_path: Path):
    original = httpx2.HTTPTransport.handle_request
    with open_store(tmp_path / "0.jsonl") as store:
        entered, leave = threading.Event(), threading.Event()

        def hold() -> None:
            with use(store.session("a")):
                entered.set()
                leave.wait(10)

        thread = threading.Thread(target=hold)
        thread.start()
        entered.wait(10)
        with use(store.session("b")):
            leave.set()
            thread.join()
            assert httpx2.HTTPTransport.handle_request is not original
        assert httpx2.HTTPTransport.handle_request is original


def test_two_front_doors_of_one_host_are_the_same_endpoint(tmp_path: Path):
    path = tmp_path / "0.jsonl"
    record(path, lambda server: ask_openai(server.port, user("one")))
    message: Any = user("one")
    with (
        open_store(path) as store,
        use(store.session("baseline")),
        openai.OpenAI(api_key="k", base_url="https://example.invalid/api/v1", **cheap()) as client,
    ):
        chat = client.chat.completions.create(model="tiny", messages=[message])
    assert chat.choices[0].message.content == "answer 1"

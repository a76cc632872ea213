"""A cassette around any code."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest

import harness.cassette
from harness.cassette import use
from harness.cassette.replay.session import Session
from harness.errors import BadInputError, CassetteError, ReplayMissError
from harness.schema.results import RecordMode
from tests.cassette.loopback import Upstream, ask_openai, cheap_async, upstream, user

NOWHERE = 1


@pytest.fixture
def server() -> Iterator[Upstream]:
    with upstream() as running:
        yield running


def record(path: Path, server: Upstream, *texts: str) -> None:
    with use(path, "once"):
        for text in texts:
            ask_openai(server.port, user(text))


def test_what_was_recorded_is_replayed_by_default(tmp_path: Path, server: Upstream):
    path = tmp_path / "talk" / "count.jsonl"
    record(path, server, "one", "two")
    with use(path) as session:
        assert ask_openai(NOWHERE, user("one")) == "answer 1"
    assert (session.served, session.recorded, session.misses) == (1, 0, [])
    header = path.read_text().splitlines()[0]
    assert '"suite":"talk","task":"count"' in header


def test_once_records_one_time_and_new_episodes_what_is_missing(tmp_path: Path, server: Upstream):
    path = tmp_path / "0.jsonl"
    for _ in range(2):
        record(path, server, "one")
    assert len(server.asked) == 1
    with use(path, "new_episodes") as session:
        ask_openai(server.port, user("one"))
        ask_openai(server.port, user("two"))
    assert (session.served, session.recorded) == (1, 1)
    with use(path, "all") as session:
        ask_openai(server.port, user("one"))
    assert (session.served, session.recorded) == (0, 1)


def test_leaving_it_raises_the_miss_that_the_code_swallowed(tmp_path: Path, server: Upstream):
    path = tmp_path / "0.jsonl"
    record(path, server, "one")
    hint = 'record_mode="new_episodes"'
    sessions = []

    def agent() -> None:
        with use(path) as session, suppress(Exception):
            sessions.append(session)
            ask_openai(NOWHERE, user("two"))

    with pytest.raises(ReplayMissError, match=hint) as caught:
        agent()
    assert str(caught.value) == sessions[0].misses[0].text
    assert str(path) in str(caught.value)
    assert "The task" not in str(caught.value)


def test_leaving_it_raises_the_miss_where_the_code_let_the_clients_error_pass(tmp_path: Path):
    sessions = []

    def ask(send: Callable[[], Any]) -> None:
        with use(tmp_path / "0.jsonl") as session:
            sessions.append(session)
            send()

    for error, send in (
        (openai.BadRequestError, lambda: ask_openai(NOWHERE, user("one"))),
        (httpx2.HTTPStatusError, lambda: httpx2.get("http://127.0.0.1:1/a").raise_for_status()),
    ):
        with pytest.raises(ReplayMissError) as caught:
            ask(send)
        assert str(caught.value) == sessions[-1].misses[0].text
        assert isinstance(caught.value.__cause__, error)


def test_a_miss_is_a_note_on_an_exception_of_the_codes_own(tmp_path: Path):
    with pytest.raises(KeyError) as caught, use(tmp_path / "0.jsonl") as session:
        httpx2.get("http://127.0.0.1:1/a").json()["answer"]
    assert caught.value.__notes__ == [session.misses[0].text]


def ask_and_fail(path: Path, mode: RecordMode, port: int) -> None:
    with use(path, mode):
        ask_openai(port, user("one"))
        raise KeyError


def test_what_code_that_failed_has_recorded_is_there(tmp_path: Path, server: Upstream):
    path = tmp_path / "0.jsonl"
    with pytest.raises(KeyError):
        ask_and_fail(path, "once", server.port)
    with use(path):
        assert ask_openai(NOWHERE, user("one")) == "answer 1"


def test_code_that_fails_does_not_replace_a_good_recording(tmp_path: Path, server: Upstream):
    path = tmp_path / "0.jsonl"
    record(path, server, "one", "two")
    before = path.read_bytes()
    with pytest.raises(KeyError):
        ask_and_fail(path, "all", server.port)
    assert path.read_bytes() == before
    with use(path, "all") as session:
        # It goes on where it stopped: what was paid for is not asked for again.
        ask_openai(server.port, user("one"))
        ask_openai(server.port, user("two"))
    assert (session.served, session.recorded) == (1, 1)


def test_a_model_out_of_reach_leaves_no_file(tmp_path: Path):
    path = tmp_path / "0.jsonl"
    with pytest.raises(openai.APIConnectionError), use(path, "once"):
        ask_openai(NOWHERE, user("one"))
    assert list(tmp_path.iterdir()) == []


def test_as_a_decorator_each_call_begins_at_the_start(tmp_path: Path, server: Upstream):
    path = tmp_path / "0.jsonl"
    record(path, server, "one", "one")

    @use(path)
    def ask(times: int, *, deeper: bool = False) -> list[str]:
        inner = ask(1) if deeper else []
        return [*inner, *(ask_openai(NOWHERE, user("one")) for _ in range(times))]

    assert ask(2) == ["answer 1", "answer 2"]
    assert ask(2, deeper=True) == ["answer 1", "answer 1", "answer 2"]
    assert list(inspect.signature(ask).parameters) == ["times", "deeper"]
    with pytest.raises(ReplayMissError):
        ask(3)


async def ask_async(port: int, text: str) -> str | None:
    url = f"http://127.0.0.1:{port}/v1"
    message: Any = user(text)
    async with openai.AsyncOpenAI(
        api_key="k", base_url=url, max_retries=0, **cheap_async()
    ) as client:
        chat = await client.chat.completions.create(model="tiny", messages=[message])
        return chat.choices[0].message.content


def test_it_decorates_coroutine_functions_and_serves_async_with(tmp_path: Path, server: Upstream):
    path = tmp_path / "0.jsonl"
    record(path, server, "one")

    @use(path)
    async def decorated() -> str | None:
        return await ask_async(NOWHERE, "one")

    async def block() -> str | None:
        async with use(path) as session:
            answer = await ask_async(NOWHERE, "one")
        assert session.served == 1
        return answer

    async def both() -> list[str | None]:
        return list(await asyncio.gather(decorated(), block(), decorated()))

    assert inspect.iscoroutinefunction(decorated)
    assert asyncio.run(both()) == ["answer 1"] * 3


def test_an_async_miss_is_raised_at_the_end_of_the_block(tmp_path: Path):
    async def run() -> None:
        async with use(tmp_path / "0.jsonl"):
            with suppress(openai.BadRequestError):
                await ask_async(NOWHERE, "one")

    with pytest.raises(ReplayMissError):
        asyncio.run(run())


def test_many_at_once_have_each_their_own_file(tmp_path: Path, server: Upstream):
    def run(number: int, port: int) -> list[str]:
        with use(tmp_path / f"{number}.jsonl", "once"):
            return [ask_openai(port, user(f"{number}.{i}")) for i in range(2)]

    async def run_async(number: int, port: int) -> list[str | None]:
        async with use(tmp_path / f"{number}.jsonl", "once"):
            return [await ask_async(port, f"{number}.{i}") for i in range(2)]

    async def tasks(port: int) -> list[list[str | None]]:
        return await asyncio.gather(*(run_async(number, port) for number in range(3, 6)))

    def everything(port: int) -> tuple[list[list[str]], list[list[str | None]]]:
        with ThreadPoolExecutor(4) as pool:
            async_part = pool.submit(lambda: asyncio.run(tasks(port)))
            return list(pool.map(lambda n: run(n, port), range(3))), async_part.result()

    live = everything(server.port)
    assert everything(NOWHERE) == live
    for number in range(6):
        lines = (tmp_path / f"{number}.jsonl").read_text().splitlines()
        assert sum('"kind":"interaction"' in line for line in lines) == 2


def test_the_values_of_key_variables_are_removed(
    tmp_path: Path, server: Upstream, monkeypatch: pytest.MonkeyPatch
):
    secret = "correct-horse-battery"
    monkeypatch.setenv("ACME_API_KEY", secret)
    server.answers = [f"the key is {secret}"]
    path = tmp_path / "0.jsonl"
    record(path, server, f"my key is {secret}")
    assert secret not in path.read_text()
    with use(path):
        assert ask_openai(NOWHERE, user(f"my key is {secret}")) == "the key is [redacted]"


def test_a_request_after_the_block_is_refused_while_another_cassette_is_open(
    tmp_path: Path, server: Upstream
):
    async def run() -> None:
        go = asyncio.Event()

        async def late() -> int:
            await go.wait()
            async with httpx2.AsyncClient(verify=False) as client:
                return (await client.get(f"http://127.0.0.1:{server.port}/listing")).status_code

        with use(tmp_path / "first.jsonl", "once"):
            task = asyncio.create_task(late())
            await asyncio.sleep(0)
        with use(tmp_path / "second.jsonl", "once") as second:
            go.set()
            assert await task == 400
            assert (second.recorded, len(second.misses)) == (0, 1)

    with pytest.raises(ReplayMissError, match=r"a task that was started while .*first\.jsonl"):
        asyncio.run(run())


@pytest.mark.parametrize("mode", ["none", "new_episodes"])
def test_a_request_after_the_last_cassette_is_closed_never_reaches_the_network(
    tmp_path: Path, server: Upstream, mode: RecordMode
):
    path = tmp_path / "0.jsonl"
    record(path, server, "one")

    async def run() -> None:
        go = asyncio.Event()

        async def late() -> str | None:
            await go.wait()
            return await ask_async(server.port, "late")

        async with use(path, mode):
            task = asyncio.create_task(late())
            await asyncio.sleep(0)
        go.set()
        with pytest.raises(openai.BadRequestError, match="that is closed"):
            await task

    asyncio.run(run())
    with use(path, mode):
        context = contextvars.copy_context()
    with pytest.raises(openai.BadRequestError, match="that is closed"):
        context.run(ask_openai, server.port, user("late"))
    assert len(server.asked) == 1
    assert ask_openai(server.port, user("after")) == "answer 2"
    assert asyncio.run(ask_async(server.port, "after")) == "answer 3"


@pytest.mark.parametrize(
    "arguments",
    [{"record_mode": "nonne"}, {"pace": "slow"}, {"faults": "429"}, {"faults": "flood@1"}],
)
def test_arguments_that_say_nothing_known_are_refused(tmp_path: Path, arguments: Any):
    with pytest.raises(BadInputError, match=next(iter(arguments.values()))):
        use(tmp_path / "0.jsonl", **arguments)


@pytest.mark.parametrize("path", [None, 3, b"0.jsonl"])
def test_what_is_no_path_is_refused(path: Any):
    with pytest.raises(BadInputError, match="path"):
        use(path)


def test_rules_may_be_a_dict_as_in_suite_toml(tmp_path: Path, server: Upstream):
    rules = {"normalise": ["dates", {"pattern": "build [0-9]+", "replace": "build N"}]}
    path = tmp_path / "0.jsonl"
    with use(path, "once", rules=rules):
        ask_openai(server.port, user("build 1"))
    with use(path, rules=rules):
        assert ask_openai(NOWHERE, user("build 2")) == "answer 1"


@pytest.mark.parametrize(
    ("rules", "said"),
    [({"ignor": ["a"]}, "ignor"), ({"redact": ["("]}, "redact"), ("dates", "'dates'")],
)
def test_rules_that_say_nothing_known_are_refused(tmp_path: Path, rules: Any, said: str):
    with pytest.raises(BadInputError, match=f"rules.*{said}"):
        use(tmp_path / "0.jsonl", rules=rules)


def test_one_use_is_entered_once_at_a_time(tmp_path: Path):
    block = use(tmp_path / "0.jsonl")
    with block, pytest.raises(BadInputError, match="entered already"):
        block.__enter__()
    with block as session:
        assert isinstance(session, Session)


def test_generators_are_not_decorated(tmp_path: Path):
    def numbers() -> Iterator[int]:
        yield 1

    with pytest.raises(BadInputError, match="generator"):
        use(tmp_path / "0.jsonl")(numbers)


def test_a_file_that_cannot_be_trusted_is_not_opened(tmp_path: Path):
    path = tmp_path / "0.jsonl"
    path.write_text('{"kind":"header"}\n')
    block = use(path)
    for _ in range(2):
        with pytest.raises(CassetteError):
            block.__enter__()


def test_it_is_loaded_when_it_is_asked_for():
    code = "import sys, harness.cassette.format; print('vcr' in sys.modules); harness.cassette.use"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}; print('vcr' in sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["False", "True"]
    assert not hasattr(harness.cassette, "nothing")

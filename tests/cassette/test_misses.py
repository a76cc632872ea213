"""A miss fails the trial, whatever the agent's code does with it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import openai
import pytest

from harness.cassette import use
from harness.errors import ReplayMissError
from tests.cassette.loopback import ask_anthropic, ask_openai, cheap_async, upstream, user

NOWHERE = 1
ADDRESS = f"http://127.0.0.1:{NOWHERE}"
MANY = 5
"""Retries that an SDK would take seconds for."""
MESSAGE: Any = user("one")


async def ask_async_openai() -> None:
    async with openai.AsyncOpenAI(
        api_key="k", base_url=f"{ADDRESS}/v1", max_retries=MANY, **cheap_async()
    ) as client:
        await client.chat.completions.create(model="t", messages=[MESSAGE])


async def ask_async_anthropic() -> None:
    async with anthropic.AsyncAnthropic(
        api_key="k", base_url=ADDRESS, max_retries=MANY, **cheap_async()
    ) as client:
        await client.messages.create(model="t", max_tokens=9, messages=[MESSAGE])


def swallow(ask: Callable[[], object]) -> None:
    with suppress(BaseException):
        ask()


def in_a_pool_thread() -> None:
    with ThreadPoolExecutor(1) as pool:
        pool.submit(swallow, lambda: ask_openai(NOWHERE, MESSAGE, retries=MANY))


def in_a_thread_of_its_own() -> None:
    thread = threading.Thread(
        target=swallow, args=(lambda: ask_anthropic(NOWHERE, MESSAGE, retries=MANY),)
    )
    thread.start()
    thread.join()


def in_a_task_that_nobody_awaits() -> None:
    async def run() -> None:
        task = asyncio.create_task(ask_async_openai())
        while not task.done():
            await asyncio.sleep(0.001)

    asyncio.run(run())


@pytest.mark.parametrize(
    "agent",
    [
        lambda: swallow(lambda: ask_openai(NOWHERE, MESSAGE, retries=MANY)),
        lambda: swallow(lambda: ask_anthropic(NOWHERE, MESSAGE, retries=MANY)),
        lambda: swallow(lambda: asyncio.run(ask_async_openai())),
        lambda: swallow(lambda: asyncio.run(ask_async_anthropic())),
        in_a_pool_thread,
        in_a_thread_of_its_own,
        in_a_task_that_nobody_awaits,
    ],
    ids=[
        "openai", "anthropic", "async openai", "async anthropic", "pool thread", "thread", "task",
    ],
)  # fmt: skip
def test_a_swallowed_miss_is_raised_in_the_end_and_was_asked_for_once(
    tmp_path: Path, agent: Callable[[], None]
):
    sessions = []

    def run() -> None:
        with use(tmp_path / "0.jsonl") as session:
            sessions.append(session)
            agent()

    with pytest.raises(ReplayMissError, match="no recording of this request"):
        run()
    assert [miss.cause for miss in sessions[0].misses] == ["nothing recorded"]


KEY = "acme-internal-credential"


def say(path: Path, mode: Any, *texts: str) -> str:
    """One call; gives what the agent was told."""
    body = {"model": "m", "messages": [user(text) for text in texts]}
    with upstream() as server, use(path, mode):
        return httpx2.post(f"http://127.0.0.1:{server.port}/v1/chat/completions", json=body).text


@pytest.mark.parametrize("before", ["", "x " * 70], ids=["short", "where a line is cut"])
def test_a_miss_tells_no_key_that_was_recorded_before_it_was_known_as_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str
):
    path = tmp_path / "0.jsonl"
    say(path, "once", "first", f"use {before}{KEY} {'y ' * 50}", "go")
    monkeypatch.setenv("ACME_API_KEY", KEY)
    with pytest.raises(ReplayMissError) as missed:
        say(path, "none", "first", f"take {before}{'y ' * 60}", "go")
    for part in (KEY, KEY[:12], KEY[-12:]):
        assert part not in str(missed.value)
    with pytest.raises(ReplayMissError, match="First difference, in message 3") as missed:
        say(path, "none", "first", f"use {before}{KEY} {'y ' * 50}", "stay")
    assert KEY not in str(missed.value)


def test_what_the_agent_is_told_of_a_miss_holds_no_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path = tmp_path / "0.jsonl"
    say(path, "once", f"use {KEY}")
    monkeypatch.setenv("ACME_API_KEY", KEY)
    told = []

    def agent() -> None:
        body = {"model": "m", "messages": [user(f"do not use {KEY}")]}
        told.append(httpx2.post(f"{ADDRESS}/v1/chat/completions", json=body).text)
        with ThreadPoolExecutor(1) as pool, use(tmp_path / "1.jsonl", "once"):
            told.append(pool.submit(httpx2.get, f"{ADDRESS}/{KEY}").result().text)

    with pytest.raises(ReplayMissError), use(path):
        agent()
    assert "no recording" in told[0]
    assert "without a context" in told[1]
    assert KEY not in "".join(told)

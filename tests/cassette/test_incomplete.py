"""How `use` ends: in another task, with answers that are not kept, with a disk that is full."""

from __future__ import annotations

import asyncio
import resource
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx2
import pytest

from harness.cassette import use
from harness.cassette.file.view import read
from harness.cassette.http.routing import candidates
from harness.errors import InfrastructureError
from tests.cassette.test_forked import post


def model(*statuses: int) -> httpx2.Client:
    """Answers with these statuses, then with 200."""
    left = list(statuses)

    def answer(asked: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(left.pop(0) if left else 200, json={"said": "hi"})

    return httpx2.Client(transport=httpx2.MockTransport(answer))


def test_it_is_entered_in_one_task_and_left_in_another(tmp_path: Path):
    path = tmp_path / "0.jsonl"
    client = model()
    with use(path, "new_episodes"):
        post(client, "one")

    async def fixture() -> AsyncIterator[int]:
        async with use(path) as session:
            yield 1
            assert session.served == 1

    async def call() -> int:
        return post(client, "one").status_code

    async def run() -> None:
        steps = fixture()

        async def step() -> int | None:
            return await anext(steps, None)

        assert await asyncio.create_task(step()) == 1
        assert await asyncio.create_task(call()) == 200
        assert await asyncio.create_task(step()) is None

    asyncio.run(run())
    client.close()


@pytest.mark.parametrize("exists", [False, True])
def test_a_trial_with_an_answer_that_is_never_kept_is_not_complete(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, exists: bool
):
    path = tmp_path / "0.jsonl"
    if exists:
        with model() as client, use(path, "new_episodes"):
            post(client, "before")
    with model(200, 401) as client, use(path, "new_episodes"):
        said = [post(client, text).status_code for text in ("one", "two", "three")]
    assert said == [200, 401, 200]
    (told,) = (record.message for record in caplog.records)
    why = "HTTP 401 is never kept, and request 2 (openai-chat) got nothing else"
    told_why = why if exists else f"not written: {why}; what was recorded is in 0.jsonl.partial"
    assert told == f"{path}: {told_why}; record again to go on"
    file = path if exists else path.with_name("0.jsonl.partial")
    assert len(read(file).trials) == exists
    with model(418, 418) as client, use(path, "new_episodes") as session:
        said = [post(client, text).status_code for text in ("one", "two", "three")]
    assert (said, session.served, session.recorded) == ([200, 418, 200], 2, 1)
    assert len(read(path).trials["default"].interactions) == 3


def test_an_answer_that_is_never_kept_and_then_got_over_leaves_a_complete_trial(tmp_path: Path):
    path = tmp_path / "0.jsonl"
    with model(401) as client, use(path, "new_episodes"):
        assert [post(client, "one").status_code for _ in range(2)] == [401, 200]
    assert len(read(path).trials) == 1


class Slow(httpx2.SyncByteStream):
    def __iter__(self) -> Iterator[bytes]:
        yield b'data: {"a":1}\n\n'
        yield b'data: {"a":2}\n\n'


def test_a_full_disk_at_the_end_does_not_hide_the_users_exception(tmp_path: Path):
    def answer(asked: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, stream=Slow())

    before = resource.getrlimit(resource.RLIMIT_FSIZE)

    def record() -> None:
        with (
            httpx2.Client(transport=httpx2.MockTransport(answer)) as client,
            use(tmp_path / "0.jsonl", "new_episodes"),
        ):
            asked = client.build_request("POST", "http://x/v1/chat/completions", json={})
            unread = client.send(asked, stream=True)
            next(unread.iter_raw())
            resource.setrlimit(resource.RLIMIT_FSIZE, (8, before[1]))
            raise KeyError("the user's own")

    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        with pytest.raises(KeyError, match="the user's own") as raised:
            record()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    (note,) = raised.value.__notes__
    assert "cannot be written: File too large" in note


def test_every_answer_on_its_way_is_asked_though_one_cannot_be_kept(tmp_path: Path):
    left: list[str] = []

    class OnItsWay:
        def leave(self) -> None:
            left.append("left")
            raise InfrastructureError("it cannot be kept")

    with use(tmp_path / "0.jsonl", "new_episodes"):
        (entry,) = candidates()
        for one in (OnItsWay(), OnItsWay(), OnItsWay()):
            assert entry.begins(one)
    assert left == ["left"] * 3

"""A process that is forked inside a recording shares its file: it must not write there."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import httpx2
import pytest

from harness.cassette import use
from harness.cassette.file.view import read
from harness.cassette.replay.store import check_file
from harness.errors import CassetteError


def client(asked: Path) -> httpx2.Client:
    """A model that notes what it is asked, whichever process asks."""

    def answer(request: httpx2.Request) -> httpx2.Response:
        with asked.open("ab") as notes:
            notes.write(request.content + b"\n")
        return httpx2.Response(200, json={"said": "hi"})

    return httpx2.Client(transport=httpx2.MockTransport(answer))


def post(model: httpx2.Client, text: str) -> httpx2.Response:
    body = {"model": "m", "messages": [{"role": "user", "content": text}]}
    return model.post("http://x/v1/chat/completions", json=body)


def in_a_fork(work: Callable[[], str]) -> str:
    """What a child makes of it; it ends without tidying up."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(writing, work().encode())
        finally:
            os._exit(0)
    os.close(writing)
    with open(reading) as told:
        text = told.read()
    os.waitpid(pid, 0)
    return text


def test_a_child_of_a_recording_is_refused_before_its_request_is_paid_for(tmp_path: Path):
    path, asked = tmp_path / "0.jsonl", tmp_path / "asked"
    with client(asked) as model, use(path, "new_episodes") as session:
        post(model, "one")

        def work() -> str:
            return f"{post(model, 'one').text} {post(model, 'two').text}"

        told = in_a_fork(work)
        assert told.count("opened for recording by another process") == 2
        post(model, "two")
    assert session.recorded == 2
    assert len(asked.read_text().splitlines()) == 2
    check_file(path)
    assert len(read(path).interactions) == 2


@pytest.mark.parametrize("raised", [None, SystemExit(3)])
def test_a_child_that_leaves_the_block_itself_does_not_touch_the_file(
    tmp_path: Path, raised: SystemExit | None
):
    path = tmp_path / "0.jsonl"
    with client(tmp_path / "asked") as model:
        using = use(path, "new_episodes")
        with using:
            post(model, "one")

            def work() -> str:
                try:
                    using.__exit__(None if raised is None else SystemExit, raised, None)
                except CassetteError as error:
                    return str(error)
                return "left" if raised is None else raised.__notes__[0]

            assert "opened for recording by another process" in in_a_fork(work)
            assert not path.exists()
            with pytest.raises(CassetteError, match="is recording"):
                use(path, "new_episodes").__enter__()
            post(model, "two")
        check_file(path)
        assert len(read(path).interactions) == 2


def test_a_child_replays(tmp_path: Path):
    path = tmp_path / "0.jsonl"
    with client(tmp_path / "asked") as model:
        with use(path, "new_episodes"):
            post(model, "one")
        with use(path):
            assert in_a_fork(lambda: post(model, "one").text) == '{"said":"hi"}'
            assert "has no recording of this request" in in_a_fork(
                lambda: post(model, "other").text
            )


def test_a_child_that_lives_longer_does_not_keep_the_file_locked(tmp_path: Path):
    path = tmp_path / "0.jsonl"
    waiting, done = os.pipe()
    with client(tmp_path / "asked") as model:
        with use(path, "new_episodes"):
            post(model, "one")
            pid = os.fork()
            if pid == 0:
                os.close(done)
                os.read(waiting, 1)
                os._exit(0)
        try:
            with use(path, "new_episodes"):
                post(model, "two")
        finally:
            os.close(done)
            os.waitpid(pid, 0)
            os.close(waiting)

"""What is said to be on disk has been synced, and a lock is held on the file it is meant for."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import httpx2
import pytest

from harness.cassette import use
from harness.cassette.file.journal import Journal
from harness.errors import CassetteError

EVENTS = ['data: {"n":1}\n\n', 'data: {"n":2}\n\n', "data: [DONE]\n\n"]


@contextmanager
def watching(called: Callable[[str, FrameType], None]) -> Iterator[None]:
    """Told of each function of the operating system that this thread is about to call."""

    def profile(frame: FrameType, event: str, function: object) -> None:
        if event == "c_call":
            name = f"{getattr(function, '__module__', '')}.{getattr(function, '__name__', '')}"
            called(name, frame)

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        yield
    finally:
        sys.setprofile(before)


class Body(httpx2.SyncByteStream):
    def __iter__(self) -> Iterator[bytes]:
        yield from (event.encode() for event in EVENTS)


def stream(asked: httpx2.Request) -> httpx2.Response:
    return httpx2.Response(200, headers={"content-type": "text/event-stream"}, stream=Body())


def test_an_answer_is_synced_before_its_end_is_passed_on_and_a_file_before_its_name(
    tmp_path: Path,
):
    path = tmp_path / "0.jsonl"
    happened: list[str] = []

    def called(name: str, frame: FrameType) -> None:
        if name in ("posix.write", "posix.fsync"):
            opened = os.readlink(f"/proc/self/fd/{frame.f_locals['fd']}")
            happened.append(f"{name.removeprefix('posix.')} {Path(opened).name}")
        elif name in ("posix.link", "posix.replace", "posix.rename"):
            happened.append("named")

    request = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "go"}]}
    url = "http://x/v1/chat/completions"
    with (
        httpx2.Client(transport=httpx2.MockTransport(stream)) as client,
        watching(called),
        use(path, "new_episodes"),
        client.stream("POST", url, json=request) as response,
    ):
        happened += (f"agent has {piece}" for piece in response.iter_text())
    assert happened == [
        f"agent has {EVENTS[0]}",
        f"agent has {EVENTS[1]}",
        "write 0.jsonl.partial",
        "fsync 0.jsonl.partial",
        f"agent has {EVENTS[2]}",
        "write 0.jsonl.partial",
        "fsync 0.jsonl.partial",
        "named",
        f"fsync {tmp_path.name}",
    ]


def test_a_file_that_its_writer_renames_while_it_is_locked_is_not_written(tmp_path: Path):
    path, other = tmp_path / "0.jsonl", tmp_path / "other"
    path.write_text("")
    other.write_text("")

    def called(name: str, frame: FrameType) -> None:
        if name == "fcntl.flock":
            other.replace(path)

    with watching(called), pytest.raises(CassetteError, match="is recording this cassette"):
        Journal.open_for_writing(path)
    assert not other.exists()


def test_a_file_that_is_removed_while_it_is_locked_is_not_written(tmp_path: Path):
    path = tmp_path / "0.jsonl"
    path.write_text("")

    def called(name: str, frame: FrameType) -> None:
        if name == "fcntl.flock":
            path.unlink()

    with watching(called), pytest.raises(CassetteError, match="is recording this cassette"):
        Journal.open_for_writing(path)


def test_what_is_not_there_is_not_made_but_for_a_new_recording(tmp_path: Path):
    path = tmp_path / "suite" / "0.jsonl"
    with pytest.raises(CassetteError, match="cannot be written: No such file"):
        Journal.open_for_writing(path)
    assert not path.parent.exists()

"""An exception that arrives in the middle of anything, as from a timeout, costs no recording."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import harness.cassette
from harness.cassette.file.view import read
from harness.cassette.replay.store import check_file
from tests.cassette.cells import ask, open_store
from tests.cassette.killable import ROOT

_OURS = str(Path(harness.cassette.__file__).parent)


class Alarm(Exception):
    """What a signal's handler raises."""


@contextmanager
def alarm_at(line: int) -> Iterator[None]:
    """An exception before the n-th line of the cassette's code that runs inside."""
    left = line

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal left
        if not frame.f_code.co_filename.startswith(_OURS):
            return None
        if event == "line":
            left -= 1
            if left == 0:
                raise Alarm
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)


def interrupted(path: Path, turn: int, line: int) -> bool:
    """Record three calls of which one is interrupted, and made again; False if it was not."""
    said: dict[str, str] = {}
    hit = False
    with open_store(path, "new_episodes") as store:
        session = store.session("a")
        for number, text in enumerate(("one", "two", "three")):
            if number == turn:
                try:
                    with alarm_at(line):
                        ask(session, text, live=text.upper())
                except Alarm:
                    hit = True
            said[text] = ask(session, text, live=text.upper())
        session.finish()
        assert session.error is None
    check_file(path)
    with open_store(path) as store:
        session = store.session("a")
        assert {text: ask(session, text, live="") for text in said} == said
    recorded = read(path)
    assert set(recorded.trials["a"].interactions) == set(recorded.interactions)
    return hit


_STEP = 12
every_line = pytest.mark.parametrize(
    "first", [1, *(pytest.param(n, marks=pytest.mark.slow) for n in range(2, _STEP + 1))]
)


@every_line
@pytest.mark.parametrize("turn", [0, 1])
def test_an_exception_before_any_line_of_a_recording_leaves_a_whole_file(
    tmp_path: Path, turn: int, first: int
):
    for line in count(first, _STEP):
        if not interrupted(tmp_path / f"{line}.jsonl", turn, line):
            break
    assert line > 50, "the recording was not interrupted at all"


@every_line
def test_an_exception_while_a_recording_ends_leaves_what_can_be_gone_on_with(
    tmp_path: Path, first: int
):
    for line in count(first, _STEP):
        path = tmp_path / f"{line}.jsonl"
        hit = True
        with suppress(Alarm), open_store(path, "new_episodes") as store:
            session = store.session("a")
            ask(session, "one", live="ONE")
            with alarm_at(line):
                session.finish()
            hit = False
        with open_store(path, "new_episodes") as store:
            session = store.session("a")
            assert ask(session, "one", live="again") == "ONE"
            session.finish()
        check_file(path)
        if not hit:
            break
    assert line > 12


ALARMS = """
import random, signal, sys
from contextlib import suppress
from pathlib import Path
import httpx2
from harness.cassette import use
from harness.cassette.replay.store import check_file
from harness.errors import HarnessError

class Alarm(Exception): pass
def ring(*args): raise Alarm

folder, moments = Path(sys.argv[1]), random.Random(int(sys.argv[2]))
signal.signal(signal.SIGALRM, ring)
client = httpx2.Client(transport=httpx2.MockTransport(lambda asked: httpx2.Response(200, json={})))

def ask(text):
    signal.setitimer(signal.ITIMER_REAL, moments.uniform(0.0003, 0.004))
    try:
        client.post("http://x/v1/chat/completions", json={"messages": [{"content": text}]})
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)

for number in range(10):
    path = folder / f"{number}.jsonl"
    with use(path, "new_episodes"):
        for turn in range(36):
            with suppress(Alarm):
                ask(f"question {turn // 3}")
    if path.exists():
        check_file(path)
        print("whole")
"""


@pytest.mark.parametrize("seed", [1, *(pytest.param(n, marks=pytest.mark.slow) for n in (2, 3))])
def test_an_agent_that_is_timed_out_and_asks_again_leaves_whole_files(tmp_path: Path, seed: int):
    done = subprocess.run(
        [sys.executable, "-c", ALARMS, tmp_path, str(seed)],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("whole") > 5

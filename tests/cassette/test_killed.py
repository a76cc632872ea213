"""Recordings that are killed at any moment lose nothing that the agent has seen."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from harness.cassette import use
from harness.cassette.file.view import read
from harness.errors import CassetteError
from tests.cassette.killable import converse, recorder
from tests.cassette.loopback import upstream

TURNS = 15


@pytest.mark.parametrize(
    ("kills", "seed"),
    [
        (20, 1),
        *(pytest.param(50, seed, marks=pytest.mark.slow) for seed in (2, 3, 4, 5)),
    ],
)
def test_a_killed_recording_loses_nothing_that_the_agent_has_seen(
    tmp_path: Path, kills: int, seed: int
):
    moments = random.Random(seed)
    rounds = 0
    with upstream() as server, recorder() as recording:
        while kills:
            rounds += 1
            cassette, notes = (tmp_path / f"{rounds}.{end}" for end in ("jsonl", "notes"))
            before = len(server.asked)
            cut = 0
            while kills and not cassette.exists():
                pid = recording.start(cassette, notes, server.port, TURNS)
                time.sleep(moments.uniform(0, 0.2))
                ended = recording.kill(pid)
                assert ended in (-9, 0)
                cut += ended == -9
                kills -= ended == -9
            converse(cassette, notes, server.port, TURNS, "new_episodes")
            # A call may be under way at each kill; every other one was paid for once.
            assert len(server.asked) - before <= TURNS + cut
            assert len(read(cassette).interactions) == TURNS
            _holds_what_was_seen(cassette, notes)


def _holds_what_was_seen(cassette: Path, notes: Path) -> None:
    replayed = converse(cassette, notes.with_suffix(".replay"), 1, TURNS, "none")
    for line in notes.read_text().splitlines():
        turn, _, text = line.partition(" ")
        assert replayed[int(turn)] == text, f"turn {turn}"
    assert not list(cassette.parent.glob("*.partial"))


def test_a_second_process_is_told_that_the_first_is_recording(tmp_path: Path):
    cassette, notes = tmp_path / "0.jsonl", tmp_path / "0.notes"
    with upstream() as server, recorder() as recording:
        recording.start(cassette, notes, server.port, TURNS)
        while not notes.exists() or not notes.read_text():
            time.sleep(0.01)
        with (
            pytest.raises(CassetteError, match="maybe this process"),
            use(cassette, record_mode="new_episodes"),
        ):
            pass
        assert recording.wait() == 0
    assert len(read(cassette).interactions) == TURNS
    _holds_what_was_seen(cassette, tmp_path / "0.notes")

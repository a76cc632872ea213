"""The agent's time limit binds its model calls, recorded and replayed."""

from __future__ import annotations

import threading
from pathlib import Path

from tests.cli.conftest import Harness
from tests.cli.tiny import make_suite, model_server, trials_of, write

OPTIONS = ("run", "suites/tiny", "--task", "fruit", "--repeats", "1")
RECORD = ("--record-mode", "new_episodes", "--allow-live")


def test_a_call_that_takes_longer_ends_the_run_and_replays_to_the_same(
    tmp_path: Path, monkeypatch, harness: Harness
) -> None:
    monkeypatch.chdir(tmp_path)
    with model_server(hangs_from=2) as server:
        # Without the limit the call would end so, and the trial otherwise.
        patience = threading.Timer(30, server.released.set)
        patience.start()
        write(
            make_suite(tmp_path / "suites/tiny", server.port) / "fruit/task.toml",
            "[agent]\ntimeout_sec = 3\n",
        )
        recorded = harness(*OPTIONS, *RECORD, "--out", "first")
        assert recorded.code == 0, recorded.err
        # The second variant asks the same in the same time.
        assert len(server.asked) == 2
        patience.cancel()
    first = trials_of(tmp_path / "first")
    assert {trial.termination_reason for trial in first} == {"duration_exceeded"}
    assert {trial.outcome for trial in first} == {"passed"}
    assert harness("cassette", "audit", "--suite", "tiny").code == 0
    shown = harness("cassette", "show", "cassettes/tiny/fruit/0.jsonl").out
    assert "The run's time was over." in shown
    for form, number in (("vcr", "1 interaction"), ("messages", "1 conversation")):
        options = ("cassettes/tiny/fruit/0.jsonl", "--format", form, "-o", f"out.{form}")
        exported = harness("cassette", "export", *options)
        assert f"out.{form}: {number}\n" in exported.out
    for front in ("http", "direct"):
        again = harness(*OPTIONS, "--front", front, "--out", front)
        assert again.code == 0, again.err
        assert trials_of(tmp_path / front) == first
    # A replay takes no time, and what ended the run is the time that was recorded.
    story = harness("show", "direct", "fruit/plain/0").out
    assert "Agent's time: 3.00 s, which counts for its limit" in story
    longer = harness(*OPTIONS, "--timeout-multiplier", "2")
    assert longer.code == 3
    assert "replay_miss" in longer.err

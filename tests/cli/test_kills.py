"""A recording that is killed again and again loses nothing, and ends as if it never had been."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from harness.cassette.file.view import read
from harness.runner.log import RunLog
from tests.cli.tiny import command_line, in_subprocess, make_suite, model_server, solve

KILLS = 20


def slowly(messages: list[dict[str, Any]]) -> Any:
    time.sleep(0.03)
    return solve(messages)


def recorded(folder: Path) -> dict[str, list[bytes]]:
    """Every whole line on disk, by cassette, finished or not."""
    files: dict[str, list[bytes]] = {}
    for path in sorted(folder.rglob("*.jsonl*")):
        name = str(path).removesuffix(".partial")
        files[name] = path.read_bytes().split(b"\n")[:-1]
    return files


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_kills_at_random_moments_lose_nothing(tmp_path: Path, seed: int) -> None:
    moments = random.Random(seed)
    cassettes = tmp_path / "cassettes"
    with model_server(solve=slowly) as server:
        make_suite(tmp_path / "suites/tiny", server.port)
        for attempt in range(KILLS):
            before = recorded(cassettes)
            options = ("--record-mode", "new_episodes", "--out", f"killed-{attempt}", "-q")
            recording = subprocess.Popen(
                command_line("run", "tiny", *options),
                cwd=tmp_path,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            time.sleep(moments.uniform(0.6, 1.6))
            # Its workers too: one that renames its file while the folder is listed would hide it.
            os.killpg(recording.pid, signal.SIGKILL)
            recording.wait()
            after = recorded(cassettes)
            for name, lines in before.items():
                # A file in which nothing had been recorded yet may go.
                assert after.get(name, [])[: len(lines)] == lines, name
        done = in_subprocess(
            "run", "tiny", "--record-mode", "new_episodes", "--out", "finished", folder=tmp_path
        )
        assert done.code == 0, done.err
    asked = len(server.asked)
    answers = sum(len(read(path).interactions) for path in cassettes.rglob("*.jsonl"))
    # A call may be under way at each kill; every other answer was paid for once.
    assert answers <= asked <= answers + KILLS
    assert not list(cassettes.rglob("*.partial"))
    again = in_subprocess("run", "tiny", "--out", "again", folder=tmp_path)
    assert again.code == 0, again.err
    changing = {"duration_s", "finished_at", "served", "recorded", "sandbox"}
    first, second = (
        [trial.model_dump(exclude=changing) for trial in RunLog(tmp_path / name).trials()]
        for name in ("finished", "again")
    )
    assert first == second

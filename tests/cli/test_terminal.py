"""Tables, warnings and the progress line."""

from __future__ import annotations

import logging
import os
import pty
import subprocess

import pytest

from harness.cli.terminal import Terminal, Warnings, table
from tests.cli.tiny import command_line


def test_columns_are_as_wide_as_their_widest_cell():
    lines = table([["name", "n"], ["a", "1"], ["long one", "100"]], right=(1,))
    assert lines == ["name        n", "────────  ───", "a           1", "long one  100"]


def test_wide_characters_and_accents_keep_the_columns():
    lines = table([["名前", "x"], ["e\u0301", "y"]])
    assert lines == ["名前  x", "────  ─", "e\u0301     y"]


def test_warnings_reach_stderr_and_nothing_less_does(capsys):
    log = logging.Logger("harness.test")
    log.addHandler(Warnings(Terminal()))
    log.warning("cut \x1b[1m line")
    log.info("detail")
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "warning: cut ␛[1m line\n")


def run_on_a_terminal(folder, **variables: str) -> str:
    """What stderr gets where it is a terminal."""
    leader, follower = pty.openpty()
    environment = os.environ | variables
    process = subprocess.Popen(
        command_line("run", "tiny", "--task", "lines", "--jobs", "1"),
        cwd=folder,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=follower,
    )
    os.close(follower)
    data = b""
    while True:
        try:
            part = os.read(leader, 4096)
        except OSError:
            break
        if not part:
            break
        data += part
    os.close(leader)
    assert process.wait() == 0
    return data.decode()


@pytest.mark.parametrize(("ci", "expected"), [("", True), ("1", False)])
def test_progress_is_shown_to_somebody_who_watches(recorded, ci, expected):
    seen = run_on_a_terminal(recorded, CI=ci)
    assert ("\r4/4 trials" in seen) is expected
    assert "\x1b" not in seen

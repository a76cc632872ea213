"""A disk that is full stops a recording and costs nothing that was recorded."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cassette.killable import ROOT
from tests.cassette.loopback import upstream

TURNS = 12

FILL = """
import resource, signal, subprocess, sys
from pathlib import Path
from harness.cassette.file.view import read
from harness.errors import InfrastructureError
from tests.cassette.killable import converse

kind, disk, notes, port = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4])


def limit(size):
    if kind == "tmpfs":
        again = "remount," if size else ""
        options = f"{again}size={size or 8192}"
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", str(disk)], check=True)
    else:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size or 8192, resource.RLIM_INFINITY))


signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
limit(0)
cassette = disk / "0.jsonl"
try:
    converse(cassette, notes, port, TURNS, "new_episodes")
except InfrastructureError as error:
    print("told:", error)
seen = len(notes.read_text().splitlines())
kept = len(read(next(disk.glob("0.jsonl*"))).interactions)
print("kept all that was seen:", seen == kept, 0 < seen < TURNS)
limit(8_000_000)
said = converse(cassette, notes, port, TURNS, "new_episodes")
print("went on:", len(said), said == converse(cassette, notes, 1, TURNS, "none"))
""".replace("TURNS", str(TURNS))


def _can_mount() -> bool:
    command = ["unshare", "-rm", "mount", "-t", "tmpfs", "none", "/mnt"]
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("kind", ["tmpfs", "limit"])
def test_a_full_disk_costs_nothing_that_was_recorded(tmp_path: Path, kind: str):
    if kind == "tmpfs" and not _can_mount():
        pytest.skip("no file system can be mounted here (needs user namespaces)")
    disk, notes = tmp_path / "disk", tmp_path / "notes"
    disk.mkdir()
    inside = ["unshare", "-rm"] if kind == "tmpfs" else []
    with upstream() as server:
        done = subprocess.run(
            [*inside, sys.executable, "-c", FILL, kind, disk, notes, str(server.port)],
            cwd=ROOT, capture_output=True, text=True, check=False,
        )  # fmt: skip
        told, *rest = done.stdout.splitlines()
        assert told.startswith(f"told: {disk}/0.jsonl.partial: cannot be written: "), done.stderr
        assert rest == ["kept all that was seen: True True", f"went on: {TURNS} True"], done.stderr
        # One call was answered and could not be kept.
        assert len(server.asked) == TURNS + 1

"""What a container takes, where nothing but a look at it holds it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from harness.sandbox.limits.usage import Disk


def fill(folder: Path, files: int) -> None:
    folder.mkdir()
    for number in range(files):
        (folder / str(number)).touch()


@pytest.mark.slow
def test_what_others_give_back_at_the_same_moment_hides_nothing_for_long(tmp_path: Path):
    own, others = tmp_path / "own", tmp_path / "others"
    own.mkdir()
    fill(others, 800)
    disk = Disk(own, storage_bytes=1 << 40, files=500)
    fill(own / "many", 800)
    for path in others.iterdir():
        path.unlink()
    deadline = time.monotonic() + 30
    while (found := disk.trouble()) is None and time.monotonic() < deadline:
        time.sleep(0.1)
    assert found == "it has more than 500 files"

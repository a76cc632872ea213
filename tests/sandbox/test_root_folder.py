"""The folder that is a container's root."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from harness.sandbox.files.root_folder import RootFolder, remove_left_over

HOLD = """
from harness.sandbox.files.root_folder import RootFolder
print(RootFolder().path, flush=True)
input()
"""


def test_what_a_killed_harness_has_left_is_removed_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    # Whoever may write there may have put them.
    os.mkfifo(tmp_path / "harness-root-pipe")
    (tmp_path / "harness-root-link").symlink_to("/")
    of_others = {"harness-root-pipe", "harness-root-link"}
    if os.geteuid() == 0:
        (tmp_path / "harness-root-theirs").mkdir()
        os.chown(tmp_path / "harness-root-theirs", 12_345, 12_345)
        of_others.add("harness-root-theirs")
    command = [sys.executable, "-c", HOLD]
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        place = Path(other.stdout.readline().strip())
        remove_left_over.cache_clear()
        with closing(RootFolder()):
            assert place.is_dir()
        other.send_signal(signal.SIGKILL)
    assert place.is_dir()
    remove_left_over.cache_clear()
    with closing(RootFolder()) as own:
        remove_left_over.cache_clear()
        remove_left_over()
        assert own.path.is_dir()
    assert set(os.listdir(tmp_path)) == of_others


def test_what_is_thrown_away_is_gone_from_the_tree_at_once(tmp_path: Path):
    with closing(RootFolder()) as root:
        (root.path / "folder" / "inner").mkdir(parents=True)
        (root.path / "folder").chmod(0)
        parent = os.open(root.path, os.O_RDONLY)
        root.throw_away(parent, "folder")
        with pytest.raises(FileNotFoundError):
            root.throw_away(parent, "folder")
        os.close(parent)
        assert not (root.path / "folder").exists()
        everything = root.everything
    assert not everything.exists()

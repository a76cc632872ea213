"""No path leads out of the workspace."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.tools.confined import PathRefusedError, open_below


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("confined")
    (root / "outside").mkdir()
    (root / "outside" / "secret").write_text("secret")
    inside = root / "inside"
    (inside / "a" / "b").mkdir(parents=True)
    (inside / "a" / "file").write_text("a/file")
    (inside / "file").write_text("file")
    links = {
        "out": "../outside",
        "out-file": "../outside/secret",
        "out-absolute": str(root / "outside"),
        "etc": "/etc",
        "up": "..",
        "here": ".",
        "self": "self",
        "ring": "gnir",
        "gnir": "ring",
        "a/b/up-two": "../..",
        "a/b/up-three": "../../..",
        "in": "a/b",
        "in-absolute": "/workspace/a",
        "dangling": "a/new",
        "dangling-out": "../outside/new",
    }
    for name, target in links.items():
        (inside / name).symlink_to(target)
    return inside


def read(folder: Path, path: str) -> str:
    with open_below(folder, path) as fd:
        return os.read(fd, 100).decode()


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("file", "file"),
        ("./a//file", "a/file"),
        ("/workspace/file", "file"),
        ("//workspace/file", "file"),
        ("/workspace/a/../file", "file"),
        ("in/../file", "a/file"),
        ("in-absolute/file", "a/file"),
        ("here/here/file", "file"),
        ("a/b/up-two/file", "file"),
    ],
)
def test_paths_inside_are_read_as_the_kernel_would(folder: Path, path: str, text: str):
    assert read(folder, path) == text


@pytest.mark.parametrize(
    "path",
    [
        "..",
        "../outside/secret",
        "a/../../outside/secret",
        "/etc/passwd",
        "/",
        "/workspaces/file",
        "/workspace/../etc/passwd",
        "out/secret",
        "out-file",
        "out-absolute/secret",
        "etc/passwd",
        "up/outside/secret",
        "a/b/up-three/outside/secret",
        "dangling-out",
    ],
)
@pytest.mark.parametrize("flags", [os.O_RDONLY, os.O_WRONLY | os.O_CREAT])
def test_paths_outside_are_refused(folder: Path, path: str, flags: int):
    with (
        pytest.raises(PathRefusedError, match="outside /workspace"),
        open_below(folder, path, flags, make_folders=True),
    ):
        pass
    assert os.listdir(folder.parent / "outside") == ["secret"]


@pytest.mark.parametrize("path", ["self", "ring/file"])
def test_rings_of_links_end(folder: Path, path: str):
    with pytest.raises(OSError, match="Too many levels of symbolic links"):
        read(folder, path)


PARTS = ["..", ".", "", "a", "b", "file", "out", "up", "here", "in", "in-absolute", "etc", "ring"]
PARTS += ["outside", "secret", "up-two", "up-three", "dangling", "dangling-out", "workspace"]


@given(st.lists(st.sampled_from(PARTS), max_size=8), st.sampled_from(["", "/", "/workspace/"]))
def test_whatever_opens_is_inside(folder: Path, parts: list[str], start: str):
    try:
        with open_below(folder, start + "/".join(parts)) as fd:
            place = Path(os.readlink(f"/proc/self/fd/{fd}"))
    except (OSError, PathRefusedError):
        return
    assert place.is_relative_to(folder.resolve())


SWAP = """
import os, sys
place, target = sys.argv[1:]
os.symlink(target, "link")
print(flush=True)
while True:
    os.rename(place, "aside")
    os.rename("link", place)
    os.rename(place, "link")
    os.rename("aside", place)
"""


@pytest.mark.parametrize("swapped", ["folder", "folder/file"])
def test_swapping_a_part_for_a_link_does_not_lead_outside(tmp_path: Path, swapped: str):
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    for parent in (outside, inside):
        (parent / "folder").mkdir(parents=True)
        (parent / "folder" / "file").write_text("as it was")
    command = [sys.executable, "-c", SWAP, swapped, str(outside / swapped)]
    with subprocess.Popen(command, cwd=inside, stdout=subprocess.PIPE) as swapper:
        assert swapper.stdout is not None
        swapper.stdout.readline()
        for _ in range(5000):
            try:
                with open_below(inside, "folder/file", os.O_WRONLY) as fd:
                    os.write(fd, b"x")
            except (OSError, PathRefusedError):
                continue
        swapper.kill()
    assert (outside / "folder" / "file").read_text() == "as it was"


def test_no_file_stays_open(folder: Path):
    before = len(os.listdir("/proc/self/fd"))
    for path in ("a/b", "out/secret", "nothing/file", "self", "a/file"):
        try:
            with open_below(folder, path):
                pass
        except (OSError, PathRefusedError):
            continue
    assert len(os.listdir("/proc/self/fd")) == before

"""No path leads out of a container."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.sandbox.files.confined import open_inside


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
        "in-absolute": "/a",
        "dangling": "a/new",
        "dangling-out": "../outside/new",
    }
    for name, target in links.items():
        (inside / name).symlink_to(target)
    return inside


def read(folder: Path, path: str) -> str:
    with open_inside(folder, path) as fd:
        return os.read(fd, 100).decode()


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("file", "file"),
        ("./a//file", "a/file"),
        ("/file", "file"),
        ("//file", "file"),
        ("/a/../file", "file"),
        ("in/../file", "a/file"),
        ("in-absolute/file", "a/file"),
        ("here/here/file", "file"),
        ("a/b/up-two/file", "file"),
        ("../../file", "file"),
        ("a/b/up-three/file", "file"),
        ("up/file", "file"),
    ],
)
def test_paths_are_read_as_a_process_inside_would(folder: Path, path: str, text: str):
    assert read(folder, path) == text


@pytest.mark.parametrize(
    "path",
    [
        "../outside/secret",
        "a/../../outside/secret",
        "/etc/passwd",
        "out/secret",
        "out-file",
        "out-absolute/secret",
        "etc/passwd",
        "up/outside/secret",
        "a/b/up-three/outside/secret",
    ],
)
def test_what_lies_outside_is_not_there(folder: Path, path: str):
    with pytest.raises(OSError, match=r"No such file|Too many levels"):
        read(folder, path)


@pytest.mark.parametrize("path", ["../outside/new", "out/new", "dangling-out", "/etc/new"])
def test_nothing_is_made_outside(tmp_path: Path, path: str):
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    (inside / "out").symlink_to("../outside")
    (inside / "dangling-out").symlink_to(outside / "new")
    with open_inside(inside, path, os.O_WRONLY | os.O_CREAT, make_folders=True) as fd:
        place = Path(os.readlink(f"/proc/self/fd/{fd}"))
    assert place.is_relative_to(inside)
    assert os.listdir(outside) == []
    assert sorted(os.listdir(tmp_path)) == ["inside", "outside"]


def test_relative_paths_begin_in_the_working_directory(folder: Path):
    with open_inside(folder, "file", workdir="/a") as fd:
        assert os.read(fd, 100) == b"a/file"
    with open_inside(folder, "../file", workdir="/a") as fd:
        assert os.read(fd, 100) == b"file"


def test_a_mount_is_seen_in_its_place_and_only_read(folder: Path, tmp_path: Path):
    system = tmp_path / "system"
    (system / "lib").mkdir(parents=True)
    (system / "lib" / "file").write_text("mounted")
    (system / "link").symlink_to("/a/file")
    (system / "out").symlink_to("../../file")
    mounts = {"/a/system": system}
    for path, text in [
        ("a/system/lib/file", b"mounted"),
        ("a/system/lib/../lib/file", b"mounted"),
        ("a/system/link", b"a/file"),
        ("a/system/out", b"file"),
        ("a/system/../file", b"a/file"),
    ]:
        with open_inside(folder, path, mounts=mounts) as fd:
            assert os.read(fd, 100) == text
    for path in ("a/system/lib/file", "a/system/new", "a/system", "a/system/lib/../new"):
        with (
            pytest.raises(OSError, match="Read-only file system"),
            open_inside(folder, path, os.O_WRONLY | os.O_CREAT, mounts=mounts, make_folders=True),
        ):
            pass
    with (
        pytest.raises(FileNotFoundError),
        open_inside(
            folder, "a/system/new/x", os.O_WRONLY | os.O_CREAT, mounts=mounts, make_folders=True
        ),
    ):
        pass
    assert sorted(os.listdir(system)) == ["lib", "link", "out"]


@pytest.mark.parametrize("path", ["self", "ring/file"])
def test_rings_of_links_end(folder: Path, path: str):
    with pytest.raises(OSError, match="Too many levels of symbolic links"):
        read(folder, path)


PARTS = ["..", ".", "", "a", "b", "file", "out", "up", "here", "in", "in-absolute", "etc", "ring"]
PARTS += ["outside", "secret", "up-two", "up-three", "dangling", "dangling-out", "workspace"]


@given(st.lists(st.sampled_from(PARTS), max_size=8), st.sampled_from(["", "/"]))
def test_whatever_opens_is_inside(folder: Path, parts: list[str], start: str):
    try:
        with open_inside(folder, start + "/".join(parts)) as fd:
            place = Path(os.readlink(f"/proc/self/fd/{fd}"))
    except OSError:
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
                with open_inside(inside, "folder/file", os.O_WRONLY) as fd:
                    os.write(fd, b"x")
            except OSError:
                continue
        swapper.kill()
    assert (outside / "folder" / "file").read_text() == "as it was"


def test_no_file_stays_open(folder: Path):
    before = len(os.listdir("/proc/self/fd"))
    for path in ("a/b", "out/secret", "nothing/file", "self", "a/file"):
        try:
            with open_inside(folder, path):
                pass
        except OSError:
            continue
    assert len(os.listdir("/proc/self/fd")) == before

"""Root on a host where no control group can be made."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.sandbox import choose

TESTS = Path(__file__).parent

# In a mount namespace of its own, so that nobody else misses them.
HIDE = """
mount --make-rprivate / && umount -l /sys/fs/cgroup && mount -t tmpfs -o ro none /sys/fs/cgroup
exec "$@"
"""
WITHOUT = ("unshare", "--mount", "sh", "-c", HIDE, "sh")

KINDS = """
from harness.sandbox import choose
for kind in choose.AUTOMATIC:
    print(kind, choose.problem(kind))
"""

WHO = """
import os, sys
from contextlib import closing
from pathlib import Path
from harness.sandbox.container import FolderSandbox
from harness.sandbox.namespaces.unshare import Unshare
from harness.schema.environment import folder_environment

source = Path(sys.argv[1])
with (
    closing(FolderSandbox(Unshare()).open(folder_environment(source), {})) as one,
    closing(FolderSandbox(Unshare()).open(folder_environment(source), {})) as other,
):
    one.write("/data/written", b"")
    one.upload(source, "/tests")
    print(one.run(["sh", "-c", sys.argv[2]], timeout_s=60).output)
    users = [{path.lstat().st_uid for path in box.folder.rglob("*")} for box in (one, other)]
    print(len(set().union(*users)), min(map(min, users)) > 65_536)
    folders = [box.folder.parent for box in (one, other)]
print([folder.exists() for folder in folders])
"""


def without(*command: str) -> subprocess.CompletedProcess[str]:
    """Run a Python of this host where there are no control groups."""
    if os.geteuid() != 0 or choose.problem("unshare") is not None:
        pytest.skip("needs root, and namespaces")
    hidden = subprocess.run([*WITHOUT, "true"], capture_output=True, text=True, check=False)
    if hidden.returncode != 0:
        pytest.skip(f"control groups cannot be hidden on this host: {hidden.stderr.strip()}")
    return subprocess.run(
        [*WITHOUT, sys.executable, *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def test_root_falls_through_to_a_sandbox_that_holds_it():
    bubblewrap, unshare = without("-c", KINDS).stdout.splitlines()
    assert "processes are held to no number here" in bubblewrap or "not installed" in bubblewrap
    assert unshare == "unshare None"


def test_the_doctor_tells_that_containers_are_users_of_their_own():
    said = without("-m", "harness", "doctor").stdout
    assert "\nsandbox unshare: works; each container is a user of its own, since no" in said


def without_users(*command: str) -> str:
    """What a Python says as the root of a user namespace that has no other user."""
    words = ["unshare", "-Ur", sys.executable, *command]
    return without("-c", f"import os; os.execvp('unshare', {words})").stdout


def test_where_no_other_user_can_be_had_root_gets_no_sandbox():
    bubblewrap, unshare = without_users("-c", KINDS).splitlines()
    assert "processes are held to no number here" in bubblewrap or "not installed" in bubblewrap
    assert "processes are held to no number here" in unshare


def test_where_nothing_holds_a_task_it_is_not_runnable_here():
    skills = TESTS.parent.parent / "suites" / "skills"
    said = without_users("-m", "harness", "task", "check", str(skills), "--task", "tide-gauge")
    (line,) = [line for line in said.splitlines() if line.startswith("tide-gauge: ")]
    assert line.startswith("tide-gauge: not runnable here: no sandbox works here (")
    assert "processes are held to no number here" in line


def test_each_container_has_files_and_processes_of_its_own_user(tmp_path: Path):
    (tmp_path / "inner").mkdir(mode=0o700)
    (tmp_path / "inner" / "file").write_text("text\n")
    (tmp_path / "inner" / "file").chmod(0o600)
    (tmp_path / "link").symlink_to("inner")
    script = """
id -u
cat /tests/link/file && echo more >> /tests/inner/file && rm /data/written && rmdir /data
echo out > /dev/stdout
echo error > /dev/stderr
touch /usr/bin/env 2> /dev/null || echo not writable
find /proc/sys -writable 2> /dev/null
unshare -U true 2> /dev/null || echo no power
"""
    said = without("-c", WHO, str(tmp_path), script).stdout.split("\n")
    assert said[:6] == ["0", "text", "out", "error", "not writable", "no power"]
    assert said[-3:] == ["2 True", "[False, False]", ""]
    assert (tmp_path / "inner" / "file").read_text() == "text\n"
    assert {path.stat().st_uid for path in tmp_path.rglob("*")} == {0}


ESSENTIAL = "fork_bomb or hogs or no_power or links_in_the_place or however_deep or read_only"


@pytest.mark.parametrize(
    ("files", "chosen"),
    [
        pytest.param(["hostile", "sandboxes"], ESSENTIAL, id="essential"),
        pytest.param(
            ["hostile", "sandboxes", "container", "contract", "packages"],
            "unshare",
            marks=pytest.mark.slow,
            id="all",
        ),
    ],
)
def test_what_sandboxes_promise_holds(files: list[str], chosen: str):
    paths = [str(TESTS / f"test_{name}.py") for name in files]
    options = ("-q", "-p", "no:xdist", "-p", "no:cacheprovider", "-k", f"unshare and ({chosen})")
    done = without("-m", "pytest", *options, *paths)
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout

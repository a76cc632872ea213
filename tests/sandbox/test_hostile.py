"""What a hostile process tries: nothing of the host is harmed, and each try has a clear end."""

from __future__ import annotations

import os
import re
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from harness.sandbox.container import FolderContainer, FolderSandbox, SandboxSettings
from harness.sandbox.files.root_folder import RootFolder
from harness.sandbox.limits import cgroups
from harness.sandbox.limits.keeper import Limits
from harness.sandbox.namespaces.runner import Runner
from harness.schema.environment import folder_environment
from harness.values import Mount, ProcessResult
from tests.sandbox.box import runs_on_host

FEW = Limits(memory_mb=128, processes=24, storage_mb=64, files=5_000)


@pytest.fixture
def container(runner: Runner, tmp_path: Path) -> Iterator[FolderContainer]:
    (tmp_path / "source").mkdir()
    sandbox = FolderSandbox(runner, SandboxSettings(limits=FEW))
    opened = sandbox.open(folder_environment(tmp_path / "source"), {})
    yield opened
    opened.close()


def bash(container: FolderContainer, script: str, timeout_s: float = 60) -> ProcessResult:
    return container.run(["bash", "-c", script], timeout_s=timeout_s)


def test_a_fork_bomb_gets_no_further_than_its_limit(container: FolderContainer):
    marker = f"1000.{uuid.uuid4().int}"
    script = f"""
import os, sys, time
made = 0
try:
    while True:
        if os.fork() == 0:
            os.execvp("sleep", ["sleep", "{marker}"])
        made += 1
except BlockingIOError:
    print(made)
"""
    container.write("bomb.py", script.encode())
    made = int(bash(container, "python3 bomb.py").output)
    assert 10 < made < FEW.processes
    assert not runs_on_host("sleep", marker)
    assert bash(container, "echo as before").output == "as before\n"


def test_a_classic_fork_bomb_ends_at_the_timeout(container: FolderContainer):
    result = bash(container, "bomb() { bomb | bomb & }; bomb; sleep 60", timeout_s=1)
    assert result.timed_out
    assert bash(container, "echo as before").output == "as before\n"


FILL = """
import os, time
try:
    while True:
        if os.fork() == 0:
            time.sleep(60)
except BlockingIOError:
    open("full", "w").close()
while not os.path.exists("stop"):
    time.sleep(0.01)
"""


def test_a_command_in_a_full_container_says_that_it_cannot_start(container: FolderContainer):
    container.write("fill.py", FILL.encode())
    filling = threading.Thread(target=bash, args=(container, "python3 fill.py"))
    filling.start()
    try:
        while "full" not in container.names(".") and filling.is_alive():
            time.sleep(0.01)
        beside = container.run(["true"], timeout_s=60)
    finally:
        container.write("stop", b"")
        filling.join()
    if beside.exit_code == 126:
        said = "true: cannot be started: there are as many processes as there may be\n"
        assert beside.output == said
    else:
        # Where no group counts them, it is those of each command that are counted.
        assert (beside.exit_code, cgroups.parents().threads) == (0, ())
    assert bash(container, "echo as before").output == "as before\n"


def test_a_memory_hog_is_killed_and_that_is_said(container: FolderContainer):
    result = bash(container, "python3 -c 'bytearray(10**9)'; echo $?")
    if cgroups.parents().memory is None:
        assert "MemoryError" in result.output
        return
    assert result.output.splitlines()[-2:] == ["137", "[killed: out of memory]"]
    assert bash(container, "echo as before").output == "as before\n"


def test_a_hog_that_was_killed_in_a_terminal_is_not_why_a_later_command_fails(
    container: FolderContainer,
):
    terminal = container.terminal()
    hog = "python3 -c 'bytearray(10**9)'"
    terminal.send(f"ln -s /dev/shm/nope away; {hog}; touch done\n")
    while "done" not in container.names("."):
        time.sleep(0.01)
    result = container.run(["true"], timeout_s=60, cwd="away")
    terminal.close()
    assert (result.exit_code, result.output) == (126, "/workspace/away: cannot be entered\n")


def test_hogs_are_counted_together(container: FolderContainer):
    hog = "python3 -c 'import time; x = bytearray(50_000_000); time.sleep(30); print(1)' &"
    result = bash(container, f"{hog} {hog} {hog} {hog} wait -n; exit 3", timeout_s=20)
    assert "[killed: out of memory]" in result.output
    assert result.duration_s < 20


def test_shared_memory_is_limited(container: FolderContainer):
    result = bash(container, "for i in 1 2 3 4 5 6; do head -c 60M /dev/zero > /dev/shm/$i; done")
    assert "[killed: out of memory]" in result.output or "No space left" in result.output


def test_a_file_longer_than_the_storage_is_cut(container: FolderContainer):
    result = bash(container, "truncate -s 8T sparse; head -c 1G /dev/zero > long; exit 7")
    assert result.exit_code in (7, 137)
    assert (container.folder / "workspace" / "long").stat().st_size <= FEW.storage_mb << 20


def test_files_that_fill_the_storage_end_the_command(container: FolderContainer):
    script = "for i in {1..4}; do head -c 30M /dev/zero > $i; done; sleep 60; echo never"
    result = bash(container, script)
    assert result.output == f"[killed: its files take more than {FEW.storage_mb} MiB]\n"
    assert (result.exit_code, result.timed_out) == (137, False)


def test_very_many_files_end_the_command(runner: Runner, tmp_path: Path):
    sandbox = FolderSandbox(runner, SandboxSettings(limits=Limits(files=500)))
    with closing(sandbox.open(folder_environment(tmp_path), {})) as container:
        result = bash(container, "mkdir many; cd many; touch {1..800}; sleep 60; echo never")
    assert result.output == "[killed: it has more than 500 files]\n"


def test_no_process_of_the_host_is_seen_through_proc(container: FolderContainer):
    script = "cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ /proc/1/root/etc/shadow; ls /proc"
    result = bash(container, script)
    assert "pytest" not in result.output
    assert re.search("/proc/1/root/etc/shadow: (No such file|Permission denied)", result.output)
    assert str(os.getpid()) not in result.output.split()
    for path in ("/proc/self/environ", "/proc/1/root", "/dev/null"):
        with pytest.raises(OSError, match="No such file"):
            container.read(path, 100)


@pytest.mark.parametrize(
    "script",
    [
        "touch /usr/new",
        "rm -r /usr/bin/env",
        "mv /usr /away",
        "mv /etc /away",
        "mv /proc /away",
        "rm -r /etc/alternatives",
        "mount -t tmpfs none /mnt",
        "umount -l /usr",
        "unshare -U true",
        "unshare -Urm umount -l /usr",
        "mknod /tmp/disk b 8 0",
        "chroot / true",
        "echo 100000 > /proc/sys/user/max_user_namespaces",
        "ulimit -f unlimited",
        "mkdir /x && mount -t cgroup2 none /x",
    ],
)
def test_root_inside_has_no_power_over_what_holds_it(container: FolderContainer, script: str):
    assert bash(container, "id -u").output == "0\n"
    assert bash(container, script).exit_code not in (0, None)
    assert bash(container, "ls /usr/bin/env /etc/passwd /proc/self/exe").exit_code == 0


def test_links_in_the_place_of_mounts_are_put_aside(runner: Runner, tmp_path: Path):
    host, tool = tmp_path / "host", tmp_path / "tool"
    for folder in (host, tool):
        folder.mkdir()
    (tool / "file").write_text("mounted")
    with closing(RootFolder()) as root:
        leave = f"rm -r /opt; ln -s {host} /opt; rm /bin; ln -s {host} /bin"
        runner.run(["bash", "-c", leave], mounts=(), cwd="/", timeout_s=60, root=root)
        assert (root.path / "opt").is_symlink()
        mounts = [Mount(tool, "/opt/tools/inner")]
        look = "cat /opt/tools/inner/file; mv /opt /away; mv /opt/tools /opt/away"
        result = runner.run(["sh", "-c", look], mounts=mounts, cwd="/", timeout_s=60, root=root)
        assert result.output.startswith("mounted")
        assert result.output.count("Device or resource busy") == 2
        assert not (root.path / "opt").is_symlink()
        assert (root.path / "bin").readlink() != host
    assert os.listdir(host) == []


def test_what_an_agent_leaves_is_removed_however_deep_and_closed(container: FolderContainer):
    script = """
import os
for name in ("deep", "closed"):
    os.mkdir(name)
    os.chdir(name)
    for _ in range(1500):
        os.mkdir("d")
        os.chdir("d")
    open("file", "w").close()
    os.chdir("/workspace")
os.chmod("closed", 0)
"""
    container.write("leave.py", script.encode())
    assert bash(container, "python3 leave.py; chmod 0 /workspace /etc /tmp").exit_code == 0
    folder = container.folder.parent
    container.close()
    container.close()
    assert not folder.exists()


def test_no_control_group_is_left(container: FolderContainer, tmp_path: Path):
    found = cgroups.parents()
    parents = {place for place in (found.processes, found.memory) if place is not None}
    if not parents:
        pytest.skip("no control groups can be made on this host")
    before = {place: set(os.listdir(place)) for place in parents}
    assert bash(container, "true").exit_code == 0
    made = {place: set(os.listdir(place)) - before[place] for place in parents}
    ours = f"harness-{os.getpid()}-"
    assert all(any(name.startswith(ours) for name in names) for names in made.values())
    container.close()
    left = {name for place in parents for name in os.listdir(place)} - set().union(*before.values())
    assert not any(name.startswith(ours) for name in left)

"""What every sandbox promises."""

from __future__ import annotations

import os
import socketserver
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.errors import SandboxError
from harness.sandbox import choose
from harness.sandbox.files import owner
from harness.sandbox.namespaces.runner import Runner
from harness.values import Mount
from tests.sandbox.box import RUNNERS, Box, runs_on_host


def unique_seconds() -> str:
    """An argument of `sleep` that no other process has."""
    return f"1000.{uuid.uuid4().int}"


def test_a_process_reads_and_writes_its_workspace(box: Box):
    (box.folder / "in.txt").write_text("from the host\n")
    result = box.bash("pwd; cat in.txt; echo from inside > /workspace/out.txt")
    assert (result.exit_code, result.output) == (0, "/workspace\nfrom the host\n")
    assert (box.folder / "out.txt").read_text() == "from inside\n"
    assert (box.folder / "out.txt").stat().st_uid in (os.getuid(), owner.builder())


def test_a_mount_is_read_only_unless_said_otherwise(runner: Runner, tmp_path: Path):
    (tmp_path / "test.sh").write_text("original")
    tmp_path.chmod(0o755)
    result = runner.run(
        ["bash", "-c", "echo changed > test.sh || chmod 777 test.sh || rm test.sh"],
        mounts=[Mount(tmp_path, "/tests")],
        cwd="/tests",
        timeout_s=60,
    )
    assert result.exit_code != 0
    assert "Read-only file system" in result.output
    assert (tmp_path / "test.sh").read_text() == "original"


def test_a_single_file_can_be_mounted(runner: Runner, tmp_path: Path):
    (tmp_path / "data").write_text("one file")
    mounts = [Mount(tmp_path / "data", "/data/input file")]
    result = runner.run(["cat", "/data/input file"], mounts=mounts, cwd="/", timeout_s=60)
    assert result.output == "one file"


def test_files_of_the_host_are_not_there(box: Box, tmp_path: Path):
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    places = [str(secret), "/home", "/etc/shadow", "/var", "/sys", "/mnt"]
    result = box.bash(f"for place in {' '.join(places)}; do ls -d $place; done")
    assert result.output.count("No such file or directory") == len(places)
    assert "secret" not in box.bash("cat /proc/*/cmdline /proc/*/environ").output


def test_the_environment_of_the_caller_is_not_there(box: Box, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CANARY", "canary-value")
    result = box.bash("env -0; cat /proc/*/environ", env={"GIVEN": "value"})
    assert "canary-value" not in result.output
    given = dict(part.split("=", 1) for part in result.output.split("\0") if "=" in part)
    assert given["GIVEN"] == "value"
    assert (given["HOME"], given["LANG"], given["TZ"]) == ("/tmp", "C.UTF-8", "UTC")


def test_processes_of_the_host_are_not_there(box: Box):
    result = box.bash("for p in /proc/[0-9]*; do tr '\\0' ' ' < $p/cmdline; echo; done")
    assert "pytest" not in result.output
    assert "kill me" not in box.bash(f"kill -9 {os.getpid()} && echo kill me").output


def test_arguments_are_never_read_as_shell_text(runner: Runner):
    nasty = "$(id) `id` \"'; exit 7 # \\ *\n"
    result = runner.run(["printf", "%s", nasty], mounts=(), cwd="/", timeout_s=60)
    assert (result.exit_code, result.output) == (0, nasty)


def test_standard_output_and_error_come_in_the_order_written(box: Box):
    assert box.bash("echo 1; echo 2 >&2; echo 3; echo 4 >&2").output == "1\n2\n3\n4\n"


@pytest.mark.parametrize(
    ("script", "exit_code"),
    [
        ("exit 3", 3),
        ("kill -9 $$", 137),
        ("no-such-command", 127),
        ("/etc/passwd", 126),
    ],
)
def test_exit_codes_are_those_of_a_shell(box: Box, script: str, exit_code: int):
    assert box.bash(script).exit_code == exit_code


def test_a_command_that_is_not_there_is_a_result(runner: Runner):
    result = runner.run(["no-such-command"], mounts=(), cwd="/", timeout_s=60)
    assert result.exit_code == 127
    assert "no-such-command: not found" in result.output


def test_input_is_empty(box: Box):
    assert box.bash("cat; readlink /proc/self/fd/0").output == "/dev/null\n"


@pytest.mark.parametrize("name", ["python3", "python"])
def test_python_is_there(box: Box, name: str):
    result = box.bash(f"{name} -c 'import json, ssl, sqlite3; print(json.dumps(1 + 1))'")
    assert result.output == "2\n"


@pytest.mark.parametrize(
    "script",
    [
        "touch /usr/new",
        "touch /new",
        "touch /etc/new",
        "chmod 700 /usr/bin",
        "mount -o remount,rw,bind /usr && touch /usr/new",
        "mount -t tmpfs none /mnt",
        "umount -l /usr",
        "unshare -Ur mount -o remount,rw,bind /usr",
        "chroot /proc/1/root true",
        "mknod /tmp/disk b 8 0",
        "hostname other",
        # Writes what is there already, so that nothing happens where the sandbox fails the test.
        "cat /proc/sys/kernel/core_pattern > /tmp/c && cat /tmp/c > /proc/sys/kernel/core_pattern",
        "cat /proc/sys/vm/swappiness > /tmp/c && cat /tmp/c > /proc/sys/vm/swappiness",
    ],
)
def test_root_inside_has_no_power_over_the_system(box: Box, script: str):
    assert box.bash("id -u").output == "0\n"
    assert box.bash(script).exit_code not in (0, None)


def test_no_capability_is_left(box: Box):
    lines = box.bash("grep -E '^(Cap|NoNewPrivs)' /proc/self/status").output.splitlines()
    values = dict(line.split(":\t") for line in lines)
    assert values.pop("NoNewPrivs") == "1"
    assert set(values.values()) == {"0" * 16}


@contextmanager
def host_server() -> Iterator[tuple[int, threading.Event]]:
    """A port of the host's loopback, and whether somebody came."""
    reached = threading.Event()

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            reached.set()

    with socketserver.TCPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_address[1], reached
        server.shutdown()
        thread.join()


def test_a_server_on_the_hosts_loopback_is_out_of_reach(box: Box):
    with host_server() as (port, reached):
        result = box.bash(f"echo hello > /dev/tcp/127.0.0.1/{port}")
    assert "Connection refused" in result.output
    assert not reached.is_set()


def test_the_network_of_the_host_is_there_where_it_is_asked_for(runner: Runner):
    script = "echo > /dev/tcp/localhost/{port}; cat /etc/resolv.conf; touch /new; id -u"
    with host_server() as (port, reached):
        result = runner.run(
            ["bash", "-c", script.format(port=port)],
            mounts=(),
            cwd="/",
            timeout_s=60,
            network=True,
        )
    assert reached.is_set()
    refused = "touch: cannot touch '/new': Read-only file system\n0\n"
    assert result.output == Path("/etc/resolv.conf").read_text() + refused


def test_processes_inside_reach_each_other_over_loopback(box: Box):
    script = """
import socket
with socket.create_server(("127.0.0.1", 0)) as server:
    with socket.create_connection(("localhost", server.getsockname()[1])):
        print(server.accept()[0].getpeername()[0])
"""
    assert box.bash(f"python3 -c '{script}'").output == "127.0.0.1\n"


def test_what_a_command_leaves_running_is_dead_when_the_call_returns(box: Box):
    markers = [unique_seconds() for _ in range(3)]
    result = box.bash(
        f"sleep {markers[0]} & (setsid sleep {markers[2]} &) ; "
        f"for i in {{1..100}}; do nohup sleep {markers[1]} > /dev/null 2>&1 & done; echo started"
    )
    assert (result.exit_code, result.output) == (0, "started\n")
    assert not any(runs_on_host("sleep", marker) for marker in markers)


def test_the_timeout_kills_the_command_and_all_below_it(box: Box):
    markers = [unique_seconds() for _ in range(2)]
    result = box.bash(
        f"trap '' TERM INT; echo before; (setsid bash -c 'sleep {markers[0]}; true' &) ; "
        f"bash -c 'sleep {markers[1]}; true'",
        timeout_s=1,
    )
    assert (result.exit_code, result.timed_out, result.output) == (None, True, "before\n")
    assert not any(runs_on_host("sleep", marker) for marker in markers)


def test_a_command_that_closes_its_output_is_still_watched(box: Box):
    marker = unique_seconds()
    result = box.bash(f"exec > /dev/null 2>&1; sleep {marker}", timeout_s=0.5)
    assert result.timed_out
    assert not runs_on_host("sleep", marker)


def test_a_flood_of_output_is_cut_in_the_middle(box: Box):
    result = box.bash("echo first; yes | head -c 200000000; echo last")
    assert result.exit_code == 0
    assert result.output.startswith("first\n")
    assert result.output.endswith("last\n")
    assert f"[{200_000_000 + 11 - 10_000} bytes cut]" in result.output
    assert len(result.output) < 10_100


def test_endless_output_ends_at_the_timeout(box: Box):
    result = box.bash("yes", timeout_s=0.5)
    assert result.timed_out
    assert len(result.output) < 10_100


def test_temporary_files_last_for_one_call(box: Box, tmp_path: Path):
    assert box.bash("echo 1 > /tmp/file; cat /tmp/file").output == "1\n"
    assert box.bash("ls -A /tmp").output == ""


def test_a_folder_mounted_as_tmp_lasts(box: Box, tmp_path: Path):
    folder = tmp_path / "temporary"
    folder.mkdir()
    lasting = Box(box.runner, box.folder, (*box.mounts, Mount(folder, "/tmp", writable=True)))
    lasting.bash("echo 1 > /tmp/file")
    assert lasting.bash("cat /tmp/file").output == "1\n"


def test_a_mount_without_source_is_an_error_that_names_it(runner: Runner, tmp_path: Path):
    with pytest.raises(SandboxError, match="missing': no such file or folder"):
        runner.run(["true"], mounts=[Mount(tmp_path / "missing", "/x")], timeout_s=60)


@pytest.mark.parametrize("target", ["workspace", "/a/../usr", "/"])
def test_a_mount_target_must_be_a_plain_absolute_path(runner: Runner, tmp_path: Path, target: str):
    with pytest.raises(SandboxError, match="must be an absolute path"):
        runner.run(["true"], mounts=[Mount(tmp_path, target)], timeout_s=60)


def test_a_sandbox_that_cannot_start_is_an_error_and_no_result(runner: Runner):
    with pytest.raises(SandboxError, match=r"could not start: .*No such file"):
        runner.run(["true"], mounts=(), cwd="/no/such/folder", timeout_s=60)


def test_calls_from_many_threads_do_not_mix(box: Box):
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda n: box.bash(f"sleep 0.1; echo {n}; exit {n}"), range(16)))
    assert [(result.exit_code, result.output) for result in results] == [
        (n, f"{n}\n") for n in range(16)
    ]


def test_no_open_file_of_the_caller_gets_in(box: Box, tmp_path: Path):
    with (tmp_path / "open").open("w") as file:
        os.set_inheritable(file.fileno(), True)
        result = box.bash("ls -l /proc/self/fd")
    assert str(tmp_path / "open") not in result.output
    assert "memfd" not in result.output


def test_nothing_outlives_a_harness_that_is_killed(runner: Runner):
    marker = unique_seconds()
    module, name = type(runner).__module__, type(runner).__name__
    script = (
        f"from {module} import {name}\n"
        f"{name}().run(['sleep', '{marker}'], mounts=(), cwd='/', timeout_s=900)"
    )
    harness = subprocess.Popen([sys.executable, "-c", script])
    while not runs_on_host("sleep", marker):
        assert harness.poll() is None
        time.sleep(0.01)
    harness.kill()
    harness.wait()
    deadline = time.monotonic() + 60
    while runs_on_host("sleep", marker):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_every_sandbox_shows_the_same_system(tmp_path: Path):
    for kind in RUNNERS:
        if (reason := choose.problem(kind)) is not None:
            pytest.skip(f"needs both sandboxes, and {kind} does not work on this host: {reason}")
    mounts = [Mount(tmp_path, "/workspace", writable=True)]
    script = (
        "id; hostname; env -u _; umask; ulimit -a; pwd; echo $$; whoami; getent hosts localhost; "
        "stat -c '%n %F %a %U' / /* /etc/* /dev/null /dev/shm /dev/fd /tmp; "
        "cat /etc/passwd /etc/hosts; readlink /bin /dev/stdout; python3 --version"
    )
    outputs = {
        kind: RUNNERS[kind](100_000).run(["bash", "-c", script], mounts=mounts, timeout_s=60)
        for kind in RUNNERS
    }
    assert outputs["bubblewrap"].output == outputs["unshare"].output

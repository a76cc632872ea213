"""What starts a process of a task is out of the task's reach."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from harness.errors import SandboxError
from harness.sandbox.container import FolderContainer, FolderSandbox
from harness.sandbox.files.root_folder import RootFolder
from harness.sandbox.namespaces.process import Launch, supervise
from harness.sandbox.namespaces.runner import Runner
from harness.schema.environment import folder_environment


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "source").mkdir()
    return tmp_path / "source"


@pytest.fixture
def container(runner: Runner, source: Path) -> Iterator[FolderContainer]:
    with closing(FolderSandbox(runner).open(folder_environment(source), {})) as opened:
        yield opened


def bash(container: FolderContainer, script: str) -> tuple[int | None, str]:
    result = container.run(["bash", "-c", script], timeout_s=60)
    return result.exit_code, result.output


def test_no_process_of_the_host_obeys_a_tasks_variables(
    runner: Runner, source: Path, tmp_path: Path
):
    (tmp_path / "written").mkdir()
    trace = str(tmp_path / "written" / "trace")
    variables = {"LD_DEBUG": "files", "LD_DEBUG_OUTPUT": trace, "ODD": "a\nb=\udcff"}
    sandbox = FolderSandbox(runner)
    with closing(sandbox.open(folder_environment(source), variables)) as container:
        bash(container, "cat /proc/self/environ > shown")
        shown = container.read("shown", 10_000).data.split(b"\0")
        container.terminal().close()
    assert {b"LD_DEBUG=files", f"LD_DEBUG_OUTPUT={trace}".encode(), b"ODD=a\nb=\xff"} < set(shown)
    assert list((tmp_path / "written").iterdir()) == []


class Refusing:
    """Lets no process be put under limits."""

    def start(self, start: Callable[[], subprocess.Popen[bytes]]) -> subprocess.Popen[bytes]:
        return start()

    def admit(self, pid: int) -> None:
        raise SandboxError(f"process {pid > 0} gets no limits")

    def trouble(self) -> str | None:
        return None

    def note(self) -> str | None:
        return None

    def is_full(self) -> bool:
        return False


def test_nothing_of_a_container_is_loaded_before_limits_hold(runner: Runner):
    with closing(RootFolder(runner.new_owner())) as root:
        variables = {"LD_DEBUG": "files", "LD_DEBUG_OUTPUT": "/tmp/trace"}
        with pytest.raises(SandboxError, match="process True gets no limits"):
            runner.run(
                ["true"],
                mounts=(),
                cwd="/",
                env=variables,
                timeout_s=60,
                root=root,
                keeper=Refusing(),
            )
        assert list((root.path / "tmp").iterdir()) == []
        runner.run(["true"], mounts=(), cwd="/", env=variables, timeout_s=60, root=root)
        assert list((root.path / "tmp").iterdir()) != []


# All but the input, which the command was given itself.
STEAL = """
import ctypes, os
call = ctypes.CDLL(None).syscall
first = os.pidfd_open(1)
taken = [call(438, first, number, 0) for number in range(1, 256)]
print([where for fd in taken if fd >= 0 and "socket" in (where := os.readlink(f"/dev/fd/{fd}"))])
"""


def test_the_launchers_report_cannot_be_taken_over(container: FolderContainer):
    container.write("steal.py", STEAL.encode())
    assert bash(container, "python3 steal.py; exit 7") == (7, "[]\n")


CHILD = b'{"child-pid": 2147483647}\n'


@pytest.mark.parametrize(
    ("report", "problem"),
    [
        (b"not json\n", "no JSON object"),
        (b"[1]\n", "no JSON object"),
        (b"[" * 3000 + b"\n", "no JSON object"),
        (b"{}\n", "does not say what it started"),
        (b'{"child-pid": "1"}\n', "no number as child-pid"),
        (b'{"child-pid": -1}\n', "no number as child-pid"),
        (b'{"child-pid": ' + b"9" * 4000 + b"}\n", "no number as child-pid"),
        (CHILD + b'{"exit-code": "0x"}\n', "no number as exit-code"),
        (CHILD + b'{"exit-code": 1e400}\n', "no number as exit-code"),
        (CHILD + b"x" * 1_000_000, "reports too much"),
        (CHILD + b'{"exit-code"', "could not start: said"),
    ],
    ids=range(11),
)
def test_a_report_that_is_none_is_an_error_of_the_sandbox(
    tmp_path: Path, report: bytes, problem: str
):
    (tmp_path / "report").write_bytes(report)
    script = (
        "import os, sys\nprint('said', flush=True)\nreport = open(sys.argv[2], 'rb').read()\n"
        "try:\n    while report: report = report[os.write(int(sys.argv[1]), report):]\n"
        "except BrokenPipeError: pass"
    )
    start = (sys.executable, "-I", "-S", "-c", script)
    launch = Launch(lambda fd: [*start, str(fd), str(tmp_path / "report")], (), no_folder="none")
    with pytest.raises(SandboxError, match=problem):
        supervise(launch, 60, 10_000)


@pytest.mark.parametrize(
    "script",
    [
        "rmdir /workspace; ln -s /proc/nope /workspace",
        "rmdir /workspace; ln -s /dev/shm/nope /workspace",
        "rmdir /workspace; touch /workspace",
        "chmod 0 /workspace",
    ],
)
def test_a_working_directory_that_was_taken_away_is_a_result(
    container: FolderContainer, script: str
):
    bash(container, f"cd /; {script}")
    code, output = bash(container, "echo never")
    if code == 0:
        # Root enters what is closed where its power reaches.
        assert script.startswith("chmod")
        return
    assert (code, output.startswith("/workspace: ")) == (126, True)
    assert container.run(["pwd"], cwd="/tmp", timeout_s=60).output == "/tmp\n"
    terminal = container.terminal()
    terminal.send("pwd; exit\n")
    terminal.wait(60)
    assert "\n/\n" in terminal.screen()


KEYS = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
numbers = {"x86_64": (248, 249, 250), "aarch64": (217, 218, 219)}[os.uname().machine]
for call, arguments in zip(numbers, [(b"user", b"k", b"v", 1, -3), (b"user", b"k", 0, 0), (0, -3)]):
    print(libc.syscall(call, *arguments), os.strerror(ctypes.get_errno()))
"""


def test_the_kernels_keys_are_out_of_reach(container: FolderContainer):
    container.write("keys.py", KEYS.encode())
    assert bash(container, "python3 keys.py") == (0, "-1 Function not implemented\n" * 3)

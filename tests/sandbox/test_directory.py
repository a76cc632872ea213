"""The sandbox that only gives a folder."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.errors import SandboxError
from harness.sandbox.container import FolderContainer
from harness.sandbox.directory import NOTE, DirectorySandbox
from harness.schema.environment import CopyFiles, Environment, Equipment, folder_environment
from harness.values import ProcessResult
from tests.sandbox.box import runs_on_host


@pytest.fixture
def container(tmp_path: Path) -> Iterator[FolderContainer]:
    source = tmp_path / "source"
    source.mkdir()
    (source / "notes.txt").write_text("notes in /workspace\n")
    opened = DirectorySandbox().open(folder_environment(source), {"DATA": "/workspace/notes.txt"})
    yield opened
    opened.close()


def bash(container: FolderContainer, script: str, timeout_s: float = 60) -> ProcessResult:
    return container.run(["bash", "-c", script], timeout_s=timeout_s)


def test_it_says_that_nothing_is_held_back(container: FolderContainer):
    assert container.notes == (NOTE,)
    assert "for trusted tasks only" in NOTE


def test_commands_run_in_the_folder_and_name_it_as_the_task_does(container: FolderContainer):
    script = "pwd; cat notes.txt /workspace/notes.txt $DATA; echo $HOME; ls /tmp | wc -l"
    notes = "notes in /workspace\n"
    assert bash(container, script).output == f"/workspace\n{notes}{notes}{notes}/root\n0\n"
    assert container.run(["pwd"], timeout_s=60, cwd="/tmp").output == "/tmp\n"


def test_paths_of_the_host_and_parts_of_longer_ones_are_left_alone(container: FolderContainer):
    script = "echo /usr/bin/env x/workspace /workspaces ./tmp a-/tmp /workspace.old '/tmp'/x"
    kept = "/usr/bin/env x/workspace /workspaces ./tmp a-/tmp /workspace.old /tmp/x\n"
    assert bash(container, script).output == kept


def test_of_etc_what_is_the_tasks_own_is_found_and_the_rest_is_the_hosts(tmp_path: Path):
    (tmp_path / "app.conf").write_text("of the task\n")
    copied = CopyFiles(sources=("app.conf",), target="/etc/app/app.conf")
    opened = DirectorySandbox().open(Environment(context=tmp_path, build=(copied,)), {})
    script = "cat /etc/app/app.conf; echo /etc /etc/passwd /etc/appx"
    kept = "of the task\n/etc /etc/passwd /etc/appx\n"
    assert bash(opened, script).output == kept
    # Not only translated back: the host's own was named.
    assert bash(opened, "cat /etc/passwd").output == Path("/etc/passwd").read_text()
    opened.close()


def test_uploaded_scripts_find_their_places(container: FolderContainer, tmp_path: Path):
    tests = tmp_path / "tests"
    tests.mkdir()
    (tests / "test.sh").write_text(
        "cmp /tests/wanted notes.txt && echo 1 > /logs/verifier/reward.txt\n"
    )
    (tests / "wanted").write_text("notes in /workspace\n")
    (tests / "binary").write_bytes(b"\xff/workspace")
    container.upload(tests, "/tests")
    result = container.run(["bash", "/tests/test.sh"], timeout_s=60)
    # Data is changed as well, which is why this is a last resort.
    assert "/tests/wanted notes.txt differ" in result.output
    (tests / "wanted").unlink()
    (tests / "test.sh").write_text("test -s notes.txt && echo 1 > /logs/verifier/reward.txt\n")
    container.upload(tests, "/tests")
    assert container.run(["bash", "/tests/test.sh"], timeout_s=60).exit_code == 0
    assert container.read("/logs/verifier/reward.txt", 10).data == b"1\n"
    assert container.read("/tests/binary", 100).data == b"\xff/workspace"


@pytest.mark.parametrize(
    ("script", "exit_code"), [("exit 3", 3), ("kill -9 $$", 137), ("no-such-command", 127)]
)
def test_exit_codes_are_those_of_a_shell(container: FolderContainer, script: str, exit_code: int):
    assert bash(container, script).exit_code == exit_code


def test_a_command_that_is_not_there_is_a_result(container: FolderContainer):
    result = container.run(["no-such-command"], timeout_s=60)
    assert result.exit_code == 127
    assert "no-such-command: not found" in result.output


def test_what_a_command_leaves_running_is_killed(container: FolderContainer):
    marker = f"1000.{uuid.uuid4().int}"
    result = bash(container, f"(setsid sleep {marker} &); sleep {marker} & echo started")
    assert (result.exit_code, result.output) == (0, "started\n")
    assert not runs_on_host("sleep", marker)


def test_the_timeout_kills_all(container: FolderContainer):
    marker = f"1000.{uuid.uuid4().int}"
    result = bash(container, f"echo before; (setsid sleep {marker} &); sleep {marker}", 0.5)
    assert (result.exit_code, result.timed_out, result.output) == (None, True, "before\n")
    assert not runs_on_host("sleep", marker)


def test_long_output_is_cut(container: FolderContainer):
    result = bash(container, "echo first; yes | head -c 30000000; echo last")
    assert result.output.startswith("first\n")
    assert result.output.endswith("last\n")
    assert "bytes cut]" in result.output


def test_the_environment_of_the_caller_is_not_there(
    container: FolderContainer, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("CANARY", "canary-value")
    assert "canary-value" not in bash(container, "env").output


def test_a_terminal_has_a_shell_in_the_folder(container: FolderContainer):
    terminal = container.terminal()
    terminal.send("tty -s && pwd -P > w && mv w where\n")
    deadline = time.monotonic() + 60
    while not (container.folder / "workspace" / "where").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    terminal.close()
    place = container.folder / "workspace"
    assert (place / "where").read_text() == f"{place}\n"


def test_what_it_cannot_give_is_told_before(tmp_path: Path):
    equipment = Equipment(packages=("numpy==2.0",), tools=(("pytest",),))
    files = CopyFiles(sources=("x",), target="/usr/local/bin/")
    environment = Environment(context=tmp_path, equipment=equipment, build=(files,))
    asked = "packages (numpy==2.0, pytest): a directory cannot show them to its processes"
    system = (
        "files of its own in /usr/local/bin/: the system's folders are the host's and read-only"
    )
    assert DirectorySandbox().lacks(environment) == (system, asked)
    assert DirectorySandbox().lacks(folder_environment(tmp_path)) == ()
    with pytest.raises(SandboxError, match="use bubblewrap or unshare"):
        DirectorySandbox().open(Environment(context=tmp_path, equipment=equipment), {})
    assert not [name for name in os.listdir(tmp_path) if name.startswith("harness-")]

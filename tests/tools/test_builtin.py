"""The built-in tools, as an agent meets them."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.containers import Sandbox
from harness.errors import ConfigurationError
from harness.sandbox.container import FolderContainer
from harness.schema.environment import folder_environment
from harness.schema.record import Json
from harness.tools.builtin import BUILTIN_NAMES, builtin_tools
from harness.tools.machine import Machine
from harness.tools.registry import Registry
from harness.values import Effect, ToolInvocation, ToolOutcome
from tests.sandbox.here import working_sandbox


def no_sandbox() -> Sandbox:
    raise AssertionError("nobody may ask for a sandbox")


NOWHERE = Machine(folder_environment(Path("/nowhere")), no_sandbox)


class Agent:
    def __init__(self, registry: Registry, folder: Path) -> None:
        self._registry = registry
        self.folder = folder

    def __call__(
        self, name: str, timeout_s: float = 60, limit_s: float | None = None, **arguments: Json
    ) -> ToolOutcome:
        invocation = ToolInvocation("call-1", name, arguments, 0, timeout_s, limit_s)
        return self._registry.invoke(invocation)


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    source = tmp_path / "source"
    source.mkdir()
    (source / "notes.txt").write_text("first line\nsecond line\n")
    machine = Machine(folder_environment(source), working_sandbox)
    container = machine.container
    assert isinstance(container, FolderContainer)
    yield Agent(Registry(builtin_tools(BUILTIN_NAMES, machine)), container.folder / "workspace")
    machine.close()


def text(outcome: ToolOutcome) -> tuple[str, str]:
    return outcome.status, outcome.content


def test_the_tools_come_in_the_order_named():
    tools = builtin_tools(["list_dir", "shell"], NOWHERE)
    assert [tool.spec.name for tool in tools] == ["list_dir", "shell"]


def test_an_unknown_name_is_answered_with_the_known_ones():
    with pytest.raises(ConfigurationError) as caught:
        builtin_tools(["shell", "browser"], NOWHERE)
    assert str(caught.value) == (
        "unknown tool 'browser': use shell, read_file, write_file, list_dir, keystrokes"
    )


def test_specs_and_identities_are_those_of_every_recording():
    names = ("shell", "read_file", "write_file", "list_dir")
    registry = Registry(builtin_tools(names, NOWHERE))
    texts = [spec.model_dump_json() for spec in registry.specs()]
    assert texts == [
        '{"name":"shell","description":"Run a bash command in /workspace.",'
        '"parameters":{"type":"object","properties":{"command":{"type":"string"}},'
        '"required":["command"]}}',
        '{"name":"read_file","description":"Read a text file.",'
        '"parameters":{"type":"object","properties":{"path":{"type":"string"}},'
        '"required":["path"]}}',
        '{"name":"write_file","description":"Create or replace a text file.",'
        '"parameters":{"type":"object","properties":{"path":{"type":"string"},'
        '"content":{"type":"string"}},"required":["path","content"]}}',
        '{"name":"list_dir","description":"List the files in a folder.",'
        '"parameters":{"type":"object","properties":{"path":{"type":"string","default":"."}}}}',
    ]
    assert [registry.identity(name)[:8] for name in names] == [
        "234ee39f",
        "e33f3d0e",
        "90c0b840",
        "26a4455a",
    ]


class TestReadFile:
    def test_gives_the_text(self, agent: Agent):
        expected = ("ok", "first line\nsecond line\n")
        assert text(agent("read_file", path="notes.txt")) == expected
        assert text(agent("read_file", path="/workspace/notes.txt")) == expected

    @pytest.mark.parametrize(
        ("path", "content"),
        [
            ("none.txt", "none.txt: No such file or directory"),
            ("notes.txt/x", "notes.txt/x: Not a directory"),
            (".", ".: Is a directory"),
            ("/etc/shadow", "/etc/shadow: No such file or directory"),
            ("../x", "../x: No such file or directory"),
            ("pipe", "pipe: not a file"),
            ("binary", "binary: not a text file"),
            ("latin-1", "latin-1: not a text file"),
        ],
    )
    def test_says_why_it_failed(self, agent: Agent, path: str, content: str):
        os.mkfifo(agent.folder / "pipe")
        (agent.folder / "binary").write_bytes(b"\x7fELF\0\0")
        (agent.folder / "latin-1").write_bytes("größe".encode("latin-1"))
        assert text(agent("read_file", path=path)) == ("failed", content)

    def test_says_that_a_file_is_empty(self, agent: Agent):
        (agent.folder / "empty").touch()
        assert text(agent("read_file", path="empty")) == ("ok", "[empty file]")

    def test_shows_the_beginning_of_a_big_file(self, agent: Agent):
        (agent.folder / "big").write_text("ab" + "ä" * 9999)
        shown = "ab" + "ä" * 4999
        assert text(agent("read_file", path="big")) == (
            "ok",
            f"{shown}\n[cut: only the first 10000 of 20000 bytes are shown]",
        )
        (agent.folder / "odd").write_text("a" + "ä" * 5000)
        assert agent("read_file", path="odd").content.startswith("a" + "ä" * 4999 + "\n[cut")

    def test_a_file_as_long_as_the_limit_is_whole(self, agent: Agent):
        (agent.folder / "full").write_text("x" * 10_000)
        assert agent("read_file", path="full").content == "x" * 10_000


class TestWriteFile:
    def test_makes_the_file_and_the_folders_above(self, agent: Agent):
        outcome = agent("write_file", path="new/deep/größe.txt", content="ä\n")
        assert text(outcome) == ("ok", "Wrote 3 bytes to new/deep/größe.txt")
        assert (agent.folder / "new/deep/größe.txt").read_text() == "ä\n"

    def test_replaces_the_whole_text_and_keeps_the_permissions(self, agent: Agent):
        (agent.folder / "notes.txt").chmod(0o755)
        agent("write_file", path="/workspace/notes.txt", content="x")
        assert (agent.folder / "notes.txt").read_text() == "x"
        assert stat.S_IMODE((agent.folder / "notes.txt").stat().st_mode) == 0o755

    def test_writes_through_links_that_stay_inside(self, agent: Agent):
        (agent.folder / "link").symlink_to("/workspace/target")
        assert agent("write_file", path="link", content="x").status == "ok"
        assert (agent.folder / "target").read_text() == "x"

    @pytest.mark.parametrize("path", ["out/file", "out-file", "../../../../../file"])
    def test_writes_nothing_outside_of_the_container(self, agent: Agent, tmp_path: Path, path: str):
        outside = tmp_path / "outside"
        outside.mkdir()
        (agent.folder / "out").symlink_to(outside)
        (agent.folder / "out-file").symlink_to(outside / "file")
        assert agent("write_file", path=path, content="x").status == "ok"
        assert os.listdir(outside) == []

    def test_writes_where_commands_do(self, agent: Agent):
        assert agent("write_file", path="/tmp/file", content="x").status == "ok"
        assert agent("shell", command="cat /tmp/file").content == "x"
        refused = agent("write_file", path="/usr/file", content="x")
        assert text(refused) == ("failed", "/usr/file: Read-only file system")

    @pytest.mark.parametrize(
        ("path", "content"),
        [
            (".", ".: Is a directory"),
            ("folder", "folder: Is a directory"),
            ("notes.txt/x", "notes.txt/x: Not a directory"),
            ("pipe", "pipe: No such device or address"),
        ],
    )
    def test_says_why_it_failed(self, agent: Agent, path: str, content: str):
        (agent.folder / "folder").mkdir()
        os.mkfifo(agent.folder / "pipe")
        assert text(agent("write_file", path=path, content="x")) == ("failed", content)


class TestListDir:
    def test_names_everything_in_order(self, agent: Agent):
        (agent.folder / "folder").mkdir()
        (agent.folder / ".hidden").touch()
        (agent.folder / "link").symlink_to("folder")
        expected = ("ok", ".hidden\nfolder/\nlink\nnotes.txt")
        assert text(agent("list_dir")) == expected
        assert text(agent("list_dir", path="/workspace")) == expected
        assert text(agent("list_dir", path="link")) == ("ok", "[empty folder]")

    def test_a_long_list_is_cut(self, agent: Agent):
        for number in range(201):
            (agent.folder / f"{number:03}").touch()
        lines = agent("list_dir").content.splitlines()
        assert lines[:2] == ["000", "001"]
        assert lines[200:] == ["[cut: only the first 200 of 202 names are shown]"]

    def test_says_why_it_failed(self, agent: Agent):
        assert text(agent("list_dir", path="notes.txt")) == (
            "failed",
            "notes.txt: Not a directory",
        )
        assert text(agent("list_dir", path="none")) == (
            "failed",
            "none: No such file or directory",
        )

    def test_shows_the_folders_that_commands_see(self, agent: Agent):
        (agent.folder / "out").symlink_to("/")
        assert "workspace/" in agent("list_dir", path="out").content.splitlines()
        assert "bin/" in agent("list_dir", path="/usr").content.splitlines()


class TestShell:
    def test_runs_in_the_workspace_that_the_file_tools_see(self, agent: Agent):
        agent("write_file", path="in.txt", content="b\na\n")
        assert text(agent("shell", command="pwd; sort in.txt > out.txt; cat out.txt")) == (
            "ok",
            "/workspace\na\nb",
        )
        assert agent("read_file", path="out.txt").content == "a\nb\n"

    def test_temporary_files_last_from_call_to_call(self, agent: Agent):
        agent("shell", command="echo 1 > /tmp/state; echo 2 > ~/home")
        assert agent("shell", command="cat /tmp/state ~/home").content == "1\n2"

    def test_a_command_that_fails_is_a_result(self, agent: Agent):
        assert text(agent("shell", command="echo oops >&2; exit 2")) == (
            "ok",
            "oops\n[exit code 2]",
        )
        assert text(agent("shell", command="false")) == ("ok", "[exit code 1]")

    def test_silence_is_said(self, agent: Agent):
        assert text(agent("shell", command="true")) == ("ok", "[no output]")

    def test_at_the_timeout_the_output_so_far_is_shown(self, agent: Agent):
        outcome = agent("shell", command="echo started; sleep 1000", timeout_s=0.5)
        assert text(outcome) == ("timed_out", "started\n[timed out after 0.5 s]")

    def test_at_the_end_of_the_runs_time_no_measured_rest_is_shown(self, agent: Agent):
        outcome = agent("shell", command="echo started; sleep 1000", limit_s=0.4937)
        assert text(outcome) == (
            "timed_out",
            "started\n[timed out: the run's time is used up]",
        )

    @pytest.mark.parametrize("count", [2000, 2_000_000])
    def test_long_output_is_cut_in_the_middle(self, agent: Agent, count: int):
        outcome = agent("shell", command=f"seq {count}; exit 1")
        lines = outcome.content.splitlines()
        assert lines[0] == "1"
        assert lines[-2:] == [str(count), "[exit code 1]"]
        assert "[cut: only the first and last 4000 characters are shown]" in lines
        assert len(outcome.content) < 8100

    def test_a_command_too_long_for_the_kernel_is_a_result(self, agent: Agent):
        outcome = agent("shell", command="#" + "ä" * 100_000)
        assert text(outcome) == ("failed", "the command is too long")
        assert agent("shell", command="#" + "x" * 119_000).status == "ok"


def test_the_tools_say_what_they_do_and_which_run_alone():
    registry = Registry(builtin_tools(BUILTIN_NAMES, NOWHERE))
    assert registry.effects("shell", {"command": "ls a"}) == (Effect("command", "ls a"),)
    assert registry.effects("read_file", {"path": "a"}) == (Effect("read", "a"),)
    assert registry.effects("list_dir", {}) == (Effect("read", "."),)
    assert [
        registry.effects("write_file", {"path": "a", "content": content})
        for content in ("", "one", "one\n", "one\ntwo")
    ] == [(Effect("write", "a", lines),) for lines in (0, 1, 1, 2)]
    alone = [name for name in BUILTIN_NAMES if registry.is_sequential(name)]
    assert alone == ["shell", "write_file", "keystrokes"]

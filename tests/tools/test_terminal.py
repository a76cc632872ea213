"""Typing into a terminal in a real container."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.schema.environment import folder_environment
from harness.schema.record import Json
from harness.schema.signals import Blocked
from harness.tools.machine import Machine
from harness.tools.registry import Registry
from harness.tools.terminal import MAX_WAIT_S, Keystrokes
from harness.values import ToolInvocation, ToolOutcome
from tests.sandbox.here import working_sandbox

DEADLINE_S = 30


class Typist:
    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.tool = Keystrokes(machine)
        self.registry = Registry([self.tool])

    def __call__(self, keystrokes: str, timeout_s: float = 60, **arguments: Json) -> ToolOutcome:
        given: dict[str, Json] = {"keystrokes": keystrokes, "duration": 0, **arguments}
        return self.registry.invoke(ToolInvocation("call-1", "keystrokes", given, 0, timeout_s))

    def until(self, ending: str) -> str:
        """What further looks show, once they end so."""
        deadline = time.monotonic() + DEADLINE_S
        shown = ""
        while not shown.rstrip("# \n").endswith(ending):
            assert time.monotonic() < deadline, f"{ending!r} never came: {shown!r}"
            shown = self("", duration=0.02).content
        return shown


@pytest.fixture
def typist(tmp_path: Path) -> Iterator[Typist]:
    (tmp_path / "notes.txt").write_text("first line\n")
    machine = Machine(folder_environment(tmp_path), working_sandbox)
    # Nothing is shown that is not asked for: no prompt of the host's.
    machine.container.write("/root/.bashrc", b"PS1='# '\n")
    yield Typist(machine)
    machine.close()


def test_a_command_is_run_in_the_working_directory_and_its_output_shown(typist: Typist) -> None:
    assert typist("cat notes.txt; pwd; touch made; sleep 0.01\n", look=False).content == ""
    deadline = time.monotonic() + DEADLINE_S
    while "made" not in typist.machine.container.names("."):
        assert time.monotonic() < deadline
    typist("echo e''nd\n", look=False)
    shown = ""
    while "\nend" not in shown:
        assert time.monotonic() < deadline
        shown += typist("", duration=0.02).content
    assert shown.startswith("New Terminal Output:\n# cat notes.txt; pwd; ")
    assert "\nfirst line\n/workspace\n" in shown


def test_the_terminal_lasts_from_one_call_to_the_next(typist: Typist) -> None:
    typist("here=th''ere\n")
    typist("echo $here\n", look=False)
    assert typist.until("there")


def test_a_cleared_screen_is_shown_as_it_is(typist: Typist) -> None:
    typist("echo on''e\n", look=False)
    typist.until("one")
    typist("clear\n", look=False)
    deadline = time.monotonic() + DEADLINE_S
    while not (shown := typist("", duration=0.02).content).startswith("Current Terminal Screen:"):
        assert time.monotonic() < deadline, shown
    assert "one" not in shown


def test_long_output_keeps_its_beginning_and_its_end(typist: Typist) -> None:
    typist("seq 5000; exit\n", look=False)
    shown = typist("", duration=DEADLINE_S).content
    assert shown.startswith("New Terminal Output:\n# seq 5000; exit\n1\n2\n")
    assert " bytes in between are left out]\n" in shown
    assert shown.endswith("\n4999\n5000\nexit\n[the shell has ended]")
    assert 10_000 < len(shown) < 10_150


def test_it_waits_no_longer_than_the_call_may_take(typist: Typist) -> None:
    assert typist("", timeout_s=0.05, duration=MAX_WAIT_S).status == "ok"


def test_without_its_shell_the_run_cannot_go_on(typist: Typist) -> None:
    outcome = typist("echo b''ye; exit\n", duration=DEADLINE_S)
    assert outcome.asks == Blocked(reason="the shell of the terminal has ended")
    assert outcome.content.endswith("\nbye\nexit\n[the shell has ended]")


def test_after_the_container_was_equipped_anew_there_is_a_new_shell(typist: Typist) -> None:
    typist("cd /tmp\n")
    container = typist.machine.container
    container.equip(typist.machine.environment.equipment)
    typist("pwd\n", look=False)
    assert typist.until("/workspace")


def test_what_is_no_text_or_no_number_is_refused(typist: Typist) -> None:
    assert typist("", duration="long").content.endswith(": must be a number of seconds, not 'long'")
    assert typist.tool.effects({"keystrokes": ""}) == ()
    assert typist.tool.effects({"keystrokes": "ls\n"}) is None

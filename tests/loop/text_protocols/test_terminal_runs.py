"""Terminus 2's preset with a real terminal on a real machine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.providers.scripted import turn
from harness.schema.environment import folder_environment
from harness.schema.loop_config import TerminationReason
from harness.schema.presets import PRESETS
from harness.schema.suite import Skill
from harness.tools.machine import Machine
from harness.tools.skills import LoadSkill
from harness.tools.terminal import Keystrokes
from tests.loop.support import run
from tests.sandbox.here import working_sandbox

SKILL = Skill(name="sums", description="Adds.", instructions="Use awk.", place="sums")


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    made = Machine(folder_environment(tmp_path), working_sandbox)
    made.container.write("/root/.bashrc", b"PS1='# '\n")
    yield made
    made.close()


def answer(*keystrokes: str, **keys: Any) -> str:
    commands = [{"keystrokes": keys, "duration": 0} for keys in keystrokes]
    return json.dumps({"analysis": "A.", "plan": "P.", "commands": commands, **keys})


def test_a_turn_of_commands_is_one_look_and_the_shells_end_is_the_end(machine: Machine) -> None:
    typed = json.loads(answer("echo o''ne\n", "echo t''wo; exit\n"))
    # Waits no longer than the shell lives.
    typed["commands"][-1]["duration"] = 60
    trajectory, _ = run(
        [turn(json.dumps(typed))], tools=[Keystrokes(machine)], **PRESETS["terminus2"]
    )
    assert trajectory.termination_reason is TerminationReason.BLOCKED
    assert trajectory.error == "the shell of the terminal has ended"
    first, last = trajectory.messages[-1].tool_results
    assert first.content == ""
    assert last.content.startswith("New Terminal Output:\n")
    assert "\none\n" in last.content
    assert last.content.endswith("\ntwo\nexit\n[the shell has ended]")


def test_who_is_done_sees_the_terminal_and_is_asked_whether_it_is_sure(machine: Machine) -> None:
    done = answer(task_complete=True)
    trajectory, model = run(
        map(turn, (done, done)), tools=[Keystrokes(machine)], **PRESETS["terminus2"]
    )
    assert trajectory.termination_reason is TerminationReason.COMPLETED
    assert trajectory.confirmed
    told = model.requests[1].messages[-1].text
    assert told.startswith("Current terminal state:\nNew Terminal Output:\n")
    assert told.endswith("say once more that it is complete.")


def test_where_questions_are_counted_who_is_done_is_asked_once_in_the_run(machine: Machine) -> None:
    done = answer(task_complete=True)
    trajectory, model = run(
        map(turn, (done, answer("ls\n"), done)),
        tools=[Keystrokes(machine)],
        **{**PRESETS["terminus2"], "confirm": {"enabled": True, "mode": "counted"}},
    )
    assert trajectory.termination_reason is TerminationReason.COMPLETED
    assert (len(model.requests), trajectory.confirmed) == (3, None)


def test_a_skill_is_loaded_and_nothing_is_asked_back(machine: Machine) -> None:
    trajectory, model = run(
        map(turn, ('{"load_skill": "sums"}', answer(task_complete=True))),
        tools=[Keystrokes(machine), LoadSkill([SKILL], "/skills")],
        **PRESETS["terminus2-skills"],
    )
    assert trajectory.termination_reason is TerminationReason.COMPLETED
    assert trajectory.confirmed is None
    assert model.requests[0].system is not None
    assert "- sums (in /skills/sums): Adds." in model.requests[0].system
    assert model.requests[1].messages[-1].text == "Loaded skill: sums\n\nUse awk."

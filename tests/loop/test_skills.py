"""What skills say to the model, and which tools they leave."""

from __future__ import annotations

import pytest

from harness.loop.skills import narrowed, with_skills
from harness.schema.messages import ToolSpec
from harness.schema.suite import Skill

LOGS = Skill(name="logs", description="reading logs", instructions="Use cut.\n")
SUMS = Skill(name="sums", description="adding up", instructions="Use awk.")


def test_active_skills_stand_in_full_below_the_prompt():
    assert with_skills("Be brief.", [LOGS, SUMS], [LOGS, SUMS]) == (
        "Be brief.\n\nSkill logs (reading logs):\nUse cut.\n\nSkill sums (adding up):\nUse awk."
    )


def test_skills_that_are_not_active_are_listed_only():
    assert with_skills("Be brief.", [LOGS, SUMS], [SUMS]) == (
        "Be brief.\n\nSkills that are not active:\n- logs: reading logs"
        "\n\nSkill sums (adding up):\nUse awk."
    )
    assert with_skills("Be brief.", [LOGS, SUMS], []) == (
        "Be brief.\n\nSkills that are not active:\n- logs: reading logs\n- sums: adding up"
    )


def test_without_skills_the_prompt_stays_as_it_is():
    assert with_skills("Be brief.", [], []) == "Be brief."
    assert with_skills("", [], []) == ""
    assert with_skills(None, [], []) is None


def test_skills_need_no_prompt_to_stand_below():
    assert with_skills(None, [SUMS], [SUMS]) == "Skill sums (adding up):\nUse awk."


def allowing(*allowed: str) -> Skill:
    return SUMS.model_copy(update={"allowed_tools": allowed})


def forbidding(*forbidden: str) -> Skill:
    return SUMS.model_copy(update={"disallowed_tools": forbidden})


@pytest.mark.parametrize(
    ("active", "left"),
    [
        ([], ["shell", "read_file", "write_file"]),
        ([LOGS, SUMS], ["shell", "read_file", "write_file"]),
        ([allowing("write_file", "shell")], ["shell", "write_file"]),
        ([allowing("write_file", "shell"), allowing("shell", "read_file")], ["shell"]),
        ([forbidding("shell")], ["read_file", "write_file"]),
        ([allowing("shell", "read_file"), forbidding("shell")], ["read_file"]),
        ([allowing()], []),
        ([allowing("unknown"), LOGS], []),
    ],
)
def test_tools_are_those_that_every_active_skill_allows(active: list[Skill], left: list[str]):
    names = ("shell", "read_file", "write_file")
    specs = [ToolSpec(name=name, description="", parameters={}) for name in names]
    assert [spec.name for spec in narrowed(specs, active)] == left

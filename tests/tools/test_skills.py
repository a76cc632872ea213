"""The tool that loads skills, and the machine that has them."""

from __future__ import annotations

from pathlib import Path

from harness.schema.environment import folder_environment
from harness.schema.suite import Skill
from harness.tools.machine import Machine
from harness.tools.registry import Registry
from harness.tools.skills import LoadSkill
from harness.values import ToolInvocation
from tests.sandbox.here import working_sandbox

MESH = Skill(
    name="mesh",
    description="Reads meshes.",
    instructions="Use the tool.",
    place="deep/mesh",
    files=("scripts/mesh.py",),
)
SUMS = Skill(name="sums", description="Adds.", instructions="Use awk.", place="sums")


def test_names_descriptions_and_places_are_told_and_nothing_else() -> None:
    spec = LoadSkill([MESH, SUMS], "/skills").spec
    assert spec.description.endswith(
        "\n- mesh (in /skills/deep/mesh): Reads meshes.\n- sums (in /skills/sums): Adds."
    )
    assert "awk" not in spec.model_dump_json()


def test_a_loaded_skill_is_its_text_and_the_names_of_its_files() -> None:
    registry = Registry([LoadSkill([MESH, SUMS], "/skills")])
    loaded = [
        registry.invoke(ToolInvocation("call-1", "load_skill", {"name": name}, 0, 60)).content
        for name in ("mesh", "sums")
    ]
    assert loaded == [
        "Loaded skill: mesh\n\nUse the tool.\n\n"
        "Files of this skill in /skills/deep/mesh:\n- scripts/mesh.py",
        "Loaded skill: sums\n\nUse awk.",
    ]


def test_a_result_counts_for_the_text_it_was_recorded_with() -> None:
    changed = SUMS.model_copy(update={"instructions": "Use bc."})
    identities = {
        Registry([LoadSkill(skills, "/skills")]).identity("load_skill")
        for skills in ([SUMS], [SUMS], [changed], [MESH, SUMS])
    }
    assert len(identities) == 3


def test_the_machine_has_the_folder_of_skills_at_its_place(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    script = tmp_path / "ours" / "mesh" / "scripts" / "mesh.sh"
    script.parent.mkdir(parents=True)
    script.write_text("echo meshed\n")
    environment = folder_environment(tmp_path / "work").model_copy(
        update={"skills": tmp_path / "ours", "skills_dir": "/root/.claude/skills"}
    )
    machine = Machine(environment, working_sandbox)
    try:
        command = ["sh", "/root/.claude/skills/mesh/scripts/mesh.sh"]
        assert machine.container.run(command, timeout_s=60).output == "meshed\n"
    finally:
        machine.close()

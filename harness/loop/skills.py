"""Skills: advice that goes into the system prompt."""

from __future__ import annotations

from collections.abc import Sequence

from harness.schema.suite import Skill


def with_skills(system: str, active: Sequence[Skill]) -> str:
    """The system prompt with the full text of the active skills."""
    sections = [
        f"Skill {skill.name} ({skill.description}):\n{skill.instructions.strip()}"
        for skill in active
    ]
    return "\n\n".join([system, *sections])

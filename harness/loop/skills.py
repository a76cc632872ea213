"""Skills: advice that goes into the system prompt, and narrows the tools while it is active."""

from __future__ import annotations

from collections.abc import Sequence

from harness.schema.messages import ToolSpec
from harness.schema.suite import Skill


def with_skills(system: str | None, skills: Sequence[Skill], active: Sequence[Skill]) -> str | None:
    """The system prompt with a compact list of skills and the full text of the active ones.

    The list has name and description of those that are not active. An active one's section begins
    with both, so that it need not be listed as well.

    Args:
        system: The prompt without skills.
        skills: All skills.
        active: Those of them that are active.
    """
    names = {skill.name for skill in active}
    others = [f"- {skill.name}: {skill.description}" for skill in skills if skill.name not in names]
    listing = ["\n".join(["Skills that are not active:", *others])] if others else []
    sections = [
        f"Skill {skill.name} ({skill.description}):\n{skill.instructions.strip()}"
        for skill in active
    ]
    parts = [*([] if system is None else [system]), *listing, *sections]
    return "\n\n".join(parts) if parts else None


def narrowed(specs: Sequence[ToolSpec], active: Sequence[Skill]) -> tuple[ToolSpec, ...]:
    """The tools that every active skill allows and none forbids, in their order.

    A skill without a list of allowed tools allows all of them. The output and submit tools are not
    for a skill to take away: leave them out of `specs`.
    """
    return tuple(spec for spec in specs if all(_allows(skill, spec.name) for skill in active))


def _allows(skill: Skill, tool: str) -> bool:
    listed = skill.allowed_tools is None or tool in skill.allowed_tools
    return listed and tool not in skill.disallowed_tools

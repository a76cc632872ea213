"""The built-in tool that gives the text of a skill."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from harness.schema.messages import ToolSpec
from harness.schema.record import Json, JsonObject
from harness.schema.suite import Skill
from harness.values import Effect, ToolOutcome

_ABOUT = (
    "Load a skill: advice on a kind of work, perhaps with scripts for it. Before you begin, load"
    " those that fit the task. Available skills:"
)


class LoadSkill:
    """Tells names and descriptions in its own, and the whole of a skill when it is called."""

    sequential = False

    def __init__(self, skills: Sequence[Skill], root: str) -> None:
        """Offer skills.

        Args:
            skills: At least one.
            root: Where the machine has their folders.
        """
        self._root = root
        self._texts = {skill.name: self._text(skill) for skill in skills}
        names: list[Json] = list(self._texts)
        listed = (f"- {one.name} (in {self._place(one)}): {one.description}" for one in skills)
        self.spec = ToolSpec(
            name="load_skill",
            description="\n".join([_ABOUT, *listed]),
            parameters={
                "type": "object",
                "properties": {"name": {"type": "string", "enum": names}},
                "required": ["name"],
            },
        )
        # A result that is recorded counts for these texts alone.
        texts = "\0".join(self._texts.values())
        self.settings: JsonObject = {"texts": hashlib.sha256(texts.encode()).hexdigest()}

    def effects(self, arguments: JsonObject) -> Sequence[Effect]:
        """Nothing is done outside of the loop."""
        return ()

    def call(self, arguments: JsonObject, timeout_s: float) -> ToolOutcome:
        """The skill's text, and what lies beside it."""
        return ToolOutcome(self._texts[str(arguments["name"])])

    def _text(self, skill: Skill) -> str:
        parts = [f"Loaded skill: {skill.name}", skill.instructions]
        if skill.files:
            files = "\n".join(f"- {name}" for name in skill.files)
            parts.append(f"Files of this skill in {self._place(skill)}:\n{files}")
        return "\n\n".join(part for part in parts if part)

    def _place(self, skill: Skill) -> str:
        return f"{self._root}/{skill.place}" if skill.place else self._root

"""What a scenario has its hooks do."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from harness.schema.record import JsonObject, Record

HookPoint = Literal[
    "before_run",
    "after_run",
    "before_iteration",
    "before_model",
    "after_model",
    "before_tool",
    "approve_tool",
    "after_tool",
    "pause_check",
]
HookAction = Literal["skip", "modify", "replace", "append_user", "pause", "raise"]

_HOOK_KEYS: dict[tuple[str, str], tuple[str, ...]] = {
    ("before_tool", "skip"): ("result",),
    ("before_tool", "modify"): ("arguments",),
    ("after_tool", "replace"): ("result",),
    ("before_model", "skip"): ("result",),
    ("before_iteration", "append_user"): ("text",),
    ("pause_check", "pause"): ("resume_after_s",),
}
"""What each action needs; `raise` needs nothing and goes with every hook."""


class ScenarioHook(Record):
    """One thing a hook does, at every firing or in one iteration."""

    model_config = ConfigDict(allow_inf_nan=False)

    hook: HookPoint
    action: HookAction
    tool: str | None = None
    """Only for calls of this tool."""
    at: int | None = Field(default=None, ge=1)
    """Only in this iteration of the run."""
    result: str | None = None
    text: str | None = None
    arguments: JsonObject | None = None
    resume_after_s: float | None = Field(default=None, ge=0)

    @model_validator(mode="after")
    def _keys_fit(self) -> Self:
        needed = _HOOK_KEYS.get((self.hook, self.action))
        if self.action == "raise":
            needed = ()
        if needed is None:
            actions = ", ".join(sorted(action for hook, action in _HOOK_KEYS if hook == self.hook))
            raise PydanticCustomError(
                "hook",
                "{hook} cannot {action}; it can: {actions}",
                {
                    "hook": self.hook,
                    "action": self.action,
                    "actions": f"{actions}, raise".removeprefix(", "),
                },
            )
        optional = {"at"} if self.hook not in ("before_run", "after_run") else set()
        if self.hook in ("before_tool", "approve_tool", "after_tool"):
            optional.add("tool")
        given = self.model_fields_set - {"hook", "action"}
        for key in sorted(given - optional - set(needed)):
            raise PydanticCustomError(
                "hook",
                "{hook} with {action} takes no {key}",
                {"hook": self.hook, "action": self.action, "key": key},
            )
        for key in needed:
            if getattr(self, key) is None:
                raise PydanticCustomError(
                    "hook",
                    "{hook} with {action} needs {key}",
                    {"hook": self.hook, "action": self.action, "key": key},
                )
        return self

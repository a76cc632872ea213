"""Named loop configurations, as data: each makes the engine behave as one of the known designs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

PresetName = Literal[
    "default", "sigil", "maestro", "agent33", "onering", "terminus2", "terminus2-skills"
]

Disclosure = Literal["full", "on_demand"]
"""Skills with all of their text, or by name and description until one is asked for."""

_TERMINUS2: Mapping[str, Any] = {
    # That agent goes on until it says that it is done, or its time is over.
    "max_iterations": 100,
    "error_threshold": 0,
    "max_output_tokens": 8192,
    "text_protocol": "terminus2",
}

PRESETS: Mapping[PresetName, Mapping[str, Any]] = {
    "default": {},
    "sigil": {
        "max_iterations": 15,
        "max_attempts": 3,
        "text_only": "error",
        "error_threshold": 0,
    },
    "maestro": {
        "max_iterations": 10,
        "text_only": "nudge",
        "nudge_max": 1,
        "tool_choice": "required",
        "breaker": 3,
        "error_threshold": 0,
        "on_limit": "callback",
    },
    "agent33": {
        "max_iterations": 20,
        "max_tool_calls_per_turn": 5,
        "overflow": "error",
        "confirm": {"enabled": True},
        "error_threshold": 3,
        "llm_error_threshold": 3,
    },
    "onering": {
        "max_iterations": 50,
        "tool_timeout_s": 30,
        "window": {"max_messages": 50},
        "on_limit": "wrap_up",
        "empty_retries": 2,
        "error_threshold": 0,
    },
    "terminus2": {**_TERMINUS2, "confirm": {"enabled": True, "mode": "second_text"}},
    "terminus2-skills": _TERMINUS2,
}
"""Settings by preset, with the names and shapes of `LoopConfig`; what is not named is default."""

PRESET_TOOLS: Mapping[PresetName, tuple[str, ...]] = {
    "terminus2": ("keystrokes",),
    "terminus2-skills": ("keystrokes",),
}
"""Tools that a preset offers on tasks which offer the default ones."""

PRESET_DISCLOSURE: Mapping[PresetName, Disclosure] = {"terminus2-skills": "on_demand"}
"""How skills are given by a preset where a variant does not say it; `full` by the others."""

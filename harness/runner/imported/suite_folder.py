"""A suite of imported conversations: a task for each, and variants that replay them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import ConfigDict, Field

from harness.errors import BadInputError
from harness.loader.plain import is_task
from harness.loader.reading import read_text, read_toml, validated
from harness.loader.suite import load_suite
from harness.runner.imported.told import Told
from harness.runner.plan import SUITES
from harness.schema.presets import PRESET_DISCLOSURE, PRESETS
from harness.schema.record import Record

SUITE_FILE = "suite.toml"
_MARK = "# Written by `harness import conversation`, and again when a conversation is added.\n"
_PURPOSE = "the suite's settings"
_IMPORTED = "imported"
"""The table of task.toml that says how a task's conversation went."""
_DOCKERFILE = "FROM ubuntu:24.04\nWORKDIR /app\n"
_ASKS = frozenset(
    str(name) for name, loop in PRESETS.items() if loop.get("confirm", {}).get("enabled")
)
"""Presets that ask back before an end is accepted."""
_MODELS = {
    "anthropic-messages": {"provider": "anthropic"},
    "google-generate": {"provider": "google"},
    "ollama-chat": {"provider": "ollama"},
    "openai-responses": {"provider": "openai", "api": "responses"},
}
"""What asks in the format of an endpoint; all else is OpenAI's chat."""


@dataclass(frozen=True, slots=True)
class ImportedTask:
    """A task to be written."""

    name: str
    told: Told
    source: str
    """What it was made from, in words."""
    repeats: int = 1
    """Conversations about it."""


def suite_of_task(text: str) -> tuple[str, Path]:
    """The suite's name and the task's folder for `SUITE/TASK`: a path, or below suites/.

    Raises:
        BadInputError: there is no such task.
    """
    for folder in (Path(text), SUITES / text):
        if is_task(folder):
            settings = folder.parent / SUITE_FILE
            if settings.is_file():
                return str(read_toml(settings, purpose=_PURPOSE).get("name")), folder
            return load_suite(folder, needs_model=False).name, folder
    raise BadInputError(f"--into {text!r}: neither it nor {SUITES / text} is a task's folder")


def asking_model(told: Told) -> dict[str, str]:
    """Settings of a model that asks in the format in which the answers are kept."""
    return {**_MODELS.get(told.endpoint, {"provider": "openai"}), "name": told.model}


def check_suite(folder: Path, name: str, tasks: Sequence[ImportedTask]) -> None:
    """Refuse what would write over something.

    Raises:
        BadInputError: a task is there already, or somebody else wrote the suite.
    """
    for task in tasks:
        if (folder / task.name).exists():
            raise BadInputError(
                f"{folder / task.name}: is there already; remove it, or choose another suite with"
                " --suite"
            )
    path = folder / SUITE_FILE
    if path.exists():
        written = read_text(path, purpose=_PURPOSE)
        if written != _suite_file(name, _facts_in(folder)):
            raise BadInputError(
                f"{path}: not as an import wrote it for the suite {name!r}, so nothing is added;"
                " choose another suite with --suite"
            )


def write_suite(folder: Path, name: str, tasks: Sequence[ImportedTask]) -> int:
    """Write the tasks, and the suite's settings for all that are in the folder.

    Returns:
        How many there are now.

    Raises:
        BadInputError: a file cannot be written.
    """
    try:
        for task in tasks:
            for path, text in _files(task):
                target = folder / task.name / path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(text, encoding="utf-8")
        every = _facts_in(folder)
        settings = _suite_file(name, every)
        (folder / SUITE_FILE).write_text(settings, encoding="utf-8")
    except OSError as error:
        raise BadInputError(f"{folder}: cannot be written ({error.strerror})") from None
    return len(every)


def _files(task: ImportedTask) -> Iterator[tuple[str, str]]:
    told = task.told
    yield "instruction.md", told.instruction + "\n"
    yield "environment/Dockerfile", _DOCKERFILE
    for skill in told.skills:
        head = yaml.safe_dump(
            {"name": skill.name, "description": skill.description}, allow_unicode=True
        )
        text = skill.text or "(The recording does not hold it: nobody loaded it.)"
        yield f"environment/skills/{skill.name}/SKILL.md", f"---\n{head}---\n\n{text}\n"
    yield "task.toml", _task_file(task)


def _task_file(task: ImportedTask) -> str:
    told = task.told
    ours: dict[str, Any] = {"verifier": False, "model": asking_model(told)}
    ours |= {"system": told.system, "loop": _loop(told)}
    if told.preset == "default":
        # Ours of the same name may take other arguments, and give something else.
        ours["tools"] = []
        ours["recorded_tools"] = [tool.model_dump(mode="json") for tool in told.tools]
    if told.handed_in is not None:
        ours["output"] = {"name": told.handed_in, "schema": {"type": "object"}}
    facts = {"source": task.source, "preset": told.preset, "repeats": task.repeats}
    if not told.completes:
        ours["expected_endings"] = ["max_iterations"]
    parts = ('schema_version = "1.4"', *_table("metadata.harness", ours))
    return "\n\n".join((*parts, *_table(f"metadata.{_IMPORTED}", facts))) + "\n"


def _loop(told: Told) -> dict[str, Any]:
    """Settings with which our loop takes as many turns as the conversation, and ends as it did."""
    # Where a limit ended it, ours does so after as many turns.
    loop: dict[str, Any] = {"max_iterations": told.turns}
    if told.preset != "default":
        if told.completes and told.confirms != (told.preset in _ASKS):
            loop["confirm"] = {"enabled": told.confirms, "mode": "second_text"}
    elif told.handed_in is not None or not told.completes:
        # In place of whoever talked to the agent: a reminder after each of its answers.
        loop |= {"text_only": "nudge", "nudge_max": told.turns}
    elif told.replies:
        # A question, which is what was said where that was always the same.
        asked = {"enabled": True, "mode": "counted", "max_prompts": len(told.replies)}
        one = set(told.replies)
        loop["confirm"] = asked | ({"prompt": one.pop()} if len(one) == 1 else {})
    return loop


class _Facts(Record):
    """What a suite must know of its tasks, as their task.toml says."""

    model_config = ConfigDict(extra="ignore")

    source: str
    preset: str
    repeats: int = Field(ge=1)


def _facts_in(folder: Path) -> dict[str, _Facts]:
    """What the imported tasks of a suite say, by name."""
    found = {}
    for path in sorted(folder.glob("*/task.toml")):
        table = read_toml(path, purpose="the task's settings").get("metadata", {})
        facts = table.get(_IMPORTED) if isinstance(table, dict) else None
        if isinstance(facts, dict):
            found[path.parent.name] = validated(
                _Facts, facts, where=f"{path}: metadata.{_IMPORTED}"
            )
    return found


def _suite_file(name: str, tasks: Mapping[str, _Facts]) -> str:
    head = {
        "name": name,
        "version": 1,
        "description": "Conversations that others recorded, replayed in order.",
        "repeats": min((facts.repeats for facts in tasks.values()), default=1),
        # Each task has its own.
        "system": "",
    }
    parts = ["\n".join(f"{key} = {_toml(value)}" for key, value in head.items())]
    parts += _table("model", {"provider": "openai", "name": "recorded"})
    by_preset: dict[str, list[str]] = {}
    for task, facts in tasks.items():
        by_preset.setdefault(facts.preset, []).append(task)
    for preset, members in by_preset.items():
        # Nothing but the recording ends a conversation.
        settings = {"name": preset, "preset": preset, "loop.error_threshold": 0}
        if preset in PRESET_DISCLOSURE:
            settings["skills"] = "curated"
        if len(by_preset) > 1:
            settings["tasks"] = members
        parts += _table("variants", settings, of_several=True)
    return _MARK + "\n\n".join(parts) + "\n"


def _table(name: str, values: Mapping[str, Any], *, of_several: bool = False) -> list[str]:
    """A table of a TOML file, as one passage."""
    head = f"[[{name}]]" if of_several else f"[{name}]"
    return ["\n".join((head, *(f"{key} = {_toml(value)}" for key, value in values.items())))]


def _toml(value: Any) -> str:
    """A value as TOML spells it; texts of both are spelled as JSON does, but for one sign."""
    if isinstance(value, dict):
        known = {key: item for key, item in value.items() if item is not None}
        inner = ", ".join(f"{_toml(str(key))} = {_toml(item)}" for key, item in known.items())
        return f"{{{inner}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, str):
        # No file of a suite may hold a NUL: no process could be given it.
        value = value.replace("\0", "\ufffd")
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")

"""The ways a task's folder may be laid out: Harbor's, and BenchFlow's `task.md`."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import BadInputError
from harness.loader.reading import read_toml, validated
from harness.loader.task.front_matter import front_matter
from harness.schema.task_file import TaskFile

_SECTION = re.compile(
    r"^##\s+(prompt|role:[\w.-]+|scene:[\w.-]+|user-persona)\s*$", re.IGNORECASE | re.MULTILINE
)
_ESCAPED = re.compile(r"^\\(?=##\s)", re.MULTILINE)
_DOCUMENT_KEYS = ("agents", "scenes", "user", "benchflow", "profile", "profiles", "reward")
"""Of BenchFlow's document alone: who speaks when, and how it is published."""

_PARTS = ("instruction.md", "tests", "tests/test.sh", "solution", "solution/solve.sh", "workdir")
_READ = (
    *("task.toml", "task.md", "verifier", "verifier/test.sh", "oracle"),
    *("oracle/solve.sh", "environment", "environment/Dockerfile", "environment/.dockerignore"),
    *("environment/workspace", "environment/skills", "environment/skills/*/SKILL.md"),
    *("tests/Dockerfile", "steps", "steps/*", "steps/*/tests/Dockerfile"),
    *_PARTS,
    *(f"steps/*/{part}" for part in _PARTS),
)
"""What is read of a task, or laid into its machine as a whole."""


@dataclass(frozen=True, slots=True)
class Layout:
    """A task's folder, its settings read."""

    folder: Path
    config: Path
    file: TaskFile
    body: str | None
    """The instruction, where the settings' file holds it."""
    tests: Path
    tests_place: str
    """Where the machine has the tests."""
    solution: Path
    solution_place: str
    ignored: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()

    @property
    def seen(self) -> tuple[str, ...]:
        """What a trial can depend on, beside the tests; the solution is not part of it."""
        return (self.config.name, "instruction.md", "environment", "checks.py")

    def shown(self, path: Path) -> str:
        """A path as the task's author names it."""
        return path.relative_to(self.folder).as_posix()


def read_layout(folder: Path) -> Layout:
    """Find out how a task's folder is laid out, and read its settings.

    Raises:
        BadInputError: they are missing or wrong, or a part of the task lies elsewhere; the text
            names file and key.
    """
    _hold_inside(folder)
    _check_names(folder)
    if (folder / "task.md").is_file():
        return _document(folder)
    config = folder / "task.toml"
    data = read_toml(config, purpose="the task's settings")
    return Layout(
        folder=folder,
        config=config,
        file=validated(TaskFile, data, where=str(config)),
        body=None,
        tests=folder / "tests",
        tests_place="/tests",
        solution=folder / "solution",
        solution_place="/solution",
    )


def _hold_inside(folder: Path) -> None:
    """Refuse links out of the folder: what they lead to would be read and sent to a model."""
    inside = folder.resolve()
    for pattern in _READ:
        for path in folder.glob(pattern):
            if not path.resolve().is_relative_to(inside):
                raise BadInputError(
                    f"{path}: a link out of the task's folder; put what it leads to in its place"
                )


def _check_names(folder: Path) -> None:
    """Refuse names of files that no log or recording could hold."""
    for parent, folders, files in os.walk(folder):
        for name in (*folders, *files):
            try:
                name.encode()
            except UnicodeEncodeError:
                shown = os.fsencode(os.path.join(parent, name)).decode(errors="backslashreplace")
                raise BadInputError(
                    f"{shown}: the name of this file is not UTF-8; rename it"
                ) from None


def _document(folder: Path) -> Layout:
    """A `task.md`: settings as a YAML front matter, and the instruction below it."""
    config = folder / "task.md"
    head, body = front_matter(config, purpose="the task's settings and its instruction")
    data, told = _as_task_file(head, config)
    file = validated(TaskFile, data, where=str(config))
    has_verifier = (folder / "verifier").is_dir()
    has_oracle = (folder / "oracle").is_dir()
    return Layout(
        folder=folder,
        config=config,
        file=file,
        body=_prompt(body),
        tests=folder / ("verifier" if has_verifier else "tests"),
        tests_place="/verifier" if has_verifier else "/tests",
        solution=folder / ("oracle" if has_oracle else "solution"),
        solution_place="/oracle" if has_oracle else "/solution",
        ignored=tuple(f"task.md: {key}: means nothing here" for key in told),
        needs=tuple(_needs(head)),
    )


def _as_task_file(head: Mapping[str, Any], path: Path) -> tuple[dict[str, Any], list[str]]:
    """The front matter in Harbor's words, and the keys that mean nothing here."""
    data = dict(head)
    for ours, theirs in (("oracle", "solution"), ("sandbox", "environment")):
        if ours in data and theirs in data:
            raise BadInputError(f"{path}: has both {ours!r} and {theirs!r}; keep {ours!r}")
        if ours in data:
            data[theirs] = data.pop(ours)
    told = [key for key in _DOCUMENT_KEYS if data.pop(key, None)]
    image = data.pop("image", None)
    if isinstance(image, str) and isinstance(data.setdefault("environment", {}), dict):
        data["environment"] = {"docker_image": image} | data["environment"]
    data.pop("name", None)
    for key in ("verifier", "solution"):
        # A bare path to what is found by its name anyway.
        if isinstance(data.get(key), str):
            told.append(key)
            del data[key]
    if isinstance(verifier := data.get("verifier"), dict):
        own = ("type", "service")
        data["verifier"] = {key: value for key, value in verifier.items() if key not in own}
    return {key: value for key, value in data.items() if value is not None}, told


def _needs(head: Mapping[str, Any]) -> list[str]:
    """What another agent or a judge would have to do."""
    needs = []
    scenes = head.get("scenes")
    if isinstance(scenes, list) and len(scenes) > 1:
        needs.append("task.md: scenes: several agents that take turns")
    if head.get("user"):
        needs.append("task.md: user: somebody to talk to")
    verifier = head.get("verifier")
    if isinstance(verifier, dict):
        kind, service = verifier.get("type"), verifier.get("service")
        if kind not in (None, "test-script"):
            needs.append(f"task.md: verifier.type = {kind!r}: only tests judge here")
        if service not in (None, "main"):
            needs.append(f"task.md: verifier.service = {service!r}: a container of its own")
    return needs


def _prompt(body: str) -> str:
    """The part of the body that is for the agent: all of it, unless it has sections."""
    matches = list(_SECTION.finditer(body))
    text = body[: matches[0].start()] if matches else body
    for place, match in enumerate(matches):
        if match[1].lower() == "prompt":
            end = matches[place + 1].start() if place + 1 < len(matches) else len(body)
            text = body[match.end() : end]
            break
    return _ESCAPED.sub("", text)

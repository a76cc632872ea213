"""A task's folder, in Harbor's layout, as a Task."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import yaml
from pydantic import ConfigDict

from harness.errors import BadInputError, ConfigurationError
from harness.loader.output import output_spec
from harness.loader.reading import known, read_text, read_toml, validated, yaml_problem
from harness.schema.environment import Solution, Step, Verifier, folder_environment
from harness.schema.record import Record
from harness.schema.suite import Skill, Task
from harness.schema.suite_file import Name
from harness.schema.task_file import HarnessSection, TaskFile

_AGENT_SEES = ("task.toml", "instruction.md", "environment", "checks.py")
"""What a trial can depend on, beside the tests; the solution is not part of it."""


class _FrontMatter(Record):
    """What counts of a SKILL.md's head; other keys are ignored.

    `allowed-tools` is one of those: to the agents it is written for it names tools of theirs that
    need no approval, while `allowed_tools` narrows ours.
    """

    model_config = ConfigDict(extra="ignore")

    name: str
    description: str
    allowed_tools: tuple[str, ...] | None = None
    disallowed_tools: tuple[str, ...] = ()


def load_task(folder: Path) -> Task:
    """Load one task and check all that can be checked without running it.

    Raises:
        BadInputError: a file is missing or cannot be used; the text names it and the key.
    """
    config_path = folder / "task.toml"
    file = validated(
        TaskFile,
        read_toml(config_path, purpose="the task's settings"),
        where=str(config_path),
    )
    ours = file.metadata.harness
    _check_tool_names(ours, f"{config_path}: metadata.harness")
    tests = folder / "tests"
    read_text(tests / "test.sh", purpose="the task's verifier")
    step = Step(
        instruction=_instruction(folder / "instruction.md"),
        agent_timeout_s=file.agent.timeout_sec,
        solution=_solution(folder / "solution"),
        verifier=Verifier(tests=(tests,), timeout_s=file.verifier.timeout_sec),
    )
    task = Task(
        name=_name(folder),
        folder=folder,
        instruction=step.instruction,
        tests=tests,
        environment=folder_environment(_workdir(folder)),
        steps=(step,),
        tools=ours.tools,
        output=ours.output,
        skills=_skills(folder, ours),
        expected_endings=ours.expected_endings,
        model=ours.model,
        tags=ours.tags,
        digest=_digest(folder, (*_AGENT_SEES, "tests")),
        tests_digest=_digest(folder, ("tests",)),
    )
    output_spec(task)
    return task


def _name(folder: Path) -> str:
    # Not resolved: a link to a task is a task of its own name.
    name = Path(os.path.abspath(folder)).name
    if re.fullmatch(Name, name) is None:
        raise BadInputError(
            f"{folder}: a task cannot be called {name!r}; rename the folder, with letters, digits,"
            " '.', '_' and '-' only"
        )
    return name


def _check_tool_names(ours: HarnessSection, where: str) -> None:
    for name in ours.tools:
        if ours.tools.count(name) > 1:
            raise ConfigurationError(f"{where}.tools: {name!r} is listed twice; remove one")
    if ours.output is not None and ours.output.name in ours.tools:
        raise ConfigurationError(
            f"{where}.output.name = {ours.output.name!r}: a tool of the task has this name;"
            " choose another"
        )


def _instruction(path: Path) -> str:
    lines = read_text(path, purpose="what the agent is asked to do").splitlines()
    while lines and (not lines[0].strip() or _is_canary(lines[0])):
        lines.pop(0)
    text = "\n".join(lines).strip()
    if not text:
        raise BadInputError(f"{path}: empty; write what the agent is asked to do")
    return text


def _is_canary(line: str) -> bool:
    stripped = line.strip()
    return stripped.startswith(("<!--", "#")) and "canary" in stripped.lower()


def _workdir(folder: Path) -> Path:
    workdir = folder / "environment" / "workspace"
    if not workdir.is_dir():
        raise BadInputError(f"{workdir}: no such folder; it holds the files the agent starts with")
    return workdir


def _solution(folder: Path) -> Solution | None:
    return Solution(folder=folder) if (folder / "solve.sh").is_file() else None


def _skills(folder: Path, ours: HarnessSection) -> tuple[Skill, ...]:
    root = folder / "environment" / "skills"
    found = sorted(path.parent.name for path in root.glob("*/SKILL.md"))
    for name in ours.skills or ():
        if name not in found:
            raise ConfigurationError(
                f"{folder / 'task.toml'}: metadata.harness.skills = {name!r}: no such folder under"
                f" {root}; {known(found, name)}"
            )
    chosen = found if ours.skills is None else ours.skills
    return tuple(_checked_skill(root / name / "SKILL.md", ours.tools) for name in chosen)


def _checked_skill(path: Path, tools: tuple[str, ...]) -> Skill:
    skill = load_skill(path)
    for key in ("allowed_tools", "disallowed_tools"):
        for name in getattr(skill, key) or ():
            if name not in tools:
                raise ConfigurationError(
                    f"{path} (front matter): {key} = {name!r}: not a tool of the task;"
                    f" {known(tools, name)}"
                )
    return skill


def load_skill(path: Path) -> Skill:
    """The skill in a SKILL.md.

    Raises:
        BadInputError: the file is missing, or without its front matter.
    """
    text = read_text(path, purpose="the skill's advice")
    parts = text.split("---\n", 2)
    if len(parts) != 3 or parts[0].strip():
        raise BadInputError(f"{path}: must begin with a front matter between two '---' lines")
    try:
        head = yaml.safe_load(parts[1])
    except yaml.YAMLError as error:
        what = yaml_problem(error)
        raise BadInputError(f"{path}: front matter is not valid YAML: {what}") from None
    if not isinstance(head, dict):
        raise BadInputError(f"{path}: front matter needs the keys name and description")
    front = validated(_FrontMatter, head, where=f"{path} (front matter)")
    return Skill(
        name=front.name,
        description=front.description,
        instructions=parts[2].strip(),
        allowed_tools=front.allowed_tools,
        disallowed_tools=front.disallowed_tools,
    )


def _digest(folder: Path, parts: Iterable[str]) -> str:
    """SHA-256 over relative paths and contents, in order; file times and modes do not count."""
    digest = hashlib.sha256()
    for path in sorted(path for part in parts for path in _files(folder / part)):
        content = os.readlink(path).encode() if path.is_symlink() else path.read_bytes()
        name = path.relative_to(folder).as_posix().encode()
        for field in (name, content):
            digest.update(len(field).to_bytes(8, "big") + field)
    return digest.hexdigest()


def _files(path: Path) -> Iterator[Path]:
    if path.is_symlink() or path.is_file():
        yield path
    elif path.is_dir() and path.name != "__pycache__":
        for child in path.iterdir():
            yield from _files(child)

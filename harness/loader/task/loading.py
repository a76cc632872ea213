"""A task's folder as a Task."""

from __future__ import annotations

import difflib
import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from pydantic import BaseModel

from harness.errors import BadInputError, ConfigurationError
from harness.loader.output import output_spec
from harness.loader.task.environment import EnvironmentSource, read_environment
from harness.loader.task.layouts import Layout, read_layout
from harness.loader.task.skills import task_skills
from harness.loader.task.steps import read_steps
from harness.schema.suite import Task
from harness.schema.suite_file import Name
from harness.schema.task_file import HarnessSection, MetadataSection, Section

_MEANT = "; did you mean "


def load_task(folder: Path) -> Task:
    """Load one task and check all that can be checked without running it.

    Raises:
        BadInputError: a file is missing or cannot be used; the text names it and the key.
    """
    layout = read_layout(folder)
    file = layout.file
    ours = file.metadata.harness
    _check_tool_names(ours, f"{layout.config}: metadata.harness")
    source = EnvironmentSource(
        folder / "environment", "environment", "environment", str(layout.config)
    )
    environment = read_environment(file.environment, source)
    found = read_steps(layout, environment)
    skills, left_out = task_skills(folder, ours.skills, ours.tools)
    unknown = tuple(unknown_keys(file, layout.config.name))
    told = (*unknown, *left_out)
    engine = environment.engine
    environment = environment.model_copy(
        update={
            "ignored": (*environment.ignored, *layout.ignored, *found.ignored, *told),
            "needs": tuple(dict.fromkeys((*environment.needs, *layout.needs, *found.needs))),
            "engine": engine.model_copy(
                update={
                    "ignored": (*engine.ignored, *layout.ignored, *found.engine_ignored, *told),
                    "needs": tuple(dict.fromkeys((*engine.needs, *layout.needs, *found.needs))),
                }
            ),
        }
    )
    judged = _judged(layout)
    task = Task(
        name=_name(folder),
        folder=folder,
        instruction=found.steps[0].instruction,
        tests=layout.tests,
        environment=environment,
        steps=found.steps,
        reward_strategy=file.multi_step_reward_strategy or "mean",
        tools=ours.tools,
        recorded_tools=ours.recorded_tools,
        output=ours.output,
        skills=skills,
        typos=tuple(line for line in unknown if _MEANT in line),
        expected_endings=ours.expected_endings,
        model=ours.model,
        loop=ours.loop.model_dump(mode="json", exclude_unset=True),
        system=None if ours.system is None else ours.system.strip(),
        tags=ours.tags,
        digest=_digest(folder, (*layout.seen, *_asked(layout), *judged)),
        tests_digest=_digest(folder, judged),
    )
    output_spec(task)
    return task


def unknown_keys(section: BaseModel, where: str, above: str = "") -> Iterator[str]:
    """What a file has beside the keys that mean something, each with what may have been meant."""
    fields = type(section).model_fields
    if not isinstance(section, MetadataSection):
        for key in section.model_extra or ():
            close = difflib.get_close_matches(key, fields, n=1)
            hint = f"{_MEANT}{close[0]!r}?" if close else ""
            yield f"{where}: {above}{key}: unknown key{hint}"
    for name in fields:
        value = getattr(section, name)
        for inner in value if isinstance(value, tuple) else (value,):
            if isinstance(inner, Section | MetadataSection):
                yield from unknown_keys(inner, where, f"{above}{name}.")


def _asked(layout: Layout) -> Iterator[str]:
    for step in layout.file.steps or ():
        yield from (f"steps/{step.name}/{part}" for part in ("instruction.md", "workdir"))


def _judged(layout: Layout) -> list[str]:
    """Where the tests are, within the task's folder."""
    steps = layout.file.steps or ()
    return [layout.tests.name, *(f"steps/{step.name}/tests" for step in steps)]


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
    names = [*ours.tools, *(tool.name for tool in ours.recorded_tools)]
    for name in names:
        if names.count(name) > 1:
            raise ConfigurationError(f"{where}.tools: {name!r} is listed twice; remove one")
    if ours.output is not None and ours.output.name in names:
        raise ConfigurationError(
            f"{where}.output.name = {ours.output.name!r}: a tool of the task has this name;"
            " choose another"
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

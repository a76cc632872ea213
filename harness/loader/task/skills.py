"""Skills: folders with a SKILL.md, and where a trial's machine has them."""

from __future__ import annotations

import os
import posixpath
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from pydantic import ConfigDict

from harness.errors import BadInputError, ConfigurationError
from harness.loader.reading import known, validated
from harness.loader.task.front_matter import front_matter
from harness.schema.environment import CopyFiles, Environment, FileCommand
from harness.schema.presets import PRESET_DISCLOSURE, PRESET_TOOLS
from harness.schema.record import Record
from harness.schema.suite import ChosenSkills, Skill, Task, Variant
from harness.schema.suite_file import VariantFile

FILE = "SKILL.md"
PLACE = "/skills"
"""Where the machine has skills for which its files name no place."""

_FOLDER = "skills"
"""In a build context."""
_MOST_FILES = 50
_LINE_ENDS = re.compile(r"[ \t]*[\r\n][ \t\r\n]*")


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


def load_skill(path: Path, place: str = "") -> Skill:
    """The skill in a SKILL.md.

    Args:
        path: The file.
        place: Of its folder, within the folder of all skills.

    Raises:
        BadInputError: the file is missing, or without its front matter.
    """
    lines = ("name", "description")
    head, body = front_matter(path, purpose="the skill's advice", lines=lines)
    front = validated(_FrontMatter, head, where=f"{path} (front matter)")
    return Skill(
        name=front.name,
        # Lists give each skill a line.
        description=_LINE_ENDS.sub(" ", front.description.strip(" \t\r\n")),
        instructions=body.strip(),
        allowed_tools=front.allowed_tools,
        disallowed_tools=front.disallowed_tools,
        place=place,
        files=tuple(sorted(_beside(path.parent)))[:_MOST_FILES],
    )


def _beside(folder: Path) -> Iterator[str]:
    for parent, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith((".", "__pycache__"))]
        for name in files:
            path = (Path(parent) / name).relative_to(folder).as_posix()
            if path != FILE and not name.startswith("."):
                yield path


def skill_files(root: Path) -> dict[str, Path]:
    """Every SKILL.md in a folder, by the place of its own folder; those within a skill are its."""
    found: dict[str, Path] = {}
    for path in sorted(root.rglob(FILE)):
        place = path.parent.relative_to(root)
        if place.parts and not any(above.as_posix() in found for above in place.parents):
            found[place.as_posix()] = path
    return found


def task_skills(
    folder: Path, wanted: tuple[str, ...] | None, tools: tuple[str, ...]
) -> tuple[tuple[Skill, ...], tuple[str, ...]]:
    """The skills of a task, and what is wrong with others that are left out.

    A skill that the task does not choose by its name may be somebody else's: that it cannot be read
    is no reason not to run the task.

    Args:
        folder: The task's.
        wanted: Places of those that count; all of them if there is no choice.
        tools: What the task offers.

    Raises:
        BadInputError: one cannot be used.
    """
    root = folder / "environment" / _FOLDER
    found = skill_files(root)
    for place in wanted or ():
        if place not in found:
            raise ConfigurationError(
                f"{folder / 'task.toml'}: metadata.harness.skills = {place!r}: no such folder under"
                f" {root}; {known(list(found), place)}"
            )
    skills, left_out = [], []
    for place in found if wanted is None else wanted:
        try:
            skill = load_skill(found[place], place)
        except BadInputError as error:
            if wanted is not None:
                raise
            shown = str(error).replace(f"{folder}/", "", 1)
            left_out.append(f"{shown}; the skill is left out")
            continue
        _check_tools(skill, found[place], tools)
        skills.append(skill)
    return tuple(skills), tuple(left_out)


def _check_tools(skill: Skill, path: Path, tools: tuple[str, ...]) -> None:
    for key in ("allowed_tools", "disallowed_tools"):
        for name in getattr(skill, key) or ():
            if name not in tools:
                raise ConfigurationError(
                    f"{path} (front matter): {key} = {name!r}: not a tool of the task;"
                    f" {known(tools, name)}"
                )


def chosen_skills(entry: VariantFile, suite: Path, where: str) -> ChosenSkills | None:
    """The folder of skills that a variant names, if it names one.

    Args:
        entry: The variant.
        suite: The folder that it is relative to; the suite's, or for `--set` the current one.
        where: How errors call the variant.

    Raises:
        BadInputError: there is no skill in it, or one that cannot be used.
    """
    if entry.skills in ("none", "curated"):
        return None
    folder = suite / entry.skills
    found = skill_files(folder)
    if (folder / FILE).is_file():
        raise ConfigurationError(
            f"{where}: skills = {entry.skills!r}: a skill itself; give the folder that holds it:"
            f" {os.path.normpath(folder / '..')}"
        )
    if not found:
        raise ConfigurationError(
            f"{where}: skills = {entry.skills!r}: no {FILE} in a folder of {folder}; give `none`,"
            " `curated`, or a folder of skills"
        )
    skills = tuple(load_skill(path, place) for place, path in found.items())
    by_name: dict[str, Path] = {}
    for skill in skills:
        path = found[skill.place]
        if skill.name in by_name:
            raise ConfigurationError(
                f"{where}: skills: two are called {skill.name!r}: {by_name[skill.name]} and {path};"
                " rename one"
            )
        by_name[skill.name] = path
    return ChosenSkills(folder=folder, skills=skills)


def offered_tools(variant: Variant, task: Task) -> tuple[str, ...]:
    """Names of the built-in tools: the task's, or where these are the default, the preset's."""
    if task.tools == Task.model_fields["tools"].default:
        return PRESET_TOOLS.get(variant.preset, task.tools)
    return task.tools


@dataclass(frozen=True, slots=True)
class TrialSkills:
    """The skills of one trial."""

    skills: tuple[Skill, ...]
    on_demand: bool
    """Whether the agent is told names and descriptions only, until it asks for more."""
    root: str
    """Where the machine has them."""
    environment: Environment
    """The task's machine with these skills and no others."""


def trial_skills(variant: Variant, task: Task) -> TrialSkills:
    """What skills a variant gives on a task that has a machine."""
    assert task.environment is not None
    own = task.environment
    roots = _roots(own)
    root = own.skills_dir or (roots[0] if roots else PLACE)
    disclosure = variant.disclosure or PRESET_DISCLOSURE.get(variant.preset, "full")
    skills = task.skills
    environment = own
    if variant.skills == "none":
        skills, environment = (), without_skills(own)
    elif variant.chosen is not None:
        skills, folder = variant.chosen.skills, variant.chosen.folder
        update = {"skills": folder, "skills_dir": root}
        environment = without_skills(own).model_copy(update=update)
    elif skills and not roots:
        folder = task.folder / "environment" / _FOLDER
        environment = own.model_copy(update={"skills": folder, "skills_dir": root})
    return TrialSkills(skills, disclosure == "on_demand" and bool(skills), root, environment)


def without_skills(environment: Environment) -> Environment:
    """The machine without the skills that its Dockerfile copies.

    Commands that name their folders find them empty; afterwards empty ones are gone.
    """
    places = _roots(environment)
    if not places:
        return environment
    build: list[CopyFiles | FileCommand] = []
    are_named = False
    for step in environment.build:
        if isinstance(step, CopyFiles):
            build += _without_skills(step)
        elif any(place in step.command for place in places):
            are_named = True
            build.append(step.model_copy(update={"needed": False}))
        else:
            build.append(step)
    if are_named:
        folders = shlex.join(places)
        build.insert(0, FileCommand(command=f"mkdir -p {folders}", cwd="/"))
        away = f"rmdir --ignore-fail-on-non-empty {folders}"
        build.append(FileCommand(command=away, cwd="/", needed=False))
    engine = environment.engine.model_copy(update={"left_empty": _copied_folders(environment)})
    return environment.model_copy(update={"build": tuple(build), "engine": engine})


def _copied_folders(environment: Environment) -> tuple[str, ...]:
    """The folder of skills, and those in it that a Dockerfile copies by themselves."""
    found = {_FOLDER}
    for step in environment.build:
        for source in step.sources if isinstance(step, CopyFiles) else ():
            if not _is_skills(source):
                continue
            for path in environment.context.glob(posixpath.normpath(source).lstrip("/")):
                place = path.relative_to(environment.context)
                if place.parts[0] == _FOLDER and path.is_dir():
                    found.update(above.as_posix() for above in (place, *place.parents[:-1]))
    return tuple(sorted(found))


def _without_skills(step: CopyFiles) -> Iterator[CopyFiles]:
    kept = tuple(source for source in step.sources if not _is_skills(source))
    if kept and any(_is_all(source) for source in kept):
        yield step.model_copy(update={"sources": kept, "exclude": (*step.exclude, _FOLDER)})
    elif kept:
        yield step.model_copy(update={"sources": kept})


def _roots(environment: Environment) -> list[str]:
    """Where a Dockerfile puts skills, in its order."""
    if not (environment.context / _FOLDER).is_dir():
        return []
    places = []
    for step in environment.build:
        if isinstance(step, CopyFiles):
            target = posixpath.normpath(step.target)
            for source in step.sources:
                if _is_skills(source):
                    places.append(target)
                elif _is_all(source) and _FOLDER not in map(posixpath.normpath, step.exclude):
                    places.append(posixpath.join(target, _FOLDER))
    return places


def _is_skills(source: str) -> bool:
    first = posixpath.normpath(source).lstrip("/").partition("/")[0]
    return first == _FOLDER or (first != "*" and fnmatchcase(_FOLDER, first))


def _is_all(source: str) -> bool:
    return posixpath.normpath(source).lstrip("/") in ("", ".", "*")

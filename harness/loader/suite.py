"""A suite's folder as a Suite: its tasks, and its variants with defaults and overrides applied."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from harness.errors import BadInputError, ConfigurationError
from harness.loader.overrides import (
    Overrides,
    check_raising,
    merge,
    parse_overrides,
    refuse_named_conditions,
)
from harness.loader.plain import NO_MODEL, is_tasks, plain_suite, task_folders
from harness.loader.reading import known, read_toml, validated
from harness.loader.scenarios import is_scenarios, load_scenarios
from harness.loader.task.loading import load_task
from harness.loader.task.skills import chosen_skills
from harness.schema.loop_config import SUBMIT_TOOL, LoopConfig
from harness.schema.presets import PRESETS, PresetName
from harness.schema.suite import ModelConfig, Suite, Task, Variant
from harness.schema.suite_file import SuiteFile, VariantFile

_ADDRESS = re.compile(r"https?://[^/?#\s]", re.IGNORECASE)

Broken = Sequence[tuple[Path, BadInputError]]
"""Tasks that cannot be loaded, and why."""


def load_suite(
    folder: Path,
    *,
    overrides: Sequence[str] = (),
    preset: PresetName | None = None,
    needs_model: bool = True,
    on_broken: Callable[[Broken], None] | None = None,
) -> Suite:
    """Load a suite and everything in it, and check that its parts fit each other.

    Args:
        folder: holds suite.toml and one folder per task, or tasks alone, or scenario files; or it
            is one task, or one file of scenarios.
        overrides: `key=value` as after `--set`; they win over variants and tasks.
        preset: in place of the one that each variant names.
        needs_model: refuse tasks alone for which no model is named; otherwise they get one that
            answers nothing.
        on_broken: is told of tasks that cannot be loaded, which are then left out; without it, or
            where there is no other task, they are an error.

    Raises:
        BadInputError: what cannot be used, with file and key: all tasks that cannot be loaded, or
            the first thing beside them.
    """
    if is_scenarios(folder):
        return load_scenarios(folder, overrides=overrides, preset=preset)
    if not folder.is_dir():
        raise BadInputError(f"{folder}: no such suite folder")
    path = folder / "suite.toml"
    if not path.is_file() and is_tasks(folder):
        path = folder
        file = plain_suite(folder, overrides, preset)
    else:
        file = validated(SuiteFile, read_toml(path, purpose=_PURPOSE), where=str(path))
    check_raising(file, str(path))
    if needs_model and file.model == NO_MODEL:
        raise BadInputError(
            f"{folder}: has no suite.toml that names a model; name it with"
            " --set model.provider=PROVIDER --set model.name=NAME"
        )
    changes = parse_overrides(overrides, file)
    loaded, left_out = _load_tasks(folder, on_broken)
    tasks = tuple(_with_overrides(task, changes) for task in loaded)
    variants = tuple(_variant(entry, file, changes, path, preset) for entry in file.variants)
    suite = Suite(
        name=file.name,
        version=file.version,
        description=file.description,
        folder=folder,
        file=path,
        repeats=file.repeats if changes.repeats is None else changes.repeats,
        system=file.system.strip(),
        tasks=tasks,
        variants=variants,
        recording=file.recording,
    )
    _check_fit(suite, path, left_out)
    return suite


_PURPOSE = "the suite's settings; only folders of tasks or of scenario files (*.yaml) need none"


def applies(variant: Variant, task: Task) -> bool:
    """Whether the variant is run on the task."""
    return any(fnmatchcase(task.name, pattern) for pattern in variant.tasks)


def resolve_model(variant: Variant, task: Task) -> ModelConfig:
    """The model of a trial: the variant's, with the keys that the task overrides.

    Raises:
        ConfigurationError: a key or value that a model does not have.
    """
    where = f"{task.folder / 'task.toml'}: metadata.harness.model"
    return validated(ModelConfig, variant.model.model_dump(mode="json") | task.model, where=where)


def resolve_variant(variant: Variant, task: Task) -> Variant:
    """The variant of a trial: with the keys of the loop that the task overrides.

    Raises:
        ConfigurationError: a combination of settings that a loop cannot have.
    """
    if not task.loop:
        return variant
    loop = merge(variant.loop.model_dump(mode="json", exclude_unset=True), task.loop)
    where = f"{task.folder / 'task.toml'}: metadata.harness.loop"
    return variant.model_copy(update={"loop": validated(LoopConfig, loop, where=where)})


def _variant(
    entry: VariantFile,
    file: SuiteFile,
    changes: Overrides,
    path: Path,
    preset: PresetName | None,
) -> Variant:
    where = f"{path}: variant {entry.name!r}"
    chosen = preset or entry.preset
    loop = merge(file.loop.model_dump(mode="json", exclude_unset=True), PRESETS[chosen])
    loop = merge(loop, entry.loop.model_dump(mode="json", exclude_unset=True))
    model = merge(file.model.model_dump(mode="json", exclude_unset=True), entry.model)
    if changes.skills is not None:
        entry = entry.model_copy(update={"skills": changes.skills})
        chosen_ones = chosen_skills(entry, Path(), f"--set skills={changes.skills}")
    else:
        chosen_ones = chosen_skills(entry, path.parent, where)
    return Variant(
        name=entry.name,
        description=entry.description,
        model=validated(ModelConfig, merge(model, changes.model), where=f"{where}: model"),
        preset=chosen,
        loop=validated(LoopConfig, merge(loop, changes.loop), where=f"{where}: loop"),
        skills=entry.skills,
        chosen=chosen_ones,
        disclosure=changes.disclosure or entry.disclosure,
        tasks=entry.tasks,
    )


def _with_overrides(task: Task, changes: Overrides) -> Task:
    """`--set model.x` and `--set loop.x` also win where a task names x itself."""
    model, loop = _won(task.model, changes.model), _won(task.loop, changes.loop)
    return task.model_copy(update={"model": model, "loop": loop})


def _won(own: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    return merge(own, {key: value for key, value in change.items() if key in own})


def _load_tasks(
    folder: Path, on_broken: Callable[[Broken], None] | None
) -> tuple[list[Task], list[str]]:
    """The tasks, and the names of those that are left out."""
    tasks, broken = [], []
    for found in task_folders(folder):
        try:
            tasks.append(load_task(found))
        except BadInputError as error:
            broken.append((found, error))
    if broken and (on_broken is None or not tasks):
        raise together(broken)
    if broken and on_broken is not None:
        on_broken(broken)
    if not tasks:
        raise BadInputError(
            f"{folder}: no task in it; a task is a folder with a task.toml or a task.md"
        )
    return tasks, [place.name for place, _ in broken]


def together(broken: Broken) -> BadInputError:
    """One error for tasks that cannot be loaded; a single one's own."""
    if len(broken) == 1:
        return broken[0][1]
    lines = [f"{len(broken)} tasks cannot be loaded:", *(str(error) for _, error in broken)]
    return BadInputError("\n  ".join(lines))


def _check_fit(suite: Suite, path: Path, left_out: Sequence[str]) -> None:
    names = [variant.name for variant in suite.variants]
    for name in names:
        if names.count(name) > 1:
            raise ConfigurationError(f"{path}: two variants are called {name!r}; rename one")
    for variant in suite.variants:
        _check_loop(variant, f"{path}: variant {variant.name!r}: loop")
        _check_patterns(variant, (*(task.name for task in suite.tasks), *left_out), path)
        for task in suite.tasks:
            if applies(variant, task):
                resolved = resolve_variant(variant, task)
                if task.loop:
                    _check_loop(resolved, f"{task.folder / 'task.toml'}: metadata.harness.loop")
                _check_model(resolve_model(variant, task), variant, path)
                _check_reflection(resolved, task, path)


def _check_model(model: ModelConfig, variant: Variant, path: Path) -> None:
    if variant.model == NO_MODEL:
        return
    if model.provider == "scripted":
        raise ConfigurationError(
            f"{path}: variant {variant.name!r}: model.provider = 'scripted' answers scenarios only;"
            " name a provider of models"
        )
    # Ollama's client takes a host alone as well.
    if model.provider != "ollama" and model.base_url and not _ADDRESS.match(model.base_url):
        raise ConfigurationError(
            f"{path}: variant {variant.name!r}: model.base_url = {model.base_url!r}: must begin"
            " with http:// or https://, and name a host"
        )
    if model.provider != "openai":
        for key, value in (("api", model.api), ("system_role", model.system_role)):
            if value != ModelConfig.model_fields[key].default:
                raise ConfigurationError(
                    f"{path}: variant {variant.name!r}: model.{key} = {value!r} means nothing to"
                    f" {model.provider!r}, only to 'openai'; leave it out"
                )


def _check_loop(variant: Variant, where: str) -> None:
    if variant.loop.raise_on_failure:
        raise ConfigurationError(
            f"{where}.raise_on_failure = true: a trial must end with a result; leave it out"
        )
    if variant.loop.history == "continue":
        raise ConfigurationError(
            f"{where}.history = 'continue': each trial is one run with a loop of its own; leave it"
            " out"
        )
    # A preset may say it: then the limit is as without a callback.
    is_own = PRESETS[variant.preset].get("on_limit") != "callback"
    if variant.loop.on_limit == "callback" and is_own:
        raise ConfigurationError(
            f"{where}.on_limit = 'callback': a suite has no callback to give; choose return or"
            " wrap_up"
        )
    refuse_named_conditions(variant.loop, where)


def _check_patterns(variant: Variant, names: Sequence[str], path: Path) -> None:
    for pattern in variant.tasks:
        if not any(fnmatchcase(name, pattern) for name in names):
            raise ConfigurationError(
                f"{path}: variant {variant.name!r}: tasks = {pattern!r} matches no task;"
                f" {known(names, pattern)}"
            )


def _check_reflection(variant: Variant, task: Task, path: Path) -> None:
    if not variant.loop.reflection:
        return
    if task.output is not None and task.output.name == SUBMIT_TOOL:
        raise ConfigurationError(
            f"{task.folder / 'task.toml'}: metadata.harness.output.name = {SUBMIT_TOOL!r}: variant"
            f" {variant.name!r} has loop.reflection = true, which adds a tool of this name;"
            " choose another"
        )
    if task.output is None or task.output.reflection_handler is None:
        lacks = "output" if task.output is None else "reflection_handler on its output"
        raise ConfigurationError(
            f"{path}: variant {variant.name!r} has loop.reflection = true, but task {task.name!r}"
            f" has no {lacks}; add one, or leave the task out of the variant's tasks"
        )

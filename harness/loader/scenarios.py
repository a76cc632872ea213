"""Scenario files as a suite: one task per scenario, one variant that asks no model."""

from __future__ import annotations

import datetime
import hashlib
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import yaml

from harness.errors import BadInputError, ConfigurationError
from harness.loader.output import output_spec
from harness.loader.overrides import merge, parse_overrides, refuse_named_conditions
from harness.loader.plain import is_tasks
from harness.loader.reading import read_text, validated, yaml_problem
from harness.schema.loop_config import LoopConfig, TerminationReason
from harness.schema.names import Name
from harness.schema.presets import PRESETS, PresetName
from harness.schema.scenario import Scenario
from harness.schema.suite import ModelConfig, OutputConfig, Suite, Task, Variant
from harness.schema.suite_file import SuiteFile, VariantFile

SUFFIXES = (".yaml", ".yml")
VARIANT = "scripted"
"""Name of the one variant."""


def is_scenarios(path: Path) -> bool:
    """Whether a path is a scenario file, or a folder of them and not a suite of another kind."""
    if path.is_file():
        return path.suffix in SUFFIXES
    has_settings = (path / "suite.toml").exists() or is_tasks(path)
    return path.is_dir() and not has_settings and bool(_files(path))


def load_scenarios(
    path: Path, *, overrides: Sequence[str] = (), preset: PresetName | None = None
) -> Suite:
    """Load the scenarios of a folder or of one file, and check all that needs no run.

    Args:
        path: a folder of scenario files, or one.
        overrides: `key=value` as after `--set`; what a scenario says itself wins over them.
        preset: for the scenarios that name none.

    Raises:
        BadInputError: the first thing that cannot be used, with file, scenario and key.
    """
    name = _name(path)
    model = ModelConfig(provider="scripted", name=VARIANT)
    file = SuiteFile(
        name=name, version=1, system="", model=model, variants=(VariantFile(name=VARIANT),)
    )
    changes = parse_overrides(overrides, file)
    if changes.model:
        raise ConfigurationError(
            f"--set model.{next(iter(changes.model))}: scenarios ask no model; leave it out for"
            f" {path}"
        )
    for key in ("skills", "disclosure"):
        if getattr(changes, key) is not None:
            raise ConfigurationError(
                f"--set {key}: scenarios are given no skills; leave it out for {path}"
            )
    if changes.repeats not in (None, 1):
        refuse_repeats(f"--set repeats={changes.repeats}", path)
    loop = validated(LoopConfig, changes.loop, where="--set loop")
    variant = Variant(name=VARIANT, model=model, preset=preset or "default", loop=loop)
    tasks = tuple(_unique(path))
    for task in tasks:
        _check(task, variant)
    return Suite(
        name=name,
        version=1,
        folder=path if path.is_dir() else path.parent,
        file=path,
        repeats=1,
        system="",
        tasks=tasks,
        variants=(variant,),
    )


def refuse_repeats(option: str, path: Path) -> NoReturn:
    """Say that scenarios are run once.

    Raises:
        BadInputError: always.
    """
    raise BadInputError(
        f"{option}: a scenario comes out the same every time; leave it out for {path}"
    )


def kept_settings(
    tasks: Iterable[Task], variant: Variant, preset: PresetName | None
) -> Iterator[str]:
    """What a run sets in vain, as scenarios set it themselves: a line for each setting.

    Args:
        tasks: the scenarios that are run.
        variant: with the settings that the command line gives.
        preset: the one that it gives.
    """
    scenarios = [task.scenario for task in tasks if task.scenario is not None]
    kept: dict[str, int] = {}
    if preset is not None:
        kept["preset"] = sum(scenario.preset not in (None, preset) for scenario in scenarios)
    for place in _leaves(variant.loop.model_dump(mode="json", exclude_unset=True)):
        found = sum(_sets(_own_settings(scenario), place) for scenario in scenarios)
        kept[f"loop.{'.'.join(place)}"] = found
    for key, count in kept.items():
        if count == 1:
            yield f"1 scenario sets {key} itself and keeps it"
        elif count:
            yield f"{count} scenarios set {key} themselves and keep it"


def _leaves(settings: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    for key, value in settings.items():
        if isinstance(value, Mapping):
            yield from ((key, *rest) for rest in _leaves(value))
        else:
            yield (key,)


def _sets(settings: Any, place: Sequence[str]) -> bool:
    """Whether settings hold a place, or a value where it would have to be a table."""
    for key in place:
        if not isinstance(settings, Mapping):
            return True
        if key not in settings:
            return False
        settings = settings[key]
    return True


def _own_settings(scenario: Scenario) -> dict[str, Any]:
    settings: dict[str, Any] = dict(scenario.config)
    if scenario.budget is not None:
        budget = scenario.budget.model_dump(mode="json", exclude_unset=True)
        settings = merge(settings, {"budget": budget})
    if "stream" in scenario.model_fields_set:
        settings["stream"] = scenario.stream
    return settings


def scenario_loop(task: Task, variant: Variant) -> LoopConfig:
    """The settings that a scenario is run with: preset, then the run's, then its own.

    Raises:
        ConfigurationError: settings that no loop has.
    """
    scenario = task.scenario
    assert scenario is not None
    settings = dict(PRESETS[scenario.preset or variant.preset])
    settings = merge(settings, variant.loop.model_dump(mode="json", exclude_unset=True))
    settings = merge(settings, _own_settings(scenario))
    return validated(LoopConfig, settings, where=f"{_where(task.tests, task.name)}: config")


def _check(task: Task, variant: Variant) -> None:
    assert task.scenario is not None
    try:
        where = f"{_where(task.tests, task.name)}: config"
        refuse_named_conditions(scenario_loop(task, variant), where)
        output_spec(task)
    except ConfigurationError:
        # A scenario may be about just this; then the trial meets it.
        if task.scenario.expect.config_error is None:
            raise


def _name(path: Path) -> str:
    whole = Path(os.path.abspath(path))
    name = whole.name if path.is_dir() else whole.stem
    if re.fullmatch(Name, name) is None:
        raise BadInputError(
            f"{path}: a suite cannot be called {name!r}; rename it, with letters, digits, '.', '_'"
            " and '-' only"
        )
    return name


def _files(folder: Path) -> list[Path]:
    return sorted(
        path
        for path in folder.iterdir()
        if path.suffix in SUFFIXES and not path.name.startswith(".") and path.is_file()
    )


def _check_nothing_below(folder: Path) -> None:
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        below = Path(place)
        found = [name for name in sorted(names) if Path(name).suffix in SUFFIXES]
        if below != folder and found:
            raise BadInputError(
                f"{below / found[0]}: a folder of scenarios is read without its sub-folders; move"
                f" the file into {folder}, or the sub-folder elsewhere"
            )


def _unique(path: Path) -> Iterator[Task]:
    files: dict[str, Path] = {}
    if path.is_dir():
        _check_nothing_below(path)
    for file in _files(path) if path.is_dir() else [path]:
        for task in _tasks(file):
            if task.name in files:
                places = dict.fromkeys((str(files[task.name]), str(file)))
                raise BadInputError(
                    f"{' and '.join(places)}: two scenarios have the id {task.name!r}; rename one"
                )
            files[task.name] = file
            yield task


def _tasks(file: Path) -> Iterator[Task]:
    found = _read(file)
    entries = found if isinstance(found, list) else [found]
    if not entries or found is None:
        raise BadInputError(f"{file}: holds no scenario; write one, or a list of them")
    for place, entry in enumerate(entries):
        yield _task(entry, file, f"{file}: scenarios[{place}]")


def _task(entry: object, file: Path, where: str) -> Task:
    if not isinstance(entry, Mapping):
        raise BadInputError(f"{where} = {entry!r:.60}: a scenario is a mapping of keys to values")
    if isinstance(entry.get("id"), str):
        where = _where(file, entry["id"])
    try:
        problem = next(_not_json(entry, ""), None)
    except RecursionError:
        problem = "nested too deeply, or within itself"
    if problem is not None:
        raise BadInputError(f"{where}: {problem}")
    scenario = validated(Scenario, entry, where=where)
    ending = scenario.expect.termination_reason
    digest = hashlib.sha256(
        scenario.model_dump_json(by_alias=True, exclude_unset=True).encode()
    ).hexdigest()
    return Task(
        name=scenario.id,
        folder=file.parent,
        instruction=scenario.messages[-1].content,
        tests=file,
        tools=tuple(scenario.tools),
        output=_output(scenario),
        expected_endings=tuple(TerminationReason) if ending is None else (ending,),
        digest=digest,
        tests_digest=digest,
        scenario=scenario,
    )


def _where(file: Path, scenario: str) -> str:
    return f"{file}: scenario {scenario!r}"


def _output(scenario: Scenario) -> OutputConfig | None:
    if scenario.output is None:
        return None
    return OutputConfig.model_validate(scenario.output.model_dump(mode="json", by_alias=True))


_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The one in C is five times as fast, and not there everywhere."""


class _Loader(_Base):  # type: ignore[misc]
    """Reads plain values, and refuses a key that is there twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key, _ in node.value:
            written = (key.tag, key.value) if isinstance(key, yaml.ScalarNode) else None
            if written in seen:
                line = key.start_mark.line + 1
                raise yaml.YAMLError(f"line {line}: key {key.value!r} is there twice")
            if written is not None and not key.tag.endswith(":merge"):
                seen.add(written)
        found: dict[Any, Any] = super().construct_mapping(node, deep)
        return found


def _read(file: Path) -> object:
    text = read_text(file, purpose="scenarios")
    try:
        found: object = yaml.load(text, Loader=_Loader)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise BadInputError(f"{file}: not valid YAML: {yaml_problem(error)}") from None
    return found


def _not_json(value: object, place: str) -> Iterator[str]:
    """What YAML can write and a scenario cannot hold."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if not isinstance(key, str) and not (place == "expect.requests" and type(key) is int):
                yield f"{place or 'the scenario'}: key {key!r} is not text; {_HINT}"
            yield from _not_json(inner, f"{place}.{key}" if place else str(key))
    elif isinstance(value, list):
        for position, inner in enumerate(value):
            yield from _not_json(inner, f"{place}[{position}]")
    elif isinstance(value, float) and not math.isfinite(value):
        yield f"{place} = {value!r}: not a number that JSON has"
    elif isinstance(value, datetime.date | bytes | set):
        yield f"{place} = {value!r:.60}: not a JSON value; {_HINT}"


_HINT = "put it in quotes (YAML reads bare on, off, yes and no as booleans, and dates as dates)"

"""Tasks without a suite.toml: a folder of them, or one alone, as a suite."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from harness.errors import BadInputError
from harness.loader.overrides import named_model
from harness.loader.reading import validated
from harness.schema.names import Name
from harness.schema.presets import PRESETS, PresetName
from harness.schema.suite import ModelConfig
from harness.schema.suite_file import SuiteFile, VariantFile

VARIANT = "default"
"""Name of the one variant."""

_SYSTEM = (
    "You work on a Linux machine, with the tools you are given. When the task is done, say in one"
    " sentence what you did."
)
NO_MODEL = ModelConfig(provider="scripted", name="none")
"""In place of a model, where none is named."""


def is_task(folder: Path) -> bool:
    """Whether a folder is meant to be a task."""
    names = ("task.toml", "task.md", "instruction.md")
    return any((folder / name).is_file() for name in names)


def is_tasks(folder: Path) -> bool:
    """Whether a folder is a task, or holds tasks."""
    return folder.is_dir() and bool(task_folders(folder))


def task_folders(folder: Path) -> list[Path]:
    """The tasks in a folder by their names, or the folder itself."""
    if is_task(folder):
        return [folder]
    children = sorted(folder.iterdir())
    return [one for one in children if not one.name.startswith((".", "_")) and is_task(one)]


def plain_suite(
    folder: Path, overrides: Sequence[str], preset: PresetName | None = None
) -> SuiteFile:
    """What a suite.toml would say; the model is `NO_MODEL` if the overrides name none.

    Raises:
        BadInputError: the model is wrong, or the folder's name cannot be a suite's.
    """
    named = named_model(overrides)
    model = validated(ModelConfig, named, where="--set model") if named else NO_MODEL
    # A protocol in text says itself how the agent works and ends, and nothing else may.
    has_own = preset is not None and "text_protocol" in PRESETS[preset]
    return SuiteFile(
        name=_name(folder),
        version=1,
        system="" if has_own else _SYSTEM,
        model=model,
        variants=(VariantFile(name=VARIANT, skills="curated"),),
    )


def _name(folder: Path) -> str:
    # Not resolved, as for tasks; a single task is of the suite that its parent would be.
    path = Path(os.path.abspath(folder))
    name = path.parent.name if is_task(folder) else path.name
    if re.fullmatch(Name, name) is None:
        raise BadInputError(
            f"{folder}: a suite cannot be called {name!r}; rename the folder, with letters,"
            " digits, '.', '_' and '-' only, or add a suite.toml"
        )
    return name

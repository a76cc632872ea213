"""`--set key=value`: what a command line changes in a suite."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.errors import ConfigurationError
from harness.loader.reading import known, validated
from harness.schema.loop_config import LoopConfig
from harness.schema.presets import Disclosure
from harness.schema.suite_file import SuiteFile, VariantFile

_EXAMPLES = {"loop": "max_iterations=5", "model": "temperature=0.2"}
_OF_VARIANTS = ("skills", "disclosure")
_KEYS = ("loop", "model", "repeats", *_OF_VARIANTS)


@dataclass(frozen=True, slots=True)
class Overrides:
    """What `--set` changes."""

    loop: dict[str, Any]
    model: dict[str, Any]
    repeats: int | None
    skills: str | None = None
    """Of every variant; a folder is relative to the current one."""
    disclosure: Disclosure | None = None


def parse_overrides(overrides: Sequence[str], file: SuiteFile) -> Overrides:
    """The changes, each checked as if the file held it.

    Raises:
        ConfigurationError: a key or value that the file could not hold.
    """
    merged: dict[str, Any] = {}
    for text in overrides:
        where = f"--set {text}"
        change, parts = _change(text, where)
        _check_override(change, parts, file, where)
        merged = merge(merged, change)
    return Overrides(
        merged.get("loop", {}),
        merged.get("model", {}),
        merged.get("repeats"),
        merged.get("skills"),
        merged.get("disclosure"),
    )


def named_model(overrides: Sequence[str]) -> dict[str, Any]:
    """The keys of a model that the changes set, unchecked.

    Raises:
        ConfigurationError: a change that is not written as one.
    """
    merged: dict[str, Any] = {}
    for text in overrides:
        change, parts = _change(text, f"--set {text}")
        if parts[0] == "model" and len(parts) > 1:
            merged = merge(merged, change["model"])
    return merged


def _change(text: str, where: str) -> tuple[dict[str, Any], list[str]]:
    """What one text changes, as tables, and its key."""
    key, equals, raw = text.partition("=")
    parts = [part.strip() for part in key.split(".")]
    if not equals or not all(parts):
        raise ConfigurationError(f"{where}: must be written key=value, as in repeats=1")
    change: Any = _value(raw.strip())
    for part in reversed(parts):
        change = {part: change}
    return change, parts


def _check_override(change: dict[str, Any], parts: list[str], file: SuiteFile, where: str) -> None:
    if parts[0] not in _KEYS:
        raise ConfigurationError(f"{where}: {parts[0]!r} cannot be set; {known(_KEYS, parts[0])}")
    if parts[0] in _OF_VARIANTS:
        validated(VariantFile, {"name": "any", **change}, where=where)
        return
    if parts[0] in _EXAMPLES and len(parts) == 1:
        raise ConfigurationError(
            f"{where}: name a key of it, as in {parts[0]}.{_EXAMPLES[parts[0]]}"
        )
    base = file.model_dump(mode="json", by_alias=True, exclude_unset=True)
    check_raising(validated(SuiteFile, merge(base, change), where=where), where)


def check_raising(file: SuiteFile, where: str) -> None:
    """Refuse `raise_on_failure`: a trial ends with a result.

    Raises:
        ConfigurationError: it is set somewhere.
    """
    tables = {"loop": file.loop}
    tables |= {f"variants[{place}].loop": entry.loop for place, entry in enumerate(file.variants)}
    for key, loop in tables.items():
        if loop.raise_on_failure:
            raise ConfigurationError(
                f"{where}: {key}.raise_on_failure = true: a trial must end with a result;"
                " leave it out"
            )


def refuse_named_conditions(loop: LoopConfig, where: str) -> None:
    """Refuse conditions by name: what they name is Python's to give.

    Raises:
        ConfigurationError: there is one.
    """
    for place, condition in enumerate(loop.stop_when):
        if isinstance(condition, str):
            raise ConfigurationError(
                f"{where}.stop_when[{place}] = {condition!r}: a file cannot name a condition of its"
                " own; give a table with tool_called, text_contains or tokens_above"
            )


def _value(raw: str) -> Any:
    """A TOML value; anything else is plain text, so that names need no quotes."""
    try:
        parsed = tomllib.loads(f"value = {raw}")
    except tomllib.TOMLDecodeError:
        return raw
    return parsed["value"] if set(parsed) == {"value"} else raw


def merge(base: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """Tables are merged key by key; any other value is replaced."""
    merged = dict(base)
    for key, value in change.items():
        old = merged.get(key)
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            merged[key] = merge(old, value)
        else:
            merged[key] = value
    return merged

"""Reading files that people write: every mistake becomes one line with file, key and next step."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from harness.errors import BadInputError, ConfigurationError
from harness.loader.explaining import dotted as dotted
from harness.loader.explaining import explained
from harness.loader.explaining import known as known

_DEEPEST = 100
_TOO_DEEP = "nested too deeply; leave out some levels"

ModelT = TypeVar("ModelT", bound=BaseModel)


def read_text(path: Path, *, purpose: str) -> str:
    """The text of a file that must be there.

    Raises:
        BadInputError: it is missing, unreadable or not UTF-8.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise BadInputError(f"{path}: no such file; it holds {purpose}") from None
    except UnicodeDecodeError as error:
        raise BadInputError(f"{path}: not UTF-8 text ({error.reason}); save it as UTF-8") from None
    except OSError as error:
        raise BadInputError(f"{path}: cannot be read ({error.strerror})") from None
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise BadInputError(f"{path}: line {line} has a NUL character; save it as plain text")
    return text


def read_toml(path: Path, *, purpose: str) -> dict[str, Any]:
    """A TOML file as plain values.

    Raises:
        BadInputError: it is missing or not TOML; the text names the line.
    """
    text = read_text(path, purpose=purpose)
    try:
        data = tomllib.loads(text)
    except RecursionError:
        raise BadInputError(f"{path}: {_TOO_DEEP}") from None
    except ValueError as error:
        # Numbers of thousands of digits are TOML, and Python does not read them.
        raise BadInputError(f"{path}: not valid TOML: {error}") from None
    _check_values(data, path)
    return data


def _check_values(data: dict[str, Any], path: Path) -> None:
    """Refuse what no process can be given, and what goes deeper than others read."""
    waiting: list[tuple[tuple[int | str, ...], Any]] = [((), data)]
    while waiting:
        place, value = waiting.pop()
        if len(place) > _DEEPEST:
            raise BadInputError(f"{path}: {dotted(place[:3])}…: {_TOO_DEEP}")
        if isinstance(value, dict):
            waiting += (((*place, key), inner) for key, inner in value.items())
        elif isinstance(value, list):
            waiting += (((*place, number), inner) for number, inner in enumerate(value))
        if any("\0" in text for text in (value, *place[-1:]) if isinstance(text, str)):
            raise BadInputError(f"{path}: {dotted(place)!r}: has a NUL character; remove it")


def validated(model: type[ModelT], data: Mapping[str, Any], *, where: str) -> ModelT:
    """Data as a record, checked strictly: no unknown key, no text where a number belongs.

    Raises:
        ConfigurationError: the first thing that is wrong, and how many more there are.
    """
    try:
        # Strictly checked Python values may not be lists for tuples or text for enums; JSON may.
        return model.model_validate_json(json.dumps(data, default=str), strict=True)
    except ValidationError as error:
        raise ConfigurationError(f"{where}: {explained(error, model, data)}") from None


def yaml_problem(error: Exception, lines_above: int = 0) -> str:
    """Where a YAML text is wrong and how, on one line.

    Args:
        error: What reading it raised.
        lines_above: Of the file that are no part of the text.
    """
    mark = getattr(error, "problem_mark", None)
    if mark is None:
        return " ".join(str(error).split())
    context = getattr(error, "context", None)
    problem = getattr(error, "problem", None) or context or "cannot be read"
    around = f" ({context})" if context and context != problem else ""
    return f"line {mark.line + 1 + lines_above}, column {mark.column + 1}: {problem}{around}"

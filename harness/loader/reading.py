"""Reading files that people write: every mistake becomes one line with file, key and next step."""

from __future__ import annotations

import difflib
import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from harness.errors import BadInputError, ConfigurationError

ModelT = TypeVar("ModelT", bound=BaseModel)


def read_text(path: Path, *, purpose: str) -> str:
    """The text of a file that must be there.

    Raises:
        BadInputError: it is missing, unreadable or not UTF-8.
    """
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise BadInputError(f"{path}: no such file; it holds {purpose}") from None
    except UnicodeDecodeError as error:
        raise BadInputError(f"{path}: not UTF-8 text ({error.reason}); save it as UTF-8") from None
    except OSError as error:
        raise BadInputError(f"{path}: cannot be read ({error.strerror})") from None


def read_toml(path: Path, *, purpose: str) -> dict[str, Any]:
    """A TOML file as plain values.

    Raises:
        BadInputError: it is missing or not TOML; the text names the line.
    """
    text = read_text(path, purpose=purpose)
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadInputError(f"{path}: not valid TOML: {error}") from None


def validated(model: type[ModelT], data: Mapping[str, Any], *, where: str) -> ModelT:
    """Data as a record, checked strictly: no unknown key, no text where a number belongs.

    Raises:
        ConfigurationError: the first thing that is wrong, and how many more there are.
    """
    try:
        # Strictly checked Python values may not be lists for tuples or text for enums; JSON may.
        return model.model_validate_json(json.dumps(data, default=str), strict=True)
    except ValidationError as error:
        details = error.errors(include_url=False)
        message = _explain(details[0], model)
        more = f" (and {len(details) - 1} more)" if len(details) > 1 else ""
        raise ConfigurationError(f"{where}: {message}{more}") from None


def known(names: Iterable[str], wanted: str) -> str:
    """The end of an error about an unknown name: a close match, and what there is."""
    ordered = sorted(names)
    close = difflib.get_close_matches(wanted, ordered, n=1)
    guess = f"did you mean {close[0]!r}? " if close else ""
    return f"{guess}known: {', '.join(ordered) or 'none'}"


def dotted(location: Sequence[int | str]) -> str:
    """A place in a file as its author would write it: `variants[1].loop.confirm`."""
    text = ""
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else f".{part}"
    return text.removeprefix(".")


def _explain(error: ErrorDetails, model: type[BaseModel]) -> str:
    place = dotted(error["loc"]) or "the file"
    if error["type"] == "extra_forbidden":
        *parents, key = error["loc"]
        return f"{place}: unknown key; {known(_keys_at(model, parents), str(key))}"
    if error["type"] == "missing":
        return f"{place}: missing; add it"
    if error["type"] == "literal_error":
        expected = error["ctx"]["expected"].replace(" or ", ", ")
        names = [name.strip(" '") for name in expected.split(",")]
        return f"{place} = {error['input']!r}: unknown value; {known(names, str(error['input']))}"
    message = error["msg"][0].lower() + error["msg"][1:]
    if error["type"] == "string_type" and isinstance(error["input"], bool):
        message += "; in quotes it is text (YAML reads bare on, off, yes and no as booleans)"
    if isinstance(error["input"], Mapping):
        # What a whole table gets wrong, the message says; its text would only bury that.
        return f"{place}: {message}" if error["loc"] else message
    return f"{place} = {error['input']!r}: {message}"


def _keys_at(model: type[BaseModel], location: Sequence[int | str]) -> list[str]:
    is_name = False
    for part in location:
        if isinstance(part, int) or is_name:
            is_name = False
            continue
        field = next(
            (f for name, f in model.model_fields.items() if part in (name, f.alias)),
            None,
        )
        inner = next(_models_in(field.annotation), None) if field else None
        if field is None or inner is None:
            return []
        model = inner
        is_name = get_origin(field.annotation) is dict
    return [field.alias or name for name, field in model.model_fields.items()]


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models_in(argument)

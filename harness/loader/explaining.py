"""What is wrong with data, as its author would say it: no word of how it is checked."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from harness.schema.names import Name

_MANY = 10
"""Names beyond which a close match stands alone."""

_LONGEST = 80

_CALLED = {"event_counts": "event", "callbacks": "callback", "usage_by_tag": "kind of model call"}
"""What the keys of a table are, where there is a word for it."""

_WORDS = {
    "an object": "a table of keys and values",
    "a valid dictionary": "a table of keys and values",
    "a valid array": "a list",
    "a valid tuple": "a list",
}


def explained(error: ValidationError, model: type[BaseModel], data: object) -> str:
    """The first thing that is wrong, and how many more there are."""
    found = list(_messages(error.errors(include_url=False), model, data))
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    return f"{found[0]}{more}"


def known(names: Iterable[str], wanted: str) -> str:
    """The end of an error about an unknown name: a close match, and what there is."""
    ordered = sorted(names)
    close = difflib.get_close_matches(wanted, ordered, n=1)
    if close and len(ordered) > _MANY:
        return f"did you mean {close[0]!r}?"
    guess = f"did you mean {close[0]!r}? " if close else ""
    return f"{guess}known: {', '.join(ordered) or 'none'}"


def dotted(location: Sequence[int | str]) -> str:
    """A place in a file as its author would write it: `variants[1].loop.confirm`."""
    text = ""
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else f".{part}"
    return text.removeprefix(".")


@dataclass(frozen=True, slots=True)
class _Place:
    """Where something is wrong."""

    keys: tuple[int | str, ...]
    """Without what pydantic adds of its own."""
    annotation: Any
    """What belongs there."""
    is_key: bool = False
    """It is the last key itself that is wrong."""
    choice: tuple[int | str, ...] | None = None
    """Where text or a table may stand, if the place is within such a choice."""
    as_text: bool = False
    """It is wrong as the text of that choice."""


def _messages(
    errors: Iterable[ErrorDetails], model: type[BaseModel], data: object
) -> Iterator[str]:
    said = set()
    for error in errors:
        place = _place(model, error["loc"])
        if place.choice is not None:
            value = _value_at(data, place.choice)
            if not isinstance(value, Mapping | str):
                if place.choice not in said:
                    yield f"{dotted(place.choice)} = {_shown(value)}: give text or a table"
                said.add(place.choice)
                continue
            if place.as_text != isinstance(value, str):
                continue
        yield _message(error, place, model)


def _message(error: ErrorDetails, place: _Place, model: type[BaseModel]) -> str:
    value = error["input"]
    where = dotted(place.keys) or "the file"
    message = _worded(error)
    if place.is_key:
        *parents, key = place.keys
        table = dotted(parents)
        if error["type"] != "literal_error":
            return f"{table}: {message}, not {key!r}"
        called = _CALLED.get(str(parents[-1]), "key")
        return f"{table}: unknown {called} {key!r}; {known(_choices(error), str(key))}"
    if error["type"] == "extra_forbidden":
        *parents, key = error["loc"]
        return f"{where}: unknown key; {known(_keys(_place(model, parents).annotation), str(key))}"
    if error["type"] == "missing":
        return f"{where}: missing; add it"
    if error["type"] in ("literal_error", "enum"):
        return f"{where} = {_shown(value)}: unknown value; {known(_choices(error), str(value))}"
    if isinstance(value, Mapping):
        # What a whole table gets wrong, the message says; its text would only bury that.
        return f"{where}: {message}" if place.keys else message
    return f"{where} = {_shown(value)}: {message}"


def _worded(error: ErrorDetails) -> str:
    message = error["msg"][0].lower() + error["msg"][1:]
    for theirs, ours in _WORDS.items():
        message = message.replace(theirs, ours)
    if error["type"] == "too_short":
        return f"needs at least {error['ctx']['min_length']}"
    if error["type"] == "string_pattern_mismatch" and error["ctx"]["pattern"] == Name:
        return "use letters, digits, '.', '_' and '-' only, beginning with a letter or digit"
    if error["type"] in ("float_type", "int_type") and isinstance(error["input"], str):
        message += "; write one, without quotes"
    if error["type"] == "string_type" and isinstance(error["input"], bool):
        message += "; in quotes it is text (YAML reads bare on, off, yes and no as booleans)"
    return message


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _choices(error: ErrorDetails) -> list[str]:
    expected = error["ctx"]["expected"].replace(" or ", ", ")
    return [name.strip(" '") for name in expected.split(",")]


def _keys(annotation: Any) -> list[str]:
    if not (isinstance(annotation, type) and issubclass(annotation, BaseModel)):
        return []
    return [field.alias or name for name, field in annotation.model_fields.items()]


def _place(model: type[BaseModel], location: Sequence[int | str]) -> _Place:
    keys: list[int | str] = []
    annotation: Any = model
    choice, as_text = None, False
    for position, part in enumerate(location):
        members = _members(annotation)
        if len(members) > 1:
            # This part is no key: it names the member that was tried.
            as_text = part == "str"
            annotation = next(one for one in members if (one is str) == as_text)
            choice = tuple(keys)
            continue
        if part == "[key]" and position == len(location) - 1:
            return _Place(tuple(keys), annotation, is_key=True)
        annotation = _inner(members[0], part)
        keys.append(part)
    members = _members(annotation)
    return _Place(tuple(keys), members[0], choice=choice, as_text=as_text)


def _members(annotation: Any) -> list[Any]:
    """What an annotation allows beside None."""
    if get_origin(annotation) is Annotated:
        return _members(get_args(annotation)[0])
    if get_origin(annotation) not in (Union, UnionType):
        return [annotation]
    parts = [part for part in get_args(annotation) if part is not type(None)]
    return [member for part in parts for member in _members(part)]


def _inner(annotation: Any, part: int | str) -> Any:
    """What belongs behind a key."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        fields = annotation.model_fields.items()
        return next((f.annotation for name, f in fields if part in (name, f.alias)), Any)
    if get_origin(annotation) is dict:
        return get_args(annotation)[1]
    if get_origin(annotation) in (tuple, list):
        return get_args(annotation)[0]
    return Any


def _value_at(data: Any, keys: Sequence[int | str]) -> object:
    for key in keys:
        data = data[key] if not isinstance(data, Mapping) or key in data else data[int(key)]
    return data

"""What a suite says about its recordings: the `[recording]` table of suite.toml."""

from __future__ import annotations

import re
from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, model_validator
from pydantic_core import PydanticCustomError

from harness.schema.record import Record

BuiltInNormalisation = Literal["dates", "ids", "temporary-paths"]

Pace = Literal["fast", "recorded"]
Front = Literal["http", "direct"]


def _field(path: str) -> str:
    first, *rest = path.split(".")
    if not all((first, *rest)):
        raise PydanticCustomError("field", "write KEY, or KEY.KEY to go deeper")
    if first == "messages" and (len(rest) < 2 or rest[0] != "*"):
        raise PydanticCustomError(
            "field", "of the messages only a field can be left out, as in messages.*.name"
        )
    return path


def _pattern(pattern: str) -> str:
    try:
        matches_nothing = re.compile(pattern).search("") is not None
    except re.error as error:
        raise PydanticCustomError(
            "pattern", "not a regular expression: {problem}", {"problem": str(error)}
        ) from None
    if matches_nothing:
        raise PydanticCustomError("pattern", "matches the empty text; say what it needs at least")
    return pattern


def _built_in(name: object) -> object:
    known = get_args(BuiltInNormalisation)
    if isinstance(name, str) and name not in known:
        raise PydanticCustomError(
            "normalisation",
            "unknown name; known: {known}, or write a table with pattern and replace",
            {"known": ", ".join(known)},
        )
    return name


Field = Annotated[str, AfterValidator(_field)]
Pattern = Annotated[str, AfterValidator(_pattern)]


class Replacement(Record):
    """Text that differs from run to run and means nothing."""

    pattern: Pattern
    """A regular expression."""
    replace: str
    """What stands for it; groups as `\\1`."""

    @model_validator(mode="after")
    def _check_groups(self) -> Replacement:
        try:
            re.sub(self.pattern, self.replace, "")
        except (re.error, IndexError) as error:
            raise PydanticCustomError(
                "replace",
                "replace = {replace}: {problem}",
                {"replace": repr(self.replace), "problem": str(error)},
            ) from None
        return self


class RecordingRules(Record):
    """How requests are compared, and what is kept of a recording."""

    ignore: tuple[Field, ...] = ()
    """Request fields that do not change the answer, beside the built-in ones; dots go deeper, as in
    `metadata.user_id`, and a star is any item of a list, as in `messages.*.name`."""
    normalise: tuple[Annotated[str | Replacement, AfterValidator(_built_in)], ...] = ()
    """Replaced in every text before requests and tool results are compared, and in what is kept
    of a request: `dates`, `ids`, `temporary-paths`, or patterns of one's own."""
    redact: tuple[Pattern, ...] = ()
    """Regular expressions of secrets, beside the built-in rules."""
    keep_errors: bool = False
    """Keep retryable errors (408, 409, 429, 5xx) even where the same request succeeded later."""

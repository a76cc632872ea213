"""Which secrets are removed before anything is written or compared."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache

from pydantic import TypeAdapter

from harness.cassette.format import Line
from harness.providers.catalog import all_dialects
from harness.schema.record import Json, Record
from harness.schema.results import RunRecord, TrialRecord
from harness.schema.trajectory import Trajectory

_LOG = logging.getLogger("harness.cassette")

MIN_SECRET_CHARS = 8

_SECRET_NAME = re.compile(
    r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?|AUTH)$", re.IGNORECASE
)


def secrets_in(
    environ: Mapping[str, str], names: Iterable[str] = (), handed_down: Iterable[str] = ()
) -> dict[str, str]:
    """Variable and value of all that must reach no file, if it has 8 characters or more.

    That is every `*_API_KEY`, and what tasks are given and is called a key, a token, a secret or a
    password.

    A value that is part of a word of the file formats, or of a name that is in the files anyway,
    is a placeholder and no secret: files without that word could not be read. A warning says so.

    Args:
        environ: Environment variables.
        names: Names that files and trials go by.
        handed_down: Variables that tasks name.
    """
    given = {name for name in handed_down if _SECRET_NAME.search(name)}
    values = {
        name: value.strip()
        for name, value in environ.items()
        if (name.upper().endswith("_API_KEY") or name in given)
        and len(value.strip()) >= MIN_SECRET_CHARS
    }
    words = {*names, *_format_words()} if values else set()
    ordinary = {name for name, value in values.items() if any(value in word for word in words)}
    for name in sorted(ordinary):
        _LOG.warning(
            "the value of %s is a word that recordings and run logs are made of: it is not "
            "removed from them",
            name,
        )
    return {name: value for name, value in values.items() if name not in ordinary}


@cache
def _format_words() -> frozenset[str]:
    """Keys and fixed values of everything that is written, by us and by the vendors."""
    ours: TypeAdapter[Record] = TypeAdapter(Line | Trajectory | TrialRecord | RunRecord)
    vendors = (word for dialect in all_dialects() for word in dialect.words.split())
    return frozenset((*vendors, *_words(ours.json_schema())))


def _words(schema: Json) -> Iterator[str]:
    if isinstance(schema, list):
        for item in schema:
            yield from _words(item)
    if not isinstance(schema, dict):
        return
    for key, value in schema.items():
        if key == "properties" and isinstance(value, dict):
            yield from value
        found = value if key == "enum" and isinstance(value, list) else [value]
        if key in ("enum", "const"):
            yield from (word for word in found if isinstance(word, str))
        yield from _words(value)

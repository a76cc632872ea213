"""Cassettes that vcrpy wrote, read from their files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml
from vcr.serializers import yamlserializer  # type: ignore[import-untyped]

from harness.cassette.convert.exchange import Exchange, Found
from harness.cassette.convert.vcr import exchange_from_vcr, vcr_interactions
from harness.errors import BadInputError
from harness.loader.reading import read_text
from harness.redaction import Redactor

_MAX_DEPTH = 200
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_ENDINGS = frozenset({".json", ".yaml", ".yml"})


def read_vcr(paths: Iterable[Path], redactor: Redactor) -> list[Found]:
    """The cassettes in files and folders, without secrets.

    Raises:
        BadInputError: there is none, or one cannot be read; the text names it.
    """
    found = []
    for given in paths:
        for path in _files(given):
            name = path.relative_to(given) if given.is_dir() else Path(path.name)
            found.append(_read(path, name.with_suffix("").as_posix(), redactor))
    return found


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    files = sorted(file for file in path.rglob("*") if file.suffix in _ENDINGS and file.is_file())
    if not files:
        raise BadInputError(f"{path}: no file in it ends with {', '.join(sorted(_ENDINGS))}")
    return files


def _read(path: Path, name: str, redactor: Redactor) -> Found:
    try:
        exchanges = tuple(_exchanges(_parsed(path), redactor))
    except ValueError as error:
        raise BadInputError(f"{path}: {error}") from error
    return Found(name, path, "vcrpy cassette", exchanges)


def _parsed(path: Path) -> object:
    text = read_text(path, purpose="a vcrpy cassette")
    if not text.strip():
        raise ValueError("the file is empty: there is nothing to import")
    try:
        if text.lstrip()[0] == "{":
            return json.loads(text)
        _check_depth(text)
        # vcrpy's own loader: it knows the tags that its writers have used, and runs none of them.
        return yamlserializer.deserialize(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error}") from error
    except yaml.YAMLError as error:
        raise ValueError(f"not YAML that can be read: {_one_line(error)}") from error
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _check_depth(text: str) -> None:
    """Refuse what is nested too deeply: the loader in C would take the whole process down."""
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > _MAX_DEPTH:
                raise ValueError("nested too deeply")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _one_line(error: yaml.YAMLError) -> str:
    return " ".join(str(error).split())


def _exchanges(data: object, redactor: Redactor) -> Iterator[Exchange]:
    for number, interaction in enumerate(vcr_interactions(data), start=1):
        yield _exchange(interaction, number, redactor)


def _exchange(interaction: Any, number: int, redactor: Redactor) -> Exchange:
    try:
        return exchange_from_vcr(interaction, redactor)
    except ValueError as error:
        raise ValueError(f"interaction {number}: {error}") from error

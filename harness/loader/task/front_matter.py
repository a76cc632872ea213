"""The YAML table between two `---` lines at the top of a file: of a skill, or of a `task.md`."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

import yaml

from harness.errors import BadInputError
from harness.loader.reading import read_text, yaml_problem

LONGEST = 65_536
"""Of a front matter, in characters: reading YAML is slow."""

_MOST_ALIASES = 10
"""Few enough that a small text cannot stand for a huge table."""
_MARK = re.compile(r"^---[ \t]*(?:\n|\Z)", re.MULTILINE)


def front_matter(
    path: Path, *, purpose: str, lines: Collection[str] = ()
) -> tuple[dict[str, Any], str]:
    """The table at the top of a file, and the text that follows it.

    Args:
        path: The file.
        purpose: What it holds, for the error where it is missing.
        lines: Keys that make up a table by themselves: where all of them stand on lines of their
            own, a front matter that is no YAML is read line by line.

    Raises:
        BadInputError: there is none, or it is no table.
    """
    text = read_text(path, purpose=purpose).removeprefix("\ufeff").replace("\r\n", "\n")
    parts = _MARK.split(text, maxsplit=2)
    if len(parts) != 3 or parts[0].strip():
        raise BadInputError(f"{path}: must begin with a front matter between two '---' lines")
    if len(parts[1]) > LONGEST:
        raise BadInputError(f"{path}: front matter is longer than {LONGEST} characters; shorten it")
    try:
        head = _table(parts[1], path)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        # Many have a colon in their description, which the agents they are for do not mind.
        head = _by_lines(parts[1], lines)
        if not lines or len(head) < len(lines):
            what = (
                "nested too deeply"
                if isinstance(error, RecursionError)
                else yaml_problem(error, lines_above=parts[0].count("\n") + 1)
            )
            raise BadInputError(f"{path}: front matter is not valid YAML: {what}") from None
    if not isinstance(head, dict):
        needed = f"; it needs the keys {' and '.join(lines)}" if lines else ""
        raise BadInputError(f"{path}: front matter must be a table of keys and values{needed}")
    try:
        # YAML knows keys and circles that no other format of ours does.
        json.dumps(head, default=str)
    except (TypeError, ValueError, RecursionError):
        raise BadInputError(f"{path}: front matter has keys that are no text, or circles") from None
    return {str(key): value for key, value in head.items()}, parts[2]


def _table(text: str, path: Path) -> Any:
    if "*" in text:
        aliases = sum(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text))
        if aliases > _MOST_ALIASES:
            raise BadInputError(
                f"{path}: front matter has {aliases} YAML aliases (*name), and may have"
                f" {_MOST_ALIASES}; write out what they stand for"
            )
    return yaml.safe_load(text) or {}


def _by_lines(text: str, keys: Collection[str]) -> dict[str, str]:
    found = (re.search(rf"^{re.escape(key)}:[ \t]+(\S.*)$", text, re.MULTILINE) for key in keys)
    return {key: match[1] for key, match in zip(keys, found, strict=True) if match is not None}

""".dockerignore: which files of a build context Docker does not see."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.errors import BadInputError
from harness.loader.dockerfile.ignore_patterns import Pattern
from harness.loader.reading import read_text

_FILE = ".dockerignore"
_LONGEST = 16_384


@dataclass(frozen=True, slots=True)
class _Rule:
    pattern: Pattern
    excludes: bool


def excluded(context: Path) -> tuple[str, ...]:
    """The files and whole folders of a context that are left out, relative to it and sorted.

    Raises:
        BadInputError: the list of them cannot be read.
    """
    rules = _rules_of(context)
    return tuple(sorted(_walk(context, "", rules))) if rules else ()


def is_excluded(context: Path, name: str) -> bool:
    """Whether a file would be left out, if it were there."""
    return _is_excluded(name, _rules_of(context))


def _rules_of(context: Path) -> list[_Rule]:
    path = context / _FILE
    if not path.is_file():
        return []
    text = read_text(path, purpose="what Docker does not see")
    if len(text) > _LONGEST:
        raise BadInputError(f"{path}: longer than {_LONGEST} characters; shorten it")
    return list(_rules(text))


def _walk(folder: Path, prefix: str, rules: list[_Rule]) -> Iterator[str]:
    can_come_back = any(not rule.excludes for rule in rules)
    with os.scandir(folder) as entries:
        for entry in entries:
            name = f"{prefix}{entry.name}"
            is_folder = entry.is_dir(follow_symlinks=False)
            if _is_excluded(name, rules) and not (is_folder and can_come_back):
                yield name
            elif is_folder:
                yield from _walk(folder / entry.name, f"{name}/", rules)


def _is_excluded(name: str, rules: list[_Rule]) -> bool:
    """The last rule that names it, or a folder above it, decides."""
    parts = name.split("/")
    above = ["/".join(parts[: count + 1]) for count in range(len(parts))]
    for rule in reversed(rules):
        if any(rule.pattern.matches(one) for one in above):
            return rule.excludes
    return False


def _rules(text: str) -> Iterator[_Rule]:
    for line in text.splitlines():
        pattern = line.strip()
        if not pattern or pattern.startswith("#"):
            continue
        excludes = not pattern.startswith("!")
        pattern = os.path.normpath(pattern.removeprefix("!").strip()).lstrip("/")
        if pattern == ".":
            continue
        yield _Rule(Pattern(pattern), excludes)

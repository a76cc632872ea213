""".dockerignore: which files of a build context Docker does not see."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.loader.reading import read_text

_FILE = ".dockerignore"


@dataclass(frozen=True, slots=True)
class _Rule:
    pattern: re.Pattern[str]
    excludes: bool


def excluded(context: Path) -> tuple[str, ...]:
    """The files and whole folders of a context that are left out, relative to it and sorted."""
    path = context / _FILE
    if not path.is_file():
        return ()
    rules = list(_rules(read_text(path, purpose="what Docker does not see")))
    return tuple(sorted(_walk(context, "", rules))) if rules else ()


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
        if any(rule.pattern.fullmatch(one) for one in above):
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
        try:
            yield _Rule(re.compile(_expression(pattern)), excludes)
        except re.error:
            # A range that Go refuses too.
            yield _Rule(re.compile(re.escape(pattern)), excludes)


def _expression(pattern: str) -> str:
    """A pattern of Go's as a regular expression."""
    out, at = "", 0
    while at < len(pattern):
        if pattern.startswith("**/", at):
            out += "(?:.*/)?"
            at += 3
        elif pattern.startswith("**", at):
            out += ".*"
            at += 2
        elif pattern[at] in "*?":
            out += "[^/]*" if pattern[at] == "*" else "[^/]"
            at += 1
        elif pattern[at] == "[" and (end := pattern.find("]", at + 2)) > 0:
            inside = re.escape(pattern[at + 1 : end]).replace(r"\-", "-")
            out += f"[^{inside[2:]}]" if inside.startswith(r"\^") else f"[{inside}]"
            at = end + 1
        else:
            out += re.escape(pattern[at])
            at += 1
    return out

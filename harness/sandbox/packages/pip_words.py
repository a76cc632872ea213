"""The words of `pip install`: requirements, and options with their values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

# A name with extras and versions: unlike a path or a URL, it is a wheel if only wheels are allowed.
_NAMED = re.compile(r"[A-Za-z0-9][^/@]*")
_WITH_VALUE = ("--extra-index-url", "--find-links", "--trusted-host")
ON_WHAT_IS_THERE = "--no-build-isolation"
_WITHOUT_VALUE = ("--pre", "--prefer-binary", ON_WHAT_IS_THERE)
_WITH_VALUE_AND_BUILDS = ("--no-binary", "--only-binary")


def grouped(words: Sequence[str]) -> list[tuple[str, ...]]:
    """The words with each option's value beside it."""
    groups: list[tuple[str, ...]] = []
    rest = iter(words)
    for word in rest:
        takes_value = word in (*_WITH_VALUE, *_WITH_VALUE_AND_BUILDS)
        groups.append((word, next(rest, "")) if takes_value else (word,))
    return groups


def can_be_wheels(groups: Sequence[tuple[str, ...]]) -> bool:
    """Whether pip may be told to install wheels alone."""
    return all(
        first in (*_WITH_VALUE, *_WITHOUT_VALUE) or _NAMED.fullmatch(first) for first, *_ in groups
    )


def one_by_one(groups: Sequence[tuple[str, ...]]) -> Iterator[list[str]]:
    """Each requirement with all options."""
    options = [word for group in groups if group[0].startswith("-") for word in group]
    return ([*options, *group] for group in groups if not group[0].startswith("-"))

"""Patterns of .dockerignore, matched in time that grows with pattern and name and no faster.

A regular expression would do as well for those that people write, and tries for hours what others
do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator


class Pattern:
    """One pattern, as Go's: `*` and `?` stay within a folder, `**` does not.

    Each place in the pattern is a bit, and all that may be reached so far are followed at once.
    """

    def __init__(self, text: str) -> None:
        """Read a pattern."""
        self._parts: list[re.Pattern[str] | None] = []
        """What leads from a place to the next; None where no character does."""
        self._inside = 0
        """Places where a name may stay until its folder ends."""
        self._anywhere = 0
        """Places where it may stay."""
        self._next = 0
        """Places that reach the next one by themselves."""
        self._after_next = 0
        for kind, part in _parts(text):
            self._add(kind, part)
        self._moves: dict[str, tuple[int, int]] = {}
        self._start = self._reached(1)

    def matches(self, name: str) -> bool:
        """Whether it names all of a path."""
        places = self._start
        for char in name:
            onward, staying = self._moves.get(char) or self._learnt(char)
            places = self._reached((places & onward) << 1 | places & staying)
            if not places:
                return False
        return bool(places >> len(self._parts))

    def _add(self, kind: str, part: str) -> None:
        here = 1 << len(self._parts)
        if kind == "**/":
            # Either nothing, or any folders.
            self._next |= here
            self._after_next |= here
            self._anywhere |= here << 1
            self._parts += [None, re.compile("/")]
        elif kind == "part":
            self._parts.append(re.compile(part, re.DOTALL))
        else:
            self._next |= here
            if kind == "**":
                self._anywhere |= here
            else:
                self._inside |= here
            self._parts.append(None)

    def _learnt(self, char: str) -> tuple[int, int]:
        """Where a character leads on from, and where it may be passed over."""
        onward = sum(
            1 << place
            for place, part in enumerate(self._parts)
            if part is not None and part.fullmatch(char)
        )
        staying = self._anywhere | (0 if char == "/" else self._inside)
        self._moves[char] = onward, staying
        return onward, staying

    def _reached(self, places: int) -> int:
        while True:
            more = places | (places & self._next) << 1 | (places & self._after_next) << 2
            if more == places:
                return places
            places = more


def _parts(text: str) -> Iterator[tuple[str, str]]:
    """Its wildcards, and what each other character is as a regular expression."""
    at = 0
    while at < len(text):
        if text[at] == "*":
            stars = len(text) - at - len(text[at:].lstrip("*"))
            at += stars
            if stars % 2 == 0 and text.startswith("/", at):
                yield ("**/" if stars == 2 else "**"), ""
                at += 1
            else:
                yield ("*" if stars == 1 else "**"), ""
        elif text[at] == "[" and (end := text.find("]", at + 2)) > 0:
            yield "part", _class(text[at + 1 : end])
            at = end + 1
        else:
            yield "part", "[^/]" if text[at] == "?" else re.escape(text[at])
            at += 1


def _class(inside: str) -> str:
    escaped = re.escape(inside).replace(r"\-", "-")
    expression = f"[^{escaped[2:]}]" if escaped.startswith(r"\^") else f"[{escaped}]"
    try:
        re.compile(expression)
    except re.error:
        # A range that Go refuses too: nothing is in it.
        return "(?!)"
    return expression

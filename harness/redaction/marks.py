"""Which rules are worth trying on a text: those whose marks are in one of its words."""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from functools import lru_cache

from harness.redaction.rules import Rule

_MIN_KEY_CHARS = 15
_WORDS = bytes(
    byte if chr(byte) in f"{string.ascii_letters}{string.digits}_.+/=~:&?-" else ord(" ")
    for byte in range(256)
)
"""Leaves the bytes that keys and marks are made of."""
_MOST_KEPT = 50_000
_MOST_CHARS = 64
"""A longer word will hardly come again."""


class Marks:
    """The marks of some rules, and the words that are known to have none.

    Texts repeat their words: requests those of the request before them, answers their keys. A word
    is looked at once.
    """

    def __init__(self, rules: Sequence[Rule]) -> None:
        """Know no word yet."""
        self._rules = rules
        self._without: set[bytes] = set()

    def rules_for(self, data: bytes) -> list[Rule]:
        """The rules whose marks are in a text."""
        new = set(data.translate(_WORDS).split()).difference(self._without)
        if not new:
            return []
        long = b" ".join(word for word in new if len(word) >= _MIN_KEY_CHARS)
        lower = b" ".join(new).lower()
        rules = [
            rule
            for rule in self._rules
            if any(map((long if rule.is_key else lower).__contains__, rule.marks))
        ]
        self._keep(new, tuple(mark for rule in rules for mark in rule.marks))
        return rules

    def _keep(self, words: set[bytes], marks: tuple[bytes, ...]) -> None:
        """Remember the words that have none of the marks that were found."""
        if len(self._without) + len(words) > _MOST_KEPT:
            return
        found = _any_of(marks)
        self._without.update(
            word for word in words if len(word) <= _MOST_CHARS and not found.search(word)
        )


@lru_cache
def _any_of(marks: tuple[bytes, ...]) -> re.Pattern[bytes]:
    """A pattern of what has one of some marks; of nothing where there are none."""
    return re.compile(b"|".join(map(re.escape, marks)) or b"(?!)", re.IGNORECASE)

"""Known secret values, in every spelling that files and programs give them."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from functools import cached_property
from urllib.parse import quote, quote_plus

_RUN = re.compile(r"[A-Za-z0-9]+")
_BASE64 = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/_-=")
_AROUND_CHARS = 100


class KnownSecret:
    """One value that must reach no file."""

    def __init__(self, name: str, value: str) -> None:
        """Take it with the name it is known under."""
        self.name = name
        self._value = value
        # No spelling changes letters and digits: without this part none of them is there.
        self._core = max(_RUN.findall(value), key=len, default="")
        self._encoded = tuple(_in_base64(value.encode()))
        self._marks = tuple(part.encode() for part in (self._core, *self._encoded))

    def may_be_in(self, data: bytes) -> bool:
        """Whether a text, as UTF-8, is worth a search."""
        return any(part in data for part in self._marks)

    def find(self, text: str) -> Iterator[tuple[int, int]]:
        """Where it is."""
        if self._core in text:
            for match in self._spelled.finditer(text):
                yield match.span()
        for part in self._encoded:
            at = text.find(part)
            while at >= 0:
                yield _around(text, at, at + len(part))
                at = text.find(part, at + len(part))

    @cached_property
    def _spelled(self) -> re.Pattern[str]:
        longest_first = sorted(set(_spellings(self._value)), key=lambda s: (-len(s), s))
        return re.compile("|".join(map(re.escape, longest_first)))


def _spellings(secret: str) -> Iterator[str]:
    """A secret as it is, in bytes, URLs, shells, Python, and JSON (also in JSON within JSON)."""
    yield secret
    yield secret.encode().decode("latin-1")
    yield quote(secret)
    yield quote(secret, safe="")
    yield quote_plus(secret)
    yield secret.replace("/", r"\/")
    yield secret.replace("'", "'\"'\"'")
    yield repr(secret)[1:-1]
    for ascii_only in (True, False):
        nested = secret
        for _ in range(3):
            nested = json.dumps(nested, ensure_ascii=ascii_only)[1:-1]
            yield nested


def _in_base64(secret: bytes) -> Iterator[str]:
    """What every base64 text that it is part of holds, wherever in it the secret begins."""
    for before in range(3):
        encoded = base64.b64encode(b"\0" * before + secret)
        whole = len(before * b"\0" + secret) * 8 // 6
        part = encoded[(before * 8 + 5) // 6 : whole].decode()
        if len(part) >= 8:
            yield part
            if "+" in part or "/" in part:
                yield part.replace("+", "-").replace("/", "_")


def _around(text: str, start: int, end: int) -> tuple[int, int]:
    """A place in base64 with what is encoded beside it: that says how the value begins and ends."""
    first = max(0, start - _AROUND_CHARS)
    while start > first and text[start - 1] in _BASE64:
        start -= 1
    if start > first and text[start - 1] == "\\":
        start += 1  # the letter of an escape is no part of it
    last = min(len(text), end + _AROUND_CHARS)
    while end < last and text[end] in _BASE64:
        end += 1
    return start, end

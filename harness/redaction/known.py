"""Known secret values, in every spelling that files and programs give them."""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Iterator
from functools import cached_property

_RUN = re.compile(r"[A-Za-z0-9]+")
_BASE64 = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/_-=")
_AROUND_CHARS = 100

_ESCAPES = r"\\{1,127}"
"""Before the letter of an escape: JSON within JSON doubles them."""
_MAYBE_ESCAPED = r"\\{0,127}"
_BREAK = rf"(?:(?:{_ESCAPES}r)?{_ESCAPES}n|\s)*"
"""Between two lines of an encoded text, with what it is indented by."""
_PERCENT = "%(?:25)*"
_AMPERSAND = rf"(?:&|{_ESCAPES}u0026|{_PERCENT}26)(?:amp;)*"
_LETTERS = {"\n": "n", "\r": "r", "\t": "t", "\b": "b", "\f": "f"}
_OTHERWISE = {
    " ": r"\+",  # in queries
    "'": f"""'{_MAYBE_ESCAPED}"'{_MAYBE_ESCAPED}"'""",  # in shells
}


def without_breaks(data: bytes) -> bytes:
    """A text, as UTF-8, in which what was encoded and broken into lines is whole again."""
    data = data.replace(b"\\r", b"").replace(b"\\n", b"")
    return data.translate(None, b"\\ \t\r\n")


class KnownSecret:
    """One value that must reach no file."""

    def __init__(self, name: str, value: str) -> None:
        """Take it with the name it is known under."""
        self.name = name
        self._value = value
        # No spelling changes letters and digits: without this part none of them is there.
        self._core = max(_RUN.findall(value), key=len, default="")
        self._core_mark = self._core.encode()
        encoded = (*_in_base64(value.encode()), *_in_hex(value.encode()))
        self._encoded = {part.encode(): part for part in encoded}

    def may_be_in(self, data: bytes, whole: bytes) -> bool:
        """Whether a text is worth a search: as UTF-8, and the same `without_breaks`."""
        return self._core_mark in data or any(mark in whole for mark in self._encoded)

    def find(self, text: str, whole: bytes) -> Iterator[tuple[int, int]]:
        """Where it is in a text, which is given `without_breaks` as well."""
        if self._core in text:
            for match in self._spelled.finditer(text):
                yield match.span()
        for mark, part in self._encoded.items():
            if mark in whole:
                for match in re.finditer(_BREAK.join(map(re.escape, part)), text):
                    yield _around(text, *match.span())

    @cached_property
    def _spelled(self) -> re.Pattern[str]:
        return re.compile("".join(map(_spelled, self._value)))


def _spelled(character: str) -> str:
    """A pattern of one character as it is, and as escapes of all kinds write it.

    URLs, JSON (also in JSON within JSON), HTML, Python and shells do, each in its own way and not
    every one with the same characters.
    """
    if character.isascii() and character.isalnum():
        return character
    code = ord(character)
    data = character.encode()
    units = re.findall("..", character.encode("utf-16-be").hex(), re.DOTALL)
    utf_16 = [f"u{high}{low}" for high, low in zip(units[::2], units[1::2], strict=True)]
    ways = [
        *([_OTHERWISE[character]] if character in _OTHERWISE else ()),
        *([_ESCAPES + _LETTERS[character]] if character in _LETTERS else ()),
        _escaped(*utf_16),
        _escaped(*(f"x{byte:02x}" for byte in data)),
        _escaped(f"U{code:08x}"),
        *([_escaped(f"x{code:02x}")] if code < 0x100 else ()),
        "(?i:" + "".join(f"{_PERCENT}{byte:02x}" for byte in data) + ")",
        *_in_html(character),
        *_plain(character),  # last: it is a part of others
    ]
    return f"(?:{'|'.join(ways)})"


def _plain(character: str) -> Iterator[str]:
    if character == "\\":
        # Some of what follows may belong to the next escape.
        yield from (rf"\\{{{count}}}" for count in (64, 32, 16, 8, 4, 2, 1))
        return
    yield (_MAYBE_ESCAPED if character.isascii() else "") + re.escape(character)
    if not character.isascii():
        yield re.escape(character.encode().decode("latin-1"))


def _escaped(*escapes: str) -> str:
    """Escapes with hex digits in either case."""
    return "".join(f"{_ESCAPES}{escape[0]}(?i:{escape[1:]})" for escape in escapes)


def _in_html(character: str) -> Iterator[str]:
    code = ord(character)
    yield rf"{_AMPERSAND}#(?:0*{code}|(?i:x0*{code:x}));"
    name = "apos" if character == "'" else html.escape(character).strip("&;")
    if name != character and name.isalpha():
        yield f"{_AMPERSAND}{name};"


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


def _in_hex(secret: bytes) -> Iterator[str]:
    if len(secret) >= 8:
        yield secret.hex()
        yield secret.hex().upper()


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

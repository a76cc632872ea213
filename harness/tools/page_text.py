"""The text of an HTML page."""

from __future__ import annotations

from contextlib import suppress
from html.parser import HTMLParser

_UNSEEN = frozenset(("script", "style", "template", "noscript", "svg", "iframe", "object"))
_IN_LINE = """
a abbr b bdi bdo cite code data del dfn em font i img input ins kbd label mark q s samp small
span strong sub sup time tt u var wbr
"""


def page_text(html: str) -> str:
    """What a reader sees, a line for each block."""
    reader = _Reader()
    # It cannot read on after some markup that makes no sense.
    with suppress(AssertionError):
        reader.feed(html)
        reader.close()
    lines = (" ".join(line.split()) for line in "".join(reader.parts).split("\n"))
    return "\n".join(line for line in lines if line)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._unseen: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag in _UNSEEN:
            self._unseen.append(tag)
        self._break(tag)

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        self._break(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in self._unseen:
            while self._unseen.pop() != tag:
                pass
        self._break(tag)

    def handle_data(self, data: str) -> None:
        if not self._unseen:
            # A line end in the source is a space on the page.
            self.parts.append(data.replace("\n", " "))

    def _break(self, tag: str) -> None:
        if tag not in _IN_LINE.split():
            self.parts.append("\n")

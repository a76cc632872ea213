"""The screen of a terminal: lines of characters, and what may be done to them.

It knows no colours, and answers nothing: whatever a program writes, nothing of it is ever typed.
"""

from __future__ import annotations

import unicodedata
from collections import deque
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

HISTORY = 100_000
"""Lines that have left the screen and are kept until they are forgotten."""

_LONGEST_CELL = 8
"""Marks beyond this are not drawn: one letter could hold any number of them."""


class _Main(NamedTuple):
    """The main screen while a full-screen program has the other one."""

    cells: list[list[str]]
    x: int
    y: int


@lru_cache(maxsize=4096)
def _width(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


class Screen:
    """Lines of a fixed size; each cell holds a character, the one after a wide one nothing."""

    def __init__(self, columns: int, rows: int) -> None:
        self.columns = columns
        self.rows = rows
        self.history: deque[str] = deque(maxlen=HISTORY)
        """Lines that have left the screen at its top."""
        self.scrolled = 0
        """How many lines have ever left it."""
        self.reset()

    def reset(self) -> None:
        """Empty the screen and forget all modes; lines that have left it stay."""
        self.is_alternate = False
        """Whether a full-screen program has a screen of its own."""
        self.x = self.y = 0
        """The cursor; x is one past the last column when the next character goes to a new line."""
        self.top, self.bottom = 0, self.rows - 1
        """The lines that scroll."""
        self.wraps, self.inserts = True, False
        self._cells = [self._blank() for _ in range(self.rows)]
        self._main: _Main | None = None

    def lines(self) -> list[str]:
        """What is shown, without the blanks at the ends of lines."""
        return ["".join(row).rstrip() for row in self._cells]

    def forget(self) -> None:
        """Keep no more lines that have left than would fill the screen."""
        while len(self.history) > self.rows:
            self.history.popleft()

    def draw(self, text: str) -> None:
        """Write characters at the cursor."""
        if not text.isascii() or self.inserts:
            for character in text:
                self._draw_one(character)
            return
        at = 0
        while at < len(text):
            self._make_room(1)
            part = text[at : at + self.columns - self.x]
            self._put(part)
            at += len(part)

    def _draw_one(self, character: str) -> None:
        width = _width(character)
        if width == 0:
            self._add_mark(character)
            return
        self._make_room(width)
        if self.inserts:
            self.insert_blanks(width)
        self._put((character, "") if width > 1 else character)

    def _make_room(self, width: int) -> None:
        if self.x + width <= self.columns:
            return
        if self.wraps:
            self.x = 0
            self.line_feed()
        else:
            self.x = self.columns - width

    def _put(self, cells: Sequence[str]) -> None:
        end = self.x + len(cells)
        self._mend(self.x, end)
        self._cells[self.y][self.x : end] = cells
        self.x = end

    def _mend(self, *borders: int) -> None:
        """Half of a wide character that is parted at one of these columns becomes a blank."""
        row = self._cells[self.y]
        for border in borders:
            if 0 < border < self.columns and row[border] == "":
                row[border - 1] = row[border] = " "

    def _add_mark(self, character: str) -> None:
        row = self._cells[self.y]
        at = self.x - 1
        if at > 0 and row[at] == "":
            at -= 1
        if at >= 0 and len(row[at]) < _LONGEST_CELL:
            row[at] += character

    def line_feed(self) -> None:
        """One line down; at the last one the others go up."""
        if self.y == self.bottom:
            self.scroll_up(1)
        elif self.y < self.rows - 1:
            self.y += 1

    def reverse_line_feed(self) -> None:
        """One line up; at the first one the others go down."""
        if self.y == self.top:
            self.scroll_down(1)
        elif self.y > 0:
            self.y -= 1

    def scroll_up(self, count: int) -> None:
        """Take lines away at the top of what scrolls."""
        self._leave(self._remove_lines(self.top, count))

    def scroll_down(self, count: int) -> None:
        """Insert empty lines at the top of what scrolls."""
        self._insert_lines(self.top, count)

    def insert_lines(self, count: int) -> None:
        """Insert empty lines at the cursor."""
        if self.top <= self.y <= self.bottom:
            self._insert_lines(self.y, count)
            self.x = 0

    def delete_lines(self, count: int) -> None:
        """Take lines away at the cursor."""
        if self.top <= self.y <= self.bottom:
            self._remove_lines(self.y, count)
            self.x = 0

    def _insert_lines(self, at: int, count: int) -> None:
        for _ in range(min(count, self.bottom - at + 1)):
            del self._cells[self.bottom]
            self._cells.insert(at, self._blank())

    def _remove_lines(self, at: int, count: int) -> list[list[str]]:
        removed = []
        for _ in range(min(count, self.bottom - at + 1)):
            removed.append(self._cells.pop(at))
            self._cells.insert(self.bottom, self._blank())
        return removed

    def _leave(self, rows: Sequence[list[str]]) -> None:
        """Keep lines that have left the main screen at its top."""
        if self.top > 0 or self.is_alternate:
            return
        for row in rows:
            self.history.append("".join(row).rstrip())
            self.scrolled += 1

    def move(self, x: int, y: int) -> None:
        """Put the cursor somewhere, or as near to it as there is a cell."""
        self.x = min(max(x, 0), self.columns - 1)
        self.y = min(max(y, 0), self.rows - 1)

    def move_rows(self, count: int) -> None:
        """Up or down, but not out of the lines that scroll."""
        first = self.top if self.y >= self.top else 0
        last = self.bottom if self.y <= self.bottom else self.rows - 1
        self.move(self.x, min(max(self.y + count, first), last))

    def tab(self, count: int) -> None:
        """To a later tab stop, or an earlier one; there is one every 8 columns."""
        at = self.x // 8 + count if count > 0 else -(-self.x // 8) + count
        self.move(at * 8, self.y)

    def insert_blanks(self, count: int) -> None:
        """Move the rest of the line to the right."""
        row = self._cells[self.y]
        x = min(self.x, self.columns - 1)
        self._mend(x)
        row[x:x] = [" "] * min(count, self.columns - x)
        self._mend(self.columns)
        if row[self.columns : self.columns + 1] == [""]:
            row[self.columns - 1] = " "
        del row[self.columns :]

    def delete_characters(self, count: int) -> None:
        """Move the rest of the line to the left."""
        row = self._cells[self.y]
        x = min(self.x, self.columns - 1)
        self._mend(x, x + count)
        del row[x : x + count]
        row.extend(" " * (self.columns - len(row)))

    def erase_characters(self, count: int) -> None:
        """Blank cells from the cursor on."""
        x = min(self.x, self.columns - 1)
        self._erase(self.y, x, min(x + count, self.columns))

    def erase_in_line(self, what: int) -> None:
        """Blank the line after the cursor (0), up to it (1), or all of it (2)."""
        x = min(self.x, self.columns - 1)
        start = x if what == 0 else 0
        end = x + 1 if what == 1 else self.columns
        self._erase(self.y, start, end)

    def erase_in_display(self, what: int) -> None:
        """Blank what is after the cursor (0), up to it (1), all (2), or what has left (3)."""
        if what == 3:
            self.history.clear()
            return
        if what in (0, 1):
            self.erase_in_line(what)
        rows = {0: range(self.y + 1, self.rows), 1: range(self.y), 2: range(self.rows)}
        for row in rows.get(what, ()):
            self._erase(row, 0, self.columns)

    def _erase(self, y: int, start: int, end: int) -> None:
        if y == self.y:
            self._mend(start, end)
        self._cells[y][start:end] = [" "] * (end - start)

    def set_margins(self, top: int, bottom: int) -> None:
        """Choose the lines that scroll; the cursor goes to the corner."""
        bottom = min(bottom, self.rows - 1)
        if top < bottom:
            self.top, self.bottom = top, bottom
            self.move(0, 0)

    def set_alternate(self, *, on: bool) -> None:
        """Give a full-screen program a screen of its own, or the main one back to the shell."""
        if on == self.is_alternate:
            return
        if on:
            self._main = _Main(self._cells, self.x, self.y)
            self._cells = [self._blank() for _ in range(self.rows)]
        elif self._main is not None:
            self._cells, self.x, self.y = self._main
            self._main = None
        self.is_alternate = on
        self.top, self.bottom = 0, self.rows - 1

    def _blank(self) -> list[str]:
        return [" "] * self.columns

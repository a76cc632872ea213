"""What programs write to a terminal: text between control characters and escape sequences.

Read is what the terminals of the xterm family understand. Anything else is skipped, and no
sequence is waited for longer than a few thousand characters: a program may write what it likes.
"""

from __future__ import annotations

import re

from harness.sandbox.tty.screen import Screen

_PLAIN = re.compile(r"[^\x00-\x1f\x7f-\x9f]+")
_CSI = re.compile(r"\x1b\[([<-?]?)([0-9;:]{0,64})([ -/]{0,4})([@-~])")
_CHARSET = re.compile(r"\x1b([()*+\-./%# ])([ -~])")
_UNFINISHED = re.compile(r"\x1b(?:\[[<-?]?[0-9;:]{0,64}[ -/]{0,4}|[()*+\-./%# ])?\Z")
_STRING = re.compile(r"\x1b[\]PX^_]")
_STRING_END = re.compile(r"[\x07\x18\x1a\x1b]")
_LONGEST_STRING = 4096
"""Characters of a title or the like after which it is taken for a mistake."""
_MOST = 9999
"""Larger numbers are taken for this one."""
_ALTERNATE_MODES = (47, 1047, 1049)
_LINES = str.maketrans("jklmnqtuvwx`a~", "┘┐┌└┼─├┤┴┬│◆▒·")


class Escapes:
    """Carries out on a screen what a program writes to it."""

    def __init__(self, screen: Screen) -> None:
        self.screen = screen
        self.has_application_keys = False
        """Whether the program asked for the other form of the cursor keys."""
        self._rest = ""
        self._in_string: int | None = None
        """Characters seen of a title or the like, while inside of one."""
        self._start_over()

    def _start_over(self) -> None:
        self.has_application_keys = False
        self._is_relative = False
        self._saved = (0, 0)
        self._draws_lines = {"(": False, ")": False}
        self._charset = "("
        self._last = " "

    def feed(self, text: str) -> None:
        """Take what comes next; a sequence that is cut off goes on with the next text."""
        text = self._rest + text
        self._rest = ""
        at = 0
        while at < len(text):
            if self._in_string is not None:
                at = self._skip_string(text, at, self._in_string)
            elif (plain := _PLAIN.match(text, at)) is not None:
                self._draw(plain[0])
                at = plain.end()
            elif text[at] != "\x1b":
                self._control(text[at])
                at += 1
            elif _UNFINISHED.match(text, at):
                self._rest = text[at:]
                return
            else:
                at = self._sequence(text, at)

    def _skip_string(self, text: str, at: int, seen: int) -> int:
        limit = at + _LONGEST_STRING - seen
        end = _STRING_END.search(text, at, limit)
        if end is not None:
            self._in_string = None
            # An escape character begins the end, or another sequence, and is read as such.
            return end.start() if end[0] == "\x1b" else end.end()
        stopped = min(len(text), limit)
        self._in_string = None if stopped == limit else seen + stopped - at
        return stopped

    def _sequence(self, text: str, at: int) -> int:
        """Carry out the sequence at a place, and give the place after it."""
        if _STRING.match(text, at):
            self._in_string = 0
            return at + 2
        if (found := _CSI.match(text, at)) is not None:
            prefix, parameters, between, final = found.groups()
            if not between:
                numbers = [_number(part) for part in re.split("[;:]", parameters)]
                self._control_sequence(prefix, numbers, final)
            return found.end()
        if (found := _CHARSET.match(text, at)) is not None:
            if found[1] in self._draws_lines:
                self._draws_lines[found[1]] = found[2] == "0"
            return found.end()
        self._escape(text[at + 1])
        return at + 2

    def _draw(self, text: str) -> None:
        if self._draws_lines[self._charset]:
            text = text.translate(_LINES)
        self._last = text[-1]
        self.screen.draw(text)

    def _control(self, character: str) -> None:
        screen = self.screen
        match character:
            case "\r":
                screen.x = 0
            case "\n" | "\v" | "\f":
                screen.line_feed()
            case "\b":
                screen.move(screen.x - 1, screen.y)
            case "\t":
                screen.tab(1)
            case "\x0e":
                self._charset = ")"
            case "\x0f":
                self._charset = "("

    def _escape(self, character: str) -> None:
        match character:
            case "D":
                self.screen.line_feed()
            case "E":
                self.screen.x = 0
                self.screen.line_feed()
            case "M":
                self.screen.reverse_line_feed()
            case "7":
                self._save()
            case "8":
                self._restore()
            case "c":
                self.screen.reset()
                self._start_over()

    def _save(self) -> None:
        self._saved = (self.screen.x, self.screen.y)

    def _restore(self) -> None:
        self.screen.move(*self._saved)

    def _control_sequence(self, prefix: str, numbers: list[int], final: str) -> None:
        if prefix == "?" and final in "hl":
            for number in numbers:
                self._set_mode(number, on=final == "h")
        elif prefix in ("", "?") and final in "JK":
            self._erase(final, numbers[0])
        elif prefix == "":
            first = max(numbers[0], 1)
            second = max(numbers[1], 1) if len(numbers) > 1 else 1
            self._edit(final, first)
            self._move_by(final, first)
            self._move_to(final, first, second)
            self._set(final, numbers)

    def _set_mode(self, number: int, *, on: bool) -> None:
        if number in _ALTERNATE_MODES:
            self.screen.set_alternate(on=on)
        elif number == 1:
            self.has_application_keys = on
        elif number == 6:
            self._is_relative = on
            self.screen.move(0, self.screen.top if on else 0)
        elif number == 7:
            self.screen.wraps = on
        elif number == 1048:
            self._save() if on else self._restore()

    def _erase(self, final: str, what: int) -> None:
        if final == "J":
            self.screen.erase_in_display(what)
        else:
            self.screen.erase_in_line(what)

    def _edit(self, final: str, count: int) -> None:
        screen = self.screen
        match final:
            case "@":
                screen.insert_blanks(count)
            case "L":
                screen.insert_lines(count)
            case "M":
                screen.delete_lines(count)
            case "P":
                screen.delete_characters(count)
            case "S":
                screen.scroll_up(count)
            case "T":
                screen.scroll_down(count)
            case "X":
                screen.erase_characters(count)
            case "b":
                self._draw(self._last * min(count, screen.columns * screen.rows))

    def _move_by(self, final: str, count: int) -> None:
        screen = self.screen
        match final:
            case "A" | "F":
                screen.move_rows(-count)
            case "B" | "E" | "e":
                screen.move_rows(count)
            case "C" | "a":
                screen.move(screen.x + count, screen.y)
            case "D":
                screen.move(screen.x - count, screen.y)
            case "I":
                screen.tab(count)
            case "Z":
                screen.tab(-count)
        if final in "EF":
            screen.x = 0

    def _move_to(self, final: str, first: int, second: int) -> None:
        screen = self.screen
        match final:
            case "G" | "`":
                screen.move(first - 1, screen.y)
            case "H" | "f":
                screen.move(second - 1, self._row(first))
            case "d":
                screen.move(screen.x, self._row(first))

    def _row(self, number: int) -> int:
        return number - 1 + (self.screen.top if self._is_relative else 0)

    def _set(self, final: str, numbers: list[int]) -> None:
        if final == "r":
            bottom = numbers[1] if len(numbers) > 1 else 0
            self.screen.set_margins(max(numbers[0], 1) - 1, (bottom or self.screen.rows) - 1)
        elif final in "hl" and 4 in numbers:
            self.screen.inserts = final == "h"
        elif final == "s":
            self._save()
        elif final == "u":
            self._restore()


def _number(text: str) -> int:
    # Longer ones are no numbers of anything, and take long to read.
    return min(int(text or 0), _MOST) if len(text) <= 9 else _MOST

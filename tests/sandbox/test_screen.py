"""What a screen makes of text and escape sequences."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.sandbox.tty.escapes import Escapes
from harness.sandbox.tty.screen import Screen


def shown(*texts: str, columns: int = 10, rows: int = 4) -> list[str]:
    screen = Screen(columns, rows)
    escapes = Escapes(screen)
    for text in texts:
        escapes.feed(text)
    lines = screen.lines()
    while lines and not lines[-1]:
        lines.pop()
    return lines


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("one\r\ntwo", ["one", "two"]),
        ("one\rtwo", ["two"]),
        ("down\nhere", ["down", "    here"]),
        ("ab\bc", ["ac"]),
        ("a\tb", ["a       b"]),
        ("a\t\tb", ["a        b"]),
        ("0123456789ab", ["0123456789", "ab"]),
        ("0123456789\r\nab", ["0123456789", "ab"]),
        ("\x1b[?7l0123456789ab", ["012345678b"]),
        ("\x1b[31;1mred\x1b[0m \x1b[38;2;1;2;3mx", ["red x"]),
        ("\x1b]0;a title\x07x", ["x"]),
        ("\x1b]0;a title\x1b\\x", ["x"]),
        ("\x1bP+q544e\x1b\\x", ["x"]),
        ("\x1b[3;2Hx\x1b[Hy", ["y", "", " x"]),
        ("abc\x1b[2Dx\x1b[Cy", ["axcy"]),
        ("a\x1b[2Bb\x1b[Ac\x1b[Ed", ["a", "  c", "db"]),
        ("abcdef\x1b[4D\x1b[2P", ["abef"]),
        ("abcdef\x1b[4D\x1b[2@", ["ab  cdef"]),
        ("abcdef\x1b[4D\x1b[2X", ["ab  ef"]),
        ("abcdef\x1b[3D\x1b[K", ["abc"]),
        ("abcdef\x1b[3D\x1b[1K", ["    ef"]),
        ("abc\x1b[2K", []),
        ("a\r\nb\r\nc\x1b[2H\x1b[J", ["a"]),
        ("a\r\nb\r\nc\x1b[2;1H\x1b[1J", ["", "", "c"]),
        ("a\r\nb\x1b[2J", []),
        ("a\r\nb\r\nc\x1b[2H\x1b[L", ["a", "", "b", "c"]),
        ("a\r\nb\r\nc\x1b[2H\x1b[M", ["a", "c"]),
        ("a\r\nb\r\nc\x1b[H\x1bM", ["", "a", "b", "c"]),
        ("a\r\nb\r\nc\r\nd\x1b[2;3r\x1b[3;1H\nx", ["a", "c", "x", "d"]),
        ("a\r\nb\r\nc\r\nd\x1b[S", ["b", "c", "d"]),
        ("abc\x1b[4h\x1b[Hx\x1b[4ly", ["xybc"]),
        ("-\x1b[4b", ["-----"]),
        ("\x1b(0lqk\x1b(B q", ["┌─┐ q"]),
        ("a\x1b7\x1b[3;3Hb\x1b8c", ["ac", "", "  b"]),
        ("shell\x1b[?1049h\x1b[2Jeditor", ["     edito", "r"]),
        ("shell\x1b[?1049h\x1b[2Jeditor\x1b[?1049l$", ["shell$"]),
        ("abc\x1bcd", ["d"]),
        ("日本", ["日本"]),
        ("012345678日", ["012345678", "日"]),
        ("日本\x1b[2Gx", [" x本"]),
        ("日本\x1b[3Gx", ["日x"]),
        ("日本\x1b[2G\x1b[P", [" 本"]),
        ("日本日本日\x1b[H\x1b[@", [" 日本日本"]),
        ("e\u0301\u0302x", ["e\u0301\u0302x"]),
        ("\u0301x", ["x"]),
        ("a\x00\x01\x7fb\x9bc", ["abc"]),
    ],
)
def test_a_screen_shows_what_a_terminal_would(text: str, lines: list[str]) -> None:
    assert shown(text) == lines
    assert shown(*text) == lines, "whatever the pieces are that it comes in"


@pytest.mark.parametrize(
    "text",
    [
        "\x1b[?3A",
        "\x1b[1;2;3;4A",
        "\x1b[" + "9" * 5000 + "A",
        "\x1b[?5n\x1b[c\x1b[>c\x1b[6n",
        "\x1b]" + "x" * 10_000,
        "\x1bP" + "x" * 10_000,
        "\x1b[99999L\x1b[99999M\x1b[99999S\x1b[99999T\x1b[99999@\x1b[99999P\x1b[99999b",
        "\x1b[99999;99999r\x1b[3;2r\x1b[99999;99999H",
        "a" + "\u0301" * 100_000,
    ],
)
def test_a_hostile_sequence_costs_nothing_and_the_screen_goes_on(text: str) -> None:
    screen = Screen(10, 4)
    escapes = Escapes(screen)
    escapes.feed(text)
    escapes.feed("\x18\x1bc$ ls")
    assert screen.lines() == ["$ ls", "", "", ""]
    assert sum(map(len, screen.history)) <= len(text) + 500


def test_lines_that_leave_the_screen_are_kept_until_they_are_forgotten() -> None:
    screen = Screen(10, 2)
    escapes = Escapes(screen)
    escapes.feed("\r\n".join(map(str, range(9))))
    assert (list(screen.history), screen.scrolled) == (list("0123456"), 7)
    screen.forget()
    assert (list(screen.history), screen.scrolled) == (["5", "6"], 7)
    escapes.feed("\x1b[3J")
    assert not screen.history


def test_a_full_screen_program_leaves_no_lines_behind() -> None:
    screen = Screen(10, 2)
    Escapes(screen).feed("$ less\x1b[?1049h" + "x\r\n" * 9 + "\x1b[?1049l")
    assert (screen.lines(), list(screen.history)) == (["$ less", ""], [])


PIECES = [
    *("\x1b[", "\x1b", "]", "?", ";", "1049", "7", "6", "5", "4", "99999999999999999999"),
    *("h", "l", "A", "H", "J", "K", "M", "L", "P", "@", "X", "r", "b", "S", "T", "I", "Z", "G"),
    *("\x9b", "日", "é", "\u0301", "\U0001f600", "abc", "\n", "\r", "\t", "\b", "\x07"),
    *("\x1b(0", "\x0e", "\x0f", "\x1bM", "\x1bD", "\x1bc", "\x1bP"),
]


@given(seed=st.integers(0, 2**32))
def test_no_text_breaks_the_screen(seed: int) -> None:
    chosen = random.Random(seed)
    screen = Screen(7, 5)
    escapes = Escapes(screen)
    for _ in range(3):
        escapes.feed("".join(chosen.choice(PIECES) for _ in range(60)))
        assert len(screen.lines()) == 5
        assert 0 <= screen.x <= 7
        assert 0 <= screen.y < 5
    escapes.feed("\x18\x1bc0123456\r\n日本")
    assert screen.lines()[:2] == ["0123456", "日本"]

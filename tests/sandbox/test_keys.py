"""Keys by tmux's names."""

from __future__ import annotations

import pytest

from harness.sandbox.tty.keys import key


@pytest.mark.parametrize(
    ("name", "sent"),
    [
        ("C-c", "\x03"),
        ("c-C", "\x03"),
        ("^C", "\x03"),
        ("C-d", "\x04"),
        ("C-[", "\x1b"),
        ("C-Space", "\0"),
        ("C-?", "\x7f"),
        ("M-x", "\x1bx"),
        ("M-X", "\x1bX"),
        ("C-M-x", "\x1b\x18"),
        ("Enter", "\r"),
        ("enter", "\r"),
        ("Escape", "\x1b"),
        ("Tab", "\t"),
        ("BTab", "\x1b[Z"),
        ("BSpace", "\x7f"),
        ("Space", " "),
        ("Up", "\x1b[A"),
        ("C-Right", "\x1b[1;5C"),
        ("S-Left", "\x1b[1;2D"),
        ("Home", "\x1b[H"),
        ("PageUp", "\x1b[5~"),
        ("NPage", "\x1b[6~"),
        ("C-PgDn", "\x1b[6;5~"),
        ("DC", "\x1b[3~"),
        ("F1", "\x1bOP"),
        ("F5", "\x1b[15~"),
        ("F10", "\x1b[21~"),
        ("F12", "\x1b[24~"),
    ],
)
def test_a_name_is_the_key_it_names(name: str, sent: str) -> None:
    assert key(name) == sent


@pytest.mark.parametrize(
    "text", ["", "q", "^", "C-", "C-c\n", "ls\n", "C-cc", "X-c", "C-é", "C-1", "up the hill", "F13"]
)
def test_anything_else_is_text(text: str) -> None:
    assert key(text) is None


def test_a_program_may_ask_for_the_other_form_of_the_cursor_keys() -> None:
    assert key("Up", application=True) == "\x1bOA"
    assert key("C-Up", application=True) == "\x1b[1;5A"

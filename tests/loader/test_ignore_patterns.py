"""Which paths a pattern of .dockerignore names."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.loader.dockerfile.ignore_patterns import Pattern


@pytest.mark.parametrize(
    ("pattern", "names", "others"),
    [
        ("*.py", ["a.py", ".py"], ["d/a.py", "a.pyc"]),
        ("**/*.py", ["a.py", "d/a.py", "d/e/a.py"], ["a.pyc", "d/a.pyc"]),
        ("d/**", ["d/a", "d/e/a", "d/"], ["d", "e/d/a"]),
        ("a?c", ["abc"], ["a/c", "ac"]),
        ("**/[a-c]x[^0-9]", ["ax_", "d/cxy"], ["ax1", "dx_"]),
        ("a/**/b", ["a/b", "a/x/y/b"], ["ab", "a/xb"]),
        ("[z-a]", [], ["[z-a]", "z", ""]),
        ("a.b", ["a.b"], ["axb"]),
        ("*", ["a\nb"], ["a/b"]),
    ],
)
def test_a_pattern_names_what_docker_says(pattern: str, names: list[str], others: list[str]):
    assert [name for name in names + others if Pattern(pattern).matches(name)] == names


def as_expression(pattern: str) -> str:
    """The same as a regular expression, which goes back and forth."""
    words = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    parts = re.findall(r"\*\*/|\*\*|.", pattern)
    return "".join(words.get(part, re.escape(part)) for part in parts)


@given(st.text(alphabet="ab/*?", max_size=7), st.text(alphabet="ab/", max_size=8))
def test_a_pattern_is_a_regular_expression_without_its_price(pattern: str, name: str):
    expected = re.fullmatch(as_expression(pattern), name, re.DOTALL) is not None
    assert Pattern(pattern).matches(name) == expected


def test_many_stars_do_not_take_for_ever():
    assert not Pattern("*a" * 200).matches("a" * 199 + "b")
    assert not Pattern("**/a" * 200).matches("a/" * 199 + "b")
    assert not Pattern("**a" * 100 + "?*" * 100).matches("a" * 199)

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harness.loader.dockerfile.shell import assignment, commands, expand, fields, units

SHELL_TEXT = st.text(alphabet="ab =$'\"\\`(){}[]<>|&;#\n\t-", max_size=60)


def parts(text: str) -> list[tuple[str, str]]:
    return [(unit.follows, unit.text) for unit in units(text)]


def words(text: str) -> list[list[str]]:
    return [command.words for command in commands(text)]


def test_a_script_falls_apart_at_line_ends_semicolons_and_ands():
    assert parts("a x && b; c\n# d\n\ne # f\n") == [
        *[("", "a x"), ("&&", "b"), (";", "c")],
        (";", "e"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "a || b",
        "a | b | c",
        "if a; then b && c; else d; fi",
        "for x in 1 2; do\n  a $x\ndone",
        "while read x; do a; done < f",
        "case $x in y) a ;; *) b ;; esac",
        "(cd x && a; b)",
        "f() { a; b; }",
        "[[ a && b ]]",
        'a "b; c && d\n e"',
        "a 'b; c'",
        "a $(b; c) `d; e` ${f:-g; h}",
        'a "$(b "c; d")"',
        "a \\; b",
        "a <<EOF\nb; c\nEOF",
        "a <<-'EOF' > f\n\tb; c\n\tEOF",
    ],
)
def test_what_belongs_together_stays_together(text: str):
    assert parts(f"{text}\nnext") == [("", text), (";", "next")]


def test_commands_within_conditions_and_loops_are_found_with_their_lines():
    text = "if a; then\n  b 1\nfi\nfor x in y; do\n  c | d\ndone\nf() {\n  e\n}\n"
    assert [(one.line, one.words) for one in commands(text)] == [
        *[(1, ["a"]), (2, ["b", "1"]), (4, ["for", "x", "in", "y"]), (5, ["c"]), (5, ["d"])],
        *[(7, ["f"]), (8, ["e"])],
    ]


def test_a_line_goes_on_after_a_backslash():
    assert words("a \\\n  b \\\n  c\nd") == [["a", "b", "c"], ["d"]]


def test_the_content_of_a_heredoc_is_no_command():
    text = "cat <<A > x && b\none; two\nA\nc <<'B' <<-C\nd\nB\n\te\n\tC\nf"
    assert words(text) == [["cat"], ["b"], ["c"], ["f"]]
    assert units(text)[0].text == "cat <<A > x\none; two\nA"


def test_redirections_are_no_words_and_tell_what_is_written():
    (command,) = commands("a b > c 2>> d < e 2>&1 &> f >&2")
    assert command.words == ["a", "b"]
    written = [one.target for one in command.redirections if one.writes]
    assert written == ["c", "d", "f"]


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("plain", "plain"),
        ("'a $X'", "a $X"),
        ('"a $X"', "a 1"),
        ("a\\ b", "a b"),
        ('"a\\"\\n"', 'a"\\n'),
        ("${X}2", "12"),
        ("${Y:-no$X}", "no1"),
        ("${Y-no}", "no"),
        ("${X:-no}", "1"),
        ("${X:+yes}${Y:+yes}", "yes"),
        ("$Y", None),
        ("$(a)", None),
        ("`a`", None),
        ("${X%1}", None),
        ("$1", None),
    ],
)
def test_a_word_stands_for_what_a_shell_would_make_of_it(word: str, value: str | None):
    assert expand(word, {"X": "1"}) == value


@pytest.mark.parametrize(
    ("word", "values"),
    [
        ("plain", ["plain"]),
        ("$X", ["a", "b"]),
        ('"$X"', ["a b"]),
        ("-${X}c", ["-a", "bc"]),
        ("'$X'$X", ["$Xa", "b"]),
        ("$EMPTY", []),
        ('""', [""]),
        ("$EMPTY$EMPTY", []),
        ("$WIDE", ["c", "d"]),
        ("1${WIDE}2", ["1", "c", "d", "2"]),
        ("${Y:-$X}", ["a", "b"]),
        ("a\\ b", ["a b"]),
        ("$Y", [None]),
        ("$(a)$X", [None]),
    ],
)
def test_a_variable_without_quotes_falls_apart_at_blanks(word: str, values: list[str | None]):
    assert fields(word, {"X": "a b", "EMPTY": "", "WIDE": " c\n\td "}) == values


def test_what_is_not_set_may_stand_for_nothing():
    assert expand("a$Y/${Z}b", {}, unset="") == "a/b"


def test_an_assignment_has_a_name_and_a_value():
    assert assignment("A_1=b=c") == ("A_1", "b=c")
    assert assignment("1A=b") is None
    assert assignment("--a=b") is None


@given(SHELL_TEXT)
@example("a <<")
@example("${" * 50)
@example('"$(' * 50)
@example("if" + "\n(" * 50)
def test_any_text_gives_commands_of_what_it_holds_and_no_error(text: str):
    for command in commands(text):
        assert command.words or command.redirections
        assert 1 <= command.line <= text.count("\n") + 1
        for word in command.words:
            assert word
            expand(word, {}, unset="")

from __future__ import annotations

import shutil
from pathlib import Path

from harness.cassette.care.repair import repair
from harness.cassette.show.compare import Difference, compare
from tests.cassette.recordings import edit, record, record_judged


def told(first: Path, second: Path) -> list[tuple[str, ...]]:
    return [
        (one.change, one.subject, one.detail, *one.variants)
        for one in compare(first, second).differences
    ]


def test_two_recordings_that_say_the_same_do_not_differ(tmp_path: Path):
    """Made at other times, in another order."""
    a = record(tmp_path / "a.jsonl", one=["go", "x", "on", "y"], two=["hi", "there"])
    b = record(tmp_path / "b.jsonl", two=["hi", "there"], one=["go", "x", "on", "y"])
    assert a.read_bytes() != b.read_bytes()
    comparison = compare(a, b)
    assert comparison.differences == ()
    assert comparison.same_calls == 3


def test_a_changed_answer_is_shown_in_words_with_its_lines(tmp_path: Path):
    a = record(tmp_path / "a.jsonl", one=["go", "first\nsecond\nthird"], two=["hi", "there"])
    b = record(tmp_path / "b.jsonl", two=["hi", "there"], one=["go", "first\n2nd\nthird"])
    (difference,) = compare(a, b).differences
    assert difference == Difference(
        "changed",
        "call",
        "1, answer",
        ("one",),
        (3, 5),
        (" …", " ── Answer", " first", "-second", "+2nd", " third"),
    )


def test_what_variants_share_is_told_once(tmp_path: Path):
    a = record(tmp_path / "a.jsonl", one=["go", "x", "on", "y"], two=["go", "x", "up", "z"])
    b = record(tmp_path / "b.jsonl", one=["go", "w", "on", "y"], two=["go", "w", "up", "z"])
    assert told(a, b) == [("changed", "call", "1, answer", "one", "two")]


def test_calls_are_aligned_where_one_more_was_made(tmp_path: Path):
    a = record(tmp_path / "a.jsonl", one=["go", "x", "on", "y"])
    b = record(tmp_path / "b.jsonl", one=["go", "x", "wait", "w", "on", "y"])
    (difference,) = compare(a, b).differences
    assert (difference.change, difference.detail, difference.lines) == ("added", "2", (None, 4))
    assert difference.diff == ("+── User", "+wait", "+── Answer", "+w")


def test_variants_tools_verdicts_and_the_header_are_compared(tmp_path: Path):
    a = record_judged(tmp_path / "a.jsonl")
    b = Path(shutil.copy(a, tmp_path / "b.jsonl"))
    record(a, old=["hi", "there"])
    record(b, new=["hi", "you"], open=["hello", "x"], unfinished=("open",))
    edit(b, '"content":"one file","status":"ok"', '"content":"two files","status":"failed"')
    edit(b, '"rewards":{"reward":1.0}', '"rewards":{"reward":0.0}')
    edit(b, '"task":"count"', '"task":"tally"')
    repair(b)
    assert told(a, b) == [
        ("changed", "task", ""),
        ("removed", "variant", "with 1 call", "old"),
        ("added", "variant", "with 1 call", "new"),
        ("added", "variant", "with 1 call", "open, in no finished trial"),
        ("changed", "call", "1, tools", "a"),
        ("changed", "verdict", "", "a"),
    ]
    diffs = "\n".join(line for one in compare(a, b).differences for line in one.diff)
    assert "-── Ran shell: ok" in diffs
    assert "+two files" in diffs
    assert "-  reward: 1.0" in diffs

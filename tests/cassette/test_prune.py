from __future__ import annotations

from pathlib import Path

import pytest

from harness.cassette.care.audit import audit
from harness.cassette.care.cells import Expected
from harness.cassette.care.prune import plan_pruning
from harness.cassette.file.tape import ToolKey
from harness.cassette.format import StoredResult
from harness.errors import CassetteError
from harness.redaction import Redactor
from tests.cassette.cells import ask, open_store, request
from tests.cassette.recordings import chat, drop, edit, record, record_judged


def cells(*variants: str, digest: str = "t1", repeat: int = 0):
    return {("basics", "count", repeat): Expected(digest, frozenset(variants))}


def replay(path: Path, variant: str, texts: list[str], **settings: object) -> None:
    """Every answer of a conversation is served."""
    with open_store(path) as store:
        session = store.session(variant)
        for end in range(1, len(texts), 2):
            answered = session.claim(request(*texts[:end], **settings))
            assert answered is not None
            assert answered.response == chat(texts[end])
        session.finish()


def test_what_no_trial_uses_goes_and_the_rest_keeps_its_bytes(tmp_path: Path):
    path = record(tmp_path / "0.jsonl", a=["go", "x", "on", "y"], b=["go", "x", "up", "v"])
    record(path, a=["go", "x", "left", "z"])
    before = path.read_bytes().splitlines()
    planned = plan_pruning(path)
    assert planned is not None
    assert [(one.lines, one.why) for one in planned.removals] == [
        ((4,), "no finished trial uses it"),
        ((5,), "the same variant has finished another trial since"),
    ]
    assert path.read_bytes().splitlines() == before, "planning writes nothing"
    planned.apply()
    after = path.read_bytes().splitlines()
    assert after == [line for at, line in enumerate(before, 1) if at not in (4, 5)]
    assert planned.removed_bytes == sum(len(line) + 1 for line in before) - path.stat().st_size
    assert audit(path, Redactor({})) == []
    assert plan_pruning(path) is None
    replay(path, "a", ["go", "x", "left", "z"])
    replay(path, "b", ["go", "x", "up", "v"])


def test_what_a_kept_answer_continues_stays(tmp_path: Path):
    path = record(tmp_path / "0.jsonl", a=["go", "x", "on", "y"])
    record(path, b=["go", "x"], settings={"b": {"temperature": 1}})
    record(path, a=["stop", "z"])
    planned = plan_pruning(path)
    assert planned is not None
    planned.apply()
    assert audit(path, Redactor({})) == []
    replay(path, "b", ["go", "x"], temperature=1)


def test_variants_that_are_gone_go_with_their_settings(tmp_path: Path):
    path = record(tmp_path / "0.jsonl", a=["go", "x"])
    kept = path.read_bytes()
    record(path, b=["go", "y"], settings={"b": {"temperature": 1}})
    assert plan_pruning(path) is None
    planned = plan_pruning(path, cells("a"))
    assert planned is not None
    planned.apply()
    assert path.read_bytes() == kept


def test_another_version_of_the_task_and_unfinished_recordings_stay(tmp_path: Path):
    path = record(tmp_path / "0.jsonl", a=["go", "x"])
    record(path, b=["hi", "y"], unfinished=("b",))
    assert plan_pruning(path, cells("a", "b", digest="t2")) is None


def test_a_cassette_that_no_suite_has_goes_as_a_whole(tmp_path: Path):
    path = record(tmp_path / "0.jsonl", a=["go", "x"])
    for gone in (cells("b"), cells("a", repeat=3)):
        planned = plan_pruning(path, gone)
        assert planned is not None
        assert planned.is_whole
    assert planned is not None
    planned.apply()
    assert not path.exists()


def test_lines_of_what_is_not_there_go_and_the_answers_beside_them_stay(tmp_path: Path):
    path = record(tmp_path / "0.jsonl", a=["go", "x", "on", "y", "more", "z"], b=["hi", "there"])
    record(path, c=["up", "v", "on", "w"])
    drop(path, 3, 10)
    planned = plan_pruning(path)
    assert planned is not None
    assert [one.lines for one in planned.removals] == [(3, 4, 5, 9)]
    planned.apply()
    assert [(one.kind, one.lines) for one in audit(path, Redactor({}))] == [("unfinished", (5,))]
    replay(path, "b", ["hi", "there"])
    replay(path, "c", ["up", "v"])


def test_the_answer_that_a_waiting_tool_call_belongs_to_stays(tmp_path: Path):
    path = record(tmp_path / "0.jsonl", a=["go", "ls"])
    with open_store(path, "new_episodes") as store:
        session = store.session("b")
        assert session.claim(request("go")) is not None
        key = ToolKey(session.last, 0, "shell", {}, "identity", 60.0)
        result = StoredResult(content="one file", status="ok", duration_s=0.25)
        session.record_tool(key, result, "bench")
    record(path, a=["stop", "z"])
    assert plan_pruning(path) is None
    assert [(one.kind, one.lines) for one in audit(path, Redactor({}))] == [("unfinished", (5,))]


def test_a_trial_that_has_lost_an_answer_keeps_the_others(tmp_path: Path):
    path = record(tmp_path / "0.jsonl", b=["go", "x"], a=["go", "x", "on", "y"])
    record(path, b=["hi", "there"])
    drop(path, 5)
    assert plan_pruning(path) is None
    replay(path, "a", ["go", "x"])


def test_a_link_to_a_cassette_stays_a_link(tmp_path: Path):
    path = record(tmp_path / "0.jsonl", a=["go", "x"], b=["hi", "y"])
    link = tmp_path / "link.jsonl"
    link.symlink_to(path)
    planned = plan_pruning(link, cells("a"))
    assert planned is not None
    planned.apply()
    assert link.is_symlink()
    assert plan_pruning(path, cells("a")) is None


def test_nothing_is_removed_from_a_damaged_file(tmp_path: Path):
    path = record_judged(tmp_path / "0.jsonl")
    edit(path, '"content":"done"', '"content":"gone"')
    with pytest.raises(CassetteError, match=r"0\.jsonl:5: .*nothing is removed from a damaged"):
        plan_pruning(path, cells())


def test_a_file_that_has_changed_in_between_or_is_being_recorded_stays(tmp_path: Path):
    path = record(tmp_path / "0.jsonl", a=["go", "x"], b=["hi", "there"])
    planned = plan_pruning(path, cells("a"))
    assert planned is not None
    with open_store(path, "new_episodes") as store:
        with pytest.raises(CassetteError, match="is recording this cassette"):
            planned.apply()
        ask(store.session("a"), "more", live="y")
    before = path.read_bytes()
    with pytest.raises(CassetteError, match="it has changed in between; prune again"):
        planned.apply()
    assert path.read_bytes() == before

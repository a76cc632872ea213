from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.cassette.care.audit import audit
from harness.cassette.care.repair import plan_repair, repair
from harness.cassette.file.tape import ToolKey
from harness.cassette.file.view import read
from harness.cassette.format import StoredResult
from harness.errors import CassetteError
from harness.redaction import Redactor
from tests.cassette.cells import open_store, request
from tests.cassette.recordings import chat, drop, edit, lines, record, record_judged


def notes(path: Path) -> list[tuple[int, str]]:
    return [(note.number, note.text) for note in repair(path).changes]


def test_a_good_file_is_left_as_it_is(tmp_path: Path):
    path = record_judged(tmp_path / "0.jsonl")
    before = (path.read_bytes(), path.stat().st_mtime_ns)
    assert repair(path).changes == ()
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before


def test_an_edited_answer_is_sealed_and_served_again(tmp_path: Path):
    path = record_judged(tmp_path / "0.jsonl")
    before = path.read_bytes().splitlines()
    edit(path, '"content":"done"', '"content":"finished"')
    assert notes(path) == [(5, "interaction: edited, sealed again")]
    after = path.read_bytes().splitlines()
    assert [at for at, line in enumerate(after, 1) if line != before[at - 1]] == [5]
    assert audit(path, Redactor({})) == []
    with open_store(path) as store:
        session = store.session("a")
        assert session.claim(request("go")) is not None
        answered = session.claim(request("go", "ls", "one file"))
    assert answered is not None
    assert answered.response == chat("finished")


def test_an_edited_request_takes_all_that_follows_along(tmp_path: Path):
    path = record_judged(tmp_path / "0.jsonl")
    record(path, b=["go", "ls", "no", "bye"], other=["hi", "there"])
    before = path.read_bytes().splitlines()
    edit(path, '"content":"go"', '"content":"start"')
    changed = notes(path)
    after = path.read_bytes().splitlines()
    differing = [at for at, line in enumerate(after, 1) if line != before[at - 1]]
    assert [number for number, _ in changed] == differing == [3, 4, 5, 7, 8, 9]
    assert changed[:2] == [
        (3, "interaction: edited, sealed again; computed anew: chain, id"),
        (4, "tool: computed anew: id, interaction"),
    ]
    assert [one for one in audit(path, Redactor({})) if one.kind != "unplayed"] == []
    with open_store(path) as store:
        session = store.session("a")
        assert session.claim(request("start")) is not None
        key = ToolKey(session.last, 0, "shell", {"command": "ls"}, "identity", 60.0)
        assert session.tool_result(key) == StoredResult(
            content="one file", status="ok", duration_s=0.25
        )
        assert session.claim(request("start", "ls", "one file")) is not None
        assert store.session("other").claim(request("hi")) is not None


def test_edited_settings_give_every_answer_to_them_another_id(tmp_path: Path):
    path = record(tmp_path / "0.jsonl", a=["go", "x", "on", "y"])
    edit(path, '"model":"tiny"', '"model":"mini"')
    assert [number for number, _ in notes(path)] == [2, 3, 4, 5]
    with open_store(path) as store:
        session = store.session("a")
        assert session.claim(request("go", model="mini")) is not None
        assert session.claim(request("go", "x", "on", model="mini")) is not None


@pytest.mark.parametrize(("old", "new"), [("two", "one"), ("one", "two")])
def test_two_requests_that_become_the_same_keep_both_answers(tmp_path: Path, old: str, new: str):
    path = record(tmp_path / "0.jsonl", a=["one", "x"], b=["two", "y"])
    edit(path, f'"content":"{old}"', f'"content":"{new}"')
    repair(path)
    assert audit(path, Redactor({})) == []
    for variant, told in (("a", "x"), ("b", "y")):
        with open_store(path) as store:
            answered = store.session(variant).claim(request(new))
        assert answered is not None
        assert answered.response == chat(told)


def test_what_does_not_fit_any_more_is_said(tmp_path: Path):
    path = record_judged(tmp_path / "0.jsonl")
    edit(
        path,
        '"message":{"role":"assistant","content":"ls"}',
        '"message":{"role":"assistant","content":"dir"}',
    )
    doubts = [(note.number, note.text) for note in repair(path).doubts]
    assert [number for number, _ in doubts] == [3, 5]
    assert "the verdicts of a were given before this edit" in doubts[0][1]
    assert "it sends back another answer than line 3 gives now" in doubts[1][1]


def test_a_cut_last_line_and_empty_lines_are_removed(tmp_path: Path):
    path = record_judged(tmp_path / "0.jsonl")
    whole = path.read_bytes()
    last = whole.splitlines()[-1]
    path.write_bytes(b"\n" + whole.removesuffix(last + b"\n") + b"  \n" + last[:50])
    assert notes(path) == [
        (1, "an empty line, removed"),
        (8, "an empty line, removed"),
        (9, "cut after 50 bytes, removed"),
    ]
    assert path.read_bytes() == whole.removesuffix(last + b"\n")


def test_a_missing_line_end_is_put_back(tmp_path: Path):
    path = record_judged(tmp_path / "0.jsonl")
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    assert notes(path) == [(7, "its line end was missing")]
    assert path.read_bytes() == whole


def test_lines_that_a_merge_brought_twice_stand_once(tmp_path: Path):
    path = record(tmp_path / "0.jsonl", a=["go", "x"])
    whole = path.read_bytes()
    raw = whole.splitlines(keepends=True)
    path.write_bytes(b"".join([*raw[:3], *raw[1:]]))
    assert notes(path) == [(4, "the same as line 2, removed"), (5, "the same as line 3, removed")]
    assert path.read_bytes() == whole


def test_a_line_may_be_written_with_spaces_and_in_another_order(tmp_path: Path):
    path = record_judged(tmp_path / "0.jsonl")
    whole = path.read_bytes()
    raw = whole.splitlines(keepends=True)
    pretty = dict(reversed(json.loads(raw[2]).items()))
    path.write_bytes(b"".join([*raw[:2], json.dumps(pretty).encode() + b"\n", *raw[3:]]))
    repair(path)
    assert path.read_bytes() == whole


def test_what_cannot_be_repaired_is_refused_with_every_place(tmp_path: Path):
    path = record(tmp_path / "0.jsonl", a=["go", "x", "on", "y"])
    raw = path.read_bytes().splitlines(keepends=True)
    other = raw[2].replace(b'"latency_s":0.5', b'"latency_s":0.6')
    path.write_bytes(b"".join([raw[0], b"<<<<<<< HEAD\n", raw[1], raw[2], other, raw[3][9:]]))
    before = path.read_bytes()
    with pytest.raises(CassetteError) as refused:
        repair(path)
    told = str(refused.value).splitlines()
    assert len(told) == 3
    assert told[0].endswith(
        "0.jsonl:2: the line is damaged: the mark of a merge that is not finished"
    )
    assert ":5: line 4 has the same id and says something else; remove one" in told[1]
    assert ":6: the line is damaged: not JSON" in told[2]
    assert path.read_bytes() == before
    path.write_bytes(b"hello\n")
    with pytest.raises(CassetteError, match=r"0\.jsonl:1: .*not JSON"):
        repair(path)
    path.write_bytes(b"")
    with pytest.raises(CassetteError, match="the file is empty"):
        repair(path)


def test_a_line_without_what_it_names_is_kept_and_told(tmp_path: Path):
    path = record(tmp_path / "0.jsonl", a=["go", "x", "on", "y"])
    drop(path, 3)
    planned = plan_repair(path)
    assert planned.changes == ()
    assert [note.number for note in planned.doubts] == [3, 4]
    assert "`harness cassette prune` removes it" in planned.doubts[0].text


def test_a_file_that_is_being_recorded_is_refused(tmp_path: Path):
    path = record(tmp_path / "0.jsonl", a=["go", "x"])
    with (
        open_store(path, "new_episodes"),
        pytest.raises(CassetteError, match="is recording this cassette"),
    ):
        repair(path)


def test_the_whole_file_is_read_again_after_a_repair(tmp_path: Path):
    path = record_judged(tmp_path / "0.jsonl")
    edit(path, "go", "leave")
    with pytest.raises(CassetteError, match=r"0\.jsonl:3: the line is damaged"):
        read(path)
    repair(path)
    assert len(read(path).interactions) == 2
    assert lines(path)[2]["add"] == [{"role": "user", "content": "leave"}]


def flip(path: Path, number: int, key: str) -> None:
    """Damage the first digit that stands after a key."""
    raw = path.read_bytes().splitlines(keepends=True)
    at = raw[number - 1].index(f'"{key}":'.encode()) + len(key) + 3
    at += raw[number - 1][at:].index(b'"') + 1
    digit = b"0" if raw[number - 1][at : at + 1] != b"0" else b"1"
    raw[number - 1] = raw[number - 1][:at] + digit + raw[number - 1][at + 1 :]
    path.write_bytes(b"".join(raw))


@pytest.mark.parametrize(
    ("number", "key"),
    [(2, "id"), (3, "id"), (3, "chain"), (3, "parameters"), (5, "parent"), (5, "parameters"),
     (4, "id"), (4, "interaction"), (6, "id")],
)  # fmt: skip
def test_a_digest_that_was_damaged_is_found_again(tmp_path: Path, number: int, key: str):
    path = record_judged(tmp_path / "0.jsonl")
    whole = path.read_bytes()
    flip(path, number, key)
    assert path.read_bytes() != whole
    assert [number for number, _ in notes(path)] == [number]
    assert path.read_bytes() == whole


@pytest.mark.parametrize(
    ("number", "key", "problem"),
    [
        (6, "transcript_digest", "transcript_digest or tests_digest is damaged"),
        (7, "interactions", "interactions: there is no '.*' before it"),
        (7, "tools", "tools: there is no '.*' before it"),
    ],
)
def test_a_digest_that_nothing_tells_is_not_made_good_with_another(
    tmp_path: Path, number: int, key: str, problem: str
):
    path = record_judged(tmp_path / "0.jsonl")
    flip(path, number, key)
    before = path.read_bytes()
    with pytest.raises(CassetteError, match=rf"0\.jsonl:{number}: {problem}"):
        repair(path)
    assert path.read_bytes() == before


def test_a_damaged_reference_in_a_line_that_was_edited_too_is_refused(tmp_path: Path):
    path = record(tmp_path / "0.jsonl", a=["go", "x", "on", "y"])
    edit(path, '"content":"on"', '"content":"off"')
    flip(path, 4, "parent")
    with pytest.raises(CassetteError, match=r"0\.jsonl:4: parent: there is no '.*' before it"):
        repair(path)


def test_a_damaged_ordinal_is_refused(tmp_path: Path):
    path = record(tmp_path / "0.jsonl", a=["go", "x"])
    name = lines(path)[2]["id"]
    raw = path.read_bytes().splitlines(keepends=True)
    raw[2] = raw[2].replace(name.encode(), name.encode()[:-1] + b"1")
    path.write_bytes(b"".join(raw))
    with pytest.raises(CassetteError, match=r"0\.jsonl:3: its id is damaged, or the line of"):
        repair(path)


def test_a_link_to_a_cassette_stays_a_link(tmp_path: Path):
    path = record_judged(tmp_path / "0.jsonl")
    link = tmp_path / "link.jsonl"
    link.symlink_to(path)
    edit(path, '"content":"done"', '"content":"finished"')
    repair(link)
    assert link.is_symlink()
    assert audit(path, Redactor({})) == []

from __future__ import annotations

from pathlib import Path

import pytest

from harness.cassette.file.tape import ToolKey
from harness.cassette.file.view import read, read_damaged
from harness.cassette.format import StoredResult
from harness.errors import CassetteError
from harness.schema.results import Verdict
from tests.cassette.cells import ask, open_store
from tests.cassette.recordings import record


def test_a_cassette_is_seen_as_a_tree(tmp_path: Path):
    path = tmp_path / "0.jsonl"
    with open_store(path, "new_episodes") as store:
        for variant in ("a", "b"):
            session = store.session(variant)
            ask(session, "go", live="x")
            if variant == "a":
                result = StoredResult(content="done", status="ok", duration_s=0)
                key = ToolKey(session.last, 0, "shell", {"command": "ls"}, "identity", 60.0)
                session.record_tool(key, result, "bench")
            ask(session, "go", "x", variant, live=variant)
            session.record_verdict(variant, "tests", Verdict(rewards={"reward": 1}))
            session.finish()
        ask(store.session("c"), "go", "x", "c", live="unfinished")
    view = read(path)
    assert (view.header.task, view.header.repeat, view.size_bytes) == (
        "count",
        0,
        path.stat().st_size,
    )
    [root] = (name for name, one in view.interactions.items() if one.parent is None)
    top = view.interactions[root]
    assert (top.variants, top.endpoint) == (("a", "b"), "openai-chat")
    assert [tool.result.content for tool in top.tools] == ["done"]
    children = [view.interactions[name] for name in top.children]
    assert [child.variants for child in children] == [("a",), ("b",), ("c",)]
    assert [child.parent for child in children] == [root] * 3
    assert [len(child.line.add) for child in children] == [2, 2, 2]
    assert sorted(view.trials) == ["a", "b"]
    assert [verdict.transcript_digest for verdict in view.verdicts] == ["a", "b"]
    assert view.recorded_between is not None
    assert view.recorded_between[0] <= view.recorded_between[1]


def test_a_file_that_is_not_there_or_damaged_is_an_error(tmp_path: Path):
    path = tmp_path / "0.jsonl"
    with pytest.raises(CassetteError, match=r"0\.jsonl: cannot be read: No such file"):
        read(path)
    with open_store(path, "new_episodes") as store:
        ask(store.session("a"), "go", live="x")
    path.write_bytes(path.read_bytes().replace(b'"x"', b'"y"'))
    with pytest.raises(CassetteError, match=r"0\.jsonl:3: the line is damaged"):
        read(path)


def test_what_can_be_read_of_a_damaged_file_is_seen(tmp_path: Path):
    path = record(tmp_path / "0.jsonl", a=["go", "x", "on", "y"])
    raw = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(
        b"".join([*raw[:2], raw[2].replace(b'"x"', b'"w"'), raw[3], b"junk\n", raw[4]])
    )
    view, problems = read_damaged(path)
    assert [(one.kind, one.number) for one in problems] == [("damaged", 3), ("damaged", 5)]
    assert len(view.interactions) == 2
    assert list(view.trials) == ["a"]


def test_a_line_before_what_it_names_is_an_error(tmp_path: Path):
    path = record(tmp_path / "0.jsonl", a=["go", "x", "on", "y"])
    raw = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*raw[:2], raw[3], raw[2], raw[4]]))
    with pytest.raises(CassetteError, match=r"0\.jsonl:3: its parent '\w+' is not in the file"):
        read(path)


def test_each_answer_has_the_number_of_its_line(tmp_path: Path):
    path = record(tmp_path / "0.jsonl", a=["go", "x"], b=["hi", "there"])
    assert [one.number for one in read(path).interactions.values()] == [3, 5]


def test_both_sides_of_a_merge_that_is_not_finished_are_seen(tmp_path: Path):
    path = record(tmp_path / "0.jsonl", a=["go", "x"])
    other = record(tmp_path / "1.jsonl", b=["hi", "there"])
    marks = (b"<<<<<<< HEAD\n", b"=======\n", b">>>>>>> other\n")
    path.write_bytes(marks[0] + path.read_bytes() + marks[1] + other.read_bytes() + marks[2])
    view, problems = read_damaged(path)
    assert sorted(view.trials) == ["a", "b"]
    assert "the mark of a merge that is not finished" in problems[0].text


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "the file is empty; after an edit by hand"),
        (b"hello\n", "not a cassette, or its first line is damaged; after an edit"),
        (b'{"kind":"header","format":99}\n', "use the version that recorded it"),
        (b'{"kind":"header","format":99}', "use the version that recorded it"),
        (b'{"messages": []}', "not a cassette, or its first line is damaged; after an edit"),
        (b'{"kind":"format"}\n', "not a cassette, or its first line is damaged; after an edit"),
    ],
)
def test_what_is_no_cassette_is_an_error(tmp_path: Path, content: bytes, told: str):
    path = tmp_path / "0.jsonl"
    path.write_bytes(content)
    with pytest.raises(CassetteError, match=r"0\.jsonl:1: ") as refused:
        read_damaged(path)
    assert told in str(refused.value)

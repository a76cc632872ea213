from __future__ import annotations

from pathlib import Path

import pytest

from harness.cassette.format import StoredResult
from harness.cassette.tape import ToolKey
from harness.cassette.view import read
from harness.errors import CassetteError
from harness.schema.results import Verdict
from tests.cassette.cells import ask, open_store


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
    [root] = view.roots
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

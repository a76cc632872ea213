"""Recording again changes what came out otherwise, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from harness.cassette.file.tape import ToolKey
from harness.cassette.file.view import read
from harness.cassette.format import StoredResponse, StoredResult
from harness.errors import InfrastructureError
from harness.schema.record import JsonObject
from harness.schema.results import RecordMode, Verdict
from tests.cassette.cells import ORIGIN, ask, open_store, request

TURNS = 6


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "0.jsonl"


def converse(
    path: Path,
    mode: RecordMode,
    *variants: str,
    live: Callable[[str, int], str] = lambda variant, turn: f"answer {turn}",
    says: Callable[[str, int], str] = lambda variant, turn: f"turn {turn}",
    tool: Callable[[str, int], str] = lambda variant, turn: f"result {turn}",
) -> None:
    """A conversation with a tool call a turn and a verdict, by each variant."""
    with open_store(path, mode) as store:
        for variant in variants:
            session = store.session(variant)
            said: list[str] = []
            for turn in range(TURNS):
                said.append(says(variant, turn))
                said.append(ask(session, *said, live=live(variant, turn)))
                key = ToolKey(session.last, 0, "shell", {"turn": turn}, "identity", 60)
                result = session.tool_result(key)
                if result is None:
                    result = StoredResult(content=tool(variant, turn), status="ok", duration_s=0)
                    session.record_tool(key, result, "bench")
                said[-1] += f" and {result.content}"
            transcript = "\n".join(said)
            if session.verdict(transcript, "tests") is None:
                session.record_verdict(transcript, "tests", Verdict(rewards={"reward": 1}))
            session.finish()


def replays(path: Path, *variants: str) -> None:
    """Fails where something is missing: `none` records nothing."""
    before = path.read_bytes()
    converse(path, "none", *variants)
    assert path.read_bytes() == before


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines()


def of(found: list[str], kind: str) -> list[str]:
    return [line for line in found if json.loads(line)["kind"] == kind]


def test_what_comes_out_the_same_stays_byte_for_byte(path: Path):
    converse(path, "new_episodes", "a", "b")
    before = path.read_bytes()
    converse(path, "all", "a", "b")
    converse(path, "all", "b")
    assert path.read_bytes() == before


@pytest.mark.parametrize("changed", range(TURNS))
def test_recording_a_turn_again_changes_its_line_and_what_follows_from_it(path: Path, changed: int):
    converse(path, "new_episodes", "a")
    before = lines(path)
    converse(path, "all", "a", live=lambda _, turn: f"answer {turn}{'!' * (turn == changed)}")
    after = lines(path)
    # Header, parameters, and two lines for each turn before it.
    first = 2 + 2 * changed
    assert after[:first] == before[:first]
    assert json.loads(after[first])["id"] == json.loads(before[first])["id"]
    # Its tool call is asked for by the same line, and gives the same.
    assert [line for line in after[first:] if line in before] == [of(before, "tool")[changed]]
    assert len(after) == len(before)
    converse(path, "none", "a")


@pytest.mark.parametrize("changed", range(TURNS))
def test_going_on_from_a_changed_turn_only_adds_lines(path: Path, changed: int):
    converse(path, "new_episodes", "a")
    before = path.read_bytes()
    converse(
        path,
        "new_episodes",
        "a",
        says=lambda _, turn: f"turn {turn}{' please' * (turn == changed)}",
    )
    assert path.read_bytes().startswith(before)
    added = path.read_bytes()[len(before) :].decode().splitlines()
    assert len(of(added, "interaction")) == TURNS - changed


def test_branches_of_other_variants_keep_their_bytes_and_their_order(path: Path):
    def says(variant: str, turn: int) -> str:
        return f"turn {turn}{f' as {variant}' * (turn == 2)}"

    converse(path, "new_episodes", "a", "b", "c", says=says)
    before = lines(path)
    converse(path, "all", "b", says=says, live=lambda _, turn: f"other {turn}")
    after = lines(path)
    kept = [line for line in before if line in after]
    assert [line for line in after if line in before] == kept == after[: len(kept)]
    lost = [json.loads(line) for line in before if line not in after]
    assert {line["variant"] for line in lost} == {"b"}
    converse(path, "none", "a", "b", "c", says=says)
    view = read(path)
    assert {user for one in view.interactions.values() for user in one.variants} == set("abc")


def test_a_tool_that_gives_something_else_does_not_change_what_others_were_given(path: Path):
    converse(path, "new_episodes", "a", "b")
    before = lines(path)
    converse(path, "all", "a", tool=lambda _, turn: f"result {turn}{'!' * (turn == 3)}")
    after = lines(path)
    assert set(after) >= set(before) - set(of(before, "trial"))
    for variant, result in (("a", "result 3!"), ("b", "result 3")):
        with open_store(path) as store:
            session = store.session(variant)
            said: list[str] = []
            for turn in range(4):
                said.append(f"turn {turn}")
                said.append(ask(session, *said, live="never"))
                key = ToolKey(session.last, 0, "shell", {"turn": turn}, "identity", 60)
                found = session.tool_result(key)
                assert found is not None
                said[-1] += f" and {found.content}"
            assert said[-1].endswith(f" and {result}")
    replays(path, "b")


def test_a_line_whose_parent_goes_is_written_with_what_it_had_from_it(path: Path):
    # Two variants with other settings share what was said, but no answer.
    calls = {"a": request("go"), "b": request("go", temperature=1)}

    def say(mode: RecordMode, variant: str, text: str) -> None:
        with open_store(path, mode) as store:
            session = store.session(variant)
            call = calls[variant] if text == "x" else request("something else")
            if session.claim(call) is None:
                answer = StoredResponse(status=200, type="json", body={"text": text})
                session.append(call, answer, latency_s=1)
            session.finish()

    say("new_episodes", "a", "x")
    say("new_episodes", "b", "x")
    assert [view.parent is None for view in read(path).interactions.values()] == [True, False]
    say("all", "a", "other")
    views = read(path).interactions.values()
    assert [view.parent for view in views] == [None, None]
    with open_store(path) as store:
        assert store.session("b").claim(calls["b"]) is not None


def test_a_merge_that_was_interrupted_after_the_rename_is_done_again(path: Path):
    converse(path, "new_episodes", "a", "b")
    partial = path.with_name("0.jsonl.partial")
    with open_store(path, "all") as store:
        session = store.session("a")
        ask(session, "turn 0", live="other")
        session.finish()
        left = partial.read_bytes()
    merged = path.read_bytes()
    partial.write_bytes(left)
    with open_store(path, "new_episodes") as store:
        session = store.session("a")
        assert ask(session, "turn 0", live="never") == "other"
        session.finish()
    assert path.read_bytes() == merged
    assert not partial.exists()


def test_another_version_of_the_task_changes_the_header_and_the_trial(path: Path):
    def say(digest: str) -> list[str]:
        origin = replace(ORIGIN, task_digest=digest)
        with open_store(path, "all", origin=origin) as store:
            session = store.session("a")
            ask(session, "go", live="x")
            session.finish()
        return lines(path)

    before, after = say("t1"), say("t2")
    changed = [at for at, line in enumerate(after) if line not in before]
    assert [json.loads(after[at])["kind"] for at in changed] == ["header", "trial"]
    assert len(after) == len(before)


def chat(number: int, text: str) -> JsonObject:
    return {"id": f"chatcmpl-{number}", "created": number, "text": text, "usage": {"tokens": 1}}


def test_names_and_times_that_a_server_gives_do_not_make_an_answer_another_one(path: Path):
    def say(number: int, body: JsonObject) -> bytes:
        with open_store(path, "all") as store:
            session = store.session("a")
            assert session.claim(request("go")) is None
            headers = {"content-type": "application/json", "x-request-id": f"req-{number}"}
            answer = StoredResponse(status=200, headers=headers, type="json", body=body)
            session.append(request("go"), answer, latency_s=number)
            session.finish()
        return path.read_bytes()

    first = say(1, chat(1, "x"))
    assert say(2, chat(2, "x")) == first
    assert say(3, chat(3, "x") | {"usage": {"tokens": 2}}) != first
    assert say(4, chat(4, "y")) != first


def test_a_full_disk_at_the_end_loses_neither_the_old_recording_nor_the_new_one(path: Path):
    converse(path, "new_episodes", "a", "b")
    before = path.read_bytes()
    path.with_name("0.jsonl.new").mkdir()
    with pytest.raises(InfrastructureError, match="cannot be written"):
        converse(path, "all", "a", live=lambda _, turn: f"other {turn}")
    assert path.read_bytes() == before
    path.with_name("0.jsonl.new").rmdir()
    converse(path, "new_episodes", "a", live=lambda _, turn: "never")
    assert "other 5" in path.read_text()
    assert sorted(entry.name for entry in path.parent.iterdir()) == ["0.jsonl"]

"""Recordings that are replayed in order, whatever is asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.cassette import use
from harness.cassette.file.journal import Journal
from harness.cassette.file.tape import Tape, ToolKey
from harness.cassette.format import HeaderLine, StoredResult
from harness.cassette.replay.observation import observation
from harness.cassette.replay.session import Session
from harness.cassette.replay.tool_results import RecordedTools
from harness.cassette.request.rules import Rules
from harness.errors import CassetteError, ReplayMissError
from harness.redaction import Redactor
from harness.schema.recording import RecordingRules
from harness.schema.results import RecordMode
from harness.values import ToolInvocation
from tests.cassette.cells import ORIGIN, Tool, answer, open_store, request


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Two calls, and the two tool calls that the first answer asked for."""
    path = tmp_path / "0.jsonl"
    journal = Journal.open_for_writing(path, may_start_over=True)
    journal.append(
        HeaderLine(
            suite="s", task="t", repeat=0, task_digest="", versions={}, match="position", source="x"
        )
    )
    tape = Tape(journal, ORIGIN, Redactor({}))
    first = tape.add_interaction(request("go"), 0, answer("one"), variant="v", latency_s=1)
    for position, content in enumerate(("first", "second")):
        key = ToolKey(first.id, position, "shell", {"n": position}, "", 0)
        result = StoredResult(content=content, status="ok", duration_s=0)
        tape.add_tool(key, result, sandbox=None, variant="v")
    tape.add_interaction(request("go", "one", "on"), 0, answer("two"), variant="v", latency_s=1)
    journal.close()
    return path


def ask(session: Session, *texts: str, **parameters: object) -> object:
    line = session.claim(request(*texts, **parameters))
    assert line is not None
    return line.response.body


def test_the_same_requests_get_their_answers_and_nothing_differs(path: Path):
    with open_store(path) as store:
        session = store.session("v")
        assert [ask(session, "go"), ask(session, "go", "one", "on")] == [
            {"text": "one"},
            {"text": "two"},
        ]
        assert session.request_differences == []
        session.finish()


def test_other_requests_get_the_answers_in_order_and_each_difference_is_told_once(path: Path):
    with open_store(path) as store:
        session = store.session("v")
        assert ask(session, "Go!") == {"text": "one"}
        assert ask(session, "Go!", "one", "on") == {"text": "two"}
        assert [(one.call, one.cause) for one in session.request_differences] == [
            (1, "message 1 (user)"),
        ]
        assert "-go\n+Go!" in session.request_differences[0].difference
        assert (session.misses, session.served) == ([], 2)


def test_after_the_last_answer_comes_a_miss_that_says_so(path: Path):
    with open_store(path) as store:
        session = store.session("v")
        ask(session, "go")
        ask(session, "go")
        with pytest.raises(ReplayMissError, match=r"2 recorded model calls in order.*call 3"):
            ask(session, "go")
        assert session.misses[0].cause == "after the last recorded call"
        assert "Go on from there with `harness fork`, or record a new" in session.misses[0].text


def test_only_a_suites_trial_is_advised_to_fork(path: Path):
    with use(path) as session:
        ask(session, "go")
        ask(session, "go")
        with pytest.raises(ReplayMissError, match=r"this is call 3\. Record a new cassette"):
            ask(session, "go")
        session.misses.clear()
    with pytest.raises(CassetteError, match="recorded into it; record a new one"):
        use(path, "new_episodes").__enter__()


def test_every_trial_begins_at_the_first_answer(path: Path):
    with open_store(path) as store:
        assert [ask(store.session(v), "anything") for v in "vw"] == [{"text": "one"}] * 2


def test_tool_results_are_found_by_their_place_in_the_turn(path: Path):
    with open_store(path) as store:
        session = store.session("v")
        ask(session, "go")
        found = []
        for position, arguments in ((1, {"n": 1}), (0, {"n": 7}), (0, {"n": 0})):
            key = ToolKey(session.last, position, "shell", {**arguments}, "identity", 60)
            result = session.tool_result(key)
            found.append(None if result is None else result.content)
        # Of the last one nothing is recorded: the trial goes on, and it is told.
        assert found == ["second", "first", ""]
        other, unknown = session.request_differences
        assert (other.call, other.cause, unknown.cause) == (1, "tool shell", "tool shell")
        assert "-  n: 0\n+  n: 7" in other.difference
        assert "+  n: 0" in unknown.difference


@pytest.mark.parametrize("mode", ["new_episodes", "all"])
def test_nothing_is_recorded_into_it(path: Path, mode: RecordMode):
    before = path.read_bytes()
    with pytest.raises(CassetteError, match=r"given in order.*harness fork"):
        open_store(path, mode)
    assert path.read_bytes() == before
    assert [entry.name for entry in path.parent.iterdir()] == ["0.jsonl"]


def test_damage_is_found_when_it_is_opened(path: Path):
    path.write_bytes(path.read_bytes().replace(b'"second"', b'"secund"'))
    with pytest.raises(CassetteError, match=r"0\.jsonl:5: the line is damaged"):
        open_store(path)


def test_what_a_call_adds_is_compared_by_itself_and_after_normalisation(path: Path):
    rules = Rules(RecordingRules(normalise=("dates",)))
    with open_store(path, rules=rules) as store:
        session = store.session("v")
        ask(session, "go ")
        ask(session, "something else", "one", "on")
        assert session.turn_differences == []
        assert [one.call for one in session.request_differences] == [1, 2]
        session = store.session("v")
        ask(session, "go at 2026-01-02")
        ask(session, "go", "one", "off")
        assert [(one.call, one.cause) for one in session.turn_differences] == [
            (1, "message 1 (user)"),
            (2, "message 3 (user)"),
        ]
        assert "-go\n+go at <date>" in session.turn_differences[0].difference
        assert "-on\n+off" in session.turn_differences[1].difference


@pytest.fixture
def in_text(tmp_path: Path) -> Path:
    """A conversation whose observations are the user's messages."""
    path = tmp_path / "text.jsonl"
    journal = Journal.open_for_writing(path, may_start_over=True)
    journal.append(
        HeaderLine(
            suite="s", task="t", repeat=0, task_digest="", versions={}, match="position", source="x"
        )
    )
    tape = Tape(journal, ORIGIN, Redactor({}))
    for texts, said in (
        (("go",), "type a and b"),
        (("go", "type a and b", "Screen:\na \n\nb"), "type c"),
    ):
        tape.add_interaction(request(*texts), 0, answer(said), variant="v", latency_s=1)
    journal.close()
    return path


def served(tools: RecordedTools, *typed: str) -> list[str]:
    return [
        tools.invoke(ToolInvocation(f"call-{at}", "type", {"text": text}, at, 1)).content
        for at, text in enumerate(typed)
    ]


def test_what_is_told_as_text_is_given_to_the_first_call_of_the_turn(in_text: Path):
    with open_store(in_text) as store:
        session = store.session("v")
        tools = RecordedTools(Tool("never run"), session, mode="replay")
        ask(session, "go")
        assert served(tools, "a", "b") == ["Screen:\na \n\nb", ""]
        ask(session, "go", "type a and b", "whatever")
        assert served(tools, "c") == [""]
        assert session.misses == []


def test_a_call_that_does_not_look_yet_is_given_nothing(in_text: Path):
    with open_store(in_text) as store:
        session = store.session("v")
        tools = RecordedTools(Tool("never run"), session, mode="replay")
        ask(session, "go")
        blind = ToolInvocation("call-0", "type", {"text": "a", "look": False}, 0, 1)
        assert tools.invoke(blind).content == ""
        assert served(tools, "b") == ["Screen:\na \n\nb"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("New Terminal Output:\nx\n", "New Terminal Output:\nx\n"),
        (
            "Previous response had warnings:\n- Extra text.\n\nNew Terminal Output:\n\nx",
            "New Terminal Output:\n\nx",
        ),
        (
            "Current terminal state:\nNew Terminal Output:\nx\n\n"
            "Are you sure you want to mark the task as complete?",
            "New Terminal Output:\nx",
        ),
        (
            "Previous response had parsing errors:\nNo.\n\nFix it.",
            "Previous response had parsing errors:\nNo.\n\nFix it.",
        ),
    ],
)
def test_an_observation_is_without_what_the_agent_was_told_beside_it(text: str, shown: str):
    assert observation(text) == shown


@pytest.mark.parametrize(
    ("screen", "differing"), [(("Screen:\na\n", "b"), 0), (("Screen:", "a c"), 1)]
)
def test_tools_that_run_again_are_compared_by_the_turn(
    in_text: Path, screen: tuple[str, str], differing: int
):
    with open_store(in_text) as store:
        session = store.session("v")
        tools = RecordedTools(Tool("{text}"), session, mode="live")
        ask(session, "go")
        assert served(tools, *screen) == ["Screen:\na \n\nb", ""]
        ask(session, "go", "type a and b", "whatever")
        served(tools, "of this nothing is recorded")
        assert len(tools.differences) == differing
        for one in tools.differences:
            assert (one.recorded.content, one.live.content) == ("Screen:\na \n\nb", "Screen:\na c")

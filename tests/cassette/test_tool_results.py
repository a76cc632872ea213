from __future__ import annotations

from pathlib import Path

import pytest

from harness.cassette.tool_results import Difference, RecordedTools
from harness.errors import ReplayMissError
from harness.protocols import ToolInvocation, ToolOutcome
from harness.schema.messages import ToolSpec
from harness.schema.record import JsonObject
from tests.cassette.cells import HINT, answer, ask, open_store, request


class Notebook:
    """Tools over a list: `add` writes, `read` gives all that was written."""

    def __init__(self, settings: str = "") -> None:
        self.lines: list[str] = []
        self.settings = settings

    def specs(self) -> tuple[ToolSpec, ...]:
        return (ToolSpec(name="add", description="", parameters={}),)

    def identity(self, name: str) -> str:
        return f"{name} {self.settings}"

    def invoke(self, invocation: ToolInvocation) -> ToolOutcome:
        if invocation.name == "add":
            self.lines.append(str(invocation.arguments["line"]))
            return ToolOutcome(f"line {len(self.lines)}")
        return ToolOutcome(" ".join(self.lines), "failed", 1.5)


def call(name: str, position: int = 0, *, timeout_s: float = 1, **arguments: str) -> ToolInvocation:
    given: JsonObject = dict(arguments)
    return ToolInvocation("call-1", name, given, position, timeout_s)


def sandbox() -> str:
    return "bench"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """One turn that adds a line, one that reads."""
    path = tmp_path / "0.jsonl"
    with open_store(path, "new_episodes") as store:
        session = store.session("a")
        tools = RecordedTools(Notebook(), session, mode="replay", sandbox=sandbox)
        ask(session, "go", live="add it")
        assert tools.invoke(call("add", line="one")) == ToolOutcome("line 1")
        ask(session, "go", "add it", "line 1", live="read it")
        assert tools.invoke(call("read")) == ToolOutcome("one", "failed", 1.5)
        session.finish()
    return path


def test_replay_serves_results_and_runs_nothing(path: Path):
    inner = Notebook()
    with open_store(path) as store:
        session = store.session("a")
        tools = RecordedTools(inner, session, mode="replay")
        assert tools.specs() == inner.specs()
        ask(session, "go", live="never")
        assert tools.invoke(call("add", line="one")) == ToolOutcome("line 1")
        ask(session, "go", "add it", "line 1", live="never")
        assert tools.invoke(call("read")) == ToolOutcome("one", "failed", 1.5)
        tools.rebuild()
    assert inner.lines == []
    assert '"sandbox":"bench"' in path.read_text()


@pytest.mark.parametrize(
    ("invocation", "settings"),
    [
        (call("add", line="two"), ""),
        (call("add", 1, line="one"), ""),
        (call("append", line="one"), ""),
        (call("add", line="one"), "other settings"),
        (call("add", line="one", timeout_s=2), ""),
    ],
    ids=["arguments", "position", "name", "tool", "timeout"],
)
def test_a_call_that_differs_in_anything_is_a_miss(
    path: Path, invocation: ToolInvocation, settings: str
):
    with open_store(path) as store:
        session = store.session("a")
        tools = RecordedTools(Notebook(settings), session, mode="replay")
        ask(session, "go", live="never")
        with pytest.raises(ReplayMissError, match=invocation.name) as caught:
            tools.invoke(invocation)
    assert HINT in str(caught.value)
    assert [miss.cause for miss in session.misses] == [f"tool {invocation.name}"]


def test_a_whole_number_of_seconds_is_the_same_timeout(path: Path):
    with open_store(path) as store:
        session = store.session("a")
        ask(session, "go", live="never")
        tools = RecordedTools(Notebook(), session, mode="replay")
        assert tools.invoke(call("add", line="one", timeout_s=1.0)) == ToolOutcome("line 1")


def test_the_time_of_a_trial_is_that_of_its_recordings(tmp_path: Path):
    path = tmp_path / "0.jsonl"
    elapsed = []
    for mode in ("new_episodes", "none"):
        with open_store(path, mode) as store:
            session = store.session("a")
            tools = RecordedTools(Notebook(), session, mode="replay")
            if session.claim(request("go")) is None:
                session.append(request("go"), answer("read it"), latency_s=0.1000499)
            elapsed.append(session.elapsed_s)
            tools.invoke(call("read"))
            elapsed.append(session.elapsed_s)
            session.finish()
    assert elapsed == [0.1, 1.6] * 2


def test_the_same_call_of_another_turn_is_another_call(path: Path):
    with open_store(path) as store:
        session = store.session("a")
        tools = RecordedTools(Notebook(), session, mode="replay")
        ask(session, "go", live="never")
        ask(session, "go", "add it", "line 1", live="never")
        with pytest.raises(ReplayMissError):
            tools.invoke(call("add", line="one"))


def test_recording_on_rebuilds_the_folder_before_the_first_new_call(path: Path):
    inner = Notebook()
    with open_store(path, "new_episodes") as store:
        session = store.session("b")
        tools = RecordedTools(inner, session, mode="replay")
        ask(session, "go", live="never")
        assert tools.invoke(call("add", line="one")) == ToolOutcome("line 1")
        assert inner.lines == []
        ask(session, "go", "add it", "line 1", "more", live="add more")
        assert tools.invoke(call("add", line="two")) == ToolOutcome("line 2")
        assert inner.lines == ["one", "two"]
        assert tools.differences == []
        session.finish()
    assert path.read_text().count('"kind":"tool"') == 3


def test_the_folder_is_rebuilt_for_the_verifier(path: Path):
    inner = Notebook()
    with open_store(path, "new_episodes") as store:
        session = store.session("b")
        tools = RecordedTools(inner, session, mode="replay")
        ask(session, "go", live="never")
        tools.invoke(call("add", line="one"))
        tools.rebuild()
        tools.rebuild()
    assert inner.lines == ["one"]


def test_live_tools_on_replay_feed_the_recording_and_report_what_differs(path: Path):
    inner = Notebook()
    inner.lines = ["zero"]
    with open_store(path) as store:
        session = store.session("a")
        tools = RecordedTools(inner, session, mode="live")
        ask(session, "go", live="never")
        assert tools.invoke(call("add", line="one")) == ToolOutcome("line 1")
        assert tools.invoke(call("add", 1, line="two")) == ToolOutcome("line 3")
    assert inner.lines == ["zero", "one", "two"]
    assert tools.differences == [
        Difference("add", {"line": "one"}, ToolOutcome("line 1"), ToolOutcome("line 2"))
    ]
    assert session.misses == []


def test_like_calls_of_one_turn_are_kept_in_order(tmp_path: Path):
    path = tmp_path / "0.jsonl"
    for mode, inner in (("new_episodes", Notebook()), ("none", Notebook())):
        with open_store(path, mode) as store:  # type: ignore[arg-type]
            session = store.session("a")
            tools = RecordedTools(inner, session, mode="replay")
            outcomes = [tools.invoke(call("add", line="x")) for _ in range(2)]
            assert outcomes == [ToolOutcome("line 1"), ToolOutcome("line 2")]
            session.finish()


def test_results_that_no_json_holds_are_recorded(tmp_path: Path):
    path = tmp_path / "0.jsonl"
    with open_store(path, "new_episodes") as store:
        session = store.session("a")
        tools = RecordedTools(Notebook(), session, mode="replay")
        tools.invoke(call("add", line="\ud83d"))
        assert tools.invoke(call("read")).content == "?"
        session.finish()
    with open_store(path) as store:
        tools = RecordedTools(Notebook(), store.session("a"), mode="replay")
        assert tools.invoke(call("add", line="\ud83d")) == ToolOutcome("line 1")

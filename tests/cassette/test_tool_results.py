from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from harness.cassette.replay.tool_differences import Difference
from harness.cassette.replay.tool_results import RecordedTools
from harness.errors import InfrastructureError, ReplayMissError
from harness.schema.messages import ToolSpec
from harness.schema.record import JsonObject
from harness.schema.results import ToolsMode
from harness.schema.signals import Blocked, RunRequest, Signal, Suspend
from harness.values import Effect, ToolInvocation, ToolOutcome
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

    def is_sequential(self, name: str) -> bool:
        return name == "add"

    def effects(self, name: str, arguments: JsonObject) -> Sequence[Effect] | None:
        return [Effect("write", f"{name} {arguments}")]

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


NOTHING = "Nothing is recorded of this call"


@pytest.mark.parametrize(
    ("invocation", "settings", "said"),
    [
        (call("add", line="two"), "", NOTHING),
        (call("add", 1, line="one"), "", NOTHING),
        (call("append", line="one"), "", NOTHING),
        (call("add", line="one"), "other settings", "another version of the tool"),
        (call("add", line="one", timeout_s=2), "", "It was recorded with a timeout of 1 s."),
    ],
    ids=["arguments", "position", "name", "tool", "timeout"],
)
def test_a_call_that_differs_in_anything_is_a_miss(
    path: Path, invocation: ToolInvocation, settings: str, said: str
):
    with open_store(path) as store:
        session = store.session("a")
        tools = RecordedTools(Notebook(settings), session, mode="replay")
        ask(session, "go", live="never")
        with pytest.raises(ReplayMissError, match=invocation.name) as caught:
            tools.invoke(invocation)
    assert HINT in str(caught.value)
    assert said in str(caught.value)
    assert [miss.cause for miss in session.misses] == [f"tool {invocation.name}"]


def test_a_whole_number_of_seconds_is_the_same_timeout(path: Path):
    with open_store(path) as store:
        session = store.session("a")
        ask(session, "go", live="never")
        tools = RecordedTools(Notebook(), session, mode="replay")
        assert tools.invoke(call("add", line="one", timeout_s=1.0)) == ToolOutcome("line 1")


@pytest.mark.parametrize("limit_s", [0.25, 0.0])
def test_what_is_left_of_a_runs_time_is_no_part_of_the_key(path: Path, limit_s: float):
    with open_store(path) as store:
        session = store.session("a")
        ask(session, "go", live="never")
        tools = RecordedTools(Notebook(), session, mode="replay")
        cut = replace(call("add", line="one"), limit_s=limit_s)
        assert tools.invoke(cut) == ToolOutcome("line 1")


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


def test_what_cannot_be_prepared_is_no_tools_error(path: Path):
    def act() -> None:
        raise OverflowError("timestamp too large")

    with open_store(path, "new_episodes") as store:
        tools = RecordedTools(Notebook(), store.session("a"), mode="replay", sandbox=sandbox)
        tools.prepare(act)
        with pytest.raises(InfrastructureError, match="cannot be prepared: OverflowError: time"):
            tools.rebuild()


def test_what_is_prepared_is_done_once_between_the_calls_around_it(path: Path):
    inner = Notebook()
    with open_store(path, "new_episodes") as store:
        session = store.session("a")
        tools = RecordedTools(inner, session, mode="replay", sandbox=sandbox)
        tools.prepare(lambda: inner.lines.append("first"))
        ask(session, "go", live="never")
        tools.invoke(call("add", line="one"))
        tools.prepare(lambda: inner.lines.append("between"))
        ask(session, "go", "add it", "line 1", live="never")
        assert tools.invoke(call("read")) == ToolOutcome("one", "failed", 1.5)
        assert inner.lines == []
        assert tools.invoke(call("add", line="new")) == ToolOutcome("line 4")
        assert inner.lines == ["first", "one", "between", "new"]
        tools.rebuild()
        assert len(inner.lines) == 4


@pytest.mark.parametrize(("mode", "lines"), [("live", ["first", "one"]), ("replay", [])])
def test_what_is_prepared_is_done_where_tools_run(path: Path, mode: ToolsMode, lines: list[str]):
    inner = Notebook()
    with open_store(path) as store:
        session = store.session("a")
        tools = RecordedTools(inner, session, mode=mode)
        tools.prepare(lambda: inner.lines.append("first"))
        ask(session, "go", live="never")
        tools.invoke(call("add", line="one"))
        assert inner.lines == lines


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


class Functions(Notebook):
    """Tools that are functions of their call."""

    def __init__(self, **functions: Callable[[ToolInvocation], ToolOutcome]) -> None:
        super().__init__()
        self.functions = functions

    def invoke(self, invocation: ToolInvocation) -> ToolOutcome:
        return self.functions[invocation.name](invocation)


def test_what_tools_say_of_themselves_is_passed_on(tmp_path: Path):
    with open_store(tmp_path / "0.jsonl") as store:
        tools = RecordedTools(Notebook(), store.session("a"), mode="replay")
        assert [tools.is_sequential(name) for name in ("add", "read")] == [True, False]
        assert tools.effects("add", {"line": 1}) == [Effect("write", "add {'line': 1}")]


@pytest.mark.parametrize(
    "asks",
    [
        Signal(name="DONE", data={"b": [1.0, None], "a": "key swordfish"}),
        Suspend(correlation_id="mail-7"),
        Blocked(reason="no swordfish"),
    ],
)
def test_what_a_tool_asks_of_the_run_is_replayed_without_secrets(tmp_path: Path, asks: RunRequest):
    path = tmp_path / "0.jsonl"
    inner = Functions(ask=lambda _: ToolOutcome("text", asks=asks))
    seen = []
    for mode in ("new_episodes", "none"):
        with open_store(path, mode, secrets={"A_API_KEY": "swordfish"}) as store:
            session = store.session("a")
            outcome = RecordedTools(inner, session, mode="replay").invoke(call("ask"))
            seen.append(outcome)
            session.finish()
    clean = asks.model_dump_json().replace("swordfish", "[redacted]")
    assert seen == [ToolOutcome("text", asks=type(asks).model_validate_json(clean))] * 2
    assert "swordfish" not in path.read_text()


def test_a_result_that_asks_nothing_is_written_as_ever(path: Path):
    assert '"result":{"content":"line 1","status":"ok","duration_s":0.0},"sum"' in path.read_text()


def test_live_tools_that_ask_something_else_differ(path: Path):
    asks = Signal(name="DONE")
    with open_store(path) as store:
        session = store.session("a")
        inner = Functions(add=lambda _: ToolOutcome("line 1", asks=asks))
        tools = RecordedTools(inner, session, mode="live")
        ask(session, "go", live="never")
        assert tools.invoke(call("add", line="one")).asks is None
    assert [difference.live.asks for difference in tools.differences] == [asks]


def test_calls_of_a_turn_that_end_in_any_order_are_found_again(tmp_path: Path):
    path = tmp_path / "0.jsonl"
    ended = [threading.Event() for _ in range(3)]

    def last_one_first(invocation: ToolInvocation) -> ToolOutcome:
        if invocation.position + 1 < len(ended):
            assert ended[invocation.position + 1].wait(timeout=60)
        ended[invocation.position].set()
        return ToolOutcome(f"result {invocation.position}")

    calls = [call("same", position) for position in range(3)]
    results = [ToolOutcome(f"result {position}") for position in range(3)]
    with open_store(path, "new_episodes") as store, ThreadPoolExecutor(3) as pool:
        session = store.session("a")
        tools = RecordedTools(Functions(same=last_one_first), session, mode="replay")
        ask(session, "go", live="do all")
        assert list(pool.map(tools.invoke, calls)) == results
        session.finish()
    with open_store(path) as store:
        session = store.session("a")
        ask(session, "go", live="never")
        tools = RecordedTools(Functions(), session, mode="replay")
        assert [tools.invoke(each) for each in (calls[1], calls[2], calls[0])] == [
            results[1],
            results[2],
            results[0],
        ]


def test_a_model_call_that_a_tool_makes_does_not_change_whose_the_other_calls_are(tmp_path: Path):
    path = tmp_path / "0.jsonl"
    elapsed = []
    for mode in ("new_episodes", "none"):
        with open_store(path, mode) as store:
            session = store.session("a")

            def think(invocation: ToolInvocation) -> ToolOutcome:
                return ToolOutcome(ask(session, "help me", live="so"), duration_s=2)  # noqa: B023

            tools = RecordedTools(
                Functions(think=think, plain=lambda _: ToolOutcome("p")), session, mode="replay"
            )
            ask(session, "go", live="think, then go on")
            assert tools.invoke(call("think")).content == "so"
            assert tools.invoke(call("plain", 1)).content == "p"
            elapsed.append(session.elapsed_s)
            session.finish()
    assert elapsed == [2.01, 2.01]


def test_parallel_calls_wait_until_the_folder_is_rebuilt(path: Path):
    """Two new calls at once: the served one must have run before either."""
    lines: list[str] = []

    def add(invocation: ToolInvocation) -> ToolOutcome:
        # Long enough for the other call to come first, if it may.
        threading.Event().wait(0.2)
        lines.append("one")
        return ToolOutcome("line 1")

    inner = Functions(add=add, read=lambda _: ToolOutcome(" ".join(lines)))
    both = threading.Barrier(2)

    def together(position: int) -> ToolOutcome:
        both.wait(timeout=60)
        return tools.invoke(call("read", position))

    with open_store(path, "new_episodes") as store, ThreadPoolExecutor(2) as pool:
        session = store.session("b")
        tools = RecordedTools(inner, session, mode="replay")
        ask(session, "go", live="never")
        tools.invoke(call("add", line="one"))
        ask(session, "go", "add it", "line 1", "more", live="read twice")
        assert [outcome.content for outcome in pool.map(together, (0, 1))] == ["one", "one"]


def test_served_calls_of_a_turn_are_run_again_in_its_order(tmp_path: Path):
    path = tmp_path / "0.jsonl"
    calls = [call("add", position, line=str(position)) for position in range(3)]
    for mode, order in (("a", (0, 1, 2)), ("b", (2, 0, 1))):
        inner = Notebook()
        with open_store(path, "new_episodes") as store:
            session = store.session(mode)
            tools = RecordedTools(inner, session, mode="replay")
            ask(session, "go", live="add three")
            for position in order:
                tools.invoke(calls[position])
            tools.rebuild()
            session.finish()
        assert inner.lines == ["0", "1", "2"]

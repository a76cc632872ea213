"""Calls of a turn at the same time: really so, never too many, and told in call order."""

from __future__ import annotations

import threading
from contextvars import ContextVar
from typing import Any

import pytest

from harness.loop.engine import Loop
from harness.providers.scripted import turn
from harness.schema.loop_config import TerminationReason as Reason
from harness.schema.messages import ModelTurn
from harness.schema.record import Json, JsonObject
from harness.schema.signals import Signal
from harness.schema.trajectory import Event, Trajectory
from harness.values import Judgement, PendingCall
from tests.loop.support import FunctionTool, answered, call, make, raises, returns, run

PATIENCE_S = 30
DONE = turn("done")


class Meeting:
    """A tool that returns only when enough calls of it run at the same time."""

    def __init__(self, size: int) -> None:
        self.barrier = threading.Barrier(size)
        self.tool = FunctionTool("meet", self._meet)

    def _meet(self, arguments: JsonObject) -> Json:
        self.barrier.wait(PATIENCE_S)
        return arguments.get("n")


class Counter:
    """A tool that knows how many calls ran at the same time at most."""

    def __init__(self, name: str, *, sequential: bool = False) -> None:
        self.lock = threading.Lock()
        self.running: list[str] = []
        self.most: list[str] = []
        self.tools = [FunctionTool(name, self._count, sequential=sequential)]

    def _count(self, arguments: JsonObject) -> Json:
        with self.lock:
            self.running.append("x")
            self.most = max(self.most, list(self.running), key=len)
        # Others get their chance: what they see does not depend on it.
        threading.Event().wait(0.005)
        with self.lock:
            self.running.pop()
        return "counted"


def many(name: str, number: int) -> ModelTurn:
    return turn(calls=[call(f"c{n}", name, n=n) for n in range(number)])


def contents(trajectory: Trajectory, at: int = 2) -> list[str]:
    return [result.content for result in trajectory.messages[at].tool_results]


def test_calls_run_at_the_same_time_and_results_keep_their_order() -> None:
    trajectory, _ = run([many("meet", 4), DONE], tools=[Meeting(4).tool], parallel_tools=4)
    assert contents(trajectory) == ["0", "1", "2", "3"]
    assert trajectory.tools_executed == ("meet",) * 4
    answered(trajectory)


def test_no_more_calls_than_allowed_run_at_the_same_time() -> None:
    counter = Counter("count")
    run([many("count", 7), DONE], tools=counter.tools, parallel_tools=3)
    assert len(counter.most) <= 3


def test_by_default_one_call_runs_at_a_time() -> None:
    counter = Counter("count")
    run([many("count", 4), DONE], tools=counter.tools)
    assert len(counter.most) == 1


def test_later_batches_wait_for_earlier_ones() -> None:
    meeting = Meeting(2)
    trajectory, _ = run([many("meet", 6), DONE], tools=[meeting.tool], parallel_tools=2)
    assert contents(trajectory) == [str(n) for n in range(6)]


def test_a_sequential_tool_runs_alone_between_the_others() -> None:
    order: list[str] = []
    meeting, another_began = threading.Barrier(2), threading.Event()

    def meet(arguments: JsonObject) -> Json:
        if arguments["n"] == 3:
            another_began.set()
        meeting.wait(PATIENCE_S)
        order.append("meet")
        return "met"

    def alone(_: JsonObject) -> Json:
        # Were another call running, it would begin in this while.
        assert not another_began.wait(0.05)
        order.append("alone")
        return "was alone"

    names = ["meet", "meet", "alone", "meet", "meet"]
    calls = turn(calls=[call(f"c{n}", name, n=n) for n, name in enumerate(names)])
    tools = [FunctionTool("meet", meet), FunctionTool("alone", alone, sequential=True)]
    trajectory, _ = run([calls, DONE], tools=tools, parallel_tools=8)
    assert order == names
    assert contents(trajectory) == ["met", "met", "was alone", "met", "met"]


@pytest.mark.parametrize("parallel_tools", [1, 2, 4])
def test_failures_are_counted_in_call_order(parallel_tools: int) -> None:
    calls = [call("1", "bad"), call("2", "good"), call("3", "bad"), call("4", "bad")]
    tools = [raises("bad"), returns("good", "fine")]
    for threshold, ended in ((2, True), (3, False)):
        trajectory, _ = run(
            [turn(calls=calls), DONE],
            tools=tools,
            parallel_tools=parallel_tools,
            error_threshold=threshold,
        )
        assert (trajectory.termination_reason is Reason.ERROR) is ended


def test_what_ran_beside_the_last_straw_keeps_its_result_and_what_did_not_is_told_so() -> None:
    calls = [call("1", "bad"), call("2", "good"), call("3", "good")]
    trajectory, _ = run(
        [turn(calls=calls)],
        tools=[raises("bad"), returns("good", "fine")],
        parallel_tools=2,
        error_threshold=1,
    )
    assert contents(trajectory)[1:] == ["fine", "Not run: the run ended (error)."]
    assert trajectory.tools_executed == ("bad", "good")


def test_denied_and_unknown_siblings_are_answered_at_their_places() -> None:
    def no_two(pending: PendingCall) -> Judgement:
        denied = pending.arguments.get("n") == 2
        return Judgement("denied", "not two") if denied else Judgement("allowed")

    names = ["meet", "nope", "meet", "meet"]
    calls = turn(calls=[call(f"c{n}", name, n=n) for n, name in enumerate(names)])
    trajectory, _ = run(
        [calls, DONE],
        tools=[Meeting(1).tool],
        parallel_tools=4,
        setup={"checks": [no_two]},
    )
    assert contents(trajectory) == [
        "0",
        "Unknown tool 'nope'. Tools: meet.",
        "Denied: not two.",
        "3",
    ]
    assert trajectory.tool_calls_made == 2
    answered(trajectory)


def test_a_tool_budget_holds_within_a_batch() -> None:
    trajectory, _ = run(
        [many("meet", 4)], tools=[Meeting(2).tool], parallel_tools=4, budget={"max_tool_calls": 2}
    )
    assert trajectory.termination_reason is Reason.BUDGET_EXCEEDED
    assert [result.is_error for result in trajectory.messages[2].tool_results] == [
        False,
        False,
        True,
        True,
    ]
    assert trajectory.tool_calls_made == 2
    answered(trajectory)


def test_signals_are_taken_in_call_order() -> None:
    second_first = threading.Event()

    def late(_: JsonObject) -> Any:
        assert second_first.wait(PATIENCE_S)
        return Signal(name="A")

    def early(_: JsonObject) -> Any:
        second_first.set()
        return Signal(name="B")

    calls = turn(calls=[call("a", "late"), call("b", "early")])
    trajectory, _ = run(
        [calls],
        tools=[FunctionTool("late", late), FunctionTool("early", early)],
        parallel_tools=2,
    )
    assert trajectory.signal == "B", "the last in call order, not in time"


WHO: ContextVar[str] = ContextVar("WHO", default="nobody")


@pytest.mark.parametrize("parallel_tools", [1, 2])
def test_tools_see_the_callers_context(parallel_tools: int) -> None:
    token = WHO.set("me")
    try:
        trajectory, _ = run(
            [many("who", 2), DONE],
            tools=[FunctionTool("who", lambda _: WHO.get())],
            parallel_tools=parallel_tools,
        )
    finally:
        WHO.reset(token)
    assert contents(trajectory) == ["me", "me"]


def test_a_cancel_lets_its_batch_finish_and_no_other_begin() -> None:
    loops: list[Loop] = []
    meeting = Meeting(2)

    def observe(event: Event) -> None:
        if event.kind == "tool_started" and event.data["id"] == "c1":
            loops[0].cancel()

    loop, _ = make([many("meet", 5)], tools=[meeting.tool], parallel_tools=2, observers=[observe])
    loops.append(loop)
    trajectory = loop.run("Do the task.")
    assert trajectory.termination_reason is Reason.CANCELLED
    assert contents(trajectory) == ["0", "1", *["Not run: the run ended (cancelled)."] * 3]


@pytest.mark.parametrize("at_once", [1, 2])
@pytest.mark.parametrize("how", [{"tool_error": "fail"}, {"error_threshold": 1}])
def test_no_call_runs_after_one_that_certainly_ends_the_run(at_once: int, how: Any) -> None:
    both = turn(calls=[("1", "look", "{bad"), call("2", "look")])
    trajectory, _ = run([both], tools=[returns("look", "seen")], parallel_tools=at_once, **how)
    assert trajectory.termination_reason in (Reason.TOOL_ERROR, Reason.ERROR)
    assert trajectory.tools_executed == ()
    assert len(trajectory.messages[-1].tool_results) == 2


def test_a_cancel_while_calls_are_started_starts_no_more_of_them() -> None:
    loops: list[Loop] = []

    def cancel(event: Event) -> None:
        if event.kind == "tool_started":
            loops[0].cancel("enough")

    loop, _ = make(
        [many("look", 3), DONE],
        tools=[returns("look", "seen")],
        parallel_tools=3,
        observers=[cancel],
    )
    loops.append(loop)
    trajectory = loop.run("Do the task.")
    assert trajectory.termination_reason is Reason.CANCELLED
    assert trajectory.tools_executed == ("look",)
    told = [(one.content, one.is_error) for one in trajectory.messages[-1].tool_results]
    assert told == [("seen", False)] + 2 * [("Not run: the run ended (cancelled).", True)]

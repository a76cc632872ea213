"""Cancelling: no further model call, nothing unanswered, and it beats every other ending."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from harness.errors import ModelCallError
from harness.loop.engine import Loop
from harness.providers.scripted import turn
from harness.schema.loop_config import TerminationReason as Reason
from harness.schema.messages import ModelTurn, StopReason
from harness.schema.record import Json, JsonObject
from harness.schema.trajectory import EventKind, Trajectory
from tests.loop.support import (
    FunctionTool,
    answered,
    call,
    kinds,
    long_enough,
    make,
    output,
    returns,
    run,
)


def cancel_on(kind: EventKind, turns: list[Any], **how: Any) -> tuple[Trajectory, list[str]]:
    """Run with a cancel that comes at the first event of a kind, and say what tools ran."""
    ran: list[str] = []
    loops: list[Loop] = []

    def observe(event: Any) -> None:
        if event.kind == kind:
            loops[0].cancel("enough")

    def work(_: JsonObject) -> Json:
        ran.append("work")
        return "worked"

    tools = [FunctionTool("work", work), *how.pop("tools", ())]
    loop, _ = make(turns, tools=tools, observers=[observe], **how)
    loops.append(loop)
    return loop.run("Do the task."), ran


WORK = turn(calls=[call("w1", "work"), call("w2", "work")])


def test_a_run_cancelled_before_it_starts_makes_no_model_call() -> None:
    loop, provider = make([turn("never asked")])
    loop.cancel("changed my mind")
    trajectory = loop.run("Do the task.")
    assert trajectory.termination_reason is Reason.CANCELLED
    assert (trajectory.error, trajectory.iterations, provider.requests) == (
        "changed my mind",
        0,
        [],
    )
    assert kinds(trajectory).count("run_completed") == 1
    assert loop.run("Again.").termination_reason is Reason.COMPLETED, "a cancel is for one run"


def test_a_running_tool_finishes_and_its_siblings_are_answered_unrun() -> None:
    trajectory, ran = cancel_on("tool_started", [WORK])
    assert trajectory.termination_reason is Reason.CANCELLED
    assert ran == ["work"]
    assert "tool_completed" in kinds(trajectory)
    assert [result.content for result in trajectory.messages[-1].tool_results] == [
        "worked",
        "Not run: the run ended (cancelled).",
    ]


@pytest.mark.parametrize("kind", ["model_request", "model_response"])
def test_calls_of_an_answer_that_comes_after_the_cancel_are_not_run(kind: EventKind) -> None:
    trajectory, ran = cancel_on(kind, [WORK])
    assert (trajectory.termination_reason, ran) == (Reason.CANCELLED, [])
    assert trajectory.model_calls == 1
    assert trajectory.messages[-1].tool_results[0].content == "Not run: enough."
    answered(trajectory)


@pytest.mark.parametrize("kind", ["run_started", "attempt_started", "iteration_started"])
def test_no_model_call_starts_after_the_cancel(kind: EventKind) -> None:
    trajectory, _ = cancel_on(kind, [turn("never asked")])
    assert trajectory.termination_reason is Reason.CANCELLED
    assert (trajectory.model_calls, trajectory.iterations) == (0, 0)


GOOD = turn(calls=[call("o1", "output", result="long enough")])
SHORT = turn(calls=[call("o1", "output", result="short")])
BEATEN: list[tuple[EventKind, list[Any], dict[str, Any]]] = [
    ("model_request", [turn("done")], {}),
    ("model_request", [turn("no", stop=StopReason.REFUSAL)], {}),
    ("model_request", [ModelCallError("down")], {}),
    ("model_error", [ModelCallError("down")], {}),
    ("iteration_completed", [turn("done")], {}),
    ("model_request", [GOOD], {"output": output()}),
    ("tool_detected", [GOOD], {"output": output()}),
    ("validation_started", [GOOD], {"output": output()}),
    ("validation_passed", [GOOD], {"output": output()}),
    ("validation_failed", [SHORT], {"output": output(long_enough), "max_attempts": 1}),
    ("nudged", [turn("hm")], {"output": output()}),
    ("confirmation_asked", [turn("hm")], {"confirm": {"enabled": True}}),
    ("tool_started", [WORK], {"max_iterations": 1}),
    (
        "tool_started",
        [turn(calls=[call("o1", "output", result="x"), call("w1", "work")])],
        {"output": output()},
    ),
    ("tool_detected", [turn(calls=[call("x", "nope")])], {"tool_error": "fail"}),
    ("tool_failed", [turn(calls=[call("s", "says")])], {"error_threshold": 1}),
    ("tool_detected", [WORK], {"budget": {"max_tool_calls": 0}}),
]


@pytest.mark.parametrize(("kind", "turns", "how"), BEATEN)
def test_a_cancel_beats_the_ending_of_its_turn(
    kind: EventKind, turns: list[Any], how: dict[str, Any]
) -> None:
    trajectory, _ = cancel_on(kind, turns, tools=[returns("says", {"success": False})], **how)
    assert trajectory.termination_reason is Reason.CANCELLED
    assert trajectory.error == "enough"
    assert trajectory.model_calls == 1
    assert trajectory.events[-1].data["reason"] == "cancelled"
    answered(trajectory)


def test_a_cancel_may_come_from_another_thread() -> None:
    asked, go_on = threading.Event(), threading.Event()

    def script() -> Iterator[ModelTurn]:
        asked.set()
        go_on.wait(30)
        yield WORK

    loop, provider = make(script(), tools=[returns("work", "worked")])
    ended: list[Trajectory] = []
    thread = threading.Thread(target=lambda: ended.append(loop.run("Do the task.")))
    thread.start()
    asked.wait(30)
    loop.cancel()
    go_on.set()
    thread.join(30)
    assert ended[0].termination_reason is Reason.CANCELLED
    assert (ended[0].error, len(provider.requests)) == (None, 1)
    assert ended[0].tools_executed == ()


def test_an_uncancelled_run_is_the_control() -> None:
    trajectory, _ = run([WORK, turn("done")], tools=[returns("work", "worked")])
    assert trajectory.tools_executed == ("work", "work")

"""What tools ask of the run besides answering: signals, terminal tools, blocks."""

from __future__ import annotations

from typing import Any

import pytest

from harness.providers.scripted import turn
from harness.schema.loop_config import TerminationReason as Reason
from harness.schema.record import Json, JsonObject
from harness.schema.signals import Blocked, Signal, Suspend
from harness.values import ToolOutcome
from tests.loop.support import FunctionTool, answered, call, fails, raises, returns, run

DONE = turn("done")
FINISH = turn(calls=[call("f", "finish")])


def asks(name: str, request: Any) -> FunctionTool:
    def function(_: JsonObject) -> Any:
        return request

    return FunctionTool(name, function)


@pytest.mark.parametrize("data", [None, {"files": 3}, [], "text"])
def test_any_tool_may_end_the_run_with_a_signal_and_data(data: Json) -> None:
    trajectory, provider = run([FINISH], tools=[asks("finish", Signal(name="READY", data=data))])
    assert trajectory.termination_reason is Reason.SIGNAL
    assert (trajectory.signal, trajectory.signal_data) == ("READY", data)
    assert (trajectory.error, len(provider.requests)) == (None, 1)
    answered(trajectory)


def test_a_signal_may_come_with_a_text_for_the_model() -> None:
    outcome = ToolOutcome("all handed over", asks=Signal(name="READY"))
    trajectory, _ = run([FINISH], tools=[asks("finish", outcome)])
    assert trajectory.messages[-1].tool_results[0].content == "all handed over"
    assert trajectory.signal == "READY"


def test_a_terminal_tool_that_gives_no_signal_gets_one() -> None:
    trajectory, _ = run(
        [FINISH], tools=[returns("finish", {"n": 1})], setup={"terminal_tools": ["finish"]}
    )
    assert trajectory.termination_reason is Reason.SIGNAL
    assert (trajectory.signal, trajectory.signal_data) == ("TERMINAL_COMPLETE", '{"n": 1}')


def test_a_terminal_tools_own_signal_stays() -> None:
    trajectory, _ = run(
        [FINISH], tools=[asks("finish", Signal(name="OWN"))], setup={"terminal_tools": ["finish"]}
    )
    assert trajectory.signal == "OWN"


@pytest.mark.parametrize(
    "tool",
    [
        raises("finish"),
        fails("finish"),
        returns("finish", {"success": False}),
        asks("finish", ToolOutcome("no", "failed", asks=Signal(name="OWN"))),
    ],
)
def test_a_terminal_call_that_failed_does_not_end_the_run(tool: FunctionTool) -> None:
    trajectory, _ = run(
        [FINISH, DONE], tools=[tool], text_only="accept", setup={"terminal_tools": ["finish"]}
    )
    assert (trajectory.termination_reason, trajectory.signal) == (Reason.COMPLETED, None)


def test_a_terminal_call_that_cannot_run_does_not_end_the_run() -> None:
    malformed = turn(calls=[("f", "finish", "{")])
    trajectory, _ = run(
        [malformed, FINISH],
        tools=[returns("finish", "")],
        setup={"terminal_tools": ["finish"]},
    )
    assert (trajectory.iterations, trajectory.termination_reason) == (2, Reason.SIGNAL)


def test_where_a_terminal_tool_is_declared_a_text_is_reminded_of_it() -> None:
    trajectory, provider = run(
        [turn("hm"), FINISH], tools=[returns("finish", "")], setup={"terminal_tools": ["finish"]}
    )
    assert provider.requests[1].messages[-1].text == "You have not finished. Go on with a tool."
    assert trajectory.termination_reason is Reason.SIGNAL


def test_a_tool_that_says_the_run_cannot_go_on_ends_it_and_its_later_siblings() -> None:
    calls = turn(calls=[call("a", "look"), call("b", "stuck"), call("c", "look")])
    trajectory, _ = run(
        [calls], tools=[returns("look", "seen"), asks("stuck", Blocked(reason="no disk"))]
    )
    assert (trajectory.termination_reason, trajectory.error) == (Reason.BLOCKED, "no disk")
    assert trajectory.tools_executed == ("look", "stuck")
    assert trajectory.messages[-1].tool_results[2].content == "Not run: the run ended (blocked)."


@pytest.mark.parametrize("other", [Signal(name="READY"), Suspend(correlation_id="c")])
def test_a_block_wins_over_what_else_is_asked(other: Any) -> None:
    calls = turn(calls=[call("a", "other"), call("b", "stuck")])
    trajectory, _ = run(
        [calls], tools=[asks("other", other), asks("stuck", Blocked(reason="no disk"))]
    )
    assert (trajectory.termination_reason, trajectory.signal) == (Reason.BLOCKED, None)
    assert trajectory.suspended is None

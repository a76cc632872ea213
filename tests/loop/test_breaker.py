"""The breaker: a call that keeps failing in the same way is no longer run."""

from __future__ import annotations

from typing import Any

import pytest

from harness.protocols import Hook
from harness.providers.scripted import turn
from harness.schema.loop_config import TerminationReason as Reason
from harness.schema.record import Json, JsonObject
from harness.schema.trajectory import Trajectory
from harness.values import PendingCall
from tests.loop.support import FunctionTool, answered, call, raises, run

DONE = turn("done")
OPEN = "Not run: this call failed 2 times with the same error; try something else."
SETTINGS: dict[str, Any] = {"breaker": 2, "error_threshold": 0}


def tries(*calls: tuple[str, str, str]) -> list[Any]:
    return [*(turn(calls=[one]) for one in calls), DONE]


def answers(trajectory: Trajectory) -> list[str]:
    return [result.content for message in trajectory.messages for result in message.tool_results]


def same(number: int) -> list[tuple[str, str, str]]:
    return [(f"c{n}", "bad", ['{"a": 1, "b": 2}', '{"b":2,"a":1}'][n % 2]) for n in range(number)]


def test_a_call_that_failed_often_enough_is_answered_and_not_run() -> None:
    trajectory, _ = run(tries(*same(5)), tools=[raises("bad")], **SETTINGS)
    assert answers(trajectory)[2:] == [OPEN] * 3
    assert trajectory.tool_calls_made == 2
    assert trajectory.termination_reason is Reason.COMPLETED
    answered(trajectory)


def test_other_arguments_are_another_call() -> None:
    calls = [call(f"c{n}", "bad", n=n) for n in range(5)]
    trajectory, _ = run(tries(*calls), tools=[raises("bad")], **SETTINGS)
    assert trajectory.tool_calls_made == 5


@pytest.mark.parametrize(
    ("pattern", "made"),
    [("xxxxx", 2), ("xyxyxy", 6), ("xyyx", 3), ("x.x.x.", 6), ("x.xx.", 4)],
)
def test_another_error_and_a_success_start_the_count_again(pattern: str, made: int) -> None:
    outcomes = iter(pattern)

    def act(_: JsonObject) -> Json:
        outcome = next(outcomes)
        if outcome != ".":
            raise RuntimeError(outcome)
        return "fine"

    tools = [FunctionTool("bad", act)]
    trajectory, _ = run(tries(*same(len(pattern))), tools=tools, **SETTINGS)
    assert trajectory.tool_calls_made == made


def test_calls_that_were_not_run_neither_count_as_failed_nor_reset() -> None:
    turns = tries(*same(6), call("other", "worse"))
    trajectory, _ = run(turns, tools=[raises("bad"), raises("worse")], breaker=2, error_threshold=3)
    assert trajectory.termination_reason is Reason.ERROR
    assert trajectory.tools_executed == ("bad", "bad", "worse")


def test_it_is_off_by_default() -> None:
    trajectory, _ = run(tries(*same(6)), tools=[raises("bad")], error_threshold=0)
    assert trajectory.tool_calls_made == 6


def test_what_hooks_make_of_the_arguments_does_not_hide_the_call() -> None:
    stamps = iter(range(9))

    def stamp(pending: PendingCall) -> JsonObject:
        return {**pending.arguments, "stamp": next(stamps)}

    trajectory, _ = run(
        tries(*same(5)),
        tools=[raises("bad")],
        setup={"hooks": [Hook(before_tool=stamp)]},
        **SETTINGS,
    )
    assert trajectory.tool_calls_made == 2


def test_a_tool_that_changes_its_arguments_does_not_hide_the_call() -> None:
    def act(arguments: JsonObject) -> Json:
        arguments.clear()
        raise RuntimeError("boom")

    trajectory, _ = run(tries(*same(5)), tools=[FunctionTool("bad", act)], **SETTINGS)
    assert trajectory.tool_calls_made == 2

"""Calls that hand something in, beside their siblings: outputs, submits, completions."""

from __future__ import annotations

from typing import Any

import pytest

from harness.providers.scripted import turn
from harness.schema.loop_config import TerminationReason as Reason
from harness.schema.record import Json, JsonObject
from harness.schema.trajectory import Trajectory
from tests.loop.support import (
    FunctionTool,
    answered,
    call,
    kinds,
    long_enough,
    output,
    preview,
    raises,
    returns,
    run,
)

TOOLS = [returns("a", "did a"), returns("b", "did b"), returns("finish", "finished")]
CALLS = [call("1", "a"), call("2", "output", result="first"), call("3", "b")]
UNRUN = "Not run: another call of this turn was to end the run."


def contents(trajectory: Trajectory, at: int = 2) -> list[str]:
    return [result.content for result in trajectory.messages[at].tool_results]


@pytest.mark.parametrize(
    ("end_strategy", "ran"), [("exhaustive", ("a", "b")), ("graceful", ("a",)), ("early", ())]
)
def test_siblings_of_an_output_run_as_the_strategy_says(
    end_strategy: str, ran: tuple[str, ...]
) -> None:
    trajectory, _ = run(
        [turn(calls=CALLS)], tools=TOOLS, output=output(), end_strategy=end_strategy
    )
    assert trajectory.termination_reason is Reason.COMPLETED
    assert (trajectory.tools_executed, trajectory.output) == (ran, {"result": "first"})
    told = contents(trajectory)
    assert told[1] == "Accepted."
    assert [told[0] == UNRUN, told[2] == UNRUN] == ["a" not in ran, "b" not in ran]
    answered(trajectory)


@pytest.mark.parametrize(
    ("end_strategy", "ran"),
    [
        ("exhaustive", ("a", "finish", "b")),
        ("graceful", ("a", "finish")),
        ("early", ("finish",)),
    ],
)
def test_siblings_of_a_terminal_call_run_as_the_strategy_says(
    end_strategy: str, ran: tuple[str, ...]
) -> None:
    calls = [call("1", "a"), call("2", "finish"), call("3", "b")]
    trajectory, _ = run(
        [turn(calls=calls)],
        tools=TOOLS,
        end_strategy=end_strategy,
        setup={"terminal_tools": ["finish"]},
    )
    assert trajectory.termination_reason is Reason.SIGNAL
    assert trajectory.tools_executed == ran
    answered(trajectory)


@pytest.mark.parametrize("end_strategy", ["exhaustive", "graceful", "early"])
@pytest.mark.parametrize("order", [1, -1])
def test_a_draft_is_taken_and_shown_beside_a_submit_whatever_the_strategy(
    end_strategy: str, order: int
) -> None:
    both = [call("o", "output", result="draft"), call("s", "submit")][::order]
    trajectory, _ = run(
        [turn(calls=[*both, call("3", "b")])],
        tools=TOOLS,
        output=output(handler=preview),
        reflection=True,
        end_strategy=end_strategy,
    )
    assert trajectory.termination_reason is Reason.COMPLETED
    assert trajectory.output == {"result": "draft"}
    assert "Preview: draft" in contents(trajectory)
    assert trajectory.tools_executed == (("b",) if end_strategy == "exhaustive" else ())


def test_a_draft_alone_closes_nothing() -> None:
    calls = [call("o", "output", result="draft"), call("3", "b")]
    trajectory, _ = run(
        [turn(calls=calls), turn(calls=[call("s", "submit")])],
        tools=TOOLS,
        output=output(handler=preview),
        reflection=True,
        end_strategy="early",
    )
    assert trajectory.tools_executed == ("b",)


@pytest.mark.parametrize(("multi_output", "result"), [("last", "two"), ("first", "one")])
@pytest.mark.parametrize("end_strategy", ["exhaustive", "graceful", "early"])
def test_of_several_outputs_one_counts(multi_output: str, result: str, end_strategy: str) -> None:
    calls = [call("1", "output", result="one"), call("2", "output", result="two")]
    trajectory, _ = run(
        [turn(calls=calls)], output=output(), multi_output=multi_output, end_strategy=end_strategy
    )
    assert trajectory.output == {"result": result}
    assert contents(trajectory) == ["Accepted.", "Accepted."]


def test_a_rejected_output_is_told_of_at_every_output_of_its_turn() -> None:
    calls = [call("1", "output", result="one"), call("2", "a"), call("3", "output", result="two")]
    good = turn(calls=[call("4", "output", result="long enough")])
    trajectory, _ = run([turn(calls=calls), good], tools=TOOLS, output=output(long_enough))
    first, second, third = trajectory.messages[2].tool_results
    assert first.content == third.content
    assert first.content.startswith("Validation failed: result is too short")
    assert (first.is_error, second.is_error, third.is_error) == (True, False, True)
    assert (trajectory.attempts, trajectory.output) == (2, {"result": "long enough"})


def test_a_malformed_output_is_a_failed_call_and_no_attempt() -> None:
    good = turn(calls=[call("2", "output", result="r")])
    trajectory, _ = run([turn(calls=[("1", "output", "{")]), good], output=output())
    assert (trajectory.attempts, trajectory.iterations) == (1, 2)
    ended, _ = run([turn(calls=[("1", "output", "{")])], output=output(), error_threshold=1)
    assert ended.termination_reason is Reason.ERROR


def test_an_output_that_a_failed_sibling_stops_is_not_taken() -> None:
    calls = [call("1", "bad"), call("2", "output", result="r")]
    trajectory, _ = run(
        [turn(calls=calls)], tools=[raises("bad")], output=output(), tool_error="fail"
    )
    assert (trajectory.termination_reason, trajectory.output_seen) == (Reason.TOOL_ERROR, False)
    assert contents(trajectory)[1] == "Not run: the run ended (tool_error)."


def test_calls_over_the_cap_may_be_dropped_with_all_that_tells_of_them() -> None:
    ran: list[str] = []

    def note(arguments: JsonObject) -> Json:
        ran.append(str(arguments["n"]))
        return "noted"

    calls = [call(f"c{n}", "note", n=n) for n in range(4)]
    trajectory, provider = run(
        [turn("all at once", calls=calls), turn("done")],
        tools=[FunctionTool("note", note)],
        max_tool_calls_per_turn=2,
        overflow="drop",
    )
    assert ran == ["0", "1"]
    for messages in (trajectory.messages, provider.requests[1].messages):
        assert [block.id for block in messages[1].tool_calls] == ["c0", "c1"]
        assert messages[1].text == "all at once"
    assert kinds(trajectory).count("tool_detected") == 2
    answered(trajectory)


COMPLETE = '{"analysis": "a", "plan": "p", "commands": [], "task_complete": true}'
LOOK = '{"analysis": "a", "plan": "p", "commands": [{"keystrokes": "ls\\n", "duration": 1}]}'


def terminus(texts: list[str], **settings: Any) -> tuple[Trajectory, Any]:
    how: dict[str, Any] = {"text_protocol": "terminus2", "confirm": {"enabled": True}, **settings}
    return run([turn(text) for text in texts], tools=[returns("keystrokes", "$")], **how)


def test_a_completion_is_asked_back_once_and_taken_the_second_time_in_a_row() -> None:
    trajectory, _ = terminus([COMPLETE, COMPLETE])
    assert trajectory.termination_reason is Reason.COMPLETED
    assert (trajectory.confirmed, trajectory.iterations) == (True, 2)
    assert kinds(trajectory).count("confirmation_asked") == 1
    assert "Are you sure" in contents(trajectory)[1]
    assert contents(trajectory, at=4) == ["$", "Accepted."]
    assert trajectory.usage_by_tag["confirm"].missing_calls == 1
    answered(trajectory)


def test_a_turn_of_work_between_re_arms_the_question() -> None:
    trajectory, _ = terminus([COMPLETE, LOOK, COMPLETE, COMPLETE])
    assert (trajectory.iterations, trajectory.confirmed) == (4, True)
    assert kinds(trajectory).count("confirmation_asked") == 2


def test_without_the_question_a_completion_is_taken_at_once() -> None:
    trajectory, _ = terminus([COMPLETE], confirm={"enabled": False})
    assert (trajectory.termination_reason, trajectory.confirmed) == (Reason.COMPLETED, None)

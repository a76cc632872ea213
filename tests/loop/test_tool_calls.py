"""What becomes of each call of a turn, and what counts as failed."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import pytest

from harness.protocols import Tool
from harness.providers.scripted import turn
from harness.schema.loop_config import TerminationReason as Reason
from harness.schema.messages import ToolResult
from harness.schema.record import Json, JsonObject
from harness.tools.registry import Registry
from harness.values import ToolInvocation, ToolOutcome
from tests.loop.support import (
    FunctionTool,
    answered,
    call,
    fails,
    kinds,
    last_results,
    output,
    preview,
    raises,
    returns,
    run,
)

DONE = turn("done")
NEEDS_PATH: JsonObject = {
    "type": "object",
    "properties": {"path": {"type": "string"}},
    "required": ["path"],
}


def results_of(
    calls: Sequence[tuple[str, str, str]], tools: Sequence[Tool], **settings: Any
) -> list[ToolResult]:
    """What the model is answered to one turn."""
    _, provider = run([turn(calls=calls), DONE], tools=tools, **settings)
    return last_results(provider.requests[1].messages)


def test_results_are_one_user_turn_in_call_order() -> None:
    calls = [call("1", "b"), call("2", "a"), call("3", "nope"), call("4", "b")]
    trajectory, provider = run(
        [turn("Looking.", calls=calls), DONE], tools=[returns("a", "A"), returns("b", "B")]
    )
    assert [request_role.role for request_role in provider.requests[1].messages] == [
        "user",
        "assistant",
        "user",
    ]
    results = last_results(provider.requests[1].messages)
    assert [(block.call_id, block.content) for block in results] == [
        ("1", "B"),
        ("2", "A"),
        ("3", "Unknown tool 'nope'. Tools: a, b."),
        ("4", "B"),
    ]
    assert trajectory.tools_executed == ("b", "a", "b")
    assert trajectory.tools_used == ("b", "a")
    assert trajectory.tool_calls_made == 3


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ("not json", "Malformed arguments: not valid JSON"),
        ('{"path": ', "Malformed arguments: not valid JSON"),
        ("[1]", "Malformed arguments: an object is needed, not list"),
        ("null", "Malformed arguments: an object is needed, not NoneType"),
        ('{"path": "\\ud800"}', "Malformed arguments: not valid JSON"),
        ('{"path": "a", "n": NaN}', "Malformed arguments: not valid JSON"),
        ('{"path": ' + "[" * 100_000, "Malformed arguments: not valid JSON"),
        ('{"path": 1}', "Arguments do not fit the tool's schema: ['path']: 1 is not of type"),
        ("{}", "Arguments do not fit the tool's schema: 'path' is a required property"),
        ("", "Arguments do not fit the tool's schema: 'path' is a required property"),
    ],
)
def test_arguments_that_cannot_be_used_are_answered_and_not_run(
    arguments: str, complaint: str
) -> None:
    def never(_: JsonObject) -> Json:
        raise AssertionError("never run")

    tool = FunctionTool("read", never, NEEDS_PATH)
    trajectory, provider = run([turn(calls=[("r1", "read", arguments)]), DONE], tools=[tool])
    result = last_results(provider.requests[1].messages)[0]
    assert result.is_error
    assert result.content.startswith(complaint)
    assert trajectory.tools_executed == ()
    assert "tool_started" not in kinds(trajectory)


def test_no_arguments_at_all_are_an_empty_object() -> None:
    tool = FunctionTool("echo", lambda arguments: arguments)
    assert results_of([("1", "echo", " ")], [tool])[0].content == "{}"


def test_an_unknown_tool_without_any_tools_says_so() -> None:
    assert results_of([call("1", "nope")], [])[0].content == "Unknown tool 'nope'. Tools: none."


@pytest.mark.parametrize("tool", [raises("t", "no disk"), fails("t", "no disk")])
def test_a_failed_tool_is_an_error_result_with_its_text(tool: FunctionTool) -> None:
    result = results_of([call("1", "t")], [tool])[0]
    assert (result.is_error, "no disk" in result.content) == (True, True)


def test_a_tool_past_its_time_is_an_error_result_and_an_event_of_its_own() -> None:
    release = threading.Event()

    def slow(_: JsonObject) -> Json:
        release.wait(30)
        return "late"

    trajectory, provider = run(
        [turn(calls=[call("1", "slow")]), DONE],
        tools=[FunctionTool("slow", slow)],
        tool_timeout_s=0.05,
    )
    release.set()
    assert last_results(provider.requests[1].messages)[0].is_error
    assert trajectory.tools_executed == ("slow",)
    assert "tool_timed_out" in kinds(trajectory)
    assert not {"tool_completed", "tool_failed"} & set(kinds(trajectory))


@pytest.mark.parametrize(
    ("result", "semantic_failures", "is_error"),
    [
        ({"success": False, "error": "not found"}, True, True),
        ('{"success": false}', True, True),
        ({"success": False}, False, False),
        ({"success": 0}, True, False),
        ({"success": "false"}, True, False),
        ({"exit_code": 1}, True, False),
        ([{"success": False}], True, False),
        ("success: false", True, False),
        (None, True, False),
        ("[" * 100_000, True, False),
    ],
)
def test_a_result_that_says_success_false_is_a_failure(
    result: Json, semantic_failures: bool, is_error: bool
) -> None:
    results = results_of(
        [call("1", "edit")], [returns("edit", result)], semantic_failures=semantic_failures
    )
    assert results[0].is_error is is_error


def test_failures_of_every_kind_count_towards_the_threshold() -> None:
    release = threading.Event()

    def slow(_: JsonObject) -> Json:
        release.wait(30)
        return "late"

    tools = [
        raises("raising"),
        fails("failing"),
        FunctionTool("slow", slow),
        returns("semantic", {"success": False}),
        FunctionTool("strict", lambda _: "never", NEEDS_PATH),
        returns("good", "fine"),
    ]
    names = ["raising", "failing", "slow", "semantic", "strict", "unknown"]
    calls = [call(name, name) for name in names]
    calls.append(("malformed", "good", "{"))
    for count in range(1, len(calls) + 1):
        trajectory, _ = run(
            [turn(calls=[*calls[:count], call("g", "good")]), DONE],
            tools=tools,
            error_threshold=count,
            tool_timeout_s=0.05,
        )
        assert trajectory.termination_reason is Reason.ERROR, calls[count - 1]
        assert trajectory.error is not None
        assert trajectory.error.startswith(f"{count} failed tool calls in a row; the last: ")
        last = trajectory.messages[-1].tool_results[-1]
        assert last.content == "Not run: the run ended (error)."
        answered(trajectory)
    release.set()


def test_a_successful_call_resets_the_failed_ones_across_turns() -> None:
    bad, good = turn(calls=[call("b", "bad")]), turn(calls=[call("g", "good")])
    trajectory, _ = run(
        [bad, bad, good, bad, bad, DONE], tools=[raises("bad"), returns("good", "fine")]
    )
    assert trajectory.termination_reason is Reason.COMPLETED


def test_surplus_calls_neither_count_nor_reset() -> None:
    bad = turn(calls=[call("b", "bad"), call("g", "good"), call("b2", "bad")])
    trajectory, _ = run(
        [bad, bad, bad],
        tools=[raises("bad"), returns("good", "fine")],
        max_tool_calls_per_turn=1,
        error_threshold=3,
    )
    assert (trajectory.termination_reason, trajectory.iterations) == (Reason.ERROR, 3)


def test_a_threshold_of_zero_is_off() -> None:
    bad = turn(calls=[call("b", "bad")])
    trajectory, _ = run([bad] * 9 + [DONE], tools=[raises("bad")], error_threshold=0)
    assert trajectory.termination_reason is Reason.COMPLETED


@pytest.mark.parametrize("name", ["bad", "unknown"])
def test_in_fail_mode_the_first_failed_call_ends_the_run(name: str) -> None:
    calls = [call("1", "good"), call("2", name), call("3", "good")]
    trajectory, _ = run(
        [turn(calls=calls)], tools=[returns("good", "fine"), raises("bad")], tool_error="fail"
    )
    assert trajectory.termination_reason is Reason.TOOL_ERROR
    results = last_results(trajectory.messages)
    assert [block.is_error for block in results] == [False, True, True]
    assert results[2].content == "Not run: the run ended (tool_error)."
    assert trajectory.error is not None
    assert trajectory.error.startswith(f"{name}: ")


def test_calls_over_the_cap_are_answered_with_an_error() -> None:
    calls = [call(str(number), "look") for number in range(4)]
    results = results_of(calls, [returns("look", "seen")], max_tool_calls_per_turn=2)
    assert [block.call_id for block in results] == ["0", "1", "2", "3"]
    assert [block.is_error for block in results] == [False, False, True, True]
    assert results[2].content == "Not run: at most 2 tool calls per turn are allowed."


def test_calls_over_the_cap_may_be_dropped_from_the_turn() -> None:
    calls = [call(str(number), "look") for number in range(4)]
    trajectory, provider = run(
        [turn("Looking.", calls=calls), DONE],
        tools=[returns("look", "seen")],
        max_tool_calls_per_turn=2,
        overflow="drop",
    )
    assistant, user = provider.requests[1].messages[1:]
    assert assistant.text == "Looking."
    assert [block.id for block in assistant.tool_calls] == ["0", "1"]
    assert [block.call_id for block in user.tool_results] == ["0", "1"]
    assert trajectory.tool_calls_made == 2


def test_output_and_submit_calls_are_never_counted_as_tool_calls() -> None:
    both = turn(calls=[call("o1", "output", result="x"), call("s1", "submit")])
    trajectory, _ = run(
        [both], output=output(handler=preview), reflection=True, budget={"max_tool_calls": 0}
    )
    assert trajectory.termination_reason is Reason.COMPLETED
    assert (trajectory.tool_calls_made, trajectory.tools_executed) == (0, ())
    started = [event.data["name"] for event in trajectory.events if event.kind == "tool_started"]
    assert started == ["output"], "the tool events fire for reflection handlers too"


def test_tools_are_read_again_for_each_model_call() -> None:
    registry = Registry([])

    def find(_: JsonObject) -> Json:
        registry.register(returns("late", "here"))
        return "found late"

    registry.register(FunctionTool("discover", find))
    discover, late = turn(calls=[call("1", "discover")]), turn(calls=[call("2", "late")])
    trajectory, provider = run([discover, late, DONE], tools=registry)
    offered = [[spec.name for spec in request.tools] for request in provider.requests]
    assert offered == [["discover"], ["discover", "late"], ["discover", "late"]]
    assert trajectory.tools_executed == ("discover", "late")


def test_an_invocation_says_what_runs_where() -> None:
    seen: list[ToolInvocation] = []

    class Watching(Registry):
        def invoke(self, invocation: ToolInvocation) -> ToolOutcome:
            seen.append(invocation)
            return super().invoke(invocation)

    calls = [call("1", "nope"), call("2", "look", at="here")]
    run([turn(calls=calls), DONE], tools=Watching([returns("look", "seen")]), tool_timeout_s=7)
    assert seen == [ToolInvocation("2", "look", {"at": "here"}, 1, 7.0)]

"""What a tool call passes before it runs, in this order, and what it is told if it does not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from harness.protocols import Hook
from harness.providers.scripted import turn
from harness.schema.loop_config import TerminationReason as Reason
from harness.schema.record import Json, JsonObject
from harness.values import Effect, Judgement, PendingCall
from tests.loop.support import FunctionTool, answered, call, kinds, output, run

DONE = turn("done")
SCHEMA: JsonObject = {"type": "object", "properties": {"n": {"type": "integer"}}}


def tool(name: str = "look", effects: Any = ()) -> FunctionTool:
    return FunctionTool(name, lambda arguments: arguments, SCHEMA, effects=effects)


def deny(_: PendingCall) -> Judgement:
    return Judgement("denied", "a rule")


def reject(_: PendingCall) -> bool:
    return False


def first_answer(calls: Any, **how: Any) -> str:
    trajectory, _ = run([turn(calls=calls), DONE], **how)
    answered(trajectory)
    return trajectory.messages[2].tool_results[-1].content


def test_the_first_guard_that_refuses_is_the_one_that_answers() -> None:
    """A call that breaks every rule; the rules are met one after another."""
    asked: list[str] = []

    def before_tool(_: PendingCall) -> None:
        asked.append("hook")

    broken: dict[str, Any] = {
        "tools": [tool()],
        "budget": {"max_tool_calls": 0},
        "setup": {"checks": [deny], "hooks": [Hook(before_tool=before_tool, approve_tool=reject)]},
    }
    over_cap = [call("0", "look"), ("1", "nope", "{")]
    assert first_answer(over_cap, **{**broken, "max_tool_calls_per_turn": 1}).startswith(
        "Not run: at most 1 tool calls"
    )
    asked.clear()
    assert first_answer([("1", "nope", "{")], **broken).startswith("Unknown tool 'nope'")
    assert first_answer([("1", "look", "{")], **broken).startswith("Malformed arguments")
    assert first_answer([call("1", "look", n="x")], **broken).startswith("Arguments do not fit")
    assert asked == []
    assert first_answer([call("1", "look", n=1)], **broken) == "Denied: a rule."
    assert asked == ["hook"]
    broken["setup"]["checks"] = []
    assert first_answer([call("1", "look", n=1)], **broken) == "Denied: the call was not approved."
    broken["setup"]["hooks"] = []
    told = first_answer([call("1", "look", n=1)], **broken)
    assert told == "Not run: the budget of 0 tool calls is used up."
    broken["budget"] = {}
    assert first_answer([call("1", "look", n=1)], **broken) == '{"n": 1}'


@pytest.mark.parametrize("arguments", ["{", "[1]", "3", '{"n": NaN}', '{"n": "\\ud800"}'])
def test_arguments_that_are_no_plain_object_are_malformed(arguments: str) -> None:
    assert first_answer([("1", "look", arguments)], tools=[tool()]).startswith("Malformed")


@pytest.mark.parametrize(
    ("on_denied", "reason"), [("continue", Reason.COMPLETED), ("stop", Reason.DENIED)]
)
def test_a_denial_is_answered_and_may_end_the_run(on_denied: str, reason: Reason) -> None:
    calls = turn(calls=[call("1", "look"), call("2", "other")])
    trajectory, _ = run(
        [calls, DONE],
        tools=[tool(), tool("other")],
        on_denied=on_denied,
        setup={"hooks": [Hook(approve_tool=lambda pending: pending.name == "other")]},
    )
    assert trajectory.termination_reason is reason
    results = trajectory.messages[2].tool_results
    assert results[0].content == "Denied: the call was not approved."
    assert trajectory.tools_executed == (("other",) if on_denied == "continue" else ())
    if on_denied == "stop":
        assert trajectory.error == "the call was not approved"
        assert results[1].content == "Not run: the run ended (denied)."
    answered(trajectory)


def test_denials_are_no_failed_calls() -> None:
    turns = [turn(calls=[call(f"c{n}", "look")]) for n in range(4)]
    trajectory, _ = run(
        [*turns, DONE],
        tools=[tool()],
        error_threshold=1,
        tool_error="fail",
        setup={"checks": [deny]},
    )
    assert trajectory.termination_reason is Reason.COMPLETED
    assert kinds(trajectory).count("tool_denied") == 4
    assert trajectory.tool_calls_made == 0


def blocking(_: PendingCall) -> Judgement:
    return Judgement("blocked", "the disk is full")


def test_a_check_that_blocks_ends_the_run_whatever_a_denial_would_do() -> None:
    trajectory, _ = run(
        [turn(calls=[call("1", "look")])], tools=[tool()], setup={"checks": [blocking]}
    )
    assert (trajectory.termination_reason, trajectory.error) == (Reason.BLOCKED, "the disk is full")
    answered(trajectory)


def test_what_is_warned_about_runs() -> None:
    setup = {"checks": [lambda _: Judgement("warned", "careful")]}
    assert first_answer([call("1", "look", n=1)], tools=[tool()], setup=setup) == '{"n": 1}'


def test_checks_see_what_a_call_does() -> None:
    seen: list[PendingCall] = []

    def check(pending: PendingCall) -> Judgement:
        seen.append(pending)
        return Judgement("allowed")

    effects = [Effect("write", "/workspace/a", 2)]
    first_answer([call("1", "look", n=1)], tools=[tool(effects=effects)], setup={"checks": [check]})
    assert seen == [PendingCall("1", "look", {"n": 1}, effects)]


def test_output_and_submit_calls_are_judged_by_nobody() -> None:
    from_check: list[Json] = []

    def check(pending: PendingCall) -> Judgement:
        from_check.append(pending.name)
        return Judgement("denied", "never")

    answer = turn(calls=[call("o", "output", result="r")])
    trajectory, _ = run(
        [answer], output=output(), budget={"max_tool_calls": 0}, setup={"checks": [check]}
    )
    assert (trajectory.termination_reason, from_check) == (Reason.COMPLETED, [])


def test_every_guard_judges_the_same_effects_of_a_call() -> None:
    class Changing(FunctionTool):
        asked = 0

        def effects(self, arguments: JsonObject) -> Sequence[Effect] | None:
            self.asked += 1
            return [Effect("write" if self.asked > 1 else "read", "notes.txt", 1)]

    changing = Changing("look", lambda _: "seen")
    trajectory, _ = run(
        [turn(calls=[call("1", "look")]), turn("done")],
        tools=[changing],
        setup={"hooks": [Hook(before_tool=lambda _: None, after_tool=lambda _, __: None)]},
        governance={"autonomy": "read_only"},
        budget={"max_files_modified": 0},
    )
    assert trajectory.tools_executed == ("look",)
    assert changing.asked == 1

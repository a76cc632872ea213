"""Suspending a run, and going on with it later, somewhere else, with all its counts."""

from __future__ import annotations

from typing import Any

import pytest

from harness.errors import ConfigurationError, ModelCallError, ReplayMissError
from harness.providers.scripted import turn
from harness.schema.loop_config import TerminationReason as Reason
from harness.schema.messages import Usage
from harness.schema.record import Json, JsonObject
from harness.schema.signals import Signal, Suspend
from harness.schema.trajectory import SuspendedRun, Trajectory
from harness.values import Effect
from tests.loop.support import (
    FunctionTool,
    answered,
    call,
    kinds,
    last_results,
    long_enough,
    make,
    output,
    preview,
    returns,
    run,
)

USED = Usage(input=10, output=5)


def waiting(name: str = "wait", correlation_id: str = "c1", data: Json = None) -> FunctionTool:
    def function(_: JsonObject) -> Any:
        return Suspend(correlation_id=correlation_id, data=data)

    return FunctionTool(name, function)


WAIT = turn(calls=[call("w1", "wait")], usage=USED)
LOOK = turn(calls=[call("l1", "look")], usage=USED)
REPLY = turn("I wait for Anna.", usage=USED)
DONE = turn("done", usage=USED)
TOOLS = [waiting(data={"to": "anna"}), returns("look", "seen")]


def suspended(trajectory: Trajectory) -> SuspendedRun:
    """The state, as it comes back from a file."""
    assert trajectory.termination_reason is Reason.SUSPENDED
    assert trajectory.suspended is not None
    again = SuspendedRun.model_validate_json(trajectory.suspended.model_dump_json())
    assert again == trajectory.suspended
    return again


def test_a_suspended_run_says_what_it_waits_for_after_a_reply_without_tools() -> None:
    trajectory, provider = run([LOOK, WAIT, REPLY], tools=TOOLS)
    state = suspended(trajectory)
    assert (state.correlation_id, state.data) == ("c1", {"to": "anna"})
    assert (trajectory.final_text, trajectory.wrapped_up) == ("I wait for Anna.", False)
    assert provider.requests[-1].offered == ()
    assert (trajectory.iterations, trajectory.model_calls) == (2, 3)
    assert trajectory.usage_by_tag["wrap_up"].input == 10
    assert trajectory.signal is None
    answered(trajectory)


def test_the_reply_may_be_left_out() -> None:
    trajectory, provider = run([WAIT], tools=TOOLS, suspend_reply=False)
    suspended(trajectory)
    assert len(provider.requests) == 1
    assert trajectory.messages[-1].role == "user"


def test_calls_in_the_reply_are_answered_and_not_run() -> None:
    reply = turn("one moment", calls=[call("l9", "look")])
    trajectory, _ = run([WAIT, reply], tools=TOOLS)
    assert trajectory.tools_executed == ("wait",)
    assert last_results(suspended(trajectory).messages)[0].is_error
    answered(trajectory)


def test_a_reply_that_fails_leaves_the_run_suspended_but_not_one_that_was_never_recorded() -> None:
    failed, _ = run([WAIT, ModelCallError("down")], tools=TOOLS)
    suspended(failed)
    missed, _ = run([WAIT, ReplayMissError("not there")], tools=TOOLS)
    assert (missed.termination_reason, missed.suspended) == (Reason.REPLAY_MISS, None)


def test_no_reply_is_asked_for_when_the_budget_is_used_up() -> None:
    trajectory, provider = run([WAIT], tools=TOOLS, budget={"max_tokens": 15})
    suspended(trajectory)
    assert len(provider.requests) == 1


def test_siblings_run_first_and_a_suspension_wins_over_signals() -> None:
    def stop(_: JsonObject) -> Any:
        return Signal(name="STOP")

    calls = turn(calls=[call("w", "wait"), call("s", "stop"), call("l", "look")])
    trajectory, _ = run(
        [calls],
        tools=[*TOOLS, FunctionTool("stop", stop)],
        suspend_reply=False,
        setup={"terminal_check": lambda _: "CHECK"},
    )
    suspended(trajectory)
    assert (trajectory.signal, trajectory.tools_executed) == (None, ("wait", "stop", "look"))


def test_of_several_suspensions_the_first_counts() -> None:
    calls = turn(calls=[call("a", "wait"), call("b", "other")])
    trajectory, _ = run(
        [calls], tools=[*TOOLS, waiting("other", "c2")], suspend_reply=False, multi_signal="last"
    )
    assert suspended(trajectory).correlation_id == "c1"


def test_a_suspension_is_no_failure() -> None:
    loop, _ = make([WAIT, REPLY], tools=TOOLS, raise_on_failure=True)
    suspended(loop.run("Do the task."))


def test_a_run_is_resumed_by_another_loop_with_its_conversation_and_all_counts() -> None:
    first, _ = run([LOOK, WAIT, REPLY], tools=TOOLS, system="Be brief.")
    loop, provider = make([LOOK, DONE], tools=TOOLS)
    last = loop.resume_suspended(suspended(first), "Anna says yes.")
    assert last.termination_reason is Reason.COMPLETED
    assert provider.requests[0].system == last.system == "Be brief."
    assert provider.requests[0].messages[:-1] == first.messages
    assert provider.requests[0].messages[-1].text == "Anna says yes."
    assert last.run_id == first.run_id == last.events[0].run_id
    assert (last.iterations, last.attempts, last.model_calls) == (4, 1, 5)
    assert last.tools_executed == ("look", "wait", "look")
    assert (last.usage.input, last.usage.output) == (50, 25)
    assert last.usage_by_tag["main"].input == 40
    assert last.duration_s >= first.duration_s
    assert [e.iteration for e in last.events if e.kind == "iteration_started"] == [3, 4]
    assert (kinds(last).count("run_completed"), last.suspended) == (1, None)
    answered(last)


def test_without_a_reply_the_text_goes_behind_the_results() -> None:
    first, _ = run([WAIT], tools=TOOLS, suspend_reply=False)
    loop, provider = make([DONE], tools=TOOLS)
    loop.resume_suspended(suspended(first), "Anna says yes.")
    last = provider.requests[0].messages[-1]
    assert [block.type for block in last.content] == ["tool_result", "text"]


def test_limits_go_on_counting() -> None:
    first, _ = run([LOOK, WAIT], tools=TOOLS, suspend_reply=False)
    for settings in (
        {"max_iterations": 3},
        {"hard_limit": 3},
        {"budget": {"max_iterations": 3}},
        {"budget": {"max_tokens": 45}},
        {"budget": {"max_tool_calls": 2}},
    ):
        loop, provider = make([LOOK] * 5, tools=TOOLS, **settings)
        again = loop.resume_suspended(suspended(first), "go on")
        assert len(provider.requests) == 1, settings
        assert again.termination_reason in (Reason.MAX_ITERATIONS, Reason.BUDGET_EXCEEDED)


def test_files_and_lines_go_on_counting() -> None:
    write = FunctionTool("write", lambda _: "ok", effects=[Effect("write", "/workspace/a", 3)])
    other = FunctionTool("other", lambda _: "ok", effects=[Effect("write", "/workspace/b", 3)])
    turns = [turn(calls=[call("1", "write"), call("2", "wait")])]
    first, _ = run(turns, tools=[write, *TOOLS], suspend_reply=False)
    state = suspended(first)
    assert (state.files_modified, state.lines_changed) == (("/workspace/a",), 3)
    for budget in ({"max_files_modified": 1}, {"max_lines_changed": 5}):
        loop, _ = make([turn(calls=[call("3", "other")])], tools=[other, *TOOLS], budget=budget)
        again = loop.resume_suspended(state, "go on")
        assert again.termination_reason is Reason.BUDGET_EXCEEDED


def test_failed_model_calls_and_validations_are_kept() -> None:
    spec = output(long_enough)
    short = turn(calls=[call("o", "output", result="short")], usage=USED)
    first, _ = run(
        [ModelCallError("down"), short, WAIT],
        tools=TOOLS,
        output=spec,
        suspend_reply=False,
        llm_error_threshold=2,
    )
    loop, _ = make([short, short], tools=TOOLS, output=spec, max_attempts=3)
    last = loop.resume_suspended(suspended(first), "go on")
    assert last.termination_reason is Reason.MAX_ATTEMPTS
    assert (last.attempts, len(last.validation_failures), last.failed_calls) == (3, 3, 1)
    assert kinds(last).count("attempt_started") == 1, "it goes on within its second attempt"


def test_a_draft_that_was_shown_can_be_submitted_afterwards() -> None:
    spec = output(handler=preview)
    drafted = turn(calls=[call("o", "output", result="draft"), call("w", "wait")])
    first, _ = run([drafted], tools=TOOLS, output=spec, reflection=True, suspend_reply=False)
    loop, _ = make([turn(calls=[call("s", "submit")])], tools=TOOLS, output=spec, reflection=True)
    last = loop.resume_suspended(suspended(first), "go on")
    assert (last.termination_reason, last.output) == (Reason.COMPLETED, {"result": "draft"})


def test_a_run_may_be_suspended_again_and_again() -> None:
    loop, _ = make([WAIT, WAIT, DONE], tools=TOOLS, suspend_reply=False)
    trajectory = loop.run("Do the task.")
    for _ in range(2):
        trajectory = loop.resume_suspended(suspended(trajectory), "go on")
    assert (trajectory.termination_reason, trajectory.iterations) == (Reason.COMPLETED, 3)


def test_a_loop_that_is_running_resumes_nothing() -> None:
    first, _ = run([WAIT], tools=TOOLS, suspend_reply=False)
    refused: list[ConfigurationError] = []

    def look(_: JsonObject) -> Json:
        with pytest.raises(ConfigurationError) as error:
            loop.resume_suspended(suspended(first), "go on")
        refused.append(error.value)
        return "seen"

    loop, _ = make([LOOK, DONE], tools=[FunctionTool("look", look)])
    loop.run("Do the task.")
    assert len(refused) == 1


def test_only_a_suspended_run_has_a_state() -> None:
    trajectory, _ = run([LOOK, DONE], tools=TOOLS)
    assert trajectory.suspended is None


def test_what_was_said_and_by_whom_is_kept_for_the_resumed_run() -> None:
    first = turn("Sending it.", calls=[call("w1", "wait")], model="one")
    loop, _ = make(
        [first, turn(calls=[call("l1", "look")], model="two")],
        tools=TOOLS,
        suspend_reply=False,
        max_iterations=2,
    )
    state = suspended(loop.run("Go."))
    trajectory = loop.resume_suspended(state, "It is sent.")
    assert trajectory.models == ("one", "two")
    assert trajectory.final_text == "Sending it."

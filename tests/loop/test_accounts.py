"""Usage in four buckets, budgets, events, and what a caller handed in."""

from __future__ import annotations

import copy
import threading
from typing import Any

import pytest

from harness.errors import ModelCallError, OutOfTimeError
from harness.providers.scripted import turn
from harness.schema.loop_config import TerminationReason as Reason
from harness.schema.messages import Message, StopReason, Text, ToolCall, ToolResult, Usage
from harness.schema.record import Json, JsonObject
from harness.schema.trajectory import Event, UsageTotal
from tests.loop.support import (
    FunctionTool,
    call,
    kinds,
    long_enough,
    make,
    output,
    preview,
    raises,
    returns,
    run,
)

DONE = turn("done")
LOOKS = [returns("look", "seen")]


def look(usage: Usage | None = None, *, id_: str = "l1") -> Any:
    return turn(calls=[call(id_, "look")], usage=usage)


# Usage


def test_buckets_are_summed_apart_and_what_nobody_reported_stays_unknown() -> None:
    first = Usage(input=1000, output=50, cache_write=4500)
    second = Usage(input=5000, output=100, cache_write=0)
    trajectory, _ = run([look(first), turn("done", usage=second)], tools=LOOKS)
    assert trajectory.usage == UsageTotal(
        input=6000, output=150, cache_write=4500, cache_read=None, missing_calls=0
    )


def test_a_call_without_usage_is_missing_and_not_zero() -> None:
    nothing = [look(), look(Usage()), DONE]
    trajectory, _ = run(nothing, tools=LOOKS)
    assert trajectory.usage == UsageTotal(missing_calls=3)
    trajectory, _ = run([look(Usage(input=15, output=5)), DONE], tools=LOOKS)
    assert trajectory.usage == UsageTotal(input=15, output=5, missing_calls=1)


def test_a_failed_model_call_is_failed_and_not_missing() -> None:
    trajectory, _ = run(
        [ModelCallError("down"), turn("done", usage=Usage(input=1, output=1))],
        llm_error_threshold=2,
    )
    assert (trajectory.model_calls, trajectory.failed_calls) == (2, 1)
    assert trajectory.usage.missing_calls == 0


def test_each_call_is_charged_to_what_it_was_for() -> None:
    def text(tokens: int, words: str = "text") -> Any:
        return turn(words, usage=Usage(input=tokens))

    confirm = {"enabled": True}
    trajectory, _ = run(
        [
            text(1),
            ModelCallError("down"),
            text(20, "CONTINUE: more"),
            text(300),
            text(4000, "COMPLETED: yes"),
        ],
        confirm=confirm,
        llm_error_threshold=2,
    )
    assert {tag: total.input for tag, total in trajectory.usage_by_tag.items()} == {
        "main": 301,
        "confirm": 4020,
    }
    trajectory, _ = run(
        [text(1), turn(calls=[call("o1", "output", result="x")], usage=Usage(input=20))],
        output=output(),
    )
    assert {tag: total.input for tag, total in trajectory.usage_by_tag.items()} == {
        "main": 1,
        "nudge": 20,
    }
    assert trajectory.usage.input == 21


def test_a_paused_answer_and_its_rest_are_for_the_same_thing() -> None:
    pause = turn("hm", stop=StopReason.PAUSE_TURN, usage=Usage(input=10))
    sure = turn("COMPLETED: yes", usage=Usage(input=100))
    trajectory, _ = run([DONE, pause, sure], confirm={"enabled": True})
    assert trajectory.usage_by_tag["confirm"].input == 110


def test_models_that_answered_are_named_once_in_order() -> None:
    turns = [
        turn(calls=[call("1", "look")], model="b"),
        turn(calls=[call("2", "look")], model="a"),
        turn("done", model="b"),
    ]
    trajectory, _ = run(turns, tools=LOOKS)
    assert trajectory.models == ("b", "a")


# Budget


@pytest.mark.parametrize(
    ("budget", "iterations", "executed"),
    [
        ({"max_iterations": 0}, 0, 0),
        ({"max_iterations": 2}, 2, 2),
        ({"max_tokens": 0}, 0, 0),
        ({"max_tokens": 1110}, 1, 1),
        ({"max_tokens": 1111}, 1, 1),
        ({"max_tokens": 1112}, 2, 2),
        ({"max_tool_calls": 2}, 3, 2),
        ({"max_duration_s": 0}, 0, 0),
    ],
)
def test_a_budget_blocks_the_next_thing_only(
    budget: dict[str, Any], iterations: int, executed: int
) -> None:
    used = Usage(input=1, output=10, cache_write=100, cache_read=1000)
    trajectory, provider = run([look(used)] * 9, tools=LOOKS, budget=budget)
    wanted = Reason.BUDGET_EXCEEDED
    if "max_duration_s" in budget:
        wanted = Reason.DURATION_EXCEEDED
    assert trajectory.termination_reason is wanted
    assert trajectory.iterations == len(provider.requests) == iterations
    assert trajectory.tool_calls_made == executed
    assert trajectory.error is not None
    assert "budget" in trajectory.error


def test_a_budget_is_over_the_whole_run_and_not_per_attempt() -> None:
    short = turn(calls=[call("o1", "output", result="x")])
    trajectory, _ = run(
        [short] * 3, output=output(long_enough), max_iterations=1, budget={"max_iterations": 2}
    )
    assert (trajectory.termination_reason, trajectory.attempts) == (Reason.BUDGET_EXCEEDED, 3)


def test_calls_after_a_blocked_one_are_answered_and_earlier_ones_keep_their_results() -> None:
    calls = [call("1", "look"), call("2", "look"), call("3", "nope")]
    trajectory, _ = run([turn(calls=calls)], tools=LOOKS, budget={"max_tool_calls": 1})
    assert [result.content for result in trajectory.messages[-1].tool_results] == [
        "seen",
        "Not run: the budget of 1 tool calls is used up.",
        "Not run: the run ended (budget_exceeded).",
    ]


def test_unknown_and_raising_calls_count_as_what_they_are() -> None:
    calls = [call("1", "nope"), call("2", "bad"), call("3", "look")]
    trajectory, _ = run(
        [turn(calls=calls)], tools=[*LOOKS, raises("bad")], budget={"max_tool_calls": 1}
    )
    assert trajectory.tools_executed == ("bad",)


def test_a_tool_gets_no_more_than_is_left_of_the_runs_time() -> None:
    never = threading.Event()

    def wait(_: JsonObject) -> Json:
        return never.wait()

    trajectory, provider = run(
        [turn(calls=[call("1", "wait"), call("2", "look")])],
        tools=[FunctionTool("wait", wait), *LOOKS],
        budget={"max_duration_s": 0.05},
    )
    never.set()
    assert trajectory.termination_reason is Reason.DURATION_EXCEEDED
    assert len(provider.requests) == 1
    waited, looked = trajectory.messages[-1].tool_results
    assert waited.content == "timed out: the run's time is used up"
    assert looked.content == "not run: the run's time is used up"


def test_a_model_call_is_told_what_is_left_of_the_runs_time() -> None:
    ticks = {"now": 0.0}

    def wait(_: JsonObject) -> Json:
        ticks["now"] = 5.0
        return "waited"

    script = [turn(calls=[call("1", "wait")]), DONE]
    wait_tool = FunctionTool("wait", wait)
    clock = {"clock": lambda: ticks["now"]}
    _, limited = run(script, tools=[wait_tool], setup=clock, budget={"max_duration_s": 8})
    assert [request.limit_s for request in limited.requests] == [8.0, 3.0]
    _, free = run(script, tools=[wait_tool], setup=clock)
    assert [request.limit_s for request in free.requests] == [None, None]


def test_a_model_call_that_is_cut_ends_the_run_with_the_last_text() -> None:
    trajectory, provider = run(
        [turn("I look.", calls=[call("1", "look")]), OutOfTimeError("the call was cut"), DONE],
        tools=LOOKS,
        llm_error_threshold=3,
    )
    assert trajectory.termination_reason is Reason.DURATION_EXCEEDED
    assert (trajectory.final_text, trajectory.error) == ("I look.", "the call was cut")
    assert len(provider.requests) == 2


def test_time_that_a_tool_took_ends_the_run_before_the_next_model_call() -> None:
    ticks = {"now": 0.0}

    def wait(_: JsonObject) -> Json:
        ticks["now"] = 5.0
        return "waited"

    trajectory, provider = run(
        [turn(calls=[call("1", "wait")])],
        tools=[FunctionTool("wait", wait)],
        budget={"max_duration_s": 5},
        setup={"clock": lambda: ticks["now"]},
    )
    assert trajectory.termination_reason is Reason.DURATION_EXCEEDED
    assert trajectory.messages[-1].tool_results[0].content == "waited"
    assert len(provider.requests) == 1


# Events


def test_events_come_in_the_order_in_which_things_happen() -> None:
    draft = turn(calls=[call("l1", "look"), call("o1", "output", result="short")])
    submit = turn(calls=[call("s1", "submit")])
    good = turn(calls=[call("o2", "output", result="long enough"), call("s2", "submit")])
    trajectory, _ = run(
        [draft, submit, turn("hm"), good],
        tools=LOOKS,
        output=output(long_enough, handler=preview),
        reflection=True,
    )
    asking = ["iteration_started", "model_request", "model_response"]
    ran = ["tool_started", "tool_completed"]
    assert kinds(trajectory) == [
        "run_started",
        "attempt_started",
        *asking,
        "tool_detected",
        "tool_detected",
        *ran,
        *ran,
        "iteration_completed",
        *asking,
        "tool_detected",
        "iteration_completed",
        "validation_started",
        "validation_failed",
        "attempt_completed",
        "attempt_started",
        *asking,
        "nudged",
        "iteration_completed",
        *asking,
        "tool_detected",
        "tool_detected",
        *ran,
        "iteration_completed",
        "validation_started",
        "validation_passed",
        "attempt_completed",
        "run_completed",
    ]
    numbers = [event.iteration for event in trajectory.events]
    assert numbers == sorted(numbers)
    assert (numbers[0], numbers[-1]) == (0, 4)
    times = [event.at_s for event in trajectory.events]
    assert times == sorted(times)


def test_observers_see_the_very_events_of_the_log_and_break_nothing() -> None:
    seen: list[Event] = []

    def raising(event: Event) -> None:
        if event.kind == "tool_started":
            raise ValueError("observer down")

    trajectory, _ = run([look(), look(), DONE], tools=LOOKS, observers=[raising, seen.append])
    assert trajectory.termination_reason is Reason.COMPLETED
    assert tuple(event.model_copy(update={"payload": None}) for event in seen) == trajectory.events
    assert trajectory.callback_errors == ("tool_started: ValueError: observer down",) * 2


# What the caller handed in, and what it gets back


def test_the_callers_messages_are_left_alone_and_come_first_in_the_transcript() -> None:
    mine = [
        Message(role="user", content=(Text(text="Look twice."),)),
        Message(role="assistant", content=(ToolCall(id="c", name="look", arguments="{}"),)),
        Message(role="user", content=(ToolResult(call_id="c", name="look", content="once"),)),
    ]
    before = copy.deepcopy(mine)
    loop, provider = make([turn("hm"), look(), DONE], tools=LOOKS, text_only="nudge")
    first = loop.run(mine, system="Be brief.")
    assert mine == before
    assert first.messages[:3] == tuple(mine)
    assert (first.system, provider.requests[0].system) == ("Be brief.", "Be brief.")
    assert provider.requests[0].messages == tuple(mine)


def test_each_run_of_a_loop_is_a_conversation_of_its_own() -> None:
    bad = turn(calls=[call("b", "bad")])
    turns = [bad, bad, DONE, bad, bad, turn("again")]
    loop, provider = make(turns, tools=[raises("bad")])
    first, second = loop.run("One."), loop.run("Two.")
    assert (first.termination_reason, second.termination_reason) == (Reason.COMPLETED,) * 2
    assert [message.text for message in provider.requests[3].messages] == ["Two."]
    assert (second.iterations, second.tool_calls_made, second.model_calls) == (3, 2, 3)


def test_a_request_carries_the_settings_of_the_loop() -> None:
    _, provider = run([DONE], tools=LOOKS, max_output_tokens=77)
    request = provider.requests[0]
    assert (request.model, request.max_output_tokens) == ("scripted-1", 77)
    assert (request.temperature, request.system) == (None, None)

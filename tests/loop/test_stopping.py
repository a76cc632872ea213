"""What stops a run that could go on: conditions, repeated turns, signals, limits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from harness.errors import ModelCallError, ReplayMissError
from harness.loop.engine import Loop
from harness.providers.scripted import turn
from harness.schema.loop_config import TerminationReason as Reason
from harness.schema.messages import ModelTurn, Usage
from harness.schema.record import Json, JsonObject
from harness.schema.signals import Signal, Suspend
from harness.schema.trajectory import Event, Trajectory
from harness.values import CallAndResult
from tests.loop.support import (
    FunctionTool,
    answered,
    call,
    kinds,
    long_enough,
    make,
    output,
    raises,
    returns,
    run,
)

USED = Usage(input=60, output=5)
DONE = turn("done", usage=USED)
SEEN = [returns("look", "seen"), returns("work", "worked")]


def looks(number: int, text: str = "") -> list[ModelTurn]:
    return [turn(text, calls=[call(f"l{n}", "look", at=n)], usage=USED) for n in range(number)]


def signals(name: str, signal: str, data: Json = None) -> FunctionTool:
    def function(_: JsonObject) -> Any:
        return Signal(name=signal, data=data)

    return FunctionTool(name, function)


CONDITIONS: list[tuple[dict[str, Any], list[Any], str, int]] = [
    (
        {"tool_called": "work"},
        [*looks(2), turn(calls=[call("w", "work")]), DONE],
        "tool_called:work",
        3,
    ),
    (
        {"text_contains": "STOP"},
        [*looks(1), *looks(1, "please STOP"), DONE],
        "text_contains:STOP",
        2,
    ),
    ({"tokens_above": 130}, [*looks(4), DONE], "tokens_above:130", 3),
    ({"tokens_above": 0}, [*looks(4), DONE], "tokens_above:0", 1),
]


@pytest.mark.parametrize(("condition", "turns", "signal", "iterations"), CONDITIONS)
def test_a_condition_that_holds_ends_the_run_after_the_iteration(
    condition: dict[str, Any], turns: list[Any], signal: str, iterations: int
) -> None:
    trajectory, _ = run(turns, tools=SEEN, stop_when=[condition])
    assert (trajectory.termination_reason, trajectory.signal) == (Reason.SIGNAL, signal)
    assert trajectory.iterations == iterations
    answered(trajectory)


def test_any_of_several_conditions_is_enough() -> None:
    conditions = [{"tool_called": "work"}, {"text_contains": "seen it"}]
    trajectory, _ = run(looks(3, "seen it"), tools=SEEN, stop_when=conditions)
    assert (trajectory.signal, trajectory.iterations) == ("text_contains:seen it", 1)


def test_a_tool_that_was_asked_for_but_not_run_does_not_count() -> None:
    malformed = turn(calls=[("l1", "look", "{")])
    trajectory, _ = run([malformed, DONE], tools=SEEN, stop_when=[{"tool_called": "look"}])
    assert trajectory.termination_reason is Reason.COMPLETED


def test_a_condition_of_ones_own_sees_the_run_so_far_after_each_iteration() -> None:
    seen: list[tuple[int, int]] = []

    def enough(so_far: Trajectory) -> bool:
        seen.append((so_far.iterations, so_far.tool_calls_made))
        return so_far.tool_calls_made >= 2

    trajectory, _ = run(
        looks(3), tools=SEEN, stop_when=["enough"], setup={"stop_conditions": {"enough": enough}}
    )
    assert (trajectory.termination_reason, trajectory.signal) == (Reason.SIGNAL, "enough")
    assert seen == [(1, 1), (2, 2)]


def test_a_failed_model_call_is_an_iteration_to_conditions_as_well() -> None:
    setup = {"stop_conditions": {"fragile": lambda so_far: so_far.failed_calls == 1}}
    trajectory, _ = run(
        [ModelCallError("down"), DONE], llm_error_threshold=3, stop_when=["fragile"], setup=setup
    )
    assert (trajectory.signal, trajectory.iterations) == ("fragile", 1)


def test_conditions_are_asked_after_a_failed_validation_but_not_about_a_result() -> None:
    short = turn(calls=[call("o1", "output", result="short")])
    good = turn(calls=[call("o2", "output", result="long enough")])
    setup = {"stop_conditions": {"always": lambda _: True}}
    for answer, reason in ((short, Reason.SIGNAL), (good, Reason.COMPLETED)):
        trajectory, _ = run([answer], output=output(long_enough), stop_when=["always"], setup=setup)
        assert trajectory.termination_reason is reason
        answered(trajectory)


def test_a_condition_that_raises_ends_the_run() -> None:
    def broken(_: Trajectory) -> bool:
        raise LookupError("what?")

    trajectory, _ = run(
        looks(1), tools=SEEN, stop_when=["mine"], setup={"stop_conditions": {"mine": broken}}
    )
    assert trajectory.termination_reason is Reason.ERROR
    assert trajectory.error == "the stop condition 'mine' failed: LookupError: what?"


def same(number: int) -> ModelTurn:
    """The same turn in other words: other ids, other key order, other white space."""
    raw = ['{"a": 1, "b": 2}', '{"b":2,"a":1}'][number % 2]
    return turn(f"text {number}", calls=[(f"c{number}", "look", raw)])


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_the_last_of_too_many_identical_turns_is_not_run(limit: int) -> None:
    trajectory, _ = run([same(n) for n in range(5)], tools=SEEN, loop_detection=limit)
    assert trajectory.termination_reason is Reason.LOOP_DETECTED
    assert (trajectory.iterations, trajectory.tool_calls_made) == (limit, limit - 1)
    assert trajectory.messages[-1].tool_results[0].is_error
    answered(trajectory)


@pytest.mark.parametrize(
    "between",
    [
        turn("let me think"),
        turn(calls=[("x", "look", '{"a": 2, "b": 2}')]),
        turn(calls=[("x", "look", '{"a": 1, "b": 2}'), ("y", "look", "{}")]),
        turn(calls=[("x", "work", '{"a": 1, "b": 2}')]),
    ],
)
def test_another_turn_between_breaks_the_row(between: ModelTurn) -> None:
    turns = [same(1), between, same(2), between, same(3), turn(calls=[call("d", "work")])]
    trajectory, _ = run(
        turns, tools=SEEN, loop_detection=2, text_only="nudge", stop_when=[{"tool_called": "work"}]
    )
    assert trajectory.termination_reason is Reason.SIGNAL


def test_repetition_is_fine_unless_it_is_looked_for() -> None:
    trajectory, _ = run([*(same(n) for n in range(6)), DONE], tools=SEEN)
    assert trajectory.tool_calls_made == 6


@pytest.mark.parametrize(
    ("given", "name", "data"),
    [("READY", "READY", None), (Signal(name="READY", data=[1]), "READY", [1])],
)
def test_a_terminal_check_ends_the_run_with_a_name_or_a_signal(
    given: Any, name: str, data: Json
) -> None:
    trajectory, _ = run(looks(2), tools=SEEN, setup={"terminal_check": lambda _: given})
    assert (trajectory.signal, trajectory.signal_data) == (name, data)
    assert (trajectory.termination_reason, trajectory.iterations) == (Reason.SIGNAL, 1)


def test_a_terminal_check_sees_every_call_and_result_of_each_turn() -> None:
    seen: list[list[tuple[str, str]]] = []

    def check(pairs: Sequence[CallAndResult]) -> None:
        seen.append([(pair.call.id, pair.result.content) for pair in pairs])

    two = turn(calls=[call("a", "look"), call("b", "nope")])
    run([two, turn(calls=[call("c", "work")]), DONE], tools=SEEN, setup={"terminal_check": check})
    unknown = "Unknown tool 'nope'. Tools: look, work."
    assert seen == [[("a", "seen"), ("b", unknown)], [("c", "worked")]]


@pytest.mark.parametrize("nothing", [None, ""])
def test_a_terminal_check_without_an_opinion_leaves_it_to_the_tools(nothing: Any) -> None:
    setup = {"terminal_check": lambda _: nothing}
    trajectory, _ = run(
        [turn(calls=[call("s", "stop")])], tools=[signals("stop", "TOOL")], setup=setup
    )
    assert trajectory.signal == "TOOL"


def test_the_checks_signal_wins_over_a_tools() -> None:
    trajectory, _ = run(
        [turn(calls=[call("s", "stop")])],
        tools=[signals("stop", "TOOL")],
        setup={"terminal_check": lambda _: "CHECK"},
    )
    assert trajectory.signal == "CHECK"


def test_a_terminal_check_that_raises_or_gives_something_else_ends_the_run() -> None:
    def broken(_: object) -> None:
        raise LookupError("what?")

    for check, why in ((broken, "LookupError: what?"), (lambda _: 3, "not int")):
        trajectory, _ = run(looks(1), tools=SEEN, setup={"terminal_check": check})
        assert trajectory.termination_reason is Reason.ERROR
        assert str(trajectory.error).startswith("the terminal check failed: ")
        assert str(trajectory.error).endswith(why)


@pytest.mark.parametrize(("which", "signal"), [("last", "B"), ("first", "A")])
def test_of_several_signals_one_counts(which: str, signal: str) -> None:
    both = turn(calls=[call("a", "one"), call("b", "two"), call("c", "look")])
    trajectory, _ = run(
        [both],
        tools=[signals("one", "A", 1), signals("two", "B", 2), *SEEN],
        multi_signal=which,
    )
    assert trajectory.signal == signal
    assert trajectory.tools_executed == ("one", "two", "look")


def asked(given: Any) -> dict[str, Any]:
    return {"on_iteration_limit": lambda: given}


@pytest.mark.parametrize("given", ["ESCALATE", Signal(name="ESCALATE", data="why")])
def test_at_the_limit_a_callback_gives_the_signal(given: Any) -> None:
    trajectory, provider = run(
        looks(3), tools=SEEN, max_iterations=2, on_limit="callback", setup=asked(given)
    )
    assert (trajectory.termination_reason, trajectory.signal) == (Reason.SIGNAL, "ESCALATE")
    assert len(provider.requests) == 2


@pytest.mark.parametrize("setup", [asked(None), asked(""), {}])
def test_a_callback_without_a_signal_leaves_the_limit(setup: dict[str, Any]) -> None:
    trajectory, _ = run(looks(3), tools=SEEN, max_iterations=2, on_limit="callback", setup=setup)
    assert (trajectory.termination_reason, trajectory.signal) == (Reason.MAX_ITERATIONS, None)


@pytest.mark.parametrize(
    "limit", [{"max_iterations": 1, "on_limit": "callback"}, {"hard_limit": 1}]
)
def test_a_limit_callback_that_raises_ends_the_run_with_an_error(limit: dict[str, Any]) -> None:
    def broken() -> None:
        raise LookupError("what?")

    trajectory, _ = run(looks(2), tools=SEEN, setup={"on_iteration_limit": broken}, **limit)
    assert trajectory.termination_reason is Reason.ERROR
    assert trajectory.error == "the limit callback failed: LookupError: what?"


def test_without_a_callback_the_limit_gives_the_last_text_back() -> None:
    trajectory, _ = run(looks(2, "so far"), tools=SEEN, max_iterations=2)
    assert trajectory.termination_reason is Reason.MAX_ITERATIONS
    assert (trajectory.final_text, trajectory.wrapped_up) == ("so far", False)
    assert trajectory.error == "the limit of 2 iterations is reached"


def test_the_hard_limit_keeps_what_the_callback_gives_and_its_own_reason() -> None:
    trajectory, provider = run(looks(5), tools=SEEN, hard_limit=3, setup=asked("TOLD"))
    assert (trajectory.termination_reason, trajectory.signal) == (Reason.MAX_ITERATIONS, "TOLD")
    assert len(provider.requests) == 3
    assert trajectory.error == "the hard limit of 3 iterations is reached"


def test_the_hard_limit_counts_over_attempts() -> None:
    short = turn(calls=[call("o1", "output", result="short")])
    trajectory, _ = run(
        [short] * 5, output=output(long_enough), hard_limit=2, max_attempts=5, max_iterations=3
    )
    assert (trajectory.termination_reason, trajectory.iterations) == (Reason.MAX_ITERATIONS, 2)


def test_the_soft_limit_warns_once_at_the_first_turn_of_any_kind() -> None:
    turns: list[Any] = [ModelCallError("down"), ModelCallError("down"), *looks(2), DONE]
    trajectory, _ = run(turns, tools=SEEN, soft_limit=2, llm_error_threshold=3)
    warnings = [event for event in trajectory.events if event.kind == "limit_warning"]
    assert [event.data for event in warnings] == [{"iterations": 2, "soft_limit": 2}]
    assert warnings[0].iteration == 2
    assert trajectory.termination_reason is Reason.COMPLETED


def test_a_run_that_was_warned_before_it_was_suspended_is_not_warned_again() -> None:
    def wait(_: JsonObject) -> Any:
        return Suspend(correlation_id="c")

    loop, _ = make(
        [turn(calls=[call("w", "wait")]), DONE],
        tools=[FunctionTool("wait", wait)],
        soft_limit=1,
        suspend_reply=False,
    )
    first = loop.run("Do the task.")
    assert first.suspended is not None
    again = loop.resume_suspended(first.suspended, "go on")
    assert (kinds(first).count("limit_warning"), kinds(again).count("limit_warning")) == (1, 0)


WRAP_UP: dict[str, Any] = {"tools": SEEN, "max_iterations": 2, "on_limit": "wrap_up"}


def test_wrapping_up_is_one_last_call_without_tools() -> None:
    trajectory, provider = run([*looks(2, "hm"), turn("my answer", usage=USED)], **WRAP_UP)
    assert trajectory.termination_reason is Reason.MAX_ITERATIONS
    assert (trajectory.final_text, trajectory.wrapped_up) == ("my answer", True)
    assert trajectory.output == {"response": "my answer"}
    last = provider.requests[-1]
    assert (last.offered, last.tool_choice) == ((), "none")
    assert [block.type for block in last.messages[-1].content] == ["tool_result", "text"]
    assert (trajectory.iterations, trajectory.model_calls) == (2, 3)
    assert trajectory.usage_by_tag["wrap_up"].input == 60
    assert trajectory.usage.input == 180


def test_calls_in_the_last_answer_are_answered_and_not_run() -> None:
    trajectory, _ = run([*looks(2), turn("bye", calls=[call("x", "work")])], **WRAP_UP)
    assert trajectory.messages[-1].tool_results[0].content == "Not run: no tools were offered."
    assert (trajectory.final_text, trajectory.tools_executed) == ("bye", ("look", "look"))
    answered(trajectory)


def test_a_last_call_that_fails_leaves_the_ending_as_it_is() -> None:
    trajectory, _ = run([*looks(2, "so far"), ModelCallError("down")], **WRAP_UP)
    assert trajectory.termination_reason is Reason.MAX_ITERATIONS
    assert trajectory.error == "the limit of 2 iterations is reached"
    assert (trajectory.final_text, trajectory.wrapped_up) == ("so far", False)
    assert (trajectory.model_calls, trajectory.failed_calls) == (3, 1)


def test_a_last_call_that_was_never_recorded_says_so() -> None:
    trajectory, _ = run([*looks(2), ReplayMissError("not there")], **WRAP_UP)
    assert trajectory.termination_reason is Reason.REPLAY_MISS


@pytest.mark.parametrize("budget", [{"max_tokens": 130}, {"max_iterations": 2}])
def test_no_last_call_is_made_when_the_budget_is_used_up(budget: dict[str, int]) -> None:
    trajectory, provider = run(looks(3), budget=budget, **WRAP_UP)
    assert trajectory.termination_reason is Reason.MAX_ITERATIONS
    assert (len(provider.requests), trajectory.wrapped_up) == (2, False)


def test_no_last_call_is_made_after_a_cancel() -> None:
    loops: list[Loop] = []

    def observe(event: Event) -> None:
        if event.kind == "iteration_completed" and event.iteration == 2:
            loops[0].cancel()

    loop, provider = make(looks(3), observers=[observe], **WRAP_UP)
    loops.append(loop)
    assert loop.run("Do the task.").termination_reason is Reason.CANCELLED
    assert len(provider.requests) == 2


@pytest.mark.parametrize("on_limit", ["return", "callback", "wrap_up"])
def test_a_limit_of_nothing_asks_nobody(on_limit: str) -> None:
    asked_for: list[str] = []
    setup = {"on_iteration_limit": lambda: asked_for.append("x")} if on_limit == "callback" else {}
    trajectory, provider = run([], max_iterations=0, on_limit=on_limit, setup=setup)
    assert trajectory.termination_reason is Reason.MAX_ITERATIONS
    assert (provider.requests, asked_for) == ([], [])


def test_failed_calls_stop_the_run_before_a_condition_does() -> None:
    trajectory, _ = run(
        looks(1), tools=[raises("look")], error_threshold=1, stop_when=[{"tool_called": "look"}]
    )
    assert trajectory.termination_reason is Reason.ERROR

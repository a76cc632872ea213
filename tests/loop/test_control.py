"""Pause, resume, cancel and inject, from other threads, from tools and before a run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from harness.errors import ConfigurationError, ModelCallError
from harness.loop.engine import Loop
from harness.providers.scripted import turn
from harness.schema.loop_config import TerminationReason as Reason
from harness.schema.messages import ModelTurn
from harness.schema.record import Json, JsonObject
from harness.schema.trajectory import Event, EventKind, Trajectory
from tests.loop.support import FunctionTool, answered, call, kinds, long_enough, make, output, run

PATIENCE_S = 30
LOOK = turn(calls=[call("l1", "look")])
TWICE = turn(calls=[call("l1", "look"), call("l2", "look")])
DONE = turn("done")


class Stop:
    """A place in a run where it waits for the test."""

    def __init__(self) -> None:
        self.reached, self.go_on = threading.Event(), threading.Event()

    def wait(self) -> None:
        self.reached.set()
        assert self.go_on.wait(PATIENCE_S)

    def await_run(self) -> None:
        assert self.reached.wait(PATIENCE_S)


class InThread:
    """A run in a thread of its own."""

    def __init__(self, loop: Loop) -> None:
        self.ended: list[Trajectory] = []
        self.thread = threading.Thread(target=lambda: self.ended.append(loop.run("Do the task.")))
        self.thread.start()

    def end(self) -> Trajectory:
        self.thread.join(PATIENCE_S)
        return self.ended[0]


def looking(act: Callable[[], None]) -> FunctionTool:
    def look(_: JsonObject) -> Json:
        act()
        return "seen"

    return FunctionTool("look", look)


def acting(act: Callable[[Loop], None], turns: list[Any], **how: Any) -> tuple[Loop, Any]:
    """A loop whose tool does something to it."""
    loops: list[Loop] = []
    loop, provider = make(turns, tools=[looking(lambda: act(loops[0]))], **how)
    loops.append(loop)
    return loop, provider


def test_a_paused_run_makes_no_model_call_until_it_is_resumed() -> None:
    paused = threading.Event()
    in_tool = Stop()

    def observe(event: Event) -> None:
        if event.kind == "paused":
            paused.set()

    loop, provider = make([LOOK, DONE], tools=[looking(in_tool.wait)], observers=[observe])
    running = InThread(loop)
    in_tool.await_run()
    loop.pause("lunch")
    in_tool.go_on.set()
    assert paused.wait(PATIENCE_S)
    assert len(provider.requests) == 1
    assert running.thread.is_alive()
    loop.resume()
    trajectory = running.end()
    assert (trajectory.termination_reason, len(provider.requests)) == (Reason.COMPLETED, 2)
    told = [event for event in trajectory.events if event.kind in ("paused", "resumed")]
    assert [(event.kind, event.data) for event in told] == [
        ("paused", {"reason": "lunch"}),
        ("resumed", {}),
    ]


def test_a_pause_that_is_taken_back_in_time_is_none() -> None:
    def both(loop: Loop) -> None:
        loop.pause()
        loop.resume()

    loop, _ = acting(both, [LOOK, DONE])
    assert "paused" not in kinds(loop.run("Do the task."))


def on_paused(act: Callable[[Loop], None], loops: list[Loop]) -> Callable[[Event], None]:
    def observe(event: Event) -> None:
        if event.kind == "paused":
            act(loops[0])

    return observe


def test_a_cancel_ends_a_paused_run() -> None:
    loops: list[Loop] = []
    observe = on_paused(lambda loop: loop.cancel("no time"), loops)
    loop, provider = make([DONE], observers=[observe])
    loops.append(loop)
    loop.pause()
    trajectory = loop.run("Do the task.")
    assert (trajectory.termination_reason, trajectory.error) == (Reason.CANCELLED, "no time")
    assert (provider.requests, trajectory.iterations) == ([], 0)
    assert "resumed" not in kinds(trajectory)


def test_what_is_said_during_a_pause_reaches_the_next_call() -> None:
    loops: list[Loop] = []

    def say(loop: Loop) -> None:
        loop.inject("mind the gap")
        loop.resume()

    loop, provider = acting(
        lambda loop: loop.pause(), [LOOK, LOOK, DONE], observers=[on_paused(say, loops)]
    )
    loops.append(loop)
    loop.run("Do the task.")
    said = [request.messages[-1].text for request in provider.requests]
    assert "mind the gap" in said


@pytest.mark.parametrize(
    ("turns", "settings"),
    [
        ([turn(""), DONE], {"empty_retries": 1}),
        ([LOOK, DONE], {"max_iterations": 1, "on_limit": "wrap_up"}),
    ],
)
def test_a_pause_holds_calls_of_every_kind(turns: list[Any], settings: dict[str, Any]) -> None:
    loops: list[Loop] = []
    calls_at_pause: list[int] = []

    def observe(event: Event) -> None:
        if event.kind == "model_response" and not calls_at_pause:
            loops[0].pause()
        if event.kind == "paused":
            calls_at_pause.append(len(provider.requests))
            loops[0].resume()

    loop, provider = make(turns, tools=[looking(lambda: None)], observers=[observe], **settings)
    loops.append(loop)
    loop.run("Do the task.")
    assert calls_at_pause[0] == 1
    assert len(provider.requests) == 2


def test_a_cancel_from_another_thread_lets_the_running_tool_finish() -> None:
    in_tool = Stop()
    loop, _ = make([TWICE, DONE], tools=[looking(in_tool.wait)])
    running = InThread(loop)
    in_tool.await_run()
    loop.cancel("enough")
    in_tool.go_on.set()
    trajectory = running.end()
    assert trajectory.tools_executed == ("look",)
    first, second = trajectory.messages[-1].tool_results
    assert (first.content, first.is_error) == ("seen", False)
    assert (second.content, second.is_error) == ("Not run: the run ended (cancelled).", True)
    assert trajectory.events[-1].data["phase"] == "tool_calls"


def test_only_the_first_reason_of_a_cancel_counts() -> None:
    loop, _ = make([])
    loop.cancel("first")
    loop.cancel("second")
    assert loop.run("Do the task.").error == "first"


GOOD = turn(calls=[call("o1", "output", result="long enough")])
SHORT = turn(calls=[call("o1", "output", result="short")])
PHASES: list[tuple[EventKind, str]] = [
    ("run_started", "start"),
    ("iteration_started", "iteration"),
    ("model_request", "model_call"),
    ("model_response", "model_call"),
    ("tool_detected", "tool_calls"),
    ("validation_started", "validation"),
    ("validation_failed", "validation"),
]


@pytest.mark.parametrize(("kind", "phase"), PHASES)
def test_the_last_event_says_where_a_cancel_came(kind: EventKind, phase: str) -> None:
    loops: list[Loop] = []

    def observe(event: Event) -> None:
        if event.kind == kind:
            loops[0].cancel()

    loop, _ = make([SHORT, GOOD], output=output(long_enough), observers=[observe])
    loops.append(loop)
    trajectory = loop.run("Do the task.")
    assert trajectory.events[-1].data == {"reason": "cancelled", "error": None, "phase": phase}


def test_a_cancel_before_a_run_comes_at_its_start_and_is_gone_afterwards() -> None:
    loop, _ = make([DONE])
    loop.cancel()
    assert loop.run("Do the task.").events[-1].data["phase"] == "start"
    again = loop.run("Do the task.")
    assert again.termination_reason is Reason.COMPLETED
    assert "phase" not in again.events[-1].data


def test_injected_text_follows_the_results() -> None:
    def say(loop: Loop) -> None:
        loop.inject("one")
        loop.inject("two")

    loop, provider = acting(say, [LOOK, DONE])
    trajectory = loop.run("Do the task.")
    last = provider.requests[1].messages[-1]
    assert [block.type for block in last.content] == ["tool_result", "text", "text"]
    assert last.text == "onetwo"
    answered(trajectory)


def test_injected_text_keeps_a_run_going_that_a_text_would_have_ended() -> None:
    loops: list[Loop] = []

    def script() -> Iterator[ModelTurn]:
        loops[0].inject("and the tests?")
        yield turn("done")
        yield turn("the tests pass")

    loop, provider = make(script())
    loops.append(loop)
    trajectory = loop.run("Do the task.")
    assert trajectory.final_text == "the tests pass"
    assert [message.text for message in provider.requests[1].messages] == [
        "Do the task.",
        "done",
        "and the tests?",
    ]


def test_injected_text_is_not_lost_when_the_call_fails() -> None:
    loop, provider = acting(
        lambda loop: loop.inject("hello?"),
        [LOOK, ModelCallError("down"), DONE],
        llm_error_threshold=2,
    )
    trajectory = loop.run("Do the task.")
    assert [request.messages[-1].text for request in provider.requests[1:]] == ["hello?"] * 2
    assert trajectory.messages[2].text == "hello?"


def test_text_injected_before_a_run_comes_with_its_first_call() -> None:
    loop, provider = make([DONE])
    loop.inject("One more thing.")
    loop.run("Do the task.")
    assert provider.requests[0].messages[-1].text == "Do the task.One more thing."


def test_a_loop_that_is_running_refuses_a_second_run() -> None:
    refused: list[str] = []

    def again(loop: Loop) -> None:
        for start in (loop.run, lambda text: list(loop.stream(text))):
            with pytest.raises(ConfigurationError, match="running already") as error:
                start("Another task.")
            refused.append(str(error.value))

    loop, provider = acting(again, [LOOK, DONE])
    assert loop.run("Do the task.").termination_reason is Reason.COMPLETED
    assert (len(refused), len(provider.requests)) == (2, 2)


def test_a_run_leaves_nothing_behind_for_the_next() -> None:
    loop, provider = acting(lambda loop: loop.pause(), [LOOK, DONE], max_iterations=1)
    loop.run("Do the task.")
    assert "paused" not in kinds(loop.run("Do the task."))
    assert len(provider.requests) == 2


def test_nothing_asked_for_changes_nothing() -> None:
    trajectory, _ = run([LOOK, DONE], tools=[looking(lambda: None)])
    assert trajectory.termination_reason is Reason.COMPLETED
    assert not {"paused", "resumed"} & set(kinds(trajectory))


def test_an_answer_given_beside_injected_words_is_asked_for_again() -> None:
    loops: list[Loop] = []

    def inject(event: Event) -> None:
        if event.kind == "model_response" and event.iteration == 2:
            loops[0].inject("One more thing.")

    loop, _ = make(
        [turn("first"), turn("second"), turn("third"), turn("fourth")],
        observers=[inject],
        confirm={"enabled": True, "mode": "second_text"},
    )
    loops.append(loop)
    trajectory = loop.run("Go.")
    assert (trajectory.final_text, trajectory.confirmed) == ("fourth", True)
    assert kinds(trajectory).count("confirmation_asked") == 2

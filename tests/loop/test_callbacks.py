"""Events under document 000's names."""

from __future__ import annotations

import pytest

from harness.errors import ModelCallError
from harness.loop.callbacks import Callbacks
from harness.loop.events import EventLog
from harness.providers.scripted import turn
from harness.schema.loop_config import TerminationReason
from harness.schema.trajectory import Trajectory
from harness.values import ToolInvocation, ToolOutcome
from tests.loop.support import call, long_enough, output, preview, raises, run


class Told:
    """Callbacks that note what they were told."""

    def __init__(self) -> None:
        self.calls: list[tuple[object, ...]] = []
        self.callbacks = Callbacks(
            on_attempt_start=lambda attempt: self.calls.append(("attempt_start", attempt)),
            on_tool_call=lambda name, arguments: self.calls.append(("tool_call", name, arguments)),
            on_tool_result=lambda name, text: self.calls.append(("tool_result", name, text)),
            on_validation_start=lambda: self.calls.append(("validation_start",)),
            on_validation_failure=lambda why: self.calls.append(("validation_failure", why)),
            on_validation_end=lambda passed: self.calls.append(("validation_end", passed)),
            on_attempt_end=lambda attempt: self.calls.append(("attempt_end", attempt)),
            on_success=lambda run: self.calls.append(("success", run.final_text)),
            on_failure=lambda run: self.calls.append(("failure", run.termination_reason.value)),
        )
        self.log = EventLog([self.callbacks], lambda: 0.0)


def look(log: EventLog, id_: str = "c1") -> None:
    log.emit("tool_detected", id=id_, name="look", arguments="{}")
    invocation = ToolInvocation(id_, "look", {"n": 1}, 0, 5)
    log.emit("tool_started", payload=invocation, id=id_, name="look")


def test_a_run_with_a_failed_attempt_is_told_in_order():
    told = Told()
    log = told.log
    log.emit("run_started")
    log.emit("attempt_started", attempt=1)
    log.emit("iteration_started")
    look(log)
    log.emit("tool_completed", payload=ToolOutcome("seen"), id="c1", name="look")
    log.emit("validation_started")
    log.emit("validation_failed", complaint="too short")
    log.emit("attempt_completed", attempt=1)
    log.emit("attempt_started", attempt=2)
    log.emit("validation_started")
    log.emit("validation_passed")
    log.emit("attempt_completed", attempt=2)
    end = Trajectory(termination_reason=TerminationReason.COMPLETED, final_text="done")
    log.emit("run_completed", payload=end)
    assert told.calls == [
        ("attempt_start", 1),
        ("tool_call", "look", {"n": 1}),
        ("tool_result", "look", "seen"),
        ("validation_start",),
        ("validation_failure", "too short"),
        ("validation_end", False),
        ("attempt_end", 1),
        ("attempt_start", 2),
        ("validation_start",),
        ("validation_end", True),
        ("attempt_end", 2),
        ("success", "done"),
    ]
    assert log.callback_errors == []


def test_results_of_calls_that_failed_or_timed_out_are_told():
    told = Told()
    failed, late = ToolOutcome("Error: boom", "raised"), ToolOutcome("too late", "timed_out")
    told.log.emit("tool_failed", payload=failed, id="c1", name="look", error="Error: boom")
    told.log.emit("tool_timed_out", payload=late, id="c2", name="wait")
    assert told.calls == [
        ("tool_result", "look", "Error: boom"),
        ("tool_result", "wait", "too late"),
    ]


@pytest.mark.parametrize("reason", list(TerminationReason))
def test_every_failed_ending_is_told_as_one(reason: TerminationReason):
    told = Told()
    told.log.emit("run_completed", payload=Trajectory(termination_reason=reason))
    good, goes_on = reason.value in ("completed", "signal"), reason.value == "suspended"
    ended = [("success", "") if good else ("failure", reason.value)]
    assert told.calls == ([] if goes_on else ended)


def test_what_a_callback_raises_is_collected_once_per_raise():
    def raises(name: str, arguments: object) -> None:
        raise RuntimeError(f"cannot show {name}")

    log = EventLog([Callbacks(on_tool_call=raises)], lambda: 0.0)
    look(log, "c1")
    look(log, "c2")
    assert log.callback_errors == ["tool_started: RuntimeError: cannot show look"] * 2


def test_validation_ends_even_where_the_failure_callback_raises():
    ended: list[bool] = []

    def raises(complaint: str) -> None:
        raise RuntimeError(complaint)

    callbacks = Callbacks(on_validation_failure=raises, on_validation_end=ended.append)
    log = EventLog([callbacks], lambda: 0.0)
    log.emit("validation_failed", complaint="too short")
    assert ended == [False]
    assert len(log.callback_errors) == 1


def test_both_callbacks_of_a_failed_validation_are_collected():
    def failed(complaint: str) -> None:
        raise RuntimeError(complaint)

    def ended(passed: bool) -> None:
        raise ValueError(passed)

    callbacks = Callbacks(on_validation_failure=failed, on_validation_end=ended)
    log = EventLog([callbacks], lambda: 0.0)
    log.emit("validation_failed", complaint="too short")
    assert log.callback_errors == [
        "validation_failed: RuntimeError: too short",
        "validation_failed: ValueError: False",
    ]


def test_callbacks_may_all_be_left_out():
    log = EventLog([Callbacks()], lambda: 0.0)
    look(log)
    log.emit("attempt_started", attempt=1)
    log.emit("validation_failed", complaint="x")
    log.emit("run_completed", payload=Trajectory(termination_reason=TerminationReason.ERROR))
    assert log.callback_errors == []


def test_the_engine_tells_of_reflection_handlers_and_of_calls_that_raised():
    told = Told()
    turns = [
        turn(calls=[call("c1", "bad", n=1)]),
        turn(calls=[call("o1", "output", result="long enough")]),
        turn(calls=[call("s1", "submit")]),
    ]
    spec = output(long_enough, handler=preview)
    run(turns, tools=[raises("bad")], output=spec, reflection=True, observers=[told.callbacks])
    assert told.calls == [
        ("attempt_start", 1),
        ("tool_call", "bad", {"n": 1}),
        ("tool_result", "bad", "RuntimeError: boom"),
        ("tool_call", "output", {"result": "long enough"}),
        ("tool_result", "output", "Preview: long enough"),
        ("validation_start",),
        ("validation_end", True),
        ("attempt_end", 1),
        ("success", ""),
    ]


def test_the_engine_tells_of_a_failed_run():
    told = Told()
    run([ModelCallError("down")], observers=[told.callbacks])
    assert told.calls == [("attempt_start", 1), ("attempt_end", 1), ("failure", "model_error")]

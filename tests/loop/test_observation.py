"""What a memory is told of a run."""

from __future__ import annotations

from harness.loop.events import EventLog
from harness.loop.observation import Observation, Observations
from harness.providers.scripted import turn
from harness.schema.loop_config import TerminationReason
from harness.schema.trajectory import Trajectory
from harness.values import ToolInvocation, ToolOutcome


def observed(*, run_id: str = "r1") -> tuple[EventLog, list[Observation]]:
    seen: list[Observation] = []
    return EventLog([Observations(seen.append, "helper")], lambda: 0.0, run_id=run_id), seen


def test_each_model_call_and_each_tool_call_is_observed_once():
    log, seen = observed()
    log.emit("run_started")
    log.iteration = 1
    answer = turn("I look.", calls=[("c1", "look", '{"n": 1}')])
    log.emit("model_request", tag="main", tools=["look"])
    log.emit("model_response", payload=answer, tag="main", stop="tool_use", usage=None)
    log.emit("tool_detected", id="c1", name="look", arguments='{"n": 1}')
    invocation = ToolInvocation("c1", "look", {"n": 1}, 0, 5)
    log.emit("tool_started", payload=invocation, id="c1", name="look")
    outcome = ToolOutcome("seen", duration_s=0.5)
    log.emit("tool_completed", payload=outcome, id="c1", name="look")
    end = Trajectory(termination_reason=TerminationReason.COMPLETED)
    log.emit("run_completed", payload=end)
    assert seen == [
        Observation(
            id="r1-1",
            run_id="r1",
            agent="helper",
            event_type="llm_response",
            content="I look.",
            metadata={"iteration": 1, "tag": "main", "stop": "tool_use", "tool_calls": ["look"]},
            at_s=0,
        ),
        Observation(
            id="r1-2",
            run_id="r1",
            agent="helper",
            event_type="tool_call",
            content="seen",
            metadata={
                "iteration": 1,
                "call_id": "c1",
                "name": "look",
                "arguments": {"n": 1},
                "status": "ok",
                "duration_s": 0.5,
            },
            at_s=0,
        ),
    ]


def test_a_tool_call_that_failed_is_a_tool_call_with_its_status():
    log, seen = observed()
    late = ToolOutcome("too late", "timed_out")
    log.emit("tool_timed_out", payload=late, id="c1", name="wait")
    log.emit("tool_failed", payload=ToolOutcome("boom", "raised"), id="c2", name="look", error="b")
    assert [(one.event_type, one.metadata["status"]) for one in seen] == [
        ("tool_call", "timed_out"),
        ("tool_call", "raised"),
    ]


def test_a_model_call_that_failed_and_a_tool_call_that_broke_off_are_errors():
    log, seen = observed()
    log.emit("model_error", payload=ValueError("down"), error="down", type="ModelCallError")
    log.emit("tool_failed", id="c1", name="look", error="no such recording")
    assert [(one.event_type, one.content) for one in seen] == [
        ("error", "down"),
        ("error", "no such recording"),
    ]


def test_parallel_calls_keep_their_own_arguments():
    log, seen = observed()
    for number in (1, 2):
        invocation = ToolInvocation(f"c{number}", "look", {"n": number}, number, 5)
        log.emit("tool_started", payload=invocation, id=f"c{number}", name="look")
    for number in (2, 1):
        log.emit("tool_completed", payload=ToolOutcome("seen"), id=f"c{number}", name="look")
    assert [one.metadata["arguments"] for one in seen] == [{"n": 2}, {"n": 1}]


def test_calls_that_share_an_id_keep_their_own_arguments():
    log, seen = observed()
    for number in (1, 2, 3):
        invocation = ToolInvocation("c", "look", {"n": number}, number, 5)
        log.emit("tool_started", payload=invocation, id="c", name="look")
    log.emit("tool_completed", payload=ToolOutcome("seen"), id="c", name="look")
    log.emit("tool_failed", id="c", name="look", error="no such recording")
    log.emit("tool_completed", payload=ToolOutcome("seen"), id="c", name="look")
    assert [one.metadata.get("arguments") for one in seen] == [{"n": 1}, None, {"n": 3}]


def test_a_memory_that_fails_breaks_nothing():
    def fails(observation: Observation) -> None:
        raise OSError("disk full")

    log = EventLog([Observations(fails)], lambda: 0.0)
    log.emit("model_error", error="down", type="ModelCallError")
    assert log.callback_errors == ["model_error: OSError: disk full"]

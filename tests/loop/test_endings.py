"""Every way a run can end, and that each leaves a whole story behind."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from harness.errors import (
    AuthenticationError,
    ContextExceededError,
    InfrastructureError,
    ModelCallError,
    OverloadedError,
    RateLimitedError,
    ReplayMissError,
    RunFailedError,
    SandboxError,
)
from harness.providers.scripted import turn
from harness.schema.loop_config import TerminationReason as Reason
from harness.schema.messages import StopReason, ToolSpec, Usage
from harness.schema.record import JsonObject
from harness.schema.signals import Blocked, Signal, Suspend
from harness.tools.registry import Registry
from harness.values import Effect, ToolInvocation, ToolOutcome
from tests.loop.support import (
    FunctionTool,
    answered,
    call,
    fails,
    kinds,
    long_enough,
    make,
    output,
    preview,
    raises,
    returns,
    run,
)

USED = Usage(input=10, output=5)
LOOK = turn(calls=[call("l1", "look")], usage=USED)
DRAFT = turn(calls=[call("o1", "output", result="draft")], usage=USED)
SUBMIT = turn(calls=[call("s1", "submit")], usage=USED)
TEXT = turn("some text", usage=USED)


class Broken:
    """Tools of which the one called `bad` cannot be run at all."""

    def __init__(self, error: Exception) -> None:
        self.error = error
        self.inner = Registry([returns("good", "fine"), returns("bad", "")])

    def specs(self) -> tuple[ToolSpec, ...]:
        return self.inner.specs()

    def identity(self, name: str) -> str:
        return self.inner.identity(name)

    def is_sequential(self, name: str) -> bool:
        return self.inner.is_sequential(name)

    def effects(self, name: str, arguments: JsonObject) -> Sequence[Effect] | None:
        return self.inner.effects(name, arguments)

    def invoke(self, invocation: ToolInvocation) -> ToolOutcome:
        if invocation.name == "bad":
            raise self.error
        return self.inner.invoke(invocation)


def asks(name: str, request: Any) -> FunctionTool:
    """A tool that asks something of the run."""
    return FunctionTool(name, lambda _: ToolOutcome("asked", asks=request))


BREAKS = turn(calls=[call("1", "good"), call("2", "bad"), call("3", "good")], usage=USED)
BAD = turn(calls=[call("o1", "output", result="x")], usage=USED)
CUT = turn("half", calls=[call("l1", "look")], stop=StopReason.MAX_TOKENS, usage=USED)
NO = turn("no", calls=[call("l1", "look")], stop=StopReason.REFUSAL, usage=USED)

GOOD = (Reason.COMPLETED, Reason.SIGNAL, Reason.SUSPENDED)
"""Endings without an error."""

ENDINGS: list[tuple[Reason, list[Any], Callable[[], dict[str, Any]]]] = [
    (Reason.COMPLETED, [LOOK, TEXT], lambda: {"tools": [returns("look", "seen")]}),
    (Reason.COMPLETED, [DRAFT], lambda: {"output": output()}),
    (
        Reason.MAX_ITERATIONS,
        [LOOK, LOOK],
        lambda: {"tools": [returns("look", "seen")], "max_iterations": 2},
    ),
    (
        Reason.MAX_ATTEMPTS,
        [BAD, BAD],
        lambda: {"output": output(long_enough), "max_attempts": 2},
    ),
    (Reason.NO_OUTPUT, [TEXT, TEXT], lambda: {"output": output()}),
    (
        Reason.SUBMIT_BEFORE_OUTPUT,
        [SUBMIT],
        lambda: {"output": output(handler=preview), "reflection": True},
    ),
    (
        Reason.NO_SUBMIT,
        [DRAFT, TEXT],
        lambda: {"output": output(handler=preview), "reflection": True, "text_only": "error"},
    ),
    (
        Reason.NO_SUBMIT,
        [DRAFT, TEXT],
        lambda: {"output": output(handler=preview), "reflection": True, "text_only": "accept"},
    ),
    (Reason.ERROR, [LOOK, LOOK, LOOK], lambda: {"tools": [raises("look")]}),
    (Reason.SIGNAL, [LOOK], lambda: {"tools": [asks("look", Signal(name="OVER"))]}),
    (
        Reason.SIGNAL,
        [LOOK],
        lambda: {"tools": [returns("look", "seen")], "setup": {"terminal_tools": ["look"]}},
    ),
    (
        Reason.SIGNAL,
        [LOOK],
        lambda: {"tools": [returns("look", "seen")], "stop_when": [{"tool_called": "look"}]},
    ),
    (
        Reason.SIGNAL,
        [LOOK],
        lambda: {
            "tools": [returns("look", "seen")],
            "max_iterations": 1,
            "on_limit": "callback",
            "setup": {"on_iteration_limit": lambda: "OVER"},
        },
    ),
    (
        Reason.LOOP_DETECTED,
        [LOOK, LOOK],
        lambda: {"tools": [returns("look", "seen")], "loop_detection": 2},
    ),
    (
        Reason.DENIED,
        [LOOK],
        lambda: {
            "tools": [returns("look", "seen")],
            "on_denied": "stop",
            "governance": {"scopes": []},
        },
    ),
    (Reason.BLOCKED, [LOOK], lambda: {"tools": [asks("look", Blocked(reason="no disk"))]}),
    (
        Reason.SUSPENDED,
        [LOOK],
        lambda: {
            "tools": [asks("look", Suspend(correlation_id="c"))],
            "suspend_reply": False,
        },
    ),
    (Reason.TOOL_ERROR, [LOOK], lambda: {"tools": [fails("look")], "tool_error": "fail"}),
    (Reason.MODEL_ERROR, [OverloadedError("busy")], dict),
    (Reason.MODEL_ERROR, [RateLimitedError("slow down")], dict),
    (Reason.MODEL_ERROR, [AuthenticationError("who?")], dict),
    (Reason.MODEL_ERROR, [ConnectionError()], dict),
    (
        Reason.BUDGET_EXCEEDED,
        [LOOK],
        lambda: {"tools": [returns("look", "seen")], "budget": {"max_tool_calls": 0}},
    ),
    (Reason.DURATION_EXCEEDED, [], lambda: {"budget": {"max_duration_s": 0}}),
    (Reason.REFUSAL, [NO], lambda: {"tools": [returns("look", "seen")]}),
    (
        Reason.TRUNCATED,
        [CUT],
        lambda: {"tools": [returns("look", "seen")], "on_truncation": "fail"},
    ),
    (Reason.CONTEXT_EXCEEDED, [ContextExceededError("too long")], dict),
    (Reason.REPLAY_MISS, [ReplayMissError("not recorded")], dict),
    (Reason.REPLAY_MISS, [BREAKS], lambda: {"tools": Broken(ReplayMissError("not recorded"))}),
    (Reason.INFRASTRUCTURE_ERROR, [InfrastructureError("disk full")], dict),
    (Reason.INFRASTRUCTURE_ERROR, [BREAKS], lambda: {"tools": Broken(SandboxError("no shell"))}),
]


@pytest.mark.parametrize(("reason", "turns", "how"), ENDINGS)
def test_a_run_ends_once_and_tells_everything(
    reason: Reason, turns: list[Any], how: Callable[[], dict[str, Any]]
) -> None:
    trajectory, provider = run(turns, **how())
    assert trajectory.termination_reason is reason
    assert kinds(trajectory).count("run_completed") == 1
    last = trajectory.events[-1]
    assert (last.kind, last.data["reason"]) == ("run_completed", reason.value)
    answered(trajectory)
    assert trajectory.model_calls == len(provider.requests) == len(turns)
    assert trajectory.iterations == len(turns)
    answers = trajectory.model_calls - trajectory.failed_calls
    assert trajectory.usage.input == (10 * answers or None)
    assert trajectory.usage.missing_calls == 0
    assert (trajectory.error is None) == (reason in GOOD)
    assert (trajectory.signal is None) == (reason is not Reason.SIGNAL)
    assert (trajectory.suspended is None) == (reason is not Reason.SUSPENDED)
    assert trajectory.duration_s >= 0


@pytest.mark.parametrize(("reason", "turns", "how"), ENDINGS)
def test_raise_on_failure_raises_exactly_for_what_did_not_complete(
    reason: Reason, turns: list[Any], how: Callable[[], dict[str, Any]]
) -> None:
    loop, _ = make(turns, raise_on_failure=True, **how())
    if reason in GOOD:
        assert loop.run("Do the task.").termination_reason is reason
        return
    with pytest.raises(RunFailedError, match=f"the run ended {reason}: ") as raised:
        loop.run("Do the task.")
    assert raised.value.trajectory.termination_reason is reason  # type: ignore[attr-defined]
    again = pickle.loads(pickle.dumps(raised.value))
    assert (str(again), again.trajectory) == (str(raised.value), raised.value.trajectory)


def test_every_ending_but_cancelled_is_tried_here() -> None:
    """That one has a file of its own: test_cancel.py."""
    assert {reason for reason, _, _ in ENDINGS} == set(Reason) - {Reason.CANCELLED, Reason.SKIPPED}


def test_a_cancelled_run_is_a_failed_one() -> None:
    loop, _ = make([TEXT], raise_on_failure=True)
    loop.cancel("enough")
    with pytest.raises(RunFailedError, match="the run ended cancelled: enough"):
        loop.run("Do the task.")


def test_what_ran_before_a_break_off_keeps_its_result() -> None:
    trajectory, _ = run([BREAKS], tools=Broken(ReplayMissError("call 2 was never recorded")))
    results = trajectory.messages[-1].tool_results
    assert [(result.content, result.is_error) for result in results] == [
        ("fine", False),
        ("Not run: the run broke off.", True),
        ("Not run: the run ended (replay_miss).", True),
    ]
    assert trajectory.error == "call 2 was never recorded"


def test_a_limit_of_zero_attempts_or_iterations_makes_no_model_call() -> None:
    for limit in ("max_attempts", "max_iterations"):
        settings: dict[str, Any] = {limit: 0}
        trajectory, provider = run([], output=output(), **settings)
        assert trajectory.termination_reason == limit
        assert (provider.requests, trajectory.iterations, trajectory.model_calls) == ([], 0, 0)


def test_an_output_on_the_last_allowed_iteration_counts() -> None:
    trajectory, _ = run([DRAFT], output=output(), max_iterations=1, max_attempts=1)
    assert trajectory.termination_reason is Reason.COMPLETED
    assert trajectory.output == {"result": "draft"}


def test_the_last_text_is_the_output_at_a_limit() -> None:
    spoken = turn('{"so": "far"}', calls=[call("l1", "look")])
    trajectory, _ = run([spoken], tools=[returns("look", "seen")], max_iterations=1)
    assert trajectory.termination_reason is Reason.MAX_ITERATIONS
    assert (trajectory.final_text, trajectory.output) == ('{"so": "far"}', {"so": "far"})
    silent, _ = run([LOOK], tools=[returns("look", "seen")], max_iterations=1)
    assert (silent.output_seen, silent.output) == (False, None)


def test_a_text_at_a_limit_is_no_output_where_one_is_declared() -> None:
    trajectory, _ = run([TEXT], output=output(), max_iterations=1)
    assert trajectory.termination_reason is Reason.MAX_ITERATIONS
    assert not trajectory.output_seen


@pytest.mark.parametrize("value", [{}, {"result": ""}])
def test_an_empty_output_is_an_output(value: dict[str, str]) -> None:
    answer = turn(calls=[call("o1", "output", **value)])
    trajectory, _ = run([answer], output=output(schema={"type": "object"}))
    assert (trajectory.output_seen, trajectory.output) == (True, value)


def test_an_empty_list_in_the_final_text_is_an_output() -> None:
    trajectory, _ = run([turn("[]")])
    assert (trajectory.output_seen, trajectory.output) == (True, [])


@pytest.mark.parametrize("threshold", [1, 2, 3])
def test_failed_model_calls_in_a_row_end_the_run_at_the_threshold(threshold: int) -> None:
    errors = [ModelCallError(f"failure {number}") for number in range(1, 9)]
    trajectory, provider = run(errors, llm_error_threshold=threshold)
    assert trajectory.termination_reason is Reason.MODEL_ERROR
    assert len(provider.requests) == trajectory.failed_calls == threshold
    assert trajectory.iterations == threshold
    assert trajectory.error == f"failure {threshold}"


def test_any_successful_model_call_resets_the_failed_ones() -> None:
    down = ModelCallError("down")
    trajectory, _ = run(
        [down, LOOK, down, TEXT], tools=[returns("look", "seen")], llm_error_threshold=2
    )
    assert trajectory.termination_reason is Reason.COMPLETED
    assert (trajectory.iterations, trajectory.failed_calls) == (4, 2)


@pytest.mark.parametrize(
    "error", [ReplayMissError("miss"), ContextExceededError("long"), SandboxError("gone")]
)
def test_some_failed_model_calls_are_never_tried_again(error: Exception) -> None:
    trajectory, provider = run([error, TEXT], llm_error_threshold=5)
    assert trajectory.termination_reason is not Reason.COMPLETED
    assert len(provider.requests) == 1

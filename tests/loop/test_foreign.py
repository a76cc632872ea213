"""Tools and providers of the user's that break their contract never break a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from harness.errors import ConfigurationError, InfrastructureError, ReplayMissError
from harness.loop.engine import Loop
from harness.protocols import Hook
from harness.providers.scripted import Scripted, turn
from harness.schema.loop_config import LoopConfig
from harness.schema.loop_config import TerminationReason as Reason
from harness.schema.messages import ToolSpec
from harness.schema.record import JsonObject
from harness.schema.trajectory import Trajectory
from harness.values import (
    Approval,
    Effect,
    IterationPlan,
    Judgement,
    ModelRequest,
    ToolInvocation,
    ToolOutcome,
)
from tests.loop.support import FunctionTool, answered, call, last_results, run

LOOK = turn(calls=[call("l1", "look")])
DONE = turn("done")
SPEC = ToolSpec(name="look", description="", parameters={})


def fall_over(*_: object) -> Any:
    raise KeyError("broken")


class Own:
    """A tool provider of the user's, any method of which may be another one."""

    def __init__(self, **methods: Callable[..., Any]) -> None:
        self.methods = methods
        self.reads = 0

    def specs(self) -> tuple[ToolSpec, ...]:
        self.reads += 1
        return self._do("specs", (SPEC,), self.reads)  # type: ignore[no-any-return]

    def identity(self, name: str) -> str:
        return name

    def is_sequential(self, name: str) -> bool:
        return self._do("is_sequential", False)  # type: ignore[no-any-return]

    def effects(self, name: str, arguments: JsonObject) -> Sequence[Effect] | None:
        return self._do("effects", ())  # type: ignore[no-any-return]

    def invoke(self, invocation: ToolInvocation) -> ToolOutcome:
        return self._do("invoke", ToolOutcome("seen"))  # type: ignore[no-any-return]

    def _do(self, method: str, otherwise: object, *arguments: object) -> Any:
        return self.methods.get(method, lambda *_: otherwise)(*arguments)


@pytest.mark.parametrize("method", ["is_sequential", "effects"])
def test_tools_that_fail_to_say_what_they_do_are_run_all_the_same(method: str) -> None:
    trajectory, _ = run([LOOK, DONE], tools=Own(**{method: fall_over}), parallel_tools=2)
    assert trajectory.termination_reason is Reason.COMPLETED
    assert [result.content for result in last_results(trajectory.messages[:3])] == ["seen"]


@pytest.mark.parametrize("says", [fall_over, lambda: ["read"], lambda: "read", lambda: 5])
def test_effects_that_are_none_are_what_a_tool_does_not_say(says: Callable[[], object]) -> None:
    how: dict[str, Any] = {"governance": {"autonomy": "read_only"}}
    trajectory, _ = run([LOOK, DONE], tools=Own(effects=says), **how)
    (result,) = last_results(trajectory.messages[:3])
    assert result.content.startswith("Denied: only reading is allowed, and look does not say")
    assert trajectory.tools_executed == ()


def test_effects_of_a_plain_tool_that_are_none_break_nothing() -> None:
    tool = FunctionTool("look", lambda _: "seen", effects=["read"])  # type: ignore[list-item]
    trajectory, _ = run([LOOK, DONE], tools=[tool], budget={"max_files_modified": 1})
    assert trajectory.termination_reason is Reason.COMPLETED


@pytest.mark.parametrize(
    ("gives", "content"),
    [
        (fall_over, "KeyError: 'broken'"),
        (lambda: "seen", "TypeError: invoke() must give a ToolOutcome, not a value of type str"),
        (lambda: None, "TypeError: invoke() must give a ToolOutcome, not a value of type NoneType"),
        (lambda: ToolOutcome("x", status="odd"), "ConfigurationError: ToolOutcome.status = 'odd'"),  # type: ignore[arg-type]
    ],
)
@pytest.mark.parametrize("together", [1, 2])
def test_an_invocation_that_breaks_is_a_failed_call(
    gives: Callable[[], object], content: str, together: int
) -> None:
    both = turn(calls=[call("l1", "look"), call("l2", "look")])
    trajectory, _ = run([both, DONE], tools=Own(invoke=gives), parallel_tools=together)
    results = last_results(trajectory.messages[:3])
    assert [result.is_error for result in results] == [True, True]
    assert all(result.content.startswith(content) for result in results)
    assert trajectory.termination_reason is Reason.COMPLETED
    answered(trajectory)


SPECS = [
    (KeyError("broken"), Reason.ERROR, "the tools failed: KeyError: 'broken'"),
    (InfrastructureError("disk full"), Reason.INFRASTRUCTURE_ERROR, "disk full"),
    (ReplayMissError("never recorded"), Reason.REPLAY_MISS, "never recorded"),
    (None, Reason.ERROR, "the tools failed: TypeError: specs() must give ToolSpecs"),
]


def breaking_at(read: int, error: Exception | None) -> Callable[[int], object]:
    def specs(number: int) -> object:
        if number < read:
            return (SPEC,)
        if error is None:
            return [5]
        raise error

    return specs


@pytest.mark.parametrize(("error", "reason", "text"), SPECS)
def test_tools_that_can_no_longer_be_listed_end_the_run_with_its_transcript(
    error: Exception | None, reason: Reason, text: str
) -> None:
    trajectory, _ = run([LOOK, DONE], tools=Own(specs=breaking_at(3, error)))
    assert trajectory.termination_reason is reason
    assert (trajectory.error or "").startswith(text)
    assert trajectory.tools_executed == ("look",)
    answered(trajectory)


def test_a_stream_is_no_different() -> None:
    tools = Own(specs=breaking_at(2, KeyError("broken")))
    loop = Loop(Scripted([DONE]), model="m", tools=tools)
    *_, last = loop.stream("Look.")
    assert isinstance(last.payload, Trajectory)
    assert last.payload.error == "the tools failed: KeyError: 'broken'"


def test_a_last_call_without_its_tools_leaves_the_run_as_it_was() -> None:
    tools = Own(specs=breaking_at(3, KeyError("broken")))
    trajectory, _ = run([LOOK, DONE], tools=tools, on_limit="wrap_up", max_iterations=1)
    assert trajectory.termination_reason is Reason.MAX_ITERATIONS
    assert not trajectory.wrapped_up


@pytest.mark.parametrize("error", [KeyError("broken"), None])
def test_tools_that_cannot_be_listed_at_all_are_refused(error: Exception | None) -> None:
    with pytest.raises(ConfigurationError, match="the tools failed: "):
        Loop(Scripted([DONE]), model="m", tools=Own(specs=breaking_at(1, error)))


class Gives:
    """A provider that gives something else than a turn."""

    def __init__(self, value: object) -> None:
        self.value = value

    def complete(self, request: ModelRequest, on_delta: object = None) -> Any:
        return self.value


@pytest.mark.parametrize("value", ["hello", None, {"content": []}])
@pytest.mark.parametrize("protocol", [None, "json"])
def test_what_is_no_turn_is_a_model_error_that_says_so(value: object, protocol: Any) -> None:
    config = LoopConfig(text_protocol=protocol)
    trajectory = Loop(Gives(value), model="m", tools=Own(), config=config).run("Look.")
    kind = type(value).__name__
    assert trajectory.termination_reason is Reason.MODEL_ERROR
    assert trajectory.error == (
        f"the provider's complete() gave a value of type {kind}: it must return a ModelTurn"
    )


def plan_with(**fields: Any) -> Hook:
    def change(plan: IterationPlan) -> IterationPlan:
        given = {"iteration": 1, "model": "m", "messages": plan.messages, "tools": plan.tools}
        return IterationPlan(**{**given, **fields})

    return Hook(name="odd", before_iteration=change)


def request_with(**fields: Any) -> Hook:
    def change(request: ModelRequest) -> ModelRequest:
        given = {"model": "m", "system": None, "messages": request.messages, "tools": ()}
        return ModelRequest(**{**given, **fields})

    return Hook(name="odd", before_model=change)


@pytest.mark.parametrize("changes", [plan_with, request_with])
@pytest.mark.parametrize(
    "fields", [{"model": 5}, {"messages": "x"}, {"messages": [5]}, {"tools": ("look",)}]
)
def test_a_plan_or_request_with_wrong_fields_changes_nothing(
    changes: Callable[..., Hook], fields: JsonObject
) -> None:
    trajectory, provider = run([DONE], tools=Own(), setup={"hooks": [changes(**fields)]})
    assert trajectory.termination_reason is Reason.COMPLETED
    assert [event.data["hook"] for event in trajectory.events if event.kind == "hook_failed"] == [
        "odd"
    ]
    assert [spec.name for spec in provider.requests[0].tools] == ["look"]


def test_text_to_append_that_is_none_changes_nothing() -> None:
    trajectory, _ = run([DONE], setup={"hooks": [plan_with(append_user=5)]})
    assert trajectory.callback_errors == (
        "hook odd.before_iteration: TypeError: before_iteration cannot give IterationPlan",
    )
    assert trajectory.messages[0].text == "Do the task."


def forced(value: Any, **fields: object) -> Any:
    """A value whose fields were changed behind its back."""
    for name, content in fields.items():
        object.__setattr__(value, name, content)
    return value


LETS_PASS: list[dict[str, Any]] = [
    {"hooks": [Hook(approve_tool=lambda _: Approval("no"))]},  # type: ignore[arg-type]
    {"hooks": [Hook(approve_tool=lambda _: Approval(None))]},  # type: ignore[arg-type]
    {"hooks": [Hook(approve_tool=lambda _: "yes")]},  # type: ignore[arg-type,return-value]
    {"hooks": [Hook(approve_tool=lambda _: 1)]},  # type: ignore[arg-type,return-value]
    {"hooks": [Hook(approve_tool=lambda _: forced(Approval(True), approved="no"))]},
    {"checks": [lambda _: Judgement("deny")]},  # type: ignore[arg-type]
    {"checks": [lambda _: Judgement("")]},  # type: ignore[arg-type]
    {"checks": [lambda _: forced(Judgement("denied"), verdict="deny")]},
    {"checks": [lambda _: True]},
]


@pytest.mark.parametrize("setup", LETS_PASS)
def test_what_is_no_clear_yes_denies_the_call(setup: dict[str, Any]) -> None:
    trajectory, _ = run([LOOK, DONE], tools=Own(), setup=setup)
    (result,) = last_results(trajectory.messages[:3])
    assert result.content.startswith("Denied: ")
    assert trajectory.tools_executed == ()


def test_an_effect_of_an_unknown_kind_is_no_reading() -> None:
    odd = forced(Effect("write", "x"), kind="wirte")
    trajectory, _ = run(
        [LOOK, DONE], tools=Own(effects=lambda: [odd]), governance={"autonomy": "read_only"}
    )
    assert trajectory.tools_executed == ()

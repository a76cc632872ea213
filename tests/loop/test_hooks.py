"""Hooks intercept a run at nine points, in order, and never break it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from harness.loop.engine import Loop
from harness.protocols import Hook
from harness.providers.scripted import Scripted, turn
from harness.schema.loop_config import TerminationReason as Reason
from harness.schema.messages import Message, Text
from harness.schema.record import Json, JsonObject
from harness.schema.signals import Signal
from harness.schema.trajectory import Event, Trajectory
from harness.values import (
    Approval,
    Effect,
    IterationPlan,
    Judgement,
    ModelRequest,
    PendingCall,
    SkipModel,
    SkipTool,
    ToolOutcome,
)
from tests.loop.support import (
    FunctionTool,
    answered,
    call,
    kinds,
    make,
    output,
    raises,
    returns,
    run,
)

LOOK = turn(calls=[call("l1", "look", at="a")])
DONE = turn("done")


def hooked(*hooks: Hook, **setup: Any) -> dict[str, Any]:
    return {"hooks": hooks, **setup}


class Echo:
    """A tool that tells what it was given, and remembers it."""

    def __init__(self, effects: Sequence[Effect] | None = ()) -> None:
        self.given: list[JsonObject] = []
        schema: JsonObject = {
            "type": "object",
            "properties": {"at": {"type": "string"}},
            "additionalProperties": False,
        }
        self.tool = FunctionTool("look", self._look, schema, effects=effects)

    def _look(self, arguments: JsonObject) -> Json:
        self.given.append(arguments)
        return str(arguments.get("at"))


def failures(trajectory: Trajectory) -> list[tuple[Json, Json, Json]]:
    return [
        (event.data["hook"], event.data["point"], event.data["error"])
        for event in trajectory.events
        if event.kind == "hook_failed"
    ]


def test_each_point_is_reached_in_order() -> None:
    reached: list[str] = []

    def tell(point: str) -> Callable[..., None]:
        return lambda *_: reached.append(point)

    hook = Hook(
        before_run=tell("before_run"),
        after_run=tell("after_run"),
        before_iteration=tell("before_iteration"),
        before_model=tell("before_model"),
        after_model=tell("after_model"),
        before_tool=tell("before_tool"),
        approve_tool=tell("approve_tool"),
        after_tool=tell("after_tool"),
        pause_check=tell("pause_check"),
    )
    trajectory, _ = run([LOOK, DONE], tools=[returns("look", "seen")], setup=hooked(hook))
    asking = ["pause_check", "before_iteration", "before_model", "after_model"]
    calling = ["before_tool", "approve_tool", "after_tool"]
    assert reached == ["before_run", *asking, *calling, *asking, "after_run"]
    assert (trajectory.termination_reason, failures(trajectory)) == (Reason.COMPLETED, [])


def test_the_conversation_that_a_hook_gives_is_the_one_that_is_run_and_returned() -> None:
    def shout(messages: Sequence[Message]) -> Sequence[Message]:
        return [Message(role="user", content=(Text(text=messages[0].text.upper()),))]

    trajectory, provider = run([DONE], messages="hello", setup=hooked(Hook(before_run=shout)))
    assert provider.requests[0].messages[0].text == "HELLO"
    assert trajectory.messages[0].text == "HELLO"


@pytest.mark.parametrize("given", ["text", ["text"], 3])
def test_what_is_no_conversation_changes_nothing(given: Any) -> None:
    trajectory, provider = run([DONE], setup=hooked(Hook(before_run=lambda _: given)))
    assert provider.requests[0].messages[0].text == "Do the task."
    assert [point for _, point, _ in failures(trajectory)] == ["before_run"]
    assert kinds(trajectory)[0] == "run_started"


def test_what_a_run_gives_back_may_be_changed_and_is_what_observers_see() -> None:
    seen: list[Event] = []

    def relabel(trajectory: Trajectory) -> Trajectory:
        return trajectory.model_copy(update={"final_text": trajectory.final_text + "!"})

    both = hooked(Hook(after_run=relabel), Hook(after_run=relabel))
    trajectory, _ = run([DONE], setup=both, observers=[seen.append])
    assert trajectory.final_text == "done!!"
    assert seen[-1].payload == trajectory


def test_an_iteration_may_be_given_another_model_other_tools_and_messages() -> None:
    def change(plan: IterationPlan) -> IterationPlan | None:
        if plan.iteration == 1:
            return None
        said = Message(role="user", content=(Text(text="In short: go on."),))
        return replace(plan, model="small", tools=plan.tools[:1], messages=[said])

    turns = [LOOK, turn(calls=[call("w", "work")]), DONE]
    tools = [returns("look", "seen"), returns("work", "worked")]
    trajectory, provider = run(turns, tools=tools, setup=hooked(Hook(before_iteration=change)))
    first, second, _ = provider.requests
    assert (first.model, [spec.name for spec in first.tools]) == ("scripted-1", ["look", "work"])
    assert (second.model, [spec.name for spec in second.tools]) == ("small", ["look"])
    assert [message.text for message in second.messages] == ["In short: go on."]
    assert trajectory.tools_executed == ("look",), "what was not offered cannot be called"
    assert trajectory.messages[0].text == "Do the task.", "the conversation itself stays whole"
    answered(trajectory)


def test_a_hook_cannot_offer_a_tool_that_is_not_there() -> None:
    def invent(plan: IterationPlan) -> IterationPlan:
        return replace(plan, tools=(plan.tools[0].model_copy(update={"name": "ghost"}),))

    _, provider = run(
        [DONE], tools=[returns("look", "")], setup=hooked(Hook(before_iteration=invent))
    )
    assert provider.requests[0].tools == ()


def test_text_that_hooks_append_comes_after_the_results_and_stays() -> None:
    def hint(text: str) -> Hook:
        return Hook(
            before_iteration=lambda plan: (
                replace(plan, append_user=text) if plan.iteration == 2 else None
            )
        )

    turns = [LOOK, turn(calls=[call("l2", "look")]), DONE]
    trajectory, provider = run(
        turns, tools=[returns("look", "seen")], setup=hooked(hint("one"), hint("two"))
    )
    for messages in (provider.requests[1].messages, trajectory.messages[:3]):
        assert [block.type for block in messages[2].content] == ["tool_result", "text"]
        assert messages[2].text == "one\ntwo"
    assert provider.requests[2].messages[2].text == "one\ntwo"
    answered(trajectory)


def test_text_is_appended_to_messages_that_the_hook_changed_as_well() -> None:
    def both(plan: IterationPlan) -> IterationPlan:
        said = Message(role="user", content=(Text(text="Short."),))
        return replace(plan, messages=[said], append_user="Hurry.")

    trajectory, provider = run([DONE], setup=hooked(Hook(before_iteration=both)))
    assert provider.requests[0].messages[0].text == "Short.Hurry."
    assert trajectory.messages[0].text == "Do the task.Hurry."


@pytest.mark.parametrize("stream", [False, True])
def test_a_canned_answer_ends_the_run_without_a_model_call(stream: bool) -> None:
    asked: list[str] = []

    def can(_: ModelRequest) -> SkipModel:
        asked.append("first")
        return SkipModel('{"from": "cache"}')

    def never(_: ModelRequest) -> None:
        asked.append("second")

    hooks = hooked(Hook(before_model=can), Hook(before_model=never))
    trajectory, provider = run([], setup=hooks, stream=stream)
    assert trajectory.termination_reason is Reason.COMPLETED
    assert (trajectory.final_text, trajectory.output) == ('{"from": "cache"}', {"from": "cache"})
    assert (trajectory.model_calls, provider.requests, asked) == (0, [], ["first"])
    assert trajectory.messages[-1].text == '{"from": "cache"}'
    assert kinds(trajectory).count("run_completed") == 1


def test_changes_of_a_request_add_up() -> None:
    cooler = Hook(before_model=lambda request: replace(request, temperature=0.5))
    shorter = Hook(before_model=lambda request: replace(request, max_output_tokens=9))
    _, provider = run([DONE], setup=hooked(cooler, shorter))
    request = provider.requests[0]
    assert (request.temperature, request.max_output_tokens) == (0.5, 9)


def test_changed_arguments_reach_the_next_hook_and_the_tool() -> None:
    echo, seen = Echo(), []

    def second(pending: PendingCall) -> None:
        seen.append(pending.arguments)

    hooks = hooked(Hook(before_tool=lambda _: {"at": "b"}), Hook(before_tool=second))
    trajectory, _ = run([LOOK, DONE], tools=[echo.tool], setup=hooks)
    assert (seen, echo.given) == ([{"at": "b"}], [{"at": "b"}])
    assert trajectory.messages[1].tool_calls[0].arguments == '{"at": "a"}', "as the model said"


def in_place(pending: PendingCall) -> JsonObject:
    pending.arguments["at"] = 3
    return pending.arguments


@pytest.mark.parametrize("change", [lambda _: {"at": 3}, in_place])
def test_changed_arguments_pass_the_schema_again(
    change: Callable[[PendingCall], JsonObject],
) -> None:
    echo = Echo()
    trajectory, _ = run([LOOK, DONE], tools=[echo.tool], setup=hooked(Hook(before_tool=change)))
    assert echo.given == []
    result = trajectory.messages[2].tool_results[0]
    assert result.is_error
    assert "do not fit the tool's schema" in result.content


def test_what_a_hook_does_to_the_arguments_it_is_shown_changes_nothing() -> None:
    echo = Echo()

    def meddle(pending: PendingCall, *_: object) -> None:
        pending.arguments["at"] = "z"

    def check(pending: PendingCall) -> Judgement:
        meddle(pending)
        return Judgement("allowed")

    def approve(pending: PendingCall) -> bool:
        meddle(pending)
        return True

    hook = Hook(before_tool=meddle, approve_tool=approve, after_tool=meddle)
    run([LOOK, DONE], tools=[echo.tool], setup=hooked(hook, checks=[check]))
    assert echo.given == [{"at": "a"}]


def test_a_supplied_result_ends_the_chain_and_is_no_execution() -> None:
    echo = Echo()
    asked: list[object] = []

    def ask(*arguments: object) -> None:
        asked.append(arguments)

    hooks = hooked(
        Hook(before_tool=lambda _: SkipTool("from the cache")),
        Hook(before_tool=ask, approve_tool=ask, after_tool=ask),
    )
    trajectory, _ = run([LOOK, DONE], tools=[echo.tool], setup=hooks)
    result = trajectory.messages[2].tool_results[0]
    assert (result.content, result.is_error) == ("from the cache", False)
    assert (echo.given, asked, trajectory.tool_calls_made) == ([], [], 0)


def test_a_supplied_result_of_a_terminal_tool_ends_the_run() -> None:
    trajectory, _ = run(
        [LOOK],
        tools=[Echo().tool],
        setup=hooked(Hook(before_tool=lambda _: SkipTool("ok")), terminal_tools=["look"]),
    )
    assert (trajectory.signal, trajectory.signal_data) == ("TERMINAL_COMPLETE", "ok")


def refuse(_: PendingCall) -> bool:
    return False


def explode(*_: object) -> Any:
    raise LookupError("no approver on duty")


@pytest.mark.parametrize(
    ("approve", "why"),
    [
        (refuse, "the call was not approved"),
        (lambda _: Approval(approved=False, reason="not today"), "not today"),
        (explode, "the approver failed: LookupError: no approver on duty"),
        (lambda _: "yes", "the call was not approved"),
    ],
)
def test_who_does_not_approve_denies(approve: Any, why: str) -> None:
    echo = Echo()
    later: list[PendingCall] = []
    hooks = hooked(Hook(approve_tool=approve), Hook(approve_tool=later.append))
    trajectory, _ = run([LOOK, DONE], tools=[echo.tool], setup=hooks)
    assert (echo.given, later, trajectory.tool_calls_made) == ([], [], 0)
    assert trajectory.messages[2].tool_results[0].content == f"Denied: {why}."
    assert kinds(trajectory).count("tool_denied") == 1


def test_an_approver_that_keeps_raising_is_asked_all_the_same() -> None:
    turns = [turn(calls=[call(f"l{number}", "look")]) for number in range(5)]
    trajectory, _ = run(
        [*turns, DONE], tools=[Echo().tool], setup=hooked(Hook(approve_tool=explode))
    )
    assert kinds(trajectory).count("tool_denied") == 5
    assert trajectory.tools_executed == ()
    assert trajectory.termination_reason is Reason.COMPLETED, "a denial is no failed call"


def approve_with(at: Json) -> Hook:
    return Hook(approve_tool=lambda _: Approval(approved=True, arguments={"at": at}))


def test_approved_arguments_are_those_that_run_and_the_next_approver_sees_them() -> None:
    echo, seen = Echo(), []

    def second(pending: PendingCall) -> bool:
        seen.append(pending.arguments)
        return True

    hooks = hooked(approve_with("b"), Hook(approve_tool=second))
    run([LOOK, DONE], tools=[echo.tool], setup=hooks)
    assert (seen, echo.given) == ([{"at": "b"}], [{"at": "b"}])


def test_approved_arguments_pass_schema_and_governance_again() -> None:
    def no_z(pending: PendingCall) -> Judgement:
        denied = pending.arguments["at"] == "z"
        return Judgement("denied", "never z") if denied else Judgement("allowed")

    echo = Echo()
    for at, told in ((3, "do not fit the tool's schema"), ("z", "Denied: never z.")):
        setup = hooked(approve_with(at), checks=[no_z])
        trajectory, _ = run([LOOK, DONE], tools=[echo.tool], setup=setup)
        assert told in trajectory.messages[2].tool_results[0].content
    assert echo.given == []


@pytest.mark.parametrize(("answer", "ran"), [(True, 1), (False, 0), (None, 0)])
def test_an_escalated_call_needs_an_approver(answer: bool | None, ran: int) -> None:
    echo = Echo()
    setup = hooked(
        Hook(approve_tool=lambda _: answer), checks=[lambda _: Judgement("escalated", "big")]
    )
    trajectory, _ = run([LOOK, DONE], tools=[echo.tool], setup=setup)
    assert len(echo.given) == ran
    if answer is None:
        result = trajectory.messages[2].tool_results[0]
        assert result.content == "Denied: big, and there is nobody to approve it."


def test_a_replaced_text_is_what_the_model_sees_and_a_failure_stays_one() -> None:
    hooks = hooked(Hook(after_tool=lambda *_: "hidden"))
    for tool, is_error in ((returns("look", "seen"), False), (raises("look"), True)):
        trajectory, _ = run([LOOK, DONE], tools=[tool], setup=hooks)
        result = trajectory.messages[2].tool_results[0]
        assert (result.content, result.is_error) == ("hidden", is_error)


@pytest.mark.parametrize(
    ("outcome", "is_error"),
    [
        (ToolOutcome("mended"), False),
        (ToolOutcome("rejected", "failed"), True),
        ('{"success": false, "key": "***"}', True),
    ],
)
def test_a_replaced_outcome_is_judged_like_the_tools_own(outcome: Any, is_error: bool) -> None:
    trajectory, _ = run(
        [LOOK, DONE],
        tools=[returns("look", {"success": False, "key": "secret"})],
        setup=hooked(Hook(after_tool=lambda *_: outcome)),
    )
    assert trajectory.messages[2].tool_results[0].is_error is is_error


def test_a_replaced_outcome_may_end_the_run() -> None:
    ended = ToolOutcome("over", asks=Signal(name="STOP"))
    trajectory, _ = run(
        [LOOK], tools=[Echo().tool], setup=hooked(Hook(after_tool=lambda *_: ended))
    )
    assert (trajectory.termination_reason, trajectory.signal) == (Reason.SIGNAL, "STOP")


def test_a_hook_may_pause_the_run_before_an_iteration() -> None:
    loops: list[Loop] = []
    reasons: list[Json] = []

    def observe(event: Event) -> None:
        if event.kind == "paused":
            reasons.append(event.data["reason"])
            loops[0].resume()

    hooks = hooked(
        Hook(pause_check=lambda number: "look at it" if number == 2 else None),
        Hook(pause_check=lambda number: "me too" if number == 2 else None),
    )
    loop, provider = make([LOOK, DONE], tools=[Echo().tool], setup=hooks, observers=[observe])
    loops.append(loop)
    trajectory = loop.run("Do the task.")
    assert reasons == ["look at it"]
    told = kinds(trajectory)
    assert told.index("paused") > told.index("model_response")
    assert (told.count("paused"), told.count("resumed"), len(provider.requests)) == (1, 1, 2)


POINTS: list[tuple[str, Any]] = [
    ("before_run", "a text"),
    ("after_run", "a text"),
    ("before_iteration", []),
    ("before_model", "a text"),
    ("before_tool", "a text"),
    ("after_tool", 3),
    ("pause_check", True),
]


@pytest.mark.parametrize(("point", "wrong"), POINTS)
def test_a_hook_that_raises_or_gives_the_wrong_thing_is_told_of_and_changes_nothing(
    point: str, wrong: Any
) -> None:
    def give(*_: object) -> Any:
        return wrong

    for function, error in ((explode, "LookupError"), (give, "TypeError")):
        hook = Hook(name="mine", **{point: function})
        trajectory, _ = run([LOOK, DONE], tools=[Echo().tool], setup=hooked(hook))
        assert (trajectory.termination_reason, trajectory.final_text) == (Reason.COMPLETED, "done")
        assert trajectory.messages[2].tool_results[0].content == "a"
        told = failures(trajectory)
        assert {(name, where) for name, where, _ in told} == {("mine", point)}
        assert str(told[0][2]).startswith(error)


def counting(behave: Callable[[int], None]) -> tuple[Hook, list[int]]:
    """A hook that counts its calls and may raise."""
    called: list[int] = []

    def function(_: ModelRequest) -> None:
        called.append(len(called) + 1)
        behave(len(called))

    return Hook(before_model=function), called


def test_three_failures_in_a_row_switch_a_hook_off_over_the_runs_of_a_loop() -> None:
    bad, called = counting(explode)
    good, still = counting(lambda _: None)
    loop, _ = make([DONE] * 5, setup=hooked(bad, good))
    told = [len(failures(loop.run("Again."))) for _ in range(5)]
    assert told == [1, 1, 1, 0, 0]
    assert (len(called), len(still)) == (3, 5)


def test_a_success_between_failures_keeps_a_hook_on() -> None:
    def behave(number: int) -> None:
        if number % 3:
            raise LookupError("now and then")

    hook, called = counting(behave)
    loop, _ = make([DONE] * 9, setup=hooked(hook))
    for _ in range(9):
        loop.run("Again.")
    assert len(called) == 9


def test_failures_at_one_point_do_not_switch_off_another() -> None:
    seen: list[str] = []
    hook = Hook(before_model=explode, after_model=lambda _: seen.append("answer"))
    loop, _ = make([DONE] * 5, setup=hooked(hook))
    for _ in range(5):
        loop.run("Again.")
    assert len(seen) == 5


def test_streamed_runs_count_the_same_failures() -> None:
    hook, called = counting(explode)
    loop = Loop(Scripted([DONE] * 5), model="m", hooks=[hook])
    for _ in range(5):
        list(loop.stream("Again."))
    assert len(called) == 3


@pytest.mark.parametrize("point", ["before_iteration", "before_model"])
def test_a_cancel_from_a_hook_keeps_the_model_call_from_starting(point: str) -> None:
    loops: list[Loop] = []

    def cancel(_: object) -> None:
        loops[0].cancel("enough")

    hook = replace(Hook(), **{point: cancel})  # type: ignore[arg-type]
    loop, provider = make([DONE], setup=hooked(hook))
    loops.append(loop)
    trajectory = loop.run("Do the task.")
    assert trajectory.termination_reason is Reason.CANCELLED
    assert (provider.requests, trajectory.iterations) == ([], 0)


def test_a_cancel_from_an_approver_keeps_the_call_from_running() -> None:
    loops: list[Loop] = []
    echo = Echo()

    def approve(_: PendingCall) -> bool:
        loops[0].cancel("enough")
        return True

    loop, _ = make([LOOK], tools=[echo.tool], setup=hooked(Hook(approve_tool=approve)))
    loops.append(loop)
    trajectory = loop.run("Do the task.")
    assert (trajectory.termination_reason, echo.given) == (Reason.CANCELLED, [])
    answered(trajectory)


@pytest.mark.parametrize(
    "wrong",
    [
        Hook(before_tool=lambda call: SkipTool(3)),  # type: ignore[arg-type]
        Hook(after_tool=lambda call, outcome: ToolOutcome(3)),  # type: ignore[arg-type]
        Hook(before_model=lambda request: SkipModel(3)),  # type: ignore[arg-type]
    ],
)
def test_a_hook_that_gives_a_result_that_is_no_text_has_failed(wrong: Hook) -> None:
    script = [turn(calls=[call("c1", "work")]), turn("done")]
    trajectory, _ = run(script, tools=[returns("work", "ok")], setup={"hooks": [wrong]})
    assert trajectory.final_text == "done"
    assert "hook_failed" in kinds(trajectory)


def test_calls_that_are_no_iteration_pass_the_hooks_too() -> None:
    seen: list[str] = []

    def hide(request: ModelRequest) -> ModelRequest:
        seen.append(request.tool_choice)
        return replace(request, system="hidden")

    hook = Hook(before_model=hide, after_model=lambda turn: seen.append(turn.stop.value))
    trajectory, provider = run(
        [turn(calls=[call("1", "look")]), turn("the end")],
        tools=[returns("look", "seen")],
        setup={"hooks": [hook]},
        max_iterations=1,
        on_limit="wrap_up",
    )
    assert trajectory.wrapped_up
    assert seen == ["auto", "tool_use", "none", "end_turn"]
    assert [request.system for request in provider.requests] == ["hidden", "hidden"]


def test_a_hook_may_wrap_up_in_the_models_place() -> None:
    def stand_in(request: ModelRequest) -> SkipModel | None:
        return SkipModel("canned") if request.tool_choice == "none" else None

    trajectory, provider = run(
        [turn(calls=[call("1", "look")])],
        tools=[returns("look", "seen")],
        setup={"hooks": [Hook(before_model=stand_in)]},
        max_iterations=1,
        on_limit="wrap_up",
    )
    assert (trajectory.final_text, trajectory.wrapped_up) == ("canned", True)
    assert trajectory.model_calls == len(provider.requests) == 1


def always(answer: SkipModel) -> Callable[[ModelRequest], SkipModel]:
    return lambda _: answer


class Unwritable:
    """No JSON, and cannot be copied either."""

    def __deepcopy__(self, _: object) -> object:
        raise TypeError("cannot be copied")


def test_arguments_that_are_no_json_make_a_hook_fail_and_an_approver_deny() -> None:
    wrong: Any = {"at": Unwritable()}
    asks = Hook(before_tool=lambda _: wrong)
    trajectory, _ = run([LOOK, DONE], tools=[returns("look", "seen")], setup=hooked(asks))
    assert trajectory.tools_executed == ("look",)
    assert "hook_failed" in kinds(trajectory)
    approves = Hook(approve_tool=lambda _: Approval(approved=True, arguments=wrong))
    trajectory, _ = run([LOOK, DONE], tools=[returns("look", "seen")], setup=hooked(approves))
    assert trajectory.tools_executed == ()


def test_a_canned_answer_is_an_output_only_if_it_is_a_valid_one() -> None:
    for text, seen in (('{"result": "x"}', True), ('{"b": 1}', False)):
        canned = SkipModel(text)
        trajectory, _ = run([], output=output(), setup=hooked(Hook(before_model=always(canned))))
        assert trajectory.termination_reason is Reason.COMPLETED
        assert trajectory.output_seen is seen


def test_a_canned_answer_never_becomes_a_summary() -> None:
    def stand_in(request: ModelRequest) -> SkipModel | None:
        return None if request.tools else SkipModel("canned summary")

    long = turn("word " * 400, calls=[call("l1", "look", at="a")])
    trajectory, provider = run(
        [long, turn("word " * 400, calls=[call("l2", "look", at="b")]), DONE],
        tools=[returns("look", "seen")],
        setup=hooked(Hook(before_model=stand_in)),
        compaction={"above_tokens": 600},
    )
    assert trajectory.termination_reason is Reason.COMPLETED
    said = [message.text for request in provider.requests for message in request.messages]
    assert not [text for text in said if "canned summary" in text]

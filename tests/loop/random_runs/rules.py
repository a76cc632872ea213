"""What holds of every run, whatever the model, the tools and the settings do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import groupby, pairwise
from typing import Any

from harness.providers.anthropic_messages import AnthropicMessages
from harness.providers.openai_chat import OpenAIChat
from harness.schema.loop_config import TerminationReason as Reason
from harness.schema.messages import Message, ModelTurn, Usage
from harness.schema.trajectory import Event, SuspendedRun, Trajectory
from tests.loop.random_runs.cases import Case
from tests.loop.random_runs.stage import ModelCalled, Ran, ToolCalled
from tests.loop.support import answered, kinds, roles
from tests.providers.lookalikes.anthropic import check as check_anthropic
from tests.providers.lookalikes.openai_chat import check as check_openai

BUCKETS = ("input", "output", "cache_write", "cache_read")
ENDS_OF_CALLS = ("tool_completed", "tool_failed", "tool_timed_out")
ITERATION_TAGS = ("main", "confirm", "nudge")


def hold_all(case: Case, ran: Ran) -> None:
    """Hold every rule of one run."""
    hold_whatever_comes(case, ran)
    holds_the_cancel(ran)
    holds_the_pauses(ran)


def hold_whatever_comes(case: Case, ran: Ran) -> None:
    """Hold the rules that do not ask when exactly something happened."""
    holds_the_conversation(case, ran)
    holds_the_story(case, ran)
    holds_the_sums(ran)
    holds_the_calls(case, ran)
    holds_the_limits(case, ran)
    holds_the_budget(case, ran)
    holds_the_result(case, ran)
    holds_on_the_wire(case, ran)
    survives_json(ran.trajectory)


def holds_the_conversation(case: Case, ran: Ran) -> None:
    """Every call is answered once and in order, and the caller's messages begin it all."""
    trajectory = ran.trajectory
    answered(trajectory)
    assert ("user", "user") not in list(pairwise(roles(trajectory.messages)))
    assert all(message.content for message in trajectory.messages)
    said = [call for message in trajectory.messages for call in message.tool_calls]
    if "text_protocol" in case.settings:
        assert len({call.id for call in said}) == len(said) or ran.before
    if "begins" not in case.hooks:
        begun = [*ran.before, *ran.given]
        if ran.before and ran.before[-1].role == ran.given[0].role == "user":
            both = (*ran.before[-1].content, *ran.given[0].content)
            begun = [*ran.before[:-1], Message(role="user", content=both), *ran.given[1:]]
        grows(begun, trajectory.messages)
    changed = {"window", "compaction", "text_protocol"} & set(case.settings)
    if changed or "shortens" in case.hooks:
        return
    for earlier, later in pairwise(called.request for called in all_model_calls(ran)):
        grows(earlier.messages, later.messages)


def grows(earlier: Sequence[Message], later: Sequence[Message]) -> None:
    """Hold that a conversation goes on from another; its open turn may have grown."""
    place = len(earlier) - 1
    assert later[:place] == tuple(earlier[:place])
    content = earlier[place].content
    assert later[place].role == earlier[place].role
    assert later[place].content[: len(content)] == content


def holds_the_story(case: Case, ran: Ran) -> None:
    """One beginning, one end, attempts that hold iterations, and an end for each started call."""
    found = kinds(ran.trajectory)
    assert found[0] == "run_started"
    assert found[-1] == "run_completed"
    assert found.count("run_started") == found.count("run_completed") == 1
    is_open = {"attempt": ran.resumes is not None, "iteration": False}
    for kind in found:
        what, _, how = kind.partition("_")
        if what not in is_open:
            continue
        assert is_open[what] is (how == "completed")
        is_open[what] = how == "started"
        assert is_open["attempt"] or not is_open["iteration"]
    assert not any(is_open.values())
    before_each_model_call = [
        index for index, kind in enumerate(found) if kind in ("model_request", "paused")
    ]
    for index in before_each_model_call:
        assert found[:index].count("attempt_started") + (ran.resumes is not None) > 0
    ids = [str(event.data["id"]) for event in of_kind(ran, "tool_started")]
    ended = [str(event.data["id"]) for event in of_kind(ran, *ENDS_OF_CALLS)]
    if case.settings.get("parallel_tools", 1) == 1:
        assert ids == ended
    assert Counter(ids) == Counter(ended)
    detected = [event.data["id"] for event in of_kind(ran, "tool_detected")]
    calls = [call.id for message in ran.trajectory.messages for call in message.tool_calls]
    assert Counter(detected) <= Counter(calls)
    assert [event.iteration for event in ran.trajectory.events] == sorted(
        event.iteration for event in ran.trajectory.events
    )
    raised = any(act == "raise" for _, act in case.acts)
    silent = {"observer", "recall"}.isdisjoint(case.setup)
    errors = ran.trajectory.callback_errors
    of_hooks = [error for error in errors if error.startswith("hook ")]
    assert len(of_hooks) == len(of_kind(ran, "hook_failed"))
    assert len(of_hooks) == len(errors) or raised or not silent


def holds_the_sums(ran: Ran) -> None:
    """What was charged is what the provider really saw."""
    trajectory, calls = ran.trajectory, all_model_calls(ran)
    got = [called.answer for called in calls if isinstance(called.answer, ModelTurn)]
    tags = all_tags(ran)
    assert trajectory.model_calls == len(calls) == len(tags)
    assert trajectory.failed_calls == len(calls) - len(got)
    assert len(of_kind(ran, "model_response", "model_error")) == len(ran.model_calls)
    held(trajectory.usage, [answer.usage for answer in got])
    for tag in set(tags):
        usages = [
            called.answer.usage
            for called, found in zip(calls, tags, strict=True)
            if found == tag and isinstance(called.answer, ModelTurn)
        ]
        if usages:
            held(trajectory.usage_by_tag[tag], usages)
    assert set(trajectory.usage_by_tag) <= set(tags)
    iterations = {
        event.iteration
        for event in of_kind(ran, "model_request")
        if event.data["tag"] in ITERATION_TAGS
    }
    earlier = ran.resumes.trajectory.iterations if ran.resumes else 0
    assert trajectory.iterations == len(iterations) + earlier


def held(total: Any, usages: Sequence[Usage | None]) -> None:
    for bucket in BUCKETS:
        numbers = [getattr(usage, bucket, None) for usage in usages]
        reported = [number for number in numbers if number is not None]
        assert getattr(total, bucket) == (sum(reported) if reported else None)
    assert total.missing_calls == sum(usage in (None, Usage()) for usage in usages)


def holds_the_calls(case: Case, ran: Ran) -> None:
    """The tools that were really invoked are the ones that are counted."""
    trajectory = ran.trajectory
    own = {"output", "submit", "task_complete"}
    started = [str(event.data["name"]) for event in of_kind(ran, "tool_started")]
    helpers = [name for name in started if name not in own]
    earlier = ran.resumes.trajectory.tools_executed if ran.resumes else ()
    executed = list(trajectory.tools_executed[len(earlier) :])
    invoked = [called.name for called in ran.tool_calls]
    assert executed == helpers
    if "max_duration_s" in case.settings.get("budget", {}):
        # A call for which no time is left is answered without its tool.
        assert Counter(invoked) <= Counter(executed)
    else:
        assert Counter(executed) == Counter(invoked)
    if case.settings.get("parallel_tools", 1) == 1 and len(executed) == len(invoked):
        assert executed == invoked
    assert trajectory.tools_executed[: len(earlier)] == earlier
    assert trajectory.tool_calls_made == len(trajectory.tools_executed)
    assert trajectory.tools_used == tuple(dict.fromkeys(trajectory.tools_executed))
    results = [result for message in new_messages(ran) for result in message.tool_results]
    ran_calls = Counter(str(event.data["id"]) for event in of_kind(ran, "tool_started"))
    assert ran_calls <= Counter(result.call_id for result in results)


def holds_the_limits(case: Case, ran: Ran) -> None:
    """No attempt, turn or answer is larger than the settings allow."""
    trajectory, settings = ran.trajectory, case.settings
    assert trajectory.attempts <= settings.get("max_attempts", 3)
    assert len(trajectory.validation_failures) <= trajectory.attempts
    assert trajectory.iterations <= settings.get("hard_limit", 1000)
    before = ran.resumes.trajectory.suspended if ran.resumes else None
    in_attempt = before.attempt_iterations if before else 0
    for event in trajectory.events:
        if event.kind == "attempt_started":
            in_attempt = 0
        if event.kind == "iteration_completed":
            calls = [
                called.data["tag"]
                for called in of_kind(ran, "model_request")
                if called.iteration == event.iteration
            ]
            asked = sum(tag in ITERATION_TAGS for tag in calls)
            in_attempt += asked > 0
            assert asked <= 1 + settings.get("empty_retries", 0)
            assert calls.count("compaction") <= 1
            assert in_attempt <= settings.get("max_iterations", 20)
    cap = settings.get("max_tool_calls_per_turn", 1000)
    started = [event.iteration for event in of_kind(ran, "tool_started")]
    assert all(count <= cap for count in Counter(started).values())
    if settings.get("overflow") == "drop":
        calls_of_turns = [len(message.tool_calls) for message in new_messages(ran)]
        unrun = {Reason.REFUSAL, Reason.CANCELLED, Reason.TRUNCATED, Reason.LOOP_DETECTED}
        if trajectory.termination_reason not in unrun and not trajectory.wrapped_up:
            suspended = trajectory.termination_reason is Reason.SUSPENDED
            assert max(calls_of_turns[: -2 if suspended else None], default=0) <= cap
    for name, run in groupby(ran.tool_calls, key=lambda called: called.name):
        holds_the_breaker(case, name, list(run))


def holds_the_breaker(case: Case, name: str, calls: Sequence[ToolCalled]) -> None:
    limit = case.settings.get("breaker")
    after = {"replaces_whole", "modifies", "approver_modifies"} & set(case.hooks)
    if limit and name == "raising" and not after and "parallel_tools" not in case.settings:
        same = Counter(str(call.arguments) for call in calls)
        assert max(same.values()) <= limit


def holds_the_budget(case: Case, ran: Ran) -> None:
    """What was used up kept the next call from starting, and never one call longer."""
    trajectory, budget = ran.trajectory, case.settings.get("budget", {})
    calls = all_model_calls(ran)
    unlimited = float("inf")
    assert trajectory.iterations <= budget.get("max_iterations", unlimited)
    assert trajectory.tool_calls_made <= budget.get("max_tool_calls", unlimited)
    for name in ("max_tokens", "max_cost_usd"):
        if name in budget and calls:
            assert tokens(calls[:-1]) < budget[name]
    for called in ran.model_calls:
        assert called.at_s - ran.started_s < budget.get("max_duration_s", unlimited)
    written = [effect for called in all_tool_calls(ran) for effect in called.writes]
    files = {effect.target for effect in written}
    assert len(files) <= budget.get("max_files_modified", unlimited)
    assert sum(effect.lines for effect in written) <= budget.get("max_lines_changed", unlimited)


def tokens(calls: Sequence[ModelCalled]) -> int:
    usages = [getattr(called.answer, "usage", None) or Usage() for called in calls]
    return sum(getattr(usage, bucket) or 0 for usage in usages for bucket in BUCKETS)


def holds_the_cancel(ran: Ran) -> None:
    """Nothing starts after a cancel, and nothing else is the ending."""
    cancelled = ran.trajectory.termination_reason is Reason.CANCELLED
    assert cancelled is (ran.cancelled_at is not None)
    later = kinds(ran.trajectory)[ran.cancelled_at :] if cancelled else []
    assert "model_request" not in later
    assert "tool_started" not in later
    if cancelled:
        assert "phase" in ran.trajectory.events[-1].data


def holds_the_pauses(ran: Ran) -> None:
    """No model call starts between the wish for a pause and its end."""
    found = kinds(ran.trajectory)
    for place in ran.paused_at:
        until = found.index("paused", place) if "paused" in found[place:] else len(found)
        assert "model_request" not in found[place:until]


def holds_the_result(case: Case, ran: Ran) -> None:
    """What the run gives fits how it ended."""
    trajectory, reason = ran.trajectory, ran.trajectory.termination_reason
    assert (trajectory.suspended is not None) is (reason is Reason.SUSPENDED)
    signalled = (Reason.SIGNAL, Reason.MAX_ITERATIONS)
    assert trajectory.signal is None or reason in signalled
    assert reason is not Reason.SIGNAL or trajectory.signal is not None
    assert trajectory.events[-1].data["reason"] == reason
    if reason is Reason.MAX_ATTEMPTS:
        assert trajectory.attempts == case.settings.get("max_attempts", 3)
    if reason is Reason.COMPLETED:
        assert trajectory.output_seen or "canned" in case.hooks
        if "output" in case.setup and "canned" not in case.hooks:
            assert isinstance(trajectory.output, dict)
            assert trajectory.output["result"] == "long enough"
    if reason is not Reason.SUSPENDED and trajectory.error is None:
        fine = (Reason.COMPLETED, Reason.SIGNAL, Reason.CANCELLED)
        assert reason in fine


def holds_on_the_wire(case: Case, ran: Ran) -> None:
    """Vendors as strict as the real ones take every request."""
    if any(said.same_ids for said in case.script):
        return
    for called in ran.model_calls:
        check_anthropic(AnthropicMessages().to_request(called.request))
        check_openai(OpenAIChat().to_request(called.request))


def survives_json(trajectory: Trajectory) -> None:
    assert Trajectory.model_validate_json(trajectory.model_dump_json()) == trajectory
    state = trajectory.suspended
    if state is not None:
        assert SuspendedRun.model_validate_json(state.model_dump_json()) == state


def never_too_many_at_once(case: Case, together: Sequence[tuple[str, ...]]) -> None:
    """Of the tools that ran at one time: not more than allowed, and none that runs alone."""
    alone = {"alone", "injects", "pauses", "cancels", "registers"}
    for names in together:
        assert len(names) <= case.settings.get("parallel_tools", 1)
        assert alone.isdisjoint(names)


def of_kind(ran: Ran, *wanted: str) -> list[Event]:
    return [event for event in ran.trajectory.events if event.kind in wanted]


def new_messages(ran: Ran) -> Sequence[Message]:
    """Those of this run alone; the last one before it may have grown."""
    return ran.trajectory.messages[len(ran.before) :]


def all_model_calls(ran: Ran) -> list[ModelCalled]:
    earlier = all_model_calls(ran.resumes) if ran.resumes else []
    return [*earlier, *ran.model_calls]


def all_tool_calls(ran: Ran) -> list[ToolCalled]:
    earlier = all_tool_calls(ran.resumes) if ran.resumes else []
    return [*earlier, *ran.tool_calls]


def all_tags(ran: Ran) -> list[Any]:
    earlier = all_tags(ran.resumes) if ran.resumes else []
    return [*earlier, *(event.data["tag"] for event in of_kind(ran, "model_request"))]

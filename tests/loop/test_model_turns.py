"""What it takes to come to the model's next turn: retries, tags, the budget before each call."""

from __future__ import annotations

from typing import Any

import pytest

from harness.errors import ModelCallError, ReplayMissError
from harness.protocols import Hook
from harness.providers.scripted import turn
from harness.schema.loop_config import TerminationReason as Reason
from harness.schema.messages import StopReason, Usage, VendorBlock
from harness.schema.suite import Price
from tests.loop.support import answered, call, kinds, output, returns, roles, run

USED = Usage(input=10, output=5)
EMPTY = turn("", usage=USED)
BLANK = turn(" \n", usage=USED)
THOUGHT = turn("", usage=USED).model_copy(
    update={"content": (VendorBlock(dialect="anthropic", data={"type": "thinking"}),)}
)
LOOK = turn(calls=[call("l1", "look")], usage=USED)
DONE = turn("done", usage=USED)
SEEN = [returns("look", "seen")]


@pytest.mark.parametrize("nothing", [EMPTY, BLANK, THOUGHT])
def test_an_empty_answer_is_asked_again_and_kept_out_of_the_history(nothing: Any) -> None:
    trajectory, provider = run([nothing, nothing, DONE], empty_retries=2)
    assert (trajectory.final_text, trajectory.iterations) == ("done", 1)
    assert (trajectory.model_calls, trajectory.usage.input) == (3, 30)
    assert roles(trajectory.messages) == ["user", "assistant"]
    assert [request.messages for request in provider.requests[1:]] == [
        provider.requests[0].messages
    ] * 2


def test_when_retries_are_used_up_an_empty_answer_is_a_text_like_any_other() -> None:
    trajectory, _ = run([EMPTY, EMPTY, DONE], empty_retries=1)
    assert trajectory.termination_reason is Reason.COMPLETED
    assert (trajectory.final_text, trajectory.model_calls) == ("", 2)
    nudged, _ = run([EMPTY, EMPTY, DONE, DONE], empty_retries=1, output=output())
    assert kinds(nudged).count("nudged") == 1


def test_retries_are_counted_per_turn() -> None:
    trajectory, _ = run([EMPTY, LOOK, EMPTY, DONE], tools=SEEN, empty_retries=1)
    assert (trajectory.final_text, trajectory.iterations) == ("done", 2)


@pytest.mark.parametrize(
    "answer", [LOOK, turn("", stop=StopReason.REFUSAL), turn("", stop=StopReason.PAUSE_TURN)]
)
def test_calls_refusals_and_paused_turns_are_no_empty_answers(answer: Any) -> None:
    trajectory, _ = run([answer, DONE], tools=SEEN, empty_retries=5)
    assert trajectory.iterations == trajectory.model_calls


def test_a_retry_that_fails_is_a_failed_call() -> None:
    trajectory, _ = run([EMPTY, ModelCallError("down")], empty_retries=2)
    assert (trajectory.termination_reason, trajectory.failed_calls) == (Reason.MODEL_ERROR, 1)


def test_the_budget_is_looked_at_before_each_retry() -> None:
    trajectory, provider = run([EMPTY] * 5, empty_retries=5, budget={"max_tokens": 30})
    assert trajectory.termination_reason is Reason.BUDGET_EXCEEDED
    assert len(provider.requests) == 2


@pytest.mark.parametrize(
    ("budget", "setup", "calls"),
    [
        ({"max_iterations": 2}, {}, 2),
        ({"max_tokens": 31}, {}, 3),
        ({"max_tokens": 30}, {}, 2),
        ({"max_cost_usd": 30e-6}, {"price": Price(input=1, output=1)}, 2),
        ({"max_tokens": 0}, {}, 0),
    ],
)
def test_a_budget_blocks_the_next_call_only(
    budget: dict[str, Any], setup: dict[str, Any], calls: int
) -> None:
    trajectory, provider = run([LOOK] * 5, tools=SEEN, budget=budget, setup=setup)
    assert trajectory.termination_reason is Reason.BUDGET_EXCEEDED
    assert len(provider.requests) == trajectory.iterations == calls
    answered(trajectory)


def test_an_answer_that_uses_up_the_budget_counts() -> None:
    trajectory, _ = run([DONE], budget={"max_tokens": 1})
    assert trajectory.termination_reason is Reason.COMPLETED


def test_the_duration_is_the_clocks() -> None:
    ticks = iter(range(0, 10_000, 4))
    trajectory, _ = run(
        [LOOK] * 50,
        tools=SEEN,
        max_iterations=50,
        budget={"max_duration_s": 100},
        setup={"clock": lambda: float(next(ticks))},
    )
    assert trajectory.termination_reason is Reason.DURATION_EXCEEDED
    assert trajectory.error == "the time budget of 100 s is used up"


def test_calls_are_charged_to_what_they_were_for() -> None:
    asked = turn("hm", usage=USED)
    confirmed = turn("COMPLETED: yes", usage=USED)
    trajectory, _ = run([asked, LOOK, asked, confirmed], tools=SEEN, confirm={"enabled": True})
    by_tag = {tag: total.input for tag, total in trajectory.usage_by_tag.items()}
    assert by_tag == {"main": 20, "confirm": 20}
    nudged, _ = run(
        [asked, turn(calls=[call("o", "output", result="r")], usage=USED)], output=output()
    )
    assert {tag: total.input for tag, total in nudged.usage_by_tag.items()} == {
        "main": 10,
        "nudge": 10,
    }


def test_a_failed_call_keeps_what_the_next_one_is_for() -> None:
    turns: list[Any] = [turn("hm"), ModelCallError("down"), turn("COMPLETED: x", usage=USED)]
    trajectory, _ = run(turns, confirm={"enabled": True}, llm_error_threshold=2)
    assert trajectory.usage_by_tag["confirm"].input == 10


def test_a_paused_turn_keeps_what_the_next_call_is_for() -> None:
    paused = turn("wait", stop=StopReason.PAUSE_TURN, usage=USED)
    turns = [turn("hm", usage=USED), paused, turn("COMPLETED: x", usage=USED)]
    trajectory, _ = run(turns, confirm={"enabled": True})
    assert trajectory.usage_by_tag["confirm"].input == 20


def long_talk() -> list[Any]:
    return [turn("x" * 400, calls=[call(f"l{n}", "look")], usage=USED) for n in range(4)]


def test_a_compaction_that_uses_up_the_budget_is_the_last_call() -> None:
    summary = turn("Much was seen.", usage=Usage(input=1000, output=5))
    turns = [*long_talk()[:2], summary, DONE, DONE]
    trajectory, provider = run(
        turns, tools=SEEN, compaction={"above_tokens": 200}, budget={"max_tokens": 1000}
    )
    assert trajectory.usage_by_tag["compaction"].input == 1000
    assert trajectory.termination_reason is Reason.BUDGET_EXCEEDED
    assert len(provider.requests) == 3


def test_a_compaction_that_was_never_recorded_ends_the_run() -> None:
    turns = [*long_talk()[:2], ReplayMissError("not there")]
    trajectory, _ = run(turns, tools=SEEN, compaction={"above_tokens": 200})
    assert trajectory.termination_reason is Reason.REPLAY_MISS


def test_only_answers_are_shown_to_hooks() -> None:
    seen: list[str] = []
    hook = Hook(after_model=lambda answer: seen.append(answer.content[0].type))
    run(
        [ModelCallError("down"), LOOK, DONE],
        tools=SEEN,
        llm_error_threshold=2,
        setup={"hooks": [hook]},
    )
    assert seen == ["tool_call", "text"]


def test_a_call_beside_the_iterations_that_fails_counts_towards_no_threshold() -> None:
    long = "word " * 400
    trajectory, provider = run(
        [
            turn(long, calls=[call("1", "look")]),
            turn(long, calls=[call("2", "look")]),
            ModelCallError("no summary today"),
            turn("done"),
        ],
        tools=[returns("look", "seen")],
        compaction={"above_tokens": 600},
    )
    assert trajectory.termination_reason is Reason.COMPLETED
    assert (trajectory.failed_calls, len(provider.requests)) == (1, 4)

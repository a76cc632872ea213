"""Turns without calls."""

from __future__ import annotations

import pytest

from harness.providers.scripted import turn
from harness.schema.loop_config import TerminationReason as Reason
from harness.schema.messages import StopReason
from tests.loop.support import call, kinds, output, preview, returns, roles, run

TEXT = turn("some text")
GOOD = turn(calls=[call("o1", "output", result="x")])
LOOK = turn(calls=[call("l1", "look")])
LOOKS = [returns("look", "seen")]


def test_text_is_the_answer_where_nothing_is_declared() -> None:
    trajectory, _ = run([TEXT])
    assert (trajectory.termination_reason, trajectory.final_text) == (Reason.COMPLETED, "some text")


def test_a_missing_output_is_asked_for_by_name() -> None:
    trajectory, provider = run(
        [TEXT, turn(calls=[call("o1", "report", result="x")])], output=output(name="report")
    )
    assert trajectory.termination_reason is Reason.COMPLETED
    nudge = "You have not handed in a result. Hand it in by calling the tool `report`."
    assert provider.requests[1].messages[-1].text == nudge
    assert roles(provider.requests[1].messages) == ["user", "assistant", "user"]


def test_an_unsubmitted_draft_is_asked_for() -> None:
    submit = turn(calls=[call("s1", "submit")])
    trajectory, provider = run(
        [GOOD, TEXT, submit], output=output(handler=preview), reflection=True
    )
    assert trajectory.termination_reason is Reason.COMPLETED
    assert provider.requests[2].messages[-1].text.startswith("You have not submitted your draft.")


def test_reminding_without_an_output_asks_for_a_tool() -> None:
    trajectory, provider = run([TEXT, TEXT], text_only="nudge")
    assert trajectory.termination_reason is Reason.NO_OUTPUT
    assert provider.requests[1].messages[-1].text == "You have not finished. Go on with a tool."


@pytest.mark.parametrize("nudge_max", [0, 1, 2])
def test_reminders_in_a_row_are_limited_and_a_tool_turn_resets_them(nudge_max: int) -> None:
    row = [TEXT] * nudge_max
    turns = [*row, LOOK, *row, LOOK, *row, TEXT]
    trajectory, _ = run(turns, tools=LOOKS, output=output(), nudge_max=nudge_max)
    assert (trajectory.termination_reason, trajectory.attempts) == (Reason.NO_OUTPUT, 1)
    assert trajectory.iterations == len(turns)
    assert kinds(trajectory).count("nudged") == 3 * nudge_max


def test_text_may_be_an_error_at_once() -> None:
    trajectory, _ = run([TEXT], output=output(), text_only="error")
    assert (trajectory.termination_reason, trajectory.output_seen) == (Reason.NO_OUTPUT, False)


def test_calls_run_whatever_the_stop_reason_and_none_are_text() -> None:
    for stop in (StopReason.END_TURN, StopReason.STOP_SEQUENCE, StopReason.PAUSE_TURN):
        trajectory, _ = run(
            [turn(calls=[call("l1", "look")], stop=stop), TEXT], tools=LOOKS, text_only="accept"
        )
        assert trajectory.tools_executed == ("look",)
    trajectory, _ = run([turn("hm", stop=StopReason.TOOL_USE), GOOD], output=output())
    assert kinds(trajectory).count("nudged") == 1


def test_an_empty_answer_is_accepted_and_leaves_no_empty_turn() -> None:
    trajectory, _ = run([turn()])
    assert (trajectory.final_text, trajectory.output) == ("", {"response": ""})
    assert roles(trajectory.messages) == ["user"]


def test_a_paused_turn_asks_the_model_again_and_takes_an_iteration() -> None:
    trajectory, provider = run([turn("thinking", stop=StopReason.PAUSE_TURN), TEXT])
    assert (trajectory.iterations, trajectory.final_text) == (2, "some text")
    assert provider.requests[1].messages[-1].text == "thinking"
    assert provider.requests[1].messages[-1].role == "assistant"


# Truncation


def test_a_text_cut_at_its_limit_is_accepted_and_flagged() -> None:
    trajectory, _ = run([turn("half a", stop=StopReason.MAX_TOKENS)])
    assert trajectory.termination_reason is Reason.COMPLETED
    assert (trajectory.truncated, trajectory.final_text) == (True, "half a")


def test_the_flag_is_about_the_last_turn() -> None:
    trajectory, _ = run([turn("half a", stop=StopReason.MAX_TOKENS), GOOD], output=output())
    assert (trajectory.termination_reason, trajectory.truncated) == (Reason.COMPLETED, False)


def test_a_cut_turn_with_calls_runs_none_and_keeps_its_text() -> None:
    cut = turn("Writing now", calls=[call("l1", "look")], stop=StopReason.MAX_TOKENS)
    trajectory, provider = run([cut, TEXT], tools=LOOKS)
    assert (trajectory.tools_executed, trajectory.iterations) == ((), 2)
    assert [message.text for message in provider.requests[1].messages] == [
        "Do the task.",
        "Writing now",
        "Your answer was cut at its length limit and none of its tool calls were run. "
        "Answer again, shorter.",
    ]
    assert not provider.requests[1].messages[1].tool_calls


def test_a_cut_turn_of_calls_alone_is_left_out() -> None:
    cut = turn(calls=[call("l1", "look")], stop=StopReason.MAX_TOKENS)
    _, provider = run([LOOK, cut, TEXT], tools=LOOKS)
    messages = provider.requests[2].messages
    assert roles(messages) == ["user", "assistant", "user"]
    assert [block.type for block in messages[-1].content] == ["tool_result", "text"]


def test_an_output_in_a_cut_turn_that_runs_is_no_cut_text() -> None:
    cut = turn(calls=[call("o1", "output", result="x")], stop=StopReason.MAX_TOKENS)
    trajectory, _ = run([cut], output=output(), on_truncation="execute")
    assert (trajectory.termination_reason, trajectory.truncated) == (Reason.COMPLETED, False)


@pytest.mark.parametrize("on_truncation", ["fail", "execute"])
def test_a_cut_turn_with_calls_may_fail_or_run(on_truncation: str) -> None:
    cut = turn(calls=[call("l1", "look")], stop=StopReason.MAX_TOKENS)
    trajectory, _ = run([cut, TEXT], tools=LOOKS, on_truncation=on_truncation)
    ran = on_truncation == "execute"
    assert trajectory.termination_reason is (Reason.COMPLETED if ran else Reason.TRUNCATED)
    assert trajectory.tools_executed == (("look",) if ran else ())
    assert not trajectory.truncated, "the flag is about a text"


def test_a_refusal_ends_the_run_and_its_calls_are_answered_unrun() -> None:
    refusal = turn("No.", calls=[call("l1", "look")], stop=StopReason.REFUSAL)
    trajectory, _ = run([refusal], tools=LOOKS)
    assert trajectory.termination_reason is Reason.REFUSAL
    assert (trajectory.tools_executed, trajectory.final_text) == ((), "No.")
    assert trajectory.messages[-1].tool_results[0].content == "Not run: the model refused."

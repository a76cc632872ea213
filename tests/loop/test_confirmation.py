"""Asking back before a text answer is accepted."""

from __future__ import annotations

import pytest

from harness.loop.confirmation import GO_ON, SECOND_TEXT_PROMPT, STRUCTURED_PROMPT
from harness.providers.scripted import turn
from harness.schema.loop_config import TerminationReason as Reason
from harness.schema.record import Json
from tests.loop.support import call, kinds, long_enough, output, returns, roles, run

STRUCTURED = {"enabled": True, "mode": "structured"}
SECOND_TEXT = {"enabled": True, "mode": "second_text"}


def asked(trajectory: object) -> int:
    return kinds(trajectory).count("confirmation_asked")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("answer", "wanted"),
    [
        ("COMPLETED: 42", {"response": "42"}),
        ("COMPLETED 42", {"response": "42"}),
        ("COMPLETED", {"response": ""}),
        ("completed: yes", {"response": "yes"}),
        ("  \n Completed :  yes \n ", {"response": "yes"}),
        ("COMPLETED:\nfirst\nsecond", {"response": "first\nsecond"}),
        ('COMPLETED: {"result": 42}', {"result": 42}),
        ('COMPLETED: so\n```json\n{"result": 42}\n```', {"result": 42}),
    ],
)
def test_completed_ends_the_run_with_what_follows_it(answer: str, wanted: Json) -> None:
    trajectory, provider = run([turn("I am done"), turn(answer)], confirm=STRUCTURED)
    assert (trajectory.termination_reason, trajectory.confirmed) == (Reason.COMPLETED, True)
    assert trajectory.output == wanted
    second = provider.requests[1].messages
    assert [message.text for message in second] == ["Do the task.", "I am done", STRUCTURED_PROMPT]


@pytest.mark.parametrize(
    "answer",
    ["COMPLETELY done", "COMPLETED_42", "Yes, COMPLETED: 42", "CONTINUED", "**COMPLETED**", ""],
)
def test_an_answer_that_begins_with_neither_word_is_asked_again(answer: str) -> None:
    turns = [turn("ready"), turn(answer), turn("COMPLETED: sure")]
    trajectory, _ = run(turns, confirm=STRUCTURED)
    assert (trajectory.output, trajectory.iterations) == ({"response": "sure"}, 3)
    assert asked(trajectory) == 2


@pytest.mark.parametrize("max_prompts", [1, 2, 3])
def test_after_enough_questions_in_a_row_the_text_is_accepted_unconfirmed(max_prompts: int) -> None:
    trajectory, _ = run([turn("hm")] * 9, confirm={**STRUCTURED, "max_prompts": max_prompts})
    assert (trajectory.termination_reason, trajectory.confirmed) == (Reason.COMPLETED, False)
    assert (asked(trajectory), trajectory.iterations) == (max_prompts, max_prompts + 1)
    assert trajectory.output == {"response": "hm"}


def test_a_completed_before_the_question_does_not_count() -> None:
    trajectory, _ = run([turn("COMPLETED: a"), turn("COMPLETED: b")], confirm=STRUCTURED)
    assert (trajectory.output, asked(trajectory)) == ({"response": "b"}, 1)


def test_a_tool_turn_re_arms_the_question_and_ends_the_row() -> None:
    look = turn(calls=[call("l1", "look")])
    turns = [turn("maybe"), look, turn("COMPLETED: early"), turn("hm"), turn("COMPLETED: sure")]
    trajectory, _ = run(turns, tools=[returns("look", "seen")], confirm=STRUCTURED)
    assert (trajectory.output, trajectory.confirmed) == ({"response": "sure"}, True)
    assert asked(trajectory) == 3


def test_continue_is_answered_and_re_arms_the_question() -> None:
    turns = [turn("a"), turn("continue: more"), turn("COMPLETED: early"), turn("COMPLETED: late")]
    trajectory, provider = run(turns, confirm={**STRUCTURED, "max_prompts": 1})
    assert provider.requests[2].messages[-1].text == GO_ON
    assert provider.requests[3].messages[-1].text == STRUCTURED_PROMPT
    assert (trajectory.output, trajectory.confirmed) == ({"response": "late"}, True)


def test_in_the_other_mode_the_next_text_is_the_answer() -> None:
    trajectory, provider = run([turn("first"), turn("COMPLETED: no")], confirm=SECOND_TEXT)
    assert provider.requests[1].messages[-1].text == SECOND_TEXT_PROMPT
    assert (trajectory.final_text, trajectory.confirmed) == ("COMPLETED: no", True)
    look = turn(calls=[call("l1", "look")])
    again, _ = run(
        [turn("first"), look, turn("second"), turn("third")],
        tools=[returns("look", "seen")],
        confirm=SECOND_TEXT,
    )
    assert (again.final_text, asked(again)) == ("third", 2)


def test_a_question_of_ones_own_is_asked_word_for_word() -> None:
    confirm = {**STRUCTURED, "prompt": "Sure?"}
    _, provider = run([turn("a"), turn("COMPLETED: b")], confirm=confirm)
    assert provider.requests[1].messages[-1].text == "Sure?"


def test_a_new_attempt_asks_anew() -> None:
    short, long = '{"result": "short"}', 'COMPLETED: {"result": "long enough"}'
    trajectory, provider = run(
        [turn(short), turn(f"COMPLETED: {short}"), turn(long), turn(long)],
        output=output(long_enough),
        text_only="accept",
        confirm=STRUCTURED,
    )
    assert trajectory.output == {"result": "long enough"}
    assert (trajectory.attempts, asked(trajectory), trajectory.iterations) == (2, 2, 4)
    assert roles(provider.requests[3].messages)[-1] == "user"


def test_what_was_confirmed_in_a_failed_attempt_says_nothing_about_the_next() -> None:
    good = turn(calls=[call("o1", "output", result="long enough")])
    trajectory, _ = run(
        [turn("a"), turn('COMPLETED: {"result": "short"}'), good],
        output=output(long_enough),
        text_only="accept",
        confirm=STRUCTURED,
    )
    assert (trajectory.output, trajectory.confirmed) == ({"result": "long enough"}, None)


def test_without_the_question_nothing_is_said_about_confirmation() -> None:
    trajectory, _ = run([turn("COMPLETED: a")])
    assert (trajectory.confirmed, trajectory.final_text) == (None, "COMPLETED: a")


def test_an_output_call_is_never_questioned() -> None:
    good = turn(calls=[call("o1", "output", result="x")])
    trajectory, _ = run([good], output=output(), confirm=STRUCTURED)
    assert (trajectory.termination_reason, asked(trajectory)) == (Reason.COMPLETED, 0)


def test_confirmations_take_iterations_and_are_charged() -> None:
    turns = [turn("a"), turn("b"), turn("COMPLETED: never asked")]
    trajectory, provider = run(turns, confirm=STRUCTURED, budget={"max_iterations": 2})
    assert trajectory.termination_reason is Reason.BUDGET_EXCEEDED
    assert (len(provider.requests), trajectory.output) == (2, {"response": "b"})


@pytest.mark.parametrize("max_prompts", [1, 2])
def test_counted_questions_are_asked_over_the_whole_run(max_prompts: int) -> None:
    look = turn(calls=[call("l1", "look")])
    turns = [turn("COMPLETED: a"), look, turn("CONTINUE: b"), look, turn("c")]
    confirm: Json = {"enabled": True, "mode": "counted", "max_prompts": max_prompts}
    trajectory, _ = run(turns, tools=[returns("look", "seen")], confirm=confirm)
    assert (trajectory.termination_reason, trajectory.confirmed) == (Reason.COMPLETED, None)
    assert (asked(trajectory), trajectory.final_text) == (
        max_prompts,
        ["CONTINUE: b", "c"][max_prompts - 1],
    )

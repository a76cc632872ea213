"""Outputs, drafts, submit, validation and the attempts they make."""

from __future__ import annotations

from typing import Any

import pytest

from harness.providers.scripted import turn
from harness.schema.loop_config import TerminationReason as Reason
from harness.schema.messages import Text
from harness.schema.record import Json, JsonObject
from tests.loop.support import (
    FunctionTool,
    answered,
    call,
    kinds,
    last_results,
    long_enough,
    output,
    preview,
    raises,
    returns,
    roles,
    run,
)

SHORT = turn(calls=[call("o1", "output", result="short")])
GOOD = turn(calls=[call("o2", "output", result="long enough")])


def test_a_failed_validation_is_the_error_result_of_the_output_call() -> None:
    trajectory, provider = run([SHORT, GOOD], output=output(long_enough))
    second = provider.requests[1].messages
    assert roles(second) == ["user", "assistant", "user"]
    assert [(block.call_id, block.is_error, block.content) for block in last_results(second)] == [
        ("o1", True, "Validation failed: result is too short\nCorrect it and call `output` again.")
    ]
    assert len(second[-1].content) == 1, "no further text is added"
    assert (trajectory.attempts, trajectory.iterations) == (2, 2)
    assert trajectory.validation_failures == ("result is too short",)
    assert trajectory.output == {"result": "long enough"}
    assert last_results(trajectory.messages)[0].content == "Accepted."


def test_siblings_of_a_rejected_output_keep_their_results_in_call_order() -> None:
    both = turn(
        calls=[call("h1", "look"), call("o1", "output", result="short"), call("h2", "look")]
    )
    trajectory, provider = run(
        [both, GOOD], tools=[returns("look", "seen")], output=output(long_enough)
    )
    results = last_results(provider.requests[1].messages)
    assert [(block.call_id, block.is_error) for block in results] == [
        ("h1", False),
        ("o1", True),
        ("h2", False),
    ]
    assert trajectory.tools_executed == ("look", "look")


def test_each_attempt_has_its_own_iterations_and_the_same_history() -> None:
    look = turn(calls=[call("l", "look")])
    trajectory, provider = run(
        [look, SHORT, look, GOOD],
        tools=[returns("look", "seen")],
        output=output(long_enough),
        max_iterations=2,
        max_attempts=2,
    )
    assert trajectory.termination_reason is Reason.COMPLETED
    assert (trajectory.attempts, trajectory.iterations) == (2, 4)
    assert provider.requests[3].messages[:5] == provider.requests[2].messages


def test_the_limit_in_any_attempt_ends_the_run() -> None:
    look = turn(calls=[call("l", "look")])
    trajectory, _ = run(
        [SHORT, look, look],
        tools=[returns("look", "seen")],
        output=output(long_enough),
        max_iterations=2,
    )
    assert trajectory.termination_reason is Reason.MAX_ITERATIONS
    assert (trajectory.attempts, trajectory.iterations, trajectory.output_seen) == (2, 3, False)


def test_the_schema_comes_before_the_validators_and_the_first_failure_wins() -> None:
    seen: list[Json] = []

    def first(value: Json) -> str | None:
        seen.append(value)
        return "the first says no"

    def second(value: Json) -> str | None:
        raise AssertionError("never reached")

    wrong = turn(calls=[call("o1", "output", result=5)])
    trajectory, _ = run([wrong, SHORT], output=output(first, second), max_attempts=2)
    assert seen == [{"result": "short"}]
    assert "is not of type 'string'" in trajectory.validation_failures[0]
    assert trajectory.validation_failures[1] == "the first says no"


def test_validators_and_handlers_cannot_change_the_output() -> None:
    def spoil(value: Json) -> str | None:
        assert isinstance(value, dict)
        value["result"] = "spoiled"
        return None

    def spoiling_handler(value: Json) -> str:
        spoil(value)
        return "shown"

    submit = turn(calls=[call("s1", "submit")])
    trajectory, _ = run(
        [GOOD, submit],
        output=output(spoil, long_enough, spoil, handler=spoiling_handler),
        reflection=True,
    )
    assert trajectory.output == {"result": "long enough"}


def test_a_validator_that_raises_rejects() -> None:
    def raising(value: Json) -> str | None:
        raise KeyError("total")

    trajectory, _ = run([GOOD], output=output(raising), max_attempts=1)
    assert trajectory.termination_reason is Reason.MAX_ATTEMPTS
    assert trajectory.validation_failures == ("KeyError: 'total'",)
    assert trajectory.output_seen


@pytest.mark.parametrize("returned", [False, True, 0, b"x", {"ok": False}])
def test_a_validator_must_return_text_or_none(returned: Any) -> None:
    trajectory, _ = run(
        [turn(calls=[call("1", "output", result="long enough")])],
        output=output(lambda _: returned),
        max_attempts=1,
    )
    assert trajectory.termination_reason is Reason.MAX_ATTEMPTS
    (failure,) = trajectory.validation_failures
    assert f"a validator must return text or None, not {type(returned).__name__}" in failure


def test_a_schema_that_cannot_check_a_value_rejects_it() -> None:
    looping: JsonObject = {
        "properties": {"a": {"$ref": "#/properties/b"}, "b": {"$ref": "#/properties/a"}}
    }
    trajectory, _ = run(
        [turn(calls=[call("1", "output", a=1)])], output=output(schema=looping), max_attempts=1
    )
    assert trajectory.termination_reason is Reason.MAX_ATTEMPTS
    assert trajectory.validation_failures[0].startswith("it cannot be checked: RecursionError")


def test_half_a_surrogate_pair_in_a_complaint_or_preview_never_reaches_the_log() -> None:
    def complain(_: Json) -> str:
        return "bad \ud800"

    def refuse(_: Json) -> str:
        raise ValueError("worse \ud800")

    for handler in (complain, refuse):
        trajectory, _ = run(
            [turn(calls=[call("1", "output", result="x")]), turn(calls=[call("2", "submit")])],
            output=output(complain, handler=handler),
            reflection=True,
            max_attempts=1,
        )
        trajectory.model_dump_json()
        shown = trajectory.messages[2].tool_results[0].content
        assert shown.endswith(" ?")
        assert trajectory.validation_failures == ("bad ?",)


def test_failed_validations_are_not_failed_calls() -> None:
    trajectory, _ = run([SHORT] * 5, output=output(long_enough), max_attempts=5, error_threshold=2)
    assert (trajectory.termination_reason, trajectory.attempts) == (Reason.MAX_ATTEMPTS, 5)


def test_malformed_output_arguments_are_a_failed_call_and_no_attempt() -> None:
    malformed = turn(calls=[("o1", "output", '{"result": ')])
    trajectory, provider = run([malformed, GOOD], output=output(), error_threshold=2)
    assert (trajectory.attempts, trajectory.validation_failures) == (1, ())
    assert last_results(provider.requests[1].messages)[0].content.startswith("Malformed arguments:")
    failed, _ = run([malformed] * 3, output=output(), error_threshold=2)
    assert failed.termination_reason is Reason.ERROR


@pytest.mark.parametrize(
    ("multi_output", "wanted"), [("last", "second one"), ("first", "first one")]
)
def test_of_several_outputs_in_a_turn_the_set_one_counts(multi_output: str, wanted: str) -> None:
    both = turn(
        calls=[call("o1", "output", result="first one"), call("o2", "output", result="second one")]
    )
    trajectory, _ = run([both], output=output(), multi_output=multi_output)
    assert trajectory.output == {"result": wanted}
    answered(trajectory)


def test_a_rejected_turn_of_several_outputs_rejects_each() -> None:
    both = turn(calls=[call("o1", "output", result="a"), call("o2", "output", result="b")])
    _, provider = run([both, GOOD], output=output(long_enough))
    assert [block.is_error for block in last_results(provider.requests[1].messages)] == [True, True]


def test_a_text_that_is_accepted_is_validated_like_an_output() -> None:
    trajectory, provider = run(
        [turn('{"result": "short"}'), turn('```json\n{"result": "long enough"}\n```')],
        output=output(long_enough),
        text_only="accept",
    )
    assert trajectory.output == {"result": "long enough"}
    assert provider.requests[1].messages[-1].content == (
        Text(text="Validation failed: result is too short\nCorrect it and call `output` again."),
    )


# Reflection


DRAFT = turn(calls=[call("o1", "output", result="my draft")])
SUBMIT = turn(calls=[call("s1", "submit")])


def test_a_draft_is_shown_and_submit_hands_in_the_last_one() -> None:
    better = turn(calls=[call("o2", "output", result="my better draft")])
    trajectory, provider = run(
        [DRAFT, better, SUBMIT], output=output(handler=preview), reflection=True
    )
    assert last_results(provider.requests[1].messages)[0].content == "Preview: my draft"
    assert trajectory.output == {"result": "my better draft"}
    assert trajectory.tools_executed == ()
    assert [spec.name for spec in provider.requests[0].tools] == ["output", "submit"]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_output_and_submit_may_come_in_one_turn_in_either_order(order: tuple[int, int]) -> None:
    shown: list[Json] = []

    def handler(value: Json) -> str:
        shown.append(value)
        return "shown"

    calls = [call("o1", "output", result="my draft"), call("s1", "submit")]
    both = turn(calls=[calls[place] for place in order])
    trajectory, _ = run([both], output=output(handler=handler), reflection=True)
    assert trajectory.output == {"result": "my draft"}
    assert shown == [{"result": "my draft"}]
    answered(trajectory)


def test_a_rejected_submit_and_the_output_of_its_turn_are_both_answered() -> None:
    both = turn(calls=[call("o1", "output", result="short"), call("s1", "submit")])
    good = turn(calls=[call("o2", "output", result="long enough"), call("s2", "submit")])
    how: dict[str, Any] = {"output": output(long_enough, handler=preview), "reflection": True}
    _, provider = run([both, good], **how)
    results = last_results(provider.requests[1].messages)
    assert [(block.call_id, block.is_error) for block in results] == [("o1", True), ("s1", True)]
    separate = [turn(calls=[call("o1", "output", result="short")]), SUBMIT, good]
    _, provider = run(separate, **how)
    shown, rejected = (last_results(request.messages)[0] for request in provider.requests[1:])
    assert (shown.is_error, shown.content) == (False, "Preview: short")
    assert (rejected.is_error, rejected.call_id) == (True, "s1")


def test_a_draft_does_not_survive_into_the_next_attempt() -> None:
    both = turn(calls=[call("o1", "output", result="short"), call("s1", "submit")])
    trajectory, _ = run(
        [both, SUBMIT], output=output(long_enough, handler=preview), reflection=True
    )
    assert trajectory.termination_reason is Reason.SUBMIT_BEFORE_OUTPUT
    assert trajectory.attempts == 2


def test_submit_before_output_may_be_answered_instead() -> None:
    trajectory, provider = run(
        [SUBMIT, DRAFT, SUBMIT],
        output=output(handler=preview),
        reflection=True,
        submit_before_output="feedback",
    )
    assert trajectory.termination_reason is Reason.COMPLETED
    first = last_results(provider.requests[1].messages)[0]
    assert (first.is_error, first.content) == (True, "There is no draft yet: hand one in first.")


def test_a_handler_that_raises_answers_with_an_error_and_the_draft_counts() -> None:
    def handler(value: Json) -> str:
        raise ValueError("cannot be drawn")

    trajectory, provider = run(
        [DRAFT, SUBMIT], output=output(handler=handler), reflection=True, tool_error="fail"
    )
    result = last_results(provider.requests[1].messages)[0]
    assert (result.is_error, "cannot be drawn" in result.content) == (True, True)
    assert trajectory.output == {"result": "my draft"}
    assert "tool_failed" in kinds(trajectory)


@pytest.mark.parametrize(
    ("handler_raises", "reason"), [(True, Reason.ERROR), (False, Reason.COMPLETED)]
)
def test_a_raising_handler_neither_counts_nor_resets_and_a_shown_draft_resets(
    handler_raises: bool, reason: Reason
) -> None:
    def handler(value: Json) -> str:
        if handler_raises:
            raise ValueError("cannot be drawn")
        return "shown"

    bad = turn(calls=[call("b1", "bad")])
    trajectory, _ = run(
        [bad, DRAFT, bad, SUBMIT],
        tools=[raises("bad")],
        output=output(handler=handler),
        reflection=True,
        error_threshold=2,
    )
    assert trajectory.termination_reason is reason


@pytest.mark.parametrize("returned", [None, 5, {"preview": "x"}])
def test_a_handler_that_returns_no_text_is_like_one_that_raises(returned: Any) -> None:
    trajectory, _ = run(
        [turn(calls=[call("1", "output", result="x")]), turn(calls=[call("2", "submit")])],
        output=output(handler=lambda _: returned),
        reflection=True,
    )
    assert trajectory.termination_reason is Reason.COMPLETED
    (shown,) = trajectory.messages[2].tool_results
    assert shown.is_error
    assert shown.content == (
        "The draft could not be shown: the reflection handler must return text, not "
        f"{type(returned).__name__}"
    )


def test_submit_is_an_unknown_tool_without_reflection() -> None:
    trajectory, provider = run([SUBMIT, GOOD], output=output())
    result = last_results(provider.requests[1].messages)[0]
    assert (result.is_error, result.content) == (True, "Unknown tool 'submit'. Tools: output.")
    assert trajectory.attempts == 1


def test_helpers_of_a_turn_with_an_output_all_run_before_it_is_judged() -> None:
    ran: list[str] = []

    def log(_: JsonObject) -> Json:
        ran.append("log")
        return "logged"

    def after_the_log(_: Json) -> str | None:
        return None if ran else "judged too early"

    both = turn(calls=[call("o1", "output", result="x"), call("l1", "log")])
    trajectory, _ = run([both], tools=[FunctionTool("log", log)], output=output(after_the_log))
    assert trajectory.termination_reason is Reason.COMPLETED

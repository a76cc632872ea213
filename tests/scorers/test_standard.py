from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.schema.loop_config import TerminationReason
from harness.schema.results import Score, Verdict
from harness.schema.suite import ModelConfig, OutputConfig, Price, Task
from harness.schema.trajectory import Trajectory, UsageTotal
from harness.scorers.efficiency import cost_usd, total_tokens
from harness.scorers.outcome import outcome
from harness.scorers.standard import STANDARD, score_trial
from harness.values import ScoreInput

OUTPUT = OutputConfig(schema={"type": "object"})
PRICE = Price(input=3, output=15, cache_write=3.75, cache_read=0.3)


def scored(
    *,
    verdict: Verdict | None = None,
    asked: OutputConfig | None = None,
    price: Price | None = None,
    expected: tuple[TerminationReason, ...] = (TerminationReason.COMPLETED,),
    **trajectory: Any,
) -> dict[str, Score]:
    task = Task(
        name="sum",
        folder=Path("sum"),
        instruction="Add.",
        tests=Path("sum/tests"),
        output=asked,
        expected_endings=expected,
        digest="d",
        tests_digest="t",
    )
    ended = Trajectory.model_validate({"termination_reason": "completed"} | trajectory)
    model = ModelConfig(provider="openai", name="small", price=price)
    return score_trial(ScoreInput(task=task, model=model, trajectory=ended, verdict=verdict))


def test_every_trial_gets_the_standard_scores():
    names = ["reward", "ending", "iterations", "attempts"]
    names += ["tool_calls", "tokens", "cost_usd", "validation"]
    assert [scorer.name for scorer in STANDARD] == names
    assert list(scored()) == names


@pytest.mark.parametrize(
    ("verdict", "expected"),
    [
        (Verdict(rewards={"reward": 0.5}), Score(value=0.5)),
        (Verdict(rewards={"reward": 0.5, "style": 1}), Score(value=0.5)),
        (Verdict(rewards={"b": 1, "a": 0}), Score(value=0.5, explanation="mean of a, b")),
        (Verdict(rewards={"reward": 0}), Score(value=0.0)),
        (None, Score(value=None, explanation="no verdict")),
        (Verdict(), Score(value=None, explanation="the verifier gave no reward")),
        (
            Verdict(rewards={"reward": 1}, error="reward.txt is empty"),
            Score(value=None, explanation="reward.txt is empty"),
        ),
    ],
)
def test_reward_is_the_verifier_s_and_never_0_for_want_of_one(
    verdict: Verdict | None, expected: Score
):
    assert scored(verdict=verdict)["reward"] == expected


@pytest.mark.parametrize(
    ("verdict", "expected"),
    [
        (Verdict(rewards={"reward": 1}), "passed"),
        (Verdict(rewards={"reward": 0.99}), "failed"),
        (Verdict(rewards={"reward": 1, "style": 0.5}), "passed"),
        (Verdict(rewards={"reward": 0.5, "style": 1}), "failed"),
        (Verdict(rewards={"a": 1, "b": 1, "c": 1}), "passed"),
        (Verdict(rewards={"a": 1, "b": 0.5}), "failed"),
        (Verdict(), None),
        (Verdict(rewards={"reward": 1}, error="reward.txt is empty"), None),
        (None, None),
    ],
)
def test_the_outcome_follows_the_reward(verdict: Verdict | None, expected: str | None):
    assert outcome(verdict) == expected


def test_ending_says_whether_the_task_expects_it():
    assert scored()["ending"] == Score(value="completed", explanation="as the task expects")
    refusing = (TerminationReason.REFUSAL, TerminationReason.COMPLETED)
    assert scored(termination_reason="max_iterations", expected=refusing)["ending"] == Score(
        value="max_iterations", explanation="the task expects refusal or completed"
    )


def test_counts_are_those_of_the_trajectory():
    scores = scored(iterations=4, attempts=2, tool_calls_made=0)
    assert (scores["iterations"].value, scores["attempts"].value) == (4, 2)
    assert scores["tool_calls"].value == 0
    assert scores["tool_calls"].value is not None


def test_tokens_are_the_sum_of_the_reported_buckets():
    usage = UsageTotal(input=10, output=2, cache_write=3, cache_read=40)
    assert scored(usage=usage, model_calls=1)["tokens"] == Score(value=55)
    assert total_tokens(UsageTotal(output=0)) == 0


def test_tokens_that_nobody_reported_are_unknown_and_those_that_are_partly_say_so():
    none = scored(usage=UsageTotal(missing_calls=2), model_calls=2)["tokens"]
    assert none == Score(value=None, explanation="no call reported its usage")
    some = scored(usage=UsageTotal(input=10, missing_calls=1), model_calls=3)["tokens"]
    assert some == Score(value=10, explanation="1 of 3 calls reported no usage")
    assert scored()["tokens"] == Score(value=None, explanation="no model call")


def test_cost_prices_each_bucket():
    usage = UsageTotal(input=1_000_000, output=100_000, cache_write=200_000, cache_read=1_000_000)
    assert cost_usd(usage, PRICE) == pytest.approx(3 + 1.5 + 0.75 + 0.3)
    assert scored(usage=usage, price=PRICE, model_calls=1)["cost_usd"].value == pytest.approx(5.55)


@pytest.mark.parametrize(
    ("usage", "price", "why"),
    [
        (UsageTotal(input=10), None, "no price is set for small"),
        (UsageTotal(missing_calls=3), PRICE, "no call reported its usage"),
        (UsageTotal(input=10, missing_calls=2), PRICE, "2 of 3 calls reported no usage"),
    ],
)
def test_an_unknown_cost_is_none_and_says_why(usage: UsageTotal, price: Price | None, why: str):
    assert cost_usd(usage, price) is None
    score = scored(usage=usage, price=price, model_calls=3)["cost_usd"]
    assert score == Score(value=None, explanation=why)


@pytest.mark.parametrize(
    ("trajectory", "expected"),
    [
        ({"output_seen": True}, Score(value="first_time", explanation="passed the first time")),
        (
            {"output_seen": True, "output": {}, "validation_failures": ["a", "b"]},
            Score(value="after_failures", explanation="passed after 2 failed validations"),
        ),
        (
            {"termination_reason": "max_attempts", "validation_failures": ["total is negative"]},
            Score(value="never", explanation="1 failed validation, the last: total is negative"),
        ),
        (
            {"termination_reason": "no_output"},
            Score(value="never", explanation="no output was accepted"),
        ),
    ],
)
def test_validation_tells_when_the_output_passed(trajectory: dict[str, Any], expected: Score):
    assert scored(asked=OUTPUT, **trajectory)["validation"] == expected


def test_validation_does_not_apply_without_an_output():
    score = scored(validation_failures=("x",))["validation"]
    assert score == Score(value=None, explanation="the task asks for no output")


@pytest.mark.parametrize("ending", ["replay_miss", "infrastructure_error", "skipped"])
def test_a_trial_that_says_nothing_about_the_agent_is_never_scored(ending: str):
    scores = scored(verdict=Verdict(rewards={"reward": 1}), termination_reason=ending)
    assert {score.value for score in scores.values()} == {None}
    assert {score.explanation for score in scores.values()} == {
        f"not scored: the trial ended in {ending}"
    }

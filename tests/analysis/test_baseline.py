from __future__ import annotations

import pytest

from harness.analysis.baseline import check, difference, make_baseline, uncovered
from harness.analysis.exact import Difference, compare_runs, describe, trial_differences
from harness.errors import BadInputError
from harness.schema.results import Baseline
from tests.analysis.trials import run, trial

TRIALS = [trial(task, variant) for task in ("sort", "add") for variant in ("baseline", "other")]
BASELINE = make_baseline(run(4), TRIALS)


def test_a_baseline_holds_the_facts_of_every_trial_sorted():
    assert list(BASELINE.trials) == [
        "add/baseline/0",
        "add/other/0",
        "sort/baseline/0",
        "sort/other/0",
    ]
    assert Baseline.model_validate_json(BASELINE.model_dump_json()) == BASELINE
    assert check(TRIALS, BASELINE).holds


def test_a_run_holds_against_its_own_baseline_in_any_order():
    result = check(TRIALS[::-1], BASELINE)
    assert result.holds
    assert result.lines() == ("4 trials as in the baseline.",)


def test_dates_durations_cost_and_digests_of_files_are_no_facts_to_reproduce():
    again = trial("sort", duration_s=9.0, task_digest="new", cost_usd=1.0, served=3)
    assert difference(again, BASELINE) == ()


@pytest.mark.parametrize("ending", ["replay_miss", "infrastructure_error"])
def test_a_trial_without_a_result_is_no_baseline_and_is_named(ending: str):
    trials = [trial("sort", repeat=repeat, termination_reason=ending) for repeat in range(7)]
    with pytest.raises(BadInputError, match=r"'run-1' .* 'sort/baseline/4' and 2 more"):
        make_baseline(run(7), trials)


def test_skipped_trials_are_told_apart_and_hold_nothing_against_a_run():
    error = "not runnable here: needs a GPU"
    skipped = [trial(name, termination_reason="skipped", error=error) for name in ("sort", "fly")]
    made = make_baseline(run(5), [*TRIALS, skipped[1]])
    assert list(made.trials) == list(BASELINE.trials)
    result = check([*TRIALS[1:], *skipped], BASELINE)
    assert result.holds
    assert [one.trial_id for one in result.skipped] == ["fly/baseline/0", "sort/baseline/0"]
    assert result.lines() == (
        "3 trials as in the baseline.",
        "2 trials skipped:",
        "  fly, sort: not runnable here: needs a GPU",
    )


def test_an_unfinished_run_or_a_trial_held_twice_is_no_baseline():
    with pytest.raises(BadInputError, match="4 of 5 planned trials"):
        make_baseline(run(5), TRIALS)
    with pytest.raises(BadInputError, match="'sort/baseline/0' more than once"):
        make_baseline(run(5), [*TRIALS, TRIALS[0]])


def test_every_changed_fact_is_a_difference_the_ending_first():
    got = trial(
        "sort",
        termination_reason="max_iterations",
        outcome=None,
        iterations=2,
        tools_used=[],
        confirmed=False,
        usage={"input": 500, "output": 100},
        transcript_digest="bbbb",
    )
    assert difference(got, BASELINE) == (
        Difference(field="termination_reason", expected="completed", got="max_iterations"),
        Difference(field="outcome", expected="passed", got=None),
        Difference(field="iterations", expected=3, got=2),
        Difference(field="tools_used", expected=["shell"], got=[]),
        Difference(field="confirmed", expected=None, got=False),
        Difference(field="usage.input", expected=900, got=500),
        Difference(field="transcript_digest", expected="aaaa", got="bbbb"),
    )
    assert describe(trial_differences(got, difference(got, BASELINE))) == (
        "sort · baseline · repeat 0: termination_reason: expected completed, got max_iterations;"
        " outcome: expected passed, got none; iterations: expected 3, got 2;"
        " tools_used: expected shell, got none; confirmed: expected none, got false;"
        " usage.input: expected 900, got 500; the conversation differs"
    )


def test_nothing_and_zero_tokens_are_different():
    got = trial("sort", usage={"input": 900, "output": 100, "cache_read": 0})
    assert difference(got, BASELINE) == (
        Difference(field="usage.cache_read", expected=None, got=0),
    )


def test_trials_with_the_same_cause_are_told_under_one_heading():
    stopped = [
        trial(
            entry.task,
            entry.variant,
            termination_reason="max_iterations",
            iterations=2,
            model_calls=2,
            usage={"input": 1},
            transcript_digest="bbbb",
        )
        for entry in TRIALS[:3]
    ]
    result = check([*stopped, trial("add", "other", tool_calls_made=5)], BASELINE)
    assert not result.holds
    assert result.lines() == (
        "4 of 4 trials differ from the baseline.",
        "termination_reason: expected completed, got max_iterations (3 trials)",
        "  add · baseline · repeat 0: iterations 3 -> 2, the conversation differs",
        "  sort · baseline · repeat 0: iterations 3 -> 2, the conversation differs",
        "  sort · other · repeat 0: iterations 3 -> 2, the conversation differs",
        "tool_calls_made changed, expected -> got (1 trial)",
        "  add · other · repeat 0: tool_calls_made 2 -> 5",
    )


def test_new_missing_and_unscored_trials_are_told_apart():
    trials = [
        *TRIALS[:2],
        trial("add", termination_reason="replay_miss", error="no answer recorded\n- old\n+ new"),
        trial("new"),
    ]
    result = check(trials, BASELINE)
    assert [found.trial_id for found in result.differing] == ["new/baseline/0"]
    assert [found.trial_id for found in result.unscored] == ["add/baseline/0"]
    assert result.missing == ("add/other/0",)
    assert result.lines() == (
        "1 of 4 trials differs from the baseline.",
        "not in the baseline (1 trial)",
        "  new · baseline · repeat 0",
        "1 trial missing from the run:",
        "  add/other/0",
        "1 trial without a result:",
        "  add · baseline · repeat 0: replay_miss",
        "    no answer recorded",
        "    - old",
        "    + new",
    )


def test_only_planned_trials_are_checked_when_a_run_was_limited():
    planned = {"sort/baseline/0", "sort/other/0"}
    assert check(TRIALS[:2], BASELINE, planned).holds
    assert check(TRIALS[:2], BASELINE).missing == ("add/baseline/0", "add/other/0")
    assert check(TRIALS[:1], BASELINE, planned).missing == ("sort/other/0",)


def test_two_runs_are_compared_trial_by_trial():
    second = [
        TRIALS[0],
        trial("sort", "other", iterations=4),
        trial("add", termination_reason="infrastructure_error", error="no space"),
        trial("new"),
    ]
    found = compare_runs(TRIALS, second)
    assert not found.identical
    assert found.same == 1
    assert [entry.trial_id for entry in found.differing] == ["sort/other/0"]
    assert found.differing[0].differences == (Difference(field="iterations", expected=3, got=4),)
    assert (found.only_first, found.only_second) == (("add/other/0",), ("new/baseline/0",))
    assert found.unscored[0].error == "no space"
    assert found.headline == (
        "Trials of both runs, compared exactly: 1 the same, 1 different, 1 without a result,"
        " 1 only in the first run, 1 only in the second run."
    )


def test_equal_runs_are_identical():
    found = compare_runs(TRIALS, TRIALS[::-1])
    assert found.identical
    assert found.headline == "Trials of both runs, compared exactly: 4 the same, 0 different."


def test_a_baseline_of_another_version_of_the_suite_keeps_nothing():
    other = run(4).model_copy(update={"suite_version": 2})
    assert uncovered(run(4), BASELINE) == tuple(BASELINE.trials)
    assert uncovered(other, BASELINE) == ()

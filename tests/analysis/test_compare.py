from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.analysis.compare import compare_populations, compare_variants
from harness.analysis.comparison import Comparison, Conclusion, LeftOut, MetricName
from harness.errors import BadInputError
from harness.schema.loop_config import TerminationReason
from harness.schema.results import TrialRecord
from tests.analysis.trials import graded, trial


def compared(before: list[int], after: list[int], repeats: int = 3, **changes: Any) -> Comparison:
    trials = graded("baseline", before, repeats) + graded("candidate", after, repeats, **changes)
    return compare_variants(trials, "baseline", "candidate")


def metric(comparison: Comparison, name: MetricName):
    found = comparison.metric(name)
    assert found is not None
    return found


def test_a_clear_gain_is_better_and_a_clear_loss_is_worse():
    low, high = [0, 1, 0, 1, 0, 1, 0, 1, 0, 0], [3, 3, 3, 3, 2, 3, 3, 3, 3, 3]
    gain, loss = compared(low, high), compared(high, low)
    assert gain.conclusion is Conclusion.BETTER
    assert gain.headline == (
        "candidate vs baseline: pass rate 13% -> 97% on 10 tasks × 3 repeats"
        " (+83 points, 95% interval +71 to +96, adjusted p = 0.012): better."
    )
    assert loss.conclusion is Conclusion.WORSE
    assert loss.headline == (
        "candidate vs baseline: pass rate 97% -> 13% on 10 tasks × 3 repeats"
        " (-83 points, 95% interval -96 to -71, adjusted p = 0.012): worse."
    )
    assert (metric(gain, "pass_rate").direction, metric(loss, "pass_rate").direction) == (
        "good",
        "bad",
    )


def test_an_unclear_difference_is_inconclusive_and_says_what_could_not_be_seen():
    found = compared([1, 2, 0, 3, 1, 2, 1, 0], [2, 1, 1, 3, 2, 2, 0, 1])
    assert found.conclusion is Conclusion.INCONCLUSIVE
    assert found.headline == (
        "candidate vs baseline: pass rate 42% -> 50% on 8 tasks × 3 repeats (+8 points, 95%"
        " interval -16 to +33, adjusted p = 1.00): inconclusive; a difference below 35 points"
        " would often be missed."
    )


def test_few_tasks_are_inconclusive_however_large_the_difference():
    found = compared([0, 0, 0, 1], [3, 3, 3, 3])
    assert found.conclusion is Conclusion.INCONCLUSIVE
    assert found.headline.endswith("inconclusive; fewer than 6 tasks cannot show any difference.")


def test_a_difference_that_does_not_survive_correction_says_so():
    found = compared([0] * 6, [1, 2, 3, 3, 2, 3])
    main = metric(found, "pass_rate")
    assert (main.p, main.conclusion) == (2 / 2**6, Conclusion.INCONCLUSIVE)
    assert found.headline.endswith(
        "inconclusive; p = 0.031 by itself, not clear once corrected for 6 tests."
    )


def test_equal_task_means_are_the_same_without_a_claim_about_other_tasks():
    found = compared([0, 1, 2, 3, 1, 2, 0], [0, 1, 2, 3, 1, 2, 0])
    assert found.conclusion is Conclusion.SAME
    assert found.notes == ()
    assert found.headline.startswith(
        "candidate vs baseline: pass rate 43% in both, the same in every task"
        " (7 tasks × 3 repeats); a difference below "
    )


def test_tasks_too_different_for_any_claim_say_so():
    found = compared([0, 3, 0, 3, 0, 3], [3, 0, 3, 0, 3, 0])
    assert "so few and so different tasks can hardly show any difference" in found.headline


def test_repeats_are_averaged_and_never_pooled():
    few = compared([0, 1, 0, 1, 0, 1, 0], [1, 1, 1, 1, 1, 0, 1], repeats=1)
    many = compared([0, 5, 0, 5, 0, 5, 0], [5, 5, 5, 5, 5, 0, 5], repeats=5)
    assert metric(few, "pass_rate").p == metric(many, "pass_rate").p
    assert metric(many, "pass_rate").tasks == 7
    assert metric(few, "pass_rate").test == "exact McNemar"
    assert metric(many, "pass_rate").test == "sign-flip permutation on task means"


def test_per_task_differences_are_the_task_means():
    found = metric(compared([1, 3], [2, 0]), "pass_rate")
    rows = [(row.task, row.repeats, row.baseline, row.candidate) for row in found.task_differences]
    assert rows == [("t00", 3, 1 / 3, 2 / 3), ("t01", 3, 1.0, 0.0)]
    assert [row.difference for row in found.task_differences] == pytest.approx([1 / 3, -1])
    assert (found.baseline_mean, found.candidate_mean) == pytest.approx((2 / 3, 1 / 3))


def test_an_interval_of_a_pass_rate_ends_at_100_points():
    found = metric(compared([0, 0], [1, 3]), "pass_rate")
    assert found.interval is not None
    assert (found.interval.low, found.interval.high) == (-1, 1)


def test_tokens_are_compared_as_a_ratio_and_more_is_worse():
    rates = [1] * 9
    before = graded("baseline", rates)
    after = graded("candidate", rates, usage={"input": 1900, "output": 50, "cache_read": 50})
    found = compare_variants(before + after, "baseline", "candidate")
    tokens = metric(found, "tokens")
    assert (tokens.baseline_mean, tokens.candidate_mean) == (1000, 2000)
    assert tokens.effect == pytest.approx(2)
    assert tokens.interval is None
    assert (tokens.direction, tokens.conclusion) == ("bad", Conclusion.WORSE)
    assert found.notes == ("Tokens 1,000 -> 2,000 (×2.00, adjusted p = 0.023): worse.",)


def test_iterations_are_different_but_neither_good_nor_bad():
    found = compared([1] * 9, [1] * 9, iterations=5)
    iterations = metric(found, "iterations")
    assert (iterations.effect, iterations.direction) == (2, "neutral")
    assert iterations.conclusion is Conclusion.DIFFERENT
    assert iterations.test.startswith("Wilcoxon")


def test_cost_is_compared_only_where_it_is_known():
    assert compared([1] * 6, [1] * 6).metric("cost_usd") is None
    half = graded("baseline", [1] * 6, cost_usd=0.02) + graded("candidate", [1] * 6, cost_usd=0.01)
    known = compare_variants(half, "baseline", "candidate")
    assert metric(known, "cost_usd").effect == pytest.approx(0.5)
    assert metric(known, "cost_usd").direction == "good"


def test_a_cost_of_nothing_has_no_ratio():
    free = graded("baseline", [1] * 6, cost_usd=0.0) + graded("candidate", [1] * 6, cost_usd=0.0)
    assert compare_variants(free, "baseline", "candidate").metric("cost_usd") is None


def test_trials_without_a_result_are_left_out_with_their_counterparts_and_counted():
    before = graded("baseline", [1, 2, 3])
    after = graded("candidate", [1, 2, 3])
    after[0] = trial("t00", "candidate", 0, termination_reason="replay_miss", outcome=None)
    after[4] = trial("t01", "candidate", 1, mixed=True)
    found = compare_variants(before + after[:-1], "baseline", "candidate")
    assert (found.tasks, found.pairs) == (3, 6)
    assert found.left_out == (
        LeftOut(reason="answered by several models", count=1),
        LeftOut(reason="counterpart left out", count=2),
        LeftOut(reason="not run by both", count=1),
        LeftOut(reason="replay_miss", count=1),
    )
    assert (
        "5 trials left out: 1 answered by several models, 2 counterpart left out, "
        "1 not run by both, 1 replay_miss." in found.notes
    )
    assert "3 tasks × 2 repeats" in found.headline


def test_unequal_repeats_are_told_in_pairs():
    found = compare_variants(
        graded("baseline", [1, 2, 3]) + graded("candidate", [3, 2, 1])[:-1],
        "baseline",
        "candidate",
    )
    assert "on 3 tasks, 8 pairs of trials" in found.headline


def test_a_pair_without_a_verdict_is_left_out_of_the_pass_rate_alone():
    before, after = graded("baseline", [1, 2, 3]), graded("candidate", [1, 2, 3])
    after[0] = trial("t00", "candidate", 0, outcome=None)
    found = compare_variants(before + after, "baseline", "candidate")
    assert metric(found, "pass_rate").left_out == (LeftOut(reason="no verdict", count=1),)
    assert metric(found, "pass_rate").task_differences[0].repeats == 2
    assert metric(found, "iterations").task_differences[0].repeats == 3
    assert "Pass rate: 1 pair left out, no verdict." in found.notes


def test_a_pair_with_a_call_that_reported_no_usage_is_left_out_of_the_tokens():
    usage = {"input": 900, "output": 100, "missing_calls": 1}
    found = compared([1] * 3, [1] * 3, usage=usage)
    tokens = metric(found, "tokens")
    assert (tokens.tasks, tokens.conclusion) == (0, Conclusion.INCONCLUSIVE)
    assert tokens.reason == "usage not fully reported in any pair"


def test_without_any_pair_the_comparison_is_inconclusive_with_the_reason():
    before = graded("baseline", [1, 2])
    after = graded("candidate", [0, 0], termination_reason="replay_miss", repeats=3)
    found = compare_variants(before + after, "baseline", "candidate")
    assert found.conclusion is Conclusion.INCONCLUSIVE
    assert (found.tasks, found.pairs, found.endings.transitions) == (0, 0, ())
    assert found.headline == (
        "candidate vs baseline: inconclusive, because no task has a usable trial of both"
        " (12 trials left out: 6 counterpart left out, 6 replay_miss)."
    )
    assert Comparison.model_validate_json(found.model_dump_json()) == found


def test_without_any_verdict_the_comparison_is_inconclusive_with_the_reason():
    trials = [trial("t", variant, outcome=None) for variant in ("baseline", "candidate")]
    found = compare_variants(trials, "baseline", "candidate")
    assert found.headline == (
        "candidate vs baseline: inconclusive, because no verdict in any pair."
    )
    assert found.reason == "no verdict in any pair"


def test_the_matrix_of_endings_pairs_task_and_repeat():
    before = [trial(f"t{n}", "a", termination_reason="no_output") for n in range(9)]
    after = [trial(f"t{n}", "b", termination_reason="completed") for n in range(9)]
    before[0] = trial("t0", "a", termination_reason="max_iterations")
    before[1] = trial("t1", "a")
    found = compare_variants(before + after, "a", "b")
    completed = TerminationReason.COMPLETED
    assert found.endings.matrix == {
        (completed, completed): 1,
        (TerminationReason.MAX_ITERATIONS, completed): 1,
        (TerminationReason.NO_OUTPUT, completed): 7,
    }
    assert (found.endings.moved, found.endings.p) == (8, 2 / 2**8)
    assert found.endings.conclusion is Conclusion.DIFFERENT
    assert "8 of 9 pairs end differently (adjusted p = 0.047): different." in found.notes


@settings(max_examples=20)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=8),
    st.randoms(use_true_random=False),
)
def test_the_order_of_trials_does_not_matter(passes: list[tuple[int, int]], shuffle: random.Random):
    trials = graded("a", [one for one, _ in passes]) + graded("b", [other for _, other in passes])
    moved: list[TrialRecord] = list(trials)
    shuffle.shuffle(moved)
    assert compare_variants(moved, "a", "b") == compare_variants(trials, "a", "b")


@settings(max_examples=20)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=8))
def test_swapping_the_variants_turns_the_comparison_around(passes: list[tuple[int, int]]):
    trials = graded("a", [one for one, _ in passes]) + graded("b", [other for _, other in passes])
    there = metric(compare_variants(trials, "a", "b"), "pass_rate")
    back = metric(compare_variants(trials, "b", "a"), "pass_rate")
    assert there.effect == pytest.approx(-(back.effect or 0))
    assert (there.p, there.minimum_detectable) == pytest.approx((back.p, back.minimum_detectable))
    assert (there.conclusion is back.conclusion) is (
        there.conclusion in (Conclusion.SAME, Conclusion.INCONCLUSIVE)
    )


def test_one_variant_of_two_runs_is_compared_under_the_given_names():
    first, second = graded("a", [1, 2]), graded("a", [2, 2])
    found = compare_populations(first, second, baseline="a in run-1", candidate="a in run-2")
    assert found.headline.startswith("a in run-2 vs a in run-1: pass rate 50% -> 67%")


def test_an_unknown_variant_is_refused_with_those_there_are():
    with pytest.raises(BadInputError, match=r"^variant 'x' is not in the run: choose from a, b$"):
        compare_variants(graded("b", [1]) + graded("a", [1]), "a", "x")
    with pytest.raises(BadInputError, match=r"'a' is not in the run: the run has no trials$"):
        compare_variants([], "a", "b")


def test_a_variant_is_not_compared_with_itself():
    with pytest.raises(BadInputError, match="both 'a'"):
        compare_variants(graded("a", [1]), "a", "a")


def test_a_trial_that_is_there_twice_is_refused_by_name():
    with pytest.raises(BadInputError, match="'t00/a/0' is in the log twice"):
        compare_variants(graded("a", [1]) * 2 + graded("b", [1]), "a", "b")

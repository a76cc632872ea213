from __future__ import annotations

import itertools
import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats  # type: ignore[import-untyped]

from harness.analysis import stats

NUMBERS = st.floats(-50, 50).map(lambda value: round(value, 3))
THIRDS = st.integers(-3, 3).map(lambda value: value / 3)


def seeded(size: int, shift: float = 0.3, seed: int = 5) -> list[float]:
    return [float(value) for value in np.random.default_rng(seed).normal(shift, 1, size)]


def by_enumeration(differences: list[float]) -> float:
    observed = abs(math.fsum(differences)) - 1e-9
    flipped = [
        abs(math.fsum(sign * value for sign, value in zip(signs, differences, strict=True)))
        for signs in itertools.product((1, -1), repeat=len(differences))
    ]
    return sum(total >= observed for total in flipped) / len(flipped)


@settings(derandomize=True, deadline=None)
@given(st.lists(st.one_of(NUMBERS, THIRDS), min_size=1, max_size=9))
def test_sign_flip_counts_every_sign_pattern(differences: list[float]):
    assert stats.sign_flip(differences) == pytest.approx(by_enumeration(differences))


@pytest.mark.parametrize("size", [6, 12, 17])
def test_sign_flip_agrees_with_scipy_s_exact_permutation_test(size: int):
    differences = seeded(size)
    expected = scipy_stats.permutation_test(
        (np.array(differences),), np.mean, permutation_type="samples", n_resamples=np.inf
    )
    assert stats.sign_flip(differences) == pytest.approx(expected.pvalue)


def test_sign_flip_draws_when_there_are_too_many_patterns_and_stays_close_to_the_t_test():
    differences = seeded(80)
    p = stats.sign_flip(differences)
    assert p == stats.sign_flip(differences)
    assert p == pytest.approx(scipy_stats.ttest_1samp(differences, 0).pvalue, abs=0.005)
    assert stats.sign_flip([value + 5 for value in differences]) == 1 / (stats.DRAWS + 1)


@settings(derandomize=True, deadline=None, max_examples=50)
@given(st.integers(0, 30), st.integers(0, 30), st.integers(0, 100))
def test_sign_flip_on_single_repeats_is_the_exact_mcnemar_test(won: int, lost: int, tied: int):
    differences = [1.0] * won + [-1.0] * lost + [0.0] * tied
    expected = scipy_stats.binomtest(won, won + lost).pvalue if won + lost else 1.0
    assert stats.sign_flip(differences) == pytest.approx(expected)


@settings(derandomize=True, deadline=None)
@given(st.lists(THIRDS, min_size=1, max_size=12), st.randoms(use_true_random=False))
def test_p_ignores_the_order_of_tasks_and_the_sign_of_the_effect(
    differences: list[float], shuffle: random.Random
):
    moved = [-value for value in differences]
    shuffle.shuffle(moved)
    for test in (stats.sign_flip, stats.wilcoxon_pratt):
        assert test(moved) == pytest.approx(test(differences))
        assert 0 < test(differences) <= 1


def test_a_true_null_is_rejected_as_often_as_the_level_says_where_pooling_repeats_is_not():
    draw = random.Random(11)
    runs, tasks, repeats = 300, 20, 10
    by_task = pooled = 0
    for _ in range(runs):
        # Each task has an effect of its own; over tasks they cancel out.
        rates = [(draw.random(), draw.random()) for _ in range(tasks)]
        pairs = [
            [(draw.random() < after) - (draw.random() < before) for _ in range(repeats)]
            for before, after in rates
        ]
        by_task += stats.sign_flip([sum(task) / repeats for task in pairs]) <= stats.ALPHA
        pooled += stats.sign_flip([pair for task in pairs for pair in task]) <= stats.ALPHA
    assert 0.02 <= by_task / runs <= 0.08
    assert pooled / runs > 0.15


@pytest.mark.parametrize("size", [5, 10, 25])
def test_wilcoxon_without_zeros_and_ties_is_scipy_s_exact_one(size: int):
    differences = seeded(size)
    expected = scipy_stats.wilcoxon(differences, method="exact").pvalue
    assert stats.wilcoxon_pratt(differences) == pytest.approx(expected)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_wilcoxon_with_zeros_and_ties_is_scipy_s_permutation_form(seed: int):
    values = np.random.default_rng(seed).integers(-2, 4, 11) / 3
    expected = scipy_stats.wilcoxon(
        values, zero_method="pratt", method=scipy_stats.PermutationMethod(n_resamples=np.inf)
    ).pvalue
    assert stats.wilcoxon_pratt(list(values)) == pytest.approx(expected)


def test_wilcoxon_ranks_equal_differences_alike_whatever_their_rounding():
    assert stats.wilcoxon_pratt([0.1 + 0.2, -0.3, 1.0]) == stats.wilcoxon_pratt([3.0, -3.0, 10.0])


def test_wilcoxon_of_many_tasks_stays_close_to_the_normal_approximation():
    values = [float(value) for value in np.random.default_rng(2).integers(-3, 5, 300)]
    expected = scipy_stats.wilcoxon(values, zero_method="pratt", method="approx").pvalue
    assert stats.wilcoxon_pratt(values) == pytest.approx(expected, abs=0.005)


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 9, 30, 499])
@pytest.mark.parametrize("probability", [0.5, 0.8, 0.975, 0.999])
def test_t_quantile_is_scipy_s(probability: float, freedom: int):
    expected = scipy_stats.t.ppf(probability, freedom)
    assert stats.t_quantile(probability, freedom) == pytest.approx(expected, rel=1e-8, abs=1e-12)


@pytest.mark.parametrize("size", [2, 7, 40])
def test_t_interval_is_that_of_the_one_sample_t_test(size: int):
    differences = seeded(size)
    expected = scipy_stats.ttest_1samp(differences, 0).confidence_interval(0.95)
    assert stats.t_interval(differences) == pytest.approx((expected.low, expected.high))


@pytest.mark.parametrize("differences", [[], [0.3], [0.0] * 8, [0.5] * 8])
def test_no_interval_without_variation_between_tasks(differences: list[float]):
    assert stats.t_interval(differences) is None
    assert len(differences) < 2 or stats.bootstrap_interval(differences) is None


def test_no_bootstrap_interval_for_fewer_tasks_than_it_is_fit_for():
    assert stats.bootstrap_interval(seeded(stats.MIN_TASKS - 1)) is None
    assert stats.bootstrap_interval(seeded(stats.MIN_TASKS)) is not None


@pytest.mark.parametrize("skewed", [False, True])
def test_bootstrap_interval_is_close_to_scipy_s_bca(skewed: bool):
    differences = [math.exp(value) if skewed else value for value in seeded(40)]
    expected = scipy_stats.bootstrap(
        (differences,), np.mean, n_resamples=20_000, method="BCa", rng=np.random.default_rng(0)
    ).confidence_interval
    scale = stats.standard_error(differences)
    assert stats.bootstrap_interval(differences) == pytest.approx(
        (expected.low, expected.high), abs=0.12 * (scale or 0)
    )


@settings(derandomize=True, deadline=None, max_examples=25)
@given(st.lists(NUMBERS, min_size=6, max_size=15), st.randoms(use_true_random=False))
def test_bootstrap_interval_is_the_same_in_any_order_and_within_the_data(
    differences: list[float], shuffle: random.Random
):
    found = stats.bootstrap_interval(differences)
    moved = list(differences)
    shuffle.shuffle(moved)
    assert stats.bootstrap_interval(moved) == found
    if found:
        low, high = found
        assert min(differences) - 1e-9 <= low <= high <= max(differences) + 1e-9


def test_holm_multiplies_by_the_tests_that_are_left_and_never_falls():
    assert stats.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert stats.holm([0.9, 0.8]) == [1.0, 1.0]
    assert stats.holm([]) == []


def test_marginal_shift_of_two_endings_is_the_sign_flip_of_one_share():
    shares = [1 / 3, -1 / 3, 2 / 3, 1.0, 0.0, 2 / 3, 1 / 3]
    rows = [[share, -share] for share in shares]
    assert stats.marginal_shift(rows) == pytest.approx(stats.sign_flip(shares))


def test_marginal_shift_draws_when_there_are_too_many_patterns():
    shares = [1.0, -1.0, 1.0] * 10
    rows = [[share, -share, 0.0] for share in shares]
    assert stats.marginal_shift(rows) == pytest.approx(stats.sign_flip(shares), abs=0.02)


def test_marginal_shift_ignores_tasks_that_did_not_move():
    row = [1.0, -1.0]
    assert stats.marginal_shift([row, row]) == stats.marginal_shift([row, [0.0, 0.0], row])
    assert stats.marginal_shift([[0.0, 0.0]]) == 1.0


# Published figures, rounded up to whole points: NeMo Evaluator's table for the exact McNemar test,
# 80% power, 20% discordant pairs.
@pytest.mark.parametrize(("pairs", "points"), [(30, 26), (87, 14), (200, 10), (500, 6)])
def test_mcnemar_minimum_detectable_gives_the_published_figures(pairs: int, points: int):
    found = stats.mcnemar_minimum_detectable(pairs)
    assert found is not None
    assert math.ceil(found * 100) == points


def test_too_few_tasks_can_detect_nothing():
    assert stats.mcnemar_minimum_detectable(5) is None
    assert stats.minimum_detectable([1.0, 0.5, 0.7, 1.0, 1.0], single_repeat=False) is None


def test_minimum_detectable_difference_is_found_four_times_in_five():
    draw = random.Random(4)
    noise = [draw.gauss(0, 0.25) for _ in range(11)]
    smallest = stats.minimum_detectable(noise, single_repeat=False)
    assert smallest is not None
    spread = (stats.standard_error(noise) or 0) * math.sqrt(len(noise))
    runs = 300
    found = sum(
        stats.sign_flip([draw.gauss(smallest, spread) for _ in noise]) <= stats.ALPHA
        for _ in range(runs)
    )
    assert 0.72 <= found / runs <= 0.88


def test_a_detectable_difference_beyond_all_points_is_none():
    assert stats.minimum_detectable([1.0, -1.0] * 3, single_repeat=False) is None

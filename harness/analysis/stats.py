"""Tests and intervals for paired task means, in plain Python.

One task is one observation: callers average the repeats of a task first and never pool them
(Miller 2024, "Adding Error Bars to Evals", section 3.1). `differences` is always one number per
task, candidate minus baseline, of the same length and order for every function here. Everything
is deterministic: random draws are seeded, and values are sorted before they are drawn from.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Sequence
from statistics import NormalDist

ALPHA = 0.05
"""Two-sided level of every test, and one minus the coverage of every interval."""
POWER = 0.8
"""Chance of finding an effect of the minimum detectable size."""
MIN_TASKS = 6
"""With fewer, no exact sign-flip test can reach p <= 0.05: 2 / 2**5 = 0.0625."""
SEED = 20240601
DRAWS = 9999
_GRID = 720720 * 2**20
_MAX_STEPS = 2**18

_normal = NormalDist()


def sign_flip(differences: Sequence[float]) -> float:
    """Two-sided p of the paired permutation test on the mean of per-task differences.

    Under the null hypothesis each task's difference could as well have the other sign (Fisher 1935,
    "The Design of Experiments", section 21). Exact while the sums over all sign patterns can be
    counted in 2**18 steps: always up to 17 tasks, and for hundreds of tasks when the differences
    are pass rates. Beyond, 9,999 seeded draws with p = (hits + 1) / (draws + 1) (Phipson and
    Smyth 2010, "Permutation P-values Should Never Be Zero"). On differences of -1, 0 and 1 it is
    the exact McNemar test.
    """
    # The grid rounds each difference by half a unit at most: sums closer than that are ties.
    return _sign_flip(_on_grid(differences), slack=len(differences))


def _sign_flip(differences: Sequence[int], slack: int = 0) -> float:
    """The test on integers; sums that differ by no more than the slack count as equal."""
    sizes = sorted(abs(value) for value in differences if value)
    if not sizes:
        return 1.0
    threshold = abs(sum(differences)) - slack
    exact = _share_at_least(sizes, threshold)
    if exact is not None:
        return exact
    draw = random.Random(SEED)
    hits = sum(
        abs(sum(size if draw.random() < 0.5 else -size for size in sizes)) >= threshold
        for _ in range(DRAWS)
    )
    return (hits + 1) / (DRAWS + 1)


def _share_at_least(sizes: Sequence[int], threshold: int) -> float | None:
    """Share of the sign patterns whose sum is that far from 0; None where counting is too much."""
    ways: Counter[int] = Counter({0: 1})
    steps = 0
    for size in sizes:
        after: Counter[int] = Counter()
        for total, count in ways.items():
            after[total + size] += count
            after[total - size] += count
        steps += len(after)
        if steps > _MAX_STEPS:
            return None
        ways = after
    extreme = sum(count for total, count in ways.items() if abs(total) >= threshold)
    return float(extreme / 2 ** len(sizes))


def _on_grid(values: Sequence[float]) -> list[int]:
    """The values as integers relative to the largest, so that 0.1 + 0.2 and 0.3 are one value.

    The grid holds halves, thirds and so on up to sixteenths exactly, which keeps means over
    repeats exact; and no ordinary fraction lies half-way between two of its points.
    """
    largest = max((abs(value) for value in values), default=0.0)
    return [round(value / largest * _GRID) for value in values] if largest else [0 for _ in values]


def wilcoxon_pratt(differences: Sequence[float]) -> float:
    """Two-sided p of Wilcoxon's signed-rank test with Pratt's zeros, from its exact distribution.

    Zeros are ranked with the others and then dropped (Pratt 1959, "Remarks on Zeros and Ties in the
    Wilcoxon Signed Rank Procedures"); ties get their average rank.
    """
    grid = _on_grid(differences)
    order = sorted(abs(value) for value in grid)
    first = {value: order.index(value) for value in set(order)}
    count = Counter(order)
    doubled = {value: 2 * first[value] + count[value] + 1 for value in count}
    ranks = (doubled[abs(value)] for value in grid)
    return _sign_flip([_sign(value) * rank for value, rank in zip(grid, ranks, strict=True)])


def _sign(value: int) -> int:
    return (value > 0) - (value < 0)


def t_interval(differences: Sequence[float]) -> tuple[float, float] | None:
    """95% interval of the mean difference, from the standard error clustered by task.

    With one mean per task, clustering by task is the ordinary standard error over tasks (Miller
    2024, equation 7). None for fewer than two tasks, or when all differences are equal.
    """
    error = standard_error(differences)
    if not error:
        return None
    centre = math.fsum(differences) / len(differences)
    margin = t_quantile(1 - ALPHA / 2, len(differences) - 1) * error
    return centre - margin, centre + margin


def standard_error(differences: Sequence[float]) -> float | None:
    """Standard error of the mean over tasks; None for fewer than two."""
    size = len(differences)
    if size < 2:
        return None
    if _constant(differences):
        return 0.0
    centre = math.fsum(differences) / size
    squares = math.fsum((value - centre) ** 2 for value in differences)
    return math.sqrt(squares / (size - 1) / size)


def _constant(differences: Sequence[float]) -> bool:
    low, high = min(differences), max(differences)
    return math.isclose(low, high, rel_tol=1e-12)


def t_quantile(probability: float, freedom: int) -> float:
    """Quantile of Student's t with whole degrees of freedom, for probabilities from 0.5 to 1.

    Bisection on the closed form of the distribution (Abramowitz and Stegun 1964, 26.7.3 and 4).
    """
    low, high = 0.0, 1.0
    while _t_below(high, freedom) < probability:
        high *= 2
    for _ in range(80):
        middle = (low + high) / 2
        if _t_below(middle, freedom) < probability:
            low = middle
        else:
            high = middle
    return high


def _t_below(value: float, freedom: int) -> float:
    angle = math.atan(value / math.sqrt(freedom))
    cosine, sine = math.cos(angle), math.sin(angle)
    odd = freedom % 2
    term, total = cosine if odd else 1.0, 0.0
    for step in range(freedom // 2):
        total += term
        term *= cosine**2 * (2 * step + 1 + odd) / (2 * step + 2 + odd)
    inside = (angle + sine * total) * 2 / math.pi if odd else sine * total
    return (1 + inside) / 2


def bootstrap_interval(differences: Sequence[float]) -> tuple[float, float] | None:
    """95% interval of the mean difference: BCa bootstrap over tasks, seeded.

    Efron 1987, "Better Bootstrap Confidence Intervals"; acceleration from the jackknife (Efron and
    Tibshirani 1993, equation 14.15). None for fewer than six tasks, where the
    bootstrap is far too narrow, or when all differences are equal.
    """
    size = len(differences)
    if size < MIN_TASKS or _constant(differences):
        return None
    values = sorted(differences)
    centre = math.fsum(values) / size
    draw = random.Random(SEED)
    means = sorted(math.fsum(draw.choices(values, k=size)) / size for _ in range(DRAWS))
    below = sum(mean < centre for mean in means) + sum(mean == centre for mean in means) / 2
    deviations = [value - centre for value in values]
    spread = math.fsum(deviation**2 for deviation in deviations)
    acceleration = math.fsum(deviation**3 for deviation in deviations) / (6 * spread**1.5)
    bias = _normal.inv_cdf(min(max(below, 0.5), DRAWS - 0.5) / DRAWS)
    low, high = (_corrected(level, bias, acceleration) for level in (ALPHA / 2, 1 - ALPHA / 2))
    return _quantile(means, low), _quantile(means, high)


def _corrected(level: float, bias: float, acceleration: float) -> float:
    shifted = bias + _normal.inv_cdf(level)
    return _normal.cdf(bias + shifted / (1 - acceleration * shifted))


def _quantile(ordered: Sequence[float], level: float) -> float:
    position = level * (len(ordered) - 1)
    index = min(int(position), len(ordered) - 2)
    return ordered[index] + (position - index) * (ordered[index + 1] - ordered[index])


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted p values in the order given (Holm 1979, "A Simple Sequentially Rejective ...")."""
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    adjusted = [1.0] * len(p_values)
    running = 0.0
    for rank, index in enumerate(order):
        running = max(running, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = running
    return adjusted


def marginal_shift(shifts: Sequence[Sequence[float]]) -> float:
    """Permutation test that the shares of categories did not move; its p value.

    `shifts` holds one row per task: for each category its share of the task's candidate trials
    minus its share of the baseline's. The statistic is the squared length of the summed rows; under
    the null hypothesis a task's two groups may be swapped. It asks what Stuart-Maxwell asks
    (Stuart 1955), without pooling repeats and for sparse tables. Exact up to 12 tasks that moved,
    else seeded draws as in `sign_flip`.
    """
    used = [column for column in zip(*shifts, strict=True) if any(column)]
    moved = sorted(row for row in zip(*used, strict=True) if any(row))
    if not moved:
        return 1.0
    observed = _squared_length(moved, [1] * len(moved))
    threshold = observed * (1 - 1e-9)
    if len(moved) <= 12:
        # Swapping every task gives the same statistic, so the first may stay as it is.
        patterns = 2 ** (len(moved) - 1)
        hits = sum(
            _squared_length(moved, _signs(pattern, len(moved))) >= threshold
            for pattern in range(patterns)
        )
        return float(hits / patterns)
    draw = random.Random(SEED)
    hits = sum(
        _squared_length(moved, _signs(draw.getrandbits(len(moved)), len(moved))) >= threshold
        for _ in range(DRAWS)
    )
    return (hits + 1) / (DRAWS + 1)


def _signs(pattern: int, size: int) -> list[int]:
    return [1 if pattern >> index & 1 else -1 for index in range(size)]


def _squared_length(rows: Sequence[Sequence[float]], signs: Sequence[int]) -> float:
    return math.fsum(
        math.fsum(sign * value for sign, value in zip(signs, column, strict=True)) ** 2
        for column in zip(*rows, strict=True)
    )


def minimum_detectable(differences: Sequence[float], *, single_repeat: bool) -> float | None:
    """Smallest true difference in pass rates found with 80% power at the 5% level.

    From the standard error over tasks, (t(0.975) + t(0.8)) * SE (Miller 2024, section 5, with t
    quantiles for few tasks). With a single repeat, or where no task differs, from the exact McNemar
    test with 20% discordant pairs. None where no difference could be found: too few tasks.
    """
    size = len(differences)
    if size < MIN_TASKS:
        return None
    error = standard_error(differences)
    if single_repeat or not error:
        return mcnemar_minimum_detectable(size)
    freedom = size - 1
    wanted = (t_quantile(1 - ALPHA / 2, freedom) + t_quantile(POWER, freedom)) * error
    return wanted if wanted <= 1 else None


def mcnemar_minimum_detectable(pairs: int, discordant: float = 0.2) -> float | None:
    """Smallest difference in pass rates that the exact McNemar test finds with 80% power.

    `discordant` is the share of pairs with different outcomes, or the difference itself where that
    is larger. Unconditional power (Duffy 1984, "Asymptotic and Exact Power for the McNemar Test").
    """
    power = _mcnemar_power(pairs, discordant)
    if power(1.0) < POWER:
        return None
    low, high = 0.0, 1.0
    while high - low > 1e-4:
        middle = (low + high) / 2
        low, high = (low, middle) if power(middle) >= POWER else (middle, high)
    return high


def _mcnemar_power(pairs: int, discordant: float) -> Callable[[float], float]:
    critical = [_critical(size) for size in range(pairs + 1)]

    def power(difference: float) -> float:
        share = max(discordant, difference)
        upwards = (1 + difference / share) / 2
        return math.fsum(
            _binomial(pairs, size, share)
            * math.fsum(
                _binomial(size, wins, upwards) for wins in range(size - critical[size], size + 1)
            )
            for size in range(pairs + 1)
            if critical[size] >= 0 and _binomial(pairs, size, share) > 1e-12
        )

    return power


def _critical(size: int) -> int:
    """Most losses among `size` discordant pairs that are still significant; -1 for none."""
    tail, losses = 0, -1
    while True:
        tail += math.comb(size, losses + 1)
        if 2 * tail > ALPHA * 2**size:
            return losses
        losses += 1


def _binomial(size: int, hits: int, share: float) -> float:
    if share in (0.0, 1.0):
        return float(hits == (size if share else 0))
    log_ways = math.lgamma(size + 1) - math.lgamma(hits + 1) - math.lgamma(size - hits + 1)
    return math.exp(log_ways + hits * math.log(share) + (size - hits) * math.log1p(-share))

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from harness.analysis import numbers
from harness.analysis.comparison import Conclusion, Interval, MetricComparison, MetricName


@pytest.mark.parametrize(
    ("show", "value", "text"),
    [
        (numbers.percent, 0.4167, "42%"),
        (numbers.percent, 0.285, "29%"),
        (numbers.percent, 0.0, "0%"),
        (numbers.percent, 0.001, "<1%"),
        (numbers.percent, 0.999, ">99%"),
        (numbers.percent, 1.0, "100%"),
        (numbers.points, 1 / 6, "+17 points"),
        (numbers.points, -0.004, "0 points"),
        (numbers.count, 10618, "10,618"),
        (numbers.mean, 5.25, "5.3"),
        (numbers.mean, 10618.4, "10,618"),
        (numbers.signed, 1.25, "+1.3"),
        (numbers.signed, -1234.0, "-1,234"),
        (numbers.signed, -0.01, "0.0"),
        (numbers.ratio, 1.344, "×1.34"),
        (numbers.dollars, 0.0, "$0.00"),
        (numbers.dollars, 12.5, "$12.50"),
        (numbers.dollars, 0.0123, "$0.012"),
        (numbers.dollars, 0.0000456, "$0.000046"),
        (numbers.seconds, 0.52, "0.52 s"),
        (numbers.seconds, 42.2, "42 s"),
        (numbers.seconds, 75.2, "1 min 15 s"),
        (numbers.seconds, 59.7, "1 min 0 s"),
        (numbers.seconds, 7260.0, "2 h 1 min"),
        (numbers.p_value, 0.38, "0.38"),
        (numbers.p_value, 0.0123, "0.012"),
        (numbers.p_value, 0.0004, "< 0.001"),
        (numbers.p_value, 0.05, "0.050"),
        (numbers.p_value, 0.05002, "> 0.050"),
        (numbers.p_value, 0.04998, "< 0.050"),
        (numbers.p_value, 0.999, "> 0.99"),
        (numbers.p_value, 1.0, "1.00"),
        (numbers.equation, 0.38, "p = 0.38"),
        (numbers.equation, 0.0004, "p < 0.001"),
        (numbers.detectable, 0.131, "14 points"),
        (numbers.detectable, 0.14, "14 points"),
    ],
)
def test_numbers_are_shown_as_people_read_them(show: Callable[[Any], str], value: Any, text: str):
    assert show(value) == text


@pytest.mark.parametrize(
    "show",
    [
        numbers.percent,
        numbers.points,
        numbers.count,
        numbers.mean,
        numbers.signed,
        numbers.ratio,
        numbers.dollars,
        numbers.seconds,
        numbers.p_value,
    ],
)
def test_what_is_not_known_is_a_dash(show: Callable[[None], str]):
    assert show(None) == "–"


def metric(name: MetricName, effect: float, low: float | None, high: float) -> MetricComparison:
    return MetricComparison(
        metric=name,
        kind="ratio" if name in ("tokens", "cost_usd") else "difference",
        tasks=9,
        baseline_mean=1,
        candidate_mean=2,
        effect=effect,
        interval=None if low is None else Interval(low=low, high=high),
        test="x",
        p=0.1,
        adjusted_p=0.1,
        direction="good",
        conclusion=Conclusion.INCONCLUSIVE,
    )


@pytest.mark.parametrize(
    ("name", "effect", "low", "high", "shown", "interval"),
    [
        ("pass_rate", 0.17, -0.1, 0.44, "+17 points", "-10 to +44 points"),
        ("iterations", 1.2, -0.5, 2.1, "+1.2", "-0.5 to +2.1"),
        ("tokens", 1.34, 0.92, 1.4, "×1.34", "×0.92 to ×1.40"),
        ("cost_usd", 0.5, None, 0, "×0.50", "–"),
    ],
)
def test_an_effect_has_its_metric_s_unit(
    name: MetricName, effect: float, low: float | None, high: float, shown: str, interval: str
):
    found = metric(name, effect, low, high)
    assert numbers.metric_effect(found) == shown
    assert numbers.metric_interval(found) == interval


def test_a_mean_has_its_metric_s_format():
    assert numbers.metric_value("pass_rate", 0.5) == "50%"
    assert numbers.metric_value("cost_usd", 0.5) == "$0.50"
    assert numbers.metric_value("tokens", 1234.5) == "1,235"
    assert numbers.metric_value("iterations", None) == "–"

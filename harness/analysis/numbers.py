"""Numbers as people read them: the one place that rounds. None is shown as a dash."""

from __future__ import annotations

import math

from harness.analysis.comparison import Interval, MetricComparison, MetricName

ABSENT = "–"


def percent(share: float | None) -> str:
    """0.4167 -> `42%`; only all is 100% and only nothing is 0%."""
    if share is None:
        return ABSENT
    if 0 < share < 0.005:
        return "<1%"
    if 0.995 <= share < 1:
        return ">99%"
    return f"{_half_up(share * 100):.0f}%"


def points(difference: float | None) -> str:
    """0.1667 -> `+17 points`: a difference of two shares."""
    return ABSENT if difference is None else f"{_signed(difference * 100, 0)} points"


def count(number: int | None) -> str:
    """10618 -> `10,618`."""
    return ABSENT if number is None else f"{number:,}"


def plural(number: int, noun: str) -> str:
    """`1 task`, `2 tasks`, `2 misses`."""
    ending = "es" if noun.endswith("s") else "s"
    return f"{number:,} {noun}{'' if number == 1 else ending}"


def mean(value: float | None) -> str:
    """5.25 -> `5.3`; from 100 on without decimals, with thousands."""
    if value is None:
        return ABSENT
    places = 1 if abs(value) < 99.95 else 0
    return f"{_half_up(value, places):,.{places}f}"


def signed(difference: float | None) -> str:
    """1.25 -> `+1.3`."""
    if difference is None:
        return ABSENT
    return _signed(difference, 1 if abs(difference) < 99.95 else 0)


def ratio(value: float | None) -> str:
    """1.344 -> `×1.34`: a factor."""
    return ABSENT if value is None else f"×{_half_up(value, 2):,.2f}"


def dollars(amount: float | None) -> str:
    """0.0123 -> `$0.012`: two decimals, or two digits below a cent's worth."""
    if amount is None:
        return ABSENT
    if amount == 0 or amount >= 0.1:
        return f"${amount:,.2f}"
    places = min(8, 1 - math.floor(math.log10(amount)))
    return f"${amount:.{places}f}"


def seconds(duration: float | None) -> str:
    """0.52 -> `0.52 s`; 75.2 -> `1 min 15 s`."""
    if duration is None:
        return ABSENT
    if duration < 9.995:
        return f"{duration:.2f} s"
    if duration < 59.5:
        return f"{duration:.0f} s"
    minutes, rest = divmod(round(duration), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def p_value(p: float | None) -> str:
    """0.38 -> `0.38`, 0.0123 -> `0.012`, 0.0004 -> `< 0.001`; never rounded to 0.05 or 1."""
    if p is None:
        return ABSENT
    if p < 0.001:
        return "< 0.001"
    if p < 0.1:
        return f"{p:.3f}" if f"{p:.3f}" != "0.050" or p == 0.05 else f"{'<>'[p > 0.05]} 0.050"
    return f"{p:.2f}" if p == 1 or p < 0.995 else "> 0.99"


def equation(p: float | None) -> str:
    """`p = 0.38`, or `p < 0.001`."""
    text = p_value(p)
    return f"p {text}" if text[0] in "<>" else f"p = {text}"


def metric_value(metric: MetricName, value: float | None) -> str:
    """A metric's mean, in its own format."""
    if metric == "pass_rate":
        return percent(value)
    return dollars(value) if metric == "cost_usd" else mean(value)


def metric_effect(metric: MetricComparison) -> str:
    """The effect with its unit: `+17 points`, `+1.3`, `×1.34`."""
    if metric.kind == "ratio":
        return ratio(metric.effect)
    return points(metric.effect) if metric.metric == "pass_rate" else signed(metric.effect)


def metric_interval(metric: MetricComparison) -> str:
    """The interval in the effect's unit: `-10 to +44 points`, `-0.5 to +2.1`, `×0.92 to ×1.40`."""
    interval = metric.interval
    if interval is None:
        return ABSENT
    if metric.kind == "ratio":
        return f"{ratio(interval.low)} to {ratio(interval.high)}"
    if metric.metric == "pass_rate":
        return f"{points_interval(interval)} points"
    return f"{signed(interval.low)} to {signed(interval.high)}"


def points_interval(interval: Interval) -> str:
    """`-10 to +44`, in points."""
    return f"{_signed(interval.low * 100, 0)} to {_signed(interval.high * 100, 0)}"


def detectable(difference: float) -> str:
    """0.131 -> `14 points`: a limit, so rounded up."""
    return f"{math.ceil(difference * 100 - 1e-9)} points"


def _signed(value: float, places: int) -> str:
    rounded = _half_up(value, places)
    return f"{rounded:+,.{places}f}" if rounded else f"{0:.{places}f}"


def _half_up(value: float, places: int = 0) -> float:
    """Rounded as people do, halves away from 0; 1e-9 is for 0.285 * 100 = 28.499999999999996."""
    scale = 10**places
    return math.copysign(math.floor(abs(value) * scale + 0.5 + 1e-9) / scale, value)

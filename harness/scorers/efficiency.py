"""What a run used: model calls, tools, tokens and money."""

from __future__ import annotations

from harness.schema.results import Score
from harness.schema.suite import Price
from harness.schema.trajectory import UsageTotal
from harness.values import ScoreInput


class Iterations:
    """Model calls of the loop, over the run."""

    name = "iterations"

    def score(self, trial: ScoreInput) -> Score:
        """The number of iterations."""
        return Score(value=trial.trajectory.iterations)


class Attempts:
    """Validation attempts."""

    name = "attempts"

    def score(self, trial: ScoreInput) -> Score:
        """The number of attempts."""
        return Score(value=trial.trajectory.attempts)


class ToolCalls:
    """Tool calls that were really run."""

    name = "tool_calls"

    def score(self, trial: ScoreInput) -> Score:
        """The number of executed tool calls."""
        return Score(value=trial.trajectory.tool_calls_made)


class Tokens:
    """Tokens of all four buckets, over every model call."""

    name = "tokens"

    def score(self, trial: ScoreInput) -> Score:
        """The sum of what was reported."""
        usage = trial.trajectory.usage
        return Score(value=total_tokens(usage), explanation=_missing(trial))


class Cost:
    """What the model calls cost."""

    name = "cost_usd"

    def score(self, trial: ScoreInput) -> Score:
        """US dollars, where price and usage are known."""
        value = cost_usd(trial.trajectory.usage, trial.model.price)
        if value is not None:
            return Score(value=value)
        if trial.model.price is None:
            return Score(value=None, explanation=f"no price is set for {trial.model.name}")
        return Score(value=None, explanation=_missing(trial))


def total_tokens(usage: UsageTotal) -> int | None:
    """Tokens of all buckets; None when nothing was reported."""
    buckets = (usage.input, usage.output, usage.cache_write, usage.cache_read)
    known = [bucket for bucket in buckets if bucket is not None]
    return sum(known) if known else None


def cost_usd(usage: UsageTotal, price: Price | None) -> float | None:
    """US dollars; None without a price, without usage, or when a call's usage is missing."""
    if price is None or total_tokens(usage) is None or usage.missing_calls:
        return None
    return price.cost_usd(usage)


def _missing(trial: ScoreInput) -> str:
    usage = trial.trajectory.usage
    if total_tokens(usage) is None:
        return "no call reported its usage" if trial.trajectory.model_calls else "no model call"
    if not usage.missing_calls:
        return ""
    return f"{usage.missing_calls} of {trial.trajectory.model_calls} calls reported no usage"

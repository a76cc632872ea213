"""The budget of a run: what may still be started."""

from __future__ import annotations

from dataclasses import dataclass

from harness.schema.loop_config import Budget, TerminationReason


@dataclass(frozen=True, slots=True)
class Spent:
    """What a run has used so far."""

    iterations: int
    tokens: int
    duration_s: float


def blocks_model_call(budget: Budget, spent: Spent) -> tuple[TerminationReason, str] | None:
    """Why no further model call may start, or None."""
    if budget.max_duration_s is not None and spent.duration_s >= budget.max_duration_s:
        reason = f"the time budget of {budget.max_duration_s:g} s is used up"
        return TerminationReason.DURATION_EXCEEDED, reason
    for name, limit, used in (
        ("iterations", budget.max_iterations, spent.iterations),
        ("tokens", budget.max_tokens, spent.tokens),
    ):
        if limit is not None and used >= limit:
            reason = f"the budget of {limit} {name} is used up ({used} used)"
            return TerminationReason.BUDGET_EXCEEDED, reason
    return None


def blocks_tool_call(budget: Budget, calls_made: int) -> str | None:
    """Why no further tool call may run, or None."""
    limit = budget.max_tool_calls
    if limit is not None and calls_made >= limit:
        return f"the budget of {limit} tool calls is used up"
    return None

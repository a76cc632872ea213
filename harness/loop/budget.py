"""The budget of a run: what may still be started."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from harness.errors import ConfigurationError
from harness.loop.paths import sandbox_path
from harness.loop.usage import tokens_of
from harness.schema.loop_config import Budget, TerminationReason
from harness.schema.suite import Price
from harness.schema.trajectory import UsageTotal
from harness.values import Effect


class BudgetMeter:
    """Holds the limits of one run against what it has used.

    Model calls are counted elsewhere and handed in; what tools do is counted here. What a command
    changes is not seen: only tools that say what they write count for files and lines.
    """

    def __init__(
        self,
        budget: Budget,
        price: Price | None = None,
        *,
        calls_made: int = 0,
        files_modified: Iterable[str] = (),
        lines_changed: int = 0,
    ) -> None:
        """Start to count, or go on where a suspended run was broken off.

        Raises:
            ConfigurationError: money is limited and there is no price.
        """
        if budget.max_cost_usd is not None and price is None:
            raise ConfigurationError(
                f"budget.max_cost_usd is {budget.max_cost_usd!r}, but the model has no price: add "
                "model.price with input and output in US dollars per million tokens"
            )
        self.budget = budget
        self.price = price
        self.calls_made = calls_made
        self.files_modified = set(files_modified)
        self.lines_changed = lines_changed

    def blocks_model_call(
        self, *, iterations: int, usage: UsageTotal, elapsed_s: float
    ) -> tuple[TerminationReason, str] | None:
        """Why no further model call may start, or None.

        Calls that reported no usage cannot be charged.

        Args:
            iterations: Of the run, made so far.
            usage: Of all model calls of the run.
            elapsed_s: Since the run began.
        """
        budget = self.budget
        if budget.max_duration_s is not None and elapsed_s >= budget.max_duration_s:
            reason = f"the time budget of {budget.max_duration_s:g} s is used up"
            return TerminationReason.DURATION_EXCEEDED, reason
        for name, limit, used in (
            ("iterations", budget.max_iterations, iterations),
            ("tokens", budget.max_tokens, tokens_of(usage)),
        ):
            if limit is not None and used >= limit:
                reason = f"the budget of {limit} {name} is used up ({used} used)"
                return TerminationReason.BUDGET_EXCEEDED, reason
        if budget.max_cost_usd is not None and self.price is not None:
            cost = self.price.cost_usd(usage)
            if cost >= budget.max_cost_usd:
                reason = f"the budget of ${budget.max_cost_usd:g} is used up (${cost:.4g} used)"
                return TerminationReason.BUDGET_EXCEEDED, reason
        return None

    def left_s(self, *, elapsed_s: float) -> float | None:
        """What is left of the run's time; None where that is not limited."""
        limit = self.budget.max_duration_s
        return None if limit is None else max(0.0, limit - elapsed_s)

    def cuts_tool_call(self, timeout_s: float, *, elapsed_s: float) -> float | None:
        """What is left of the run's time, or None where a call may take all of its timeout."""
        left = self.left_s(elapsed_s=elapsed_s)
        return None if left is None or left >= timeout_s else left

    def blocks_tool_call(self, effects: Sequence[Effect] | None) -> str | None:
        """Why a call that does this may not run, or None."""
        budget = self.budget
        if budget.max_tool_calls is not None and self.calls_made >= budget.max_tool_calls:
            return f"the budget of {budget.max_tool_calls} tool calls is used up"
        files, lines = self._with(effects)
        new = ", ".join(sorted(files - self.files_modified))
        if new and budget.max_files_modified is not None and len(files) > budget.max_files_modified:
            limit = f"the budget of {budget.max_files_modified} modified files"
            return f"{limit} does not allow another: {new}"
        more = lines - self.lines_changed
        if more and budget.max_lines_changed is not None and lines > budget.max_lines_changed:
            limit = f"the budget of {budget.max_lines_changed} changed lines"
            return f"{limit} does not allow {more} more ({self.lines_changed} used)"
        return None

    def charge_tool(self, effects: Sequence[Effect] | None) -> None:
        """Count a call that is really run."""
        self.calls_made += 1
        self.files_modified, self.lines_changed = self._with(effects)

    def _with(self, effects: Sequence[Effect] | None) -> tuple[set[str], int]:
        """Files and lines with those of a call."""
        writes = [effect for effect in effects or () if effect.kind == "write"]
        files = self.files_modified | {sandbox_path(effect.target) for effect in writes}
        return files, self.lines_changed + sum(effect.lines for effect in writes)

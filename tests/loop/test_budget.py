"""What the budget keeps from starting."""

from __future__ import annotations

import pytest

from harness.errors import ConfigurationError
from harness.loop.budget import BudgetMeter
from harness.schema.loop_config import Budget, TerminationReason
from harness.schema.suite import Price
from harness.schema.trajectory import UsageTotal
from harness.values import Effect

PRICE = Price(input=2, output=10, cache_write=2.5, cache_read=0.2)
EXCEEDED = TerminationReason.BUDGET_EXCEEDED


def blocked(
    meter: BudgetMeter,
    *,
    iterations: int = 0,
    usage: UsageTotal | None = None,
    elapsed_s: float = 0,
) -> tuple[TerminationReason, str] | None:
    return meter.blocks_model_call(
        iterations=iterations, usage=usage or UsageTotal(), elapsed_s=elapsed_s
    )


def write(path: str, lines: int = 1) -> Effect:
    return Effect("write", path, lines)


def run(meter: BudgetMeter, *effects: Effect) -> str | None:
    """Run a call if the budget allows it."""
    refusal = meter.blocks_tool_call(effects)
    if refusal is None:
        meter.charge_tool(effects)
    return refusal


def test_without_limits_nothing_is_blocked():
    meter = BudgetMeter(Budget())
    assert blocked(meter, iterations=10**6, usage=UsageTotal(input=10**9), elapsed_s=1e9) is None
    assert run(meter, write("a", 10**6)) is None
    meter.charge_tool(None)
    assert meter.calls_made == 2


def test_ef_05_iterations_are_limited():
    meter = BudgetMeter(Budget(max_iterations=2))
    assert blocked(meter, iterations=1) is None
    reason = "the budget of 2 iterations is used up (2 used)"
    assert blocked(meter, iterations=2) == (EXCEEDED, reason)


def test_ef_06_the_duration_is_limited():
    meter = BudgetMeter(Budget(max_duration_s=1.5))
    assert blocked(meter, elapsed_s=1.4) is None
    assert blocked(meter, elapsed_s=1.5) == (
        TerminationReason.DURATION_EXCEEDED,
        "the time budget of 1.5 s is used up",
    )


def test_a_call_is_cut_to_what_is_left_of_the_time():
    meter = BudgetMeter(Budget(max_duration_s=10))
    assert meter.cuts_tool_call(4, elapsed_s=6) is None
    assert meter.cuts_tool_call(4, elapsed_s=7) == 3
    assert meter.cuts_tool_call(4, elapsed_s=11) == 0
    assert BudgetMeter(Budget()).cuts_tool_call(4, elapsed_s=1e9) is None


def test_ef_07_files_modified_are_limited_and_a_file_counts_once():
    meter = BudgetMeter(Budget(max_files_modified=2))
    assert run(meter, write("a")) is None
    assert run(meter, write("/workspace/x/../a"), Effect("read", "c")) is None
    assert run(meter, write("./b")) is None
    refusal = "the budget of 2 modified files does not allow another: /workspace/c"
    assert run(meter, write("a"), write("c")) == refusal
    assert run(meter, write("b")) is None
    assert meter.files_modified == {"/workspace/a", "/workspace/b"}


def test_ef_08_lines_changed_are_limited():
    meter = BudgetMeter(Budget(max_lines_changed=10))
    assert run(meter, write("a", 4)) is None
    assert run(meter, write("a", 3), write("b", 3)) is None
    refusal = "the budget of 10 changed lines does not allow 1 more (10 used)"
    assert run(meter, write("a", 1)) == refusal
    assert run(meter, Effect("read", "a"), write("empty", 0)) is None
    assert meter.lines_changed == 10


def test_tool_calls_are_limited():
    meter = BudgetMeter(Budget(max_tool_calls=1))
    assert run(meter) is None
    assert run(meter) == "the budget of 1 tool calls is used up"
    assert BudgetMeter(Budget(max_tool_calls=0)).blocks_tool_call(None) is not None


def test_a_limit_of_nothing_blocks_the_first_change():
    meter = BudgetMeter(Budget(max_files_modified=0, max_lines_changed=0))
    assert run(meter, Effect("read", "a")) is None
    assert run(meter, write("a", 0)) is not None


def test_tokens_of_all_buckets_are_limited():
    meter = BudgetMeter(Budget(max_tokens=10))
    assert blocked(meter, usage=UsageTotal(input=9, missing_calls=3)) is None
    usage = UsageTotal(input=1, output=2, cache_write=3, cache_read=4)
    reason = "the budget of 10 tokens is used up (10 used)"
    assert blocked(meter, usage=usage) == (EXCEEDED, reason)


def test_money_is_limited_by_the_price_of_every_bucket():
    meter = BudgetMeter(Budget(max_cost_usd=0.5), PRICE)
    usage = UsageTotal(input=100_000, output=10_000, cache_write=40_000, missing_calls=1)
    assert blocked(meter, usage=usage) is None
    usage = usage.model_copy(update={"cache_read": 500_000})
    reason = "the budget of $0.5 is used up ($0.5 used)"
    assert blocked(meter, usage=usage) == (EXCEEDED, reason)


def test_a_limit_of_money_needs_a_price():
    with pytest.raises(ConfigurationError, match=r"max_cost_usd is 0\.5.*add model\.price"):
        BudgetMeter(Budget(max_cost_usd=0.5))


def test_a_resumed_run_goes_on_counting():
    meter = BudgetMeter(
        Budget(max_tool_calls=3, max_files_modified=1, max_lines_changed=5),
        calls_made=2,
        files_modified=("/workspace/a",),
        lines_changed=4,
    )
    assert meter.blocks_tool_call([write("b")]) is not None
    assert meter.blocks_tool_call([write("a", 2)]) is not None
    assert run(meter, write("a")) is None
    assert run(meter) == "the budget of 3 tool calls is used up"

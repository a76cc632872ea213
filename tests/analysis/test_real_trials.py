"""Holds the comparison against published trials of real agents, where a copy is at hand."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from scipy import stats as scipy_stats  # type: ignore[import-untyped]

from harness.analysis.compare import compare_variants
from harness.analysis.comparison import Conclusion
from tests.analysis.trials import trial

DATA = os.environ.get("HARNESS_DATA")
ENDINGS = {"agent_timeout": "duration_exceeded", "agent_installation_failed": "tool_error"}


@pytest.mark.skipif(
    not DATA, reason="set HARNESS_DATA to a folder with trials/terminal-bench-core-0.1.1.jsonl"
)
def test_published_terminal_bench_trials_are_compared_by_task_means():
    lines = Path(str(DATA), "trials", "terminal-bench-core-0.1.1.jsonl").read_text().splitlines()
    seen: Counter[tuple[str, str]] = Counter()
    trials = []
    for row in map(json.loads, lines):
        cell = (row["config"], row["task"])
        trials.append(
            trial(
                row["task"],
                row["config"],
                seen[cell],
                outcome="passed" if row["resolved"] else "failed",
                termination_reason=ENDINGS.get(row["failure_mode"], "completed"),
            )
        )
        seen[cell] += 1
    configs = sorted({config for config, _ in seen})
    found = compare_variants(
        trials, "20250902_orchestrator_qwen-3-coder-480B", "20250711_openhands_claude-4-sonnet"
    )
    rate = found.metrics[0]
    differences = [row.difference for row in rate.task_differences]
    assert len(configs) == 5
    assert rate.tasks == 80
    assert rate.effect == pytest.approx(np.mean(differences))
    expected = scipy_stats.permutation_test(
        (np.array(differences),),
        np.mean,
        permutation_type="samples",
        n_resamples=20_000,
        rng=np.random.default_rng(0),
    )
    assert rate.p == pytest.approx(expected.pvalue, abs=0.002)
    assert found.conclusion is Conclusion.BETTER

"""Trial records for tests: a plain passed trial, changed by keyword."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from harness.schema.results import RunRecord, TrialRecord

PLAIN: dict[str, Any] = {
    "suite": "basics",
    "termination_reason": "completed",
    "outcome": "passed",
    "iterations": 3,
    "attempts": 1,
    "model_calls": 3,
    "tool_calls_made": 2,
    "tools_used": ["shell"],
    "validation_failures": 0,
    "usage": {"input": 900, "output": 100},
    "cost_usd": None,
    "duration_s": 0.5,
    "scores": {},
    "transcript_digest": "aaaa",
    "task_digest": "t",
    "variant_digest": "v",
    "cassette": None,
    "trajectory": "trajectories/x.json",
}


def trial(task: str, variant: str = "baseline", repeat: int = 0, **changes: Any) -> TrialRecord:
    fields = PLAIN | {
        "trial_id": f"{task}/{variant}/{repeat}",
        "task": task,
        "variant": variant,
        "repeat": repeat,
    }
    return TrialRecord.model_validate(fields | changes)


def graded(variant: str, passes: list[int], repeats: int = 3, **changes: Any) -> list[TrialRecord]:
    """Trials of tasks t00, t01...: of each task's repeats the first `passes[i]` passed."""
    return [
        trial(
            f"t{index:02}",
            variant,
            repeat,
            outcome="passed" if repeat < passed else "failed",
            **changes,
        )
        for index, passed in enumerate(passes)
        for repeat in range(repeats)
    ]


def run(planned: int) -> RunRecord:
    return RunRecord(
        run_id="run-1",
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
        suite="basics",
        suite_version=1,
        suite_folder="suites/basics",
        record_mode="none",
        tools="replay",
        tasks={},
        variants=(),
        repeats=1,
        planned_trials=planned,
        versions={},
        host={},
    )

"""The run log on a file system that is full."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from harness.errors import InfrastructureError
from harness.runner.log import RunLog
from harness.schema.loop_config import TerminationReason
from harness.schema.results import RunRecord, TrialRecord
from harness.schema.trajectory import UsageTotal

RUN = RunRecord(
    run_id="first",
    created_at=datetime(2026, 1, 1, tzinfo=UTC),
    suite="tiny",
    suite_version=1,
    suite_folder="tiny",
    record_mode="none",
    tools="replay",
    tasks={"fruit": "digest"},
    variants=(),
    repeats=3,
    planned_trials=3,
    versions={},
    host={},
)


def trial(repeat: int) -> TrialRecord:
    return TrialRecord(
        trial_id=f"fruit/plain/{repeat}",
        suite="tiny",
        task="fruit",
        variant="plain",
        repeat=repeat,
        termination_reason=TerminationReason.COMPLETED,
        outcome="passed",
        iterations=1,
        attempts=1,
        model_calls=1,
        tool_calls_made=0,
        tools_used=(),
        validation_failures=0,
        usage=UsageTotal(),
        cost_usd=None,
        duration_s=0.1,
        scores={},
        transcript_digest="d",
        task_digest="d",
        variant_digest="d",
        cassette=None,
        trajectory=f"trajectories/fruit/plain/{repeat}.json",
    )


@contextmanager
def room_for(size: int) -> Iterator[None]:
    """Let no file of this process grow beyond a size: writing across it is cut short there."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_line_that_does_not_fit_is_taken_back_whole(tmp_path: Path):
    log = RunLog.create(tmp_path / "run", RUN)
    log.add(trial(0), "{}")
    file = log.folder / "trials.jsonl"
    before = file.read_bytes()
    with (
        room_for(len(before) + 50),
        pytest.raises(InfrastructureError, match="trial fruit/plain/1 cannot be written: File too"),
    ):
        log.add(trial(1), "{}")
    assert file.read_bytes() == before
    log.add(trial(2), "{}")
    assert log.trials() == (trial(0), trial(2))


def test_a_trial_without_its_story_is_not_in_the_log(tmp_path: Path):
    log = RunLog.create(tmp_path / "run", RUN)
    with room_for(100), pytest.raises(InfrastructureError, match="cannot be written"):
        log.add(trial(0), "x" * 200)
    assert log.trials() == ()

"""Exports read back, and held against the schemas where those are."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from harness.report.atif import atif_files
from harness.report.exported import ExportedFile
from harness.report.harbor_job import harbor_files
from harness.schema.loop_config import TerminationReason
from harness.schema.results import TrialRecord, Verdict
from tests.report.sample_run import SampleRun, sample_run

needs_schemas = pytest.mark.skipif(
    "HARNESS_DATA" not in os.environ,
    reason="set HARNESS_DATA to a folder with schemas/harbor-0.25.0.TrialResult.schema.json",
)
KINDS = {
    "config.json": ("JobConfig", "TrialConfig"),
    "result.json": ("JobResult", "TrialResult"),
}


@cache
def schema(name: str) -> Draft202012Validator:
    path = Path(os.environ["HARNESS_DATA"], "schemas", f"{name}.schema.json")
    return Draft202012Validator(json.loads(path.read_bytes()))


def check_atif(data: Any) -> None:
    schema("atif-v1.8.trajectory").validate(data)


def check_harbor(files: Iterable[ExportedFile]) -> list[str]:
    """Hold each JSON file against its schema; the names of the schemas."""
    held = []
    for file in files:
        _, *inside = file.path.split("/")
        if inside[-1] in KINDS:
            name = KINDS[inside[-1]][len(inside) - 1]
            schema(f"harbor-0.25.0.{name}").validate(json.loads(file.text))
            held.append(name)
        if inside[-1] == "trajectory.json":
            check_atif(json.loads(file.text))
            held.append("atif")
    return held


def as_atif(sample: SampleRun) -> dict[str, Any]:
    files = atif_files(sample.run, sample.trials, sample.load)
    return {file.path: json.loads(file.text) for file in files}


def as_harbor(sample: SampleRun) -> dict[str, str]:
    """Text of each file by its path in the job folder."""
    files = list(harbor_files(sample.run, sample.trials, sample.load))
    job = files[0].path.split("/")[0]
    found = {file.path.removeprefix(f"{job}/"): file.text for file in files}
    assert len(found) == len(files)
    return found


def results(sample: SampleRun) -> dict[str, Any]:
    """TrialResult by trial id."""
    found = {}
    for path, text in as_harbor(sample).items():
        if path.endswith("/result.json"):
            result = json.loads(text)
            metadata = result["agent_result"]["metadata"]
            parts = (result["task_name"], metadata["variant"], str(metadata["repeat"]))
            found["/".join(parts)] = result
    return found


def one_trial(**changes: Any) -> SampleRun:
    """A run of one trial that was changed."""
    sample = sample_run(tasks=("clean-names",), variants=("baseline",), repeats=1)
    (trial,) = sample.trials
    return SampleRun(sample.run, (trial.model_copy(update=changes),), sample.trajectories)


def every_ending() -> SampleRun:
    """A trial for each ending; one that was skipped has no trajectory."""
    sample = sample_run(tasks=("clean-names",), variants=("baseline",), repeats=1)
    (trial,) = sample.trials
    trials, trajectories = [], {}
    for number, reason in enumerate(TerminationReason):
        update = {
            "trial_id": f"clean-names/baseline/{number}",
            "repeat": number,
            "termination_reason": reason,
            "error": f"it ended {reason}",
            "verdict": Verdict(rewards={"reward": 1.0}),
        }
        changed: TrialRecord = trial.model_copy(update=update)
        trials.append(changed)
        if reason is not TerminationReason.SKIPPED:
            trajectories[changed.trial_id] = sample.trajectories[trial.trial_id]
    run = sample.run.model_copy(update={"planned_trials": len(trials)})
    return SampleRun(run, tuple(trials), trajectories)

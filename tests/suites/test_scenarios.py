"""The shipped scenarios hold, and hold in the same way when answers are streamed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.loader.suite import load_suite
from harness.runner.log import RunLog
from harness.runner.plan import plan
from harness.runner.trial import TrialSettings, run_trial
from harness.schema.trajectory import Trajectory
from tests.cli.tiny import in_subprocess

SCENARIOS = Path(__file__).parents[2] / "suites" / "scenarios"
SETTINGS = TrialSettings(cassettes=Path("none"))

VARYING = {"run_id", "duration_s", "events", "elapsed_s"}


def played(*overrides: str) -> dict[str, tuple[str, Trajectory]]:
    """Scenario -> what differs from its expectations, and what happened."""
    found = {}
    for cell in plan(load_suite(SCENARIOS, overrides=overrides)):
        for spec in cell.specs:
            trial = run_trial(spec, None, SETTINGS)
            found[spec.task.name] = trial.record.scores["scenario"].explanation, trial.trajectory
    return found


def lasting(value: Any) -> Any:
    """A trajectory without what differs between two runs of the same."""
    if isinstance(value, dict):
        return {key: lasting(inner) for key, inner in value.items() if key not in VARYING}
    return [lasting(inner) for inner in value] if isinstance(value, list) else value


def kinds(trajectory: Trajectory) -> list[str]:
    """The events that are told in both ways."""
    return [event.kind for event in trajectory.events if event.kind != "model_delta"]


@pytest.fixture(scope="module")
def at_once() -> dict[str, tuple[str, Trajectory]]:
    return played()


def test_every_scenario_holds(at_once):
    assert [lines for lines, _ in at_once.values() if lines] == []


def test_streamed_runs_come_to_the_same(at_once):
    streamed = played("loop.stream=true")
    assert [lines for lines, _ in streamed.values() if lines] == []
    for name, (_, trajectory) in streamed.items():
        before = lasting(at_once[name][1].model_dump(mode="json"))
        assert lasting(trajectory.model_dump(mode="json")) == before, name
        assert kinds(trajectory) == kinds(at_once[name][1]), name


def test_the_command_runs_them_in_several_processes(tmp_path: Path):
    done = in_subprocess(
        *("run", str(SCENARIOS), "--jobs", "2", "--out", "here", "--json"), folder=tmp_path
    )
    assert done.code == 0, done.err
    (run,) = json.loads(done.out)["runs"]
    found = run["scenarios"]
    assert found["scenarios"] == found["holding"] == run["planned"]
    assert found["differences"] == []
    trials = RunLog(tmp_path / "here").trials()
    assert {trial.outcome for trial in trials} == {"passed"}

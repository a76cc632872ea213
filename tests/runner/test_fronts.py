"""A trial is the same trial whichever front answers its model calls."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.cassette.playback import FaultPlan
from harness.errors import BadInputError
from harness.loader.suite import load_suite
from harness.runner.plan import plan
from harness.runner.trial import TrialSettings, open_cassette, run_trial

ROOT = Path(__file__).parents[2]
SETTINGS = TrialSettings(cassettes=ROOT / "cassettes")
CHANGING = {"duration_s", "finished_at"}


def trials(settings: TrialSettings, **limits: Any) -> list[Any]:
    """All that is known of each trial but how long it took here."""
    found: list[Any] = []
    for cell in plan(load_suite(ROOT / "suites" / "basics"), **limits):
        with open_cassette(cell, settings) as store:
            for spec in cell.specs:
                trial = run_trial(spec, store, settings)
                record = trial.record.model_dump(exclude=CHANGING)
                found.append((record, trial.trajectory.model_dump(), trial.verdict))
    return found


def test_the_shipped_suite_is_the_same_through_both_fronts() -> None:
    http = trials(SETTINGS, repeats=1)
    assert trials(replace(SETTINGS, front="direct"), repeats=1) == http
    assert len(http) > 20
    assert all(record["served"] for record, *_ in http)


@pytest.mark.parametrize("faults", ["400@2", "malformed@1", "413@2,malformed@3"])
def test_the_same_faults_are_the_same_trial_through_both_fronts(faults: str) -> None:
    spoiled = replace(SETTINGS, faults=FaultPlan.parse(faults))
    limits: dict[str, Any] = {"tasks": ["sum-sales"], "repeats": 1}
    http = trials(spoiled, **limits)
    assert trials(replace(spoiled, front="direct"), **limits) == http
    assert http != trials(SETTINGS, **limits)


@pytest.mark.parametrize(
    ("given", "named"),
    [({"front": "direct"}, "--front direct"), ({"faults": FaultPlan.parse("429@1")}, "--faults")],
)
def test_what_only_replays_goes_with_no_recording_mode(given: dict[str, Any], named: str) -> None:
    with pytest.raises(BadInputError, match=f"{named} only replays .* new_episodes"):
        TrialSettings(cassettes=Path("c"), record_mode="new_episodes", **given)

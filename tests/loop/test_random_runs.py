"""Whatever the model, the tools and the settings do, some things always hold.

The support modules are in `random_runs`: what may happen, how it is played, and the rules.
"""

from __future__ import annotations

import threading
from collections import Counter
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from harness.errors import ConfigurationError
from harness.schema.loop_config import LoopConfig
from harness.schema.loop_config import TerminationReason as Reason
from harness.schema.trajectory import Trajectory
from tests.loop.random_runs.cases import Case, cases, wild_cases
from tests.loop.random_runs.rules import hold_all, hold_whatever_comes, never_too_many_at_once
from tests.loop.random_runs.stage import Ran, Stage


def play(case: Case, **how: bool) -> list[Ran]:
    stage = Stage(case, **how)
    ran = stage.play()
    never_too_many_at_once(case, stage.together)
    return ran


def as_seen(trajectory: Trajectory) -> dict[str, Any]:
    """All but what only a streamed run has, or only a run that is over."""
    plain = trajectory.model_dump(mode="json")
    plain["events"] = [event for event in plain["events"] if event["kind"] != "model_delta"]
    errors = plain["callback_errors"]
    plain["callback_errors"] = [error for error in errors if not error.startswith("run_completed")]
    return plain


def hold(case: Case) -> list[Ran]:
    """Play a case in every way there is, and hold the rules of each run."""
    played = play(case)
    again = play(case, through_json=True)
    streamed = play(case, stream=True)
    iterated = play(case, iterate=True)
    for ran, same, shown, seen in zip(played, again, streamed, iterated, strict=True):
        hold_all(case, ran)
        assert same.trajectory == ran.trajectory
        assert as_seen(shown.trajectory) == as_seen(ran.trajectory)
        assert as_seen(seen.trajectory) == as_seen(ran.trajectory)
    return played


# A trial that is skipped was no run.
AIMS = [None, *(reason for reason in Reason if reason is not Reason.SKIPPED)]


def hold_many(aim: Reason | None, number: int) -> None:
    """Hold random cases, and that some of them end as aimed at."""
    endings: Counter[Reason] = Counter()

    @settings(max_examples=number, deadline=None)
    @given(cases(aim))
    def hold_one(case: Case) -> None:
        endings.update(ran.trajectory.termination_reason for ran in hold(case))

    hold_one()
    assert aim is None or endings[aim]


@pytest.mark.parametrize("aim", AIMS)
def test_every_run_keeps_the_rules(aim: Reason | None) -> None:
    hold_many(aim, 20 if aim else 120)


@pytest.mark.slow
@pytest.mark.parametrize("aim", AIMS)
def test_thousands_of_runs_keep_the_rules(aim: Reason | None) -> None:
    hold_many(aim, 250 if aim else 2500)


@settings(max_examples=150, deadline=None)
@given(wild_cases())
def test_a_loop_is_refused_with_reasons_or_its_runs_keep_the_rules(case: Case) -> None:
    try:
        LoopConfig.model_validate(case.settings)
    except ValidationError:
        return
    with suppress(ConfigurationError):
        stage = Stage(case)
        for ran in stage.play():
            hold_all(case, ran)


@settings(max_examples=60, deadline=None)
@given(cases(None), st.integers(1, 40))
def test_a_cancel_from_elsewhere_at_any_time_leaves_a_whole_run(case: Case, moment: int) -> None:
    stage = Stage(case)
    due, cancelled = threading.Event(), threading.Event()

    def cancel() -> None:
        due.wait()
        stage.loop.cancel("from elsewhere")
        cancelled.set()

    thread = threading.Thread(target=cancel)
    thread.start()
    stage.at_moment[moment] = due.set
    try:
        for ran in stage.play():
            hold_whatever_comes(case, ran)
    finally:
        due.set()
        thread.join()

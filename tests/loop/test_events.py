"""Whatever the user's functions say or raise, the run goes on and its story fits into a file."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import pytest

from harness.protocols import Hook
from harness.providers.scripted import turn
from harness.schema.trajectory import Trajectory
from harness.values import Approval, Judgement, SkipModel, SkipTool
from tests.loop.support import call, make, returns

HALF = "half \ud800"


def fall(*_: object) -> Any:
    raise RuntimeError(HALF)


class Found:
    def __init__(self, items: Any) -> None:
        self.items = items

    def search(self, query: str, limit: int) -> Any:
        return self.items


def hook(**functions: Any) -> dict[str, Any]:
    return {"hooks": [Hook(**functions)]}


def worked(setup: dict[str, Any], **how: Any) -> Trajectory:
    script = [turn(calls=[call("c1", "work")]), turn("done")]
    loop, _ = make(script, tools=[returns("work", "ok")], setup=setup, **how)
    return loop.run("Do the task.")


@pytest.mark.parametrize(
    "setup",
    [
        hook(before_iteration=lambda plan: replace(plan, append_user=HALF)),
        hook(before_model=lambda _: SkipModel(HALF)),
        hook(before_tool=lambda _: SkipTool(HALF)),
        hook(before_tool=fall),
        hook(approve_tool=lambda _: Approval(False, HALF)),
        hook(approve_tool=fall),
        hook(after_tool=lambda *_: HALF),
        {"checks": [lambda _: Judgement("denied", HALF)]},
        {"terminal_check": fall},
        {"recall": Found([HALF])},
        {"observers": [fall]},
    ],
)
def test_half_a_surrogate_pair_from_anywhere_does_not_keep_a_run_out_of_its_file(
    setup: dict[str, Any],
) -> None:
    observers = setup.pop("observers", [])
    trajectory = worked(setup, observers=observers)
    assert "half ?" in trajectory.model_dump_json()


def test_injected_text_with_half_a_surrogate_pair_is_delivered() -> None:
    loop, _ = make([turn("done"), turn("done")])
    loop.inject(HALF)
    assert "half ?" in loop.run("Do the task.").model_dump_json()


@pytest.mark.parametrize("found", [None, [3]])
def test_a_recall_that_finds_no_texts_is_an_error_of_a_callback(found: Any) -> None:
    trajectory = worked({"recall": Found(found)})
    assert trajectory.termination_reason == "completed"
    assert trajectory.callback_errors[0].startswith("recall: ")


def test_what_cannot_be_redacted_is_not_logged_and_breaks_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, logger="harness")
    trajectory = worked({"redact": fall}, debug_llm=True)
    assert trajectory.termination_reason == "completed"
    whats = [error.partition(":")[0] for error in trajectory.callback_errors]
    assert whats == ["redact", "audit", "redact"]
    assert not caplog.records

"""Trials that run live, with a scripted model: the loop, the tools and the sandbox are real."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.cassette.replay.answers import Answers
from harness.cassette.replay.session import Session
from harness.protocols import Provider
from harness.providers.scripted import Scripted, turn
from harness.runner.trial import TrialSettings, open_cassette, run_trial
from harness.runner.trial_record import Trial
from harness.schema.messages import ModelTurn
from harness.schema.suite import Task
from tests.runner.made_tasks import hosting_in, make_cell

DONE = "Done."
Calls = tuple[tuple[str, dict[str, Any]], ...]


def turns_of(*calls: tuple[str, dict[str, Any]], says: str = DONE) -> list[ModelTurn]:
    """A model that makes calls one by one, and then says that it is done."""
    made = [
        turn(calls=[(f"call-{number}", name, json.dumps(arguments))])
        for number, (name, arguments) in enumerate(calls)
    ]
    return [*made, turn(says)]


def shell(*commands: str) -> list[ModelTurn]:
    """A model that runs commands."""
    return turns_of(*(("shell", {"command": command}) for command in commands))


def played(
    task: Task, turns: Sequence[ModelTurn], folder: Path, *, record: bool = True, **more: Any
) -> Trial:
    """A task's trial, recorded into a folder while it runs; or replayed from there."""
    hosting = more.pop("hosting", None) or hosting_in(folder)
    settings = TrialSettings(
        cassettes=folder / "cassettes",
        record_mode="new_episodes" if record else "none",
        hosting=hosting,
    )
    settings = replace(settings, **{name: more.pop(name) for name in ("tools",) if name in more})
    cell = make_cell(task, **more)

    def scripted(session: Session, _: Provider) -> tuple[Answers, Provider]:
        return session, Scripted(turns)

    with open_cassette(cell, settings) as store:
        return run_trial(cell.specs[0], store, settings, scripted)


def results(trial: Trial) -> list[str]:
    """What each tool call gave."""
    messages = trial.trajectory.messages
    return [result.content for message in messages for result in message.tool_results]

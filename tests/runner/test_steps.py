"""Tasks of several steps: recorded from a server, and replayed without one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.runner.fork import calls_before, recall, run_fork
from harness.runner.hosting import Hosting
from harness.runner.plan import Cell
from harness.runner.trial import TrialSettings, open_cassette, run_trial
from harness.runner.trial_record import Trial
from harness.schema.suite import Task
from tests.cli.tiny import Answer, Message, model_server, text_of
from tests.runner.made_tasks import (
    MODEL,
    hosting_in,
    make_cell,
    make_step,
    make_task,
    passes_if,
    write,
)


def solve(messages: list[Message]) -> Answer:
    """Writes the word that the step's instruction ends with, and says so."""
    word = text_of(messages[1]).split()[-1]
    if len(messages) == 2:
        return "shell", {"command": f"ls -A; ls -d /tests 2> /dev/null; echo {word} > {word}"}
    return f"Wrote {word}."


def two_steps(folder: Path, *, first: str = "-e /app/red", **more: Any) -> Task:
    write(folder / "seed" / "setup.sh", "cp red /app/copied && rm setup.sh")
    red = make_step(
        folder / "1",
        name="one",
        instruction="Write red",
        test=passes_if(f"touch judged && [ {first} ]"),
        **more,
    )
    blue = make_step(
        folder / "2",
        name="two",
        instruction="Write blue",
        test=passes_if("[ -e /app/blue ] && [ -e /app/copied ]"),
        files=folder / "seed",
    )
    return make_task(folder, red, blue, reward_strategy="mean")


@pytest.fixture
def settings(tmp_path: Path) -> TrialSettings:
    return TrialSettings(
        cassettes=tmp_path / "cassettes",
        record_mode="new_episodes",
        hosting=hosting_in(tmp_path),
    )


def cell_of(task: Task, port: int) -> Cell:
    """A cell whose model is served at a port."""
    cell = make_cell(task)
    model = MODEL.model_copy(update={"base_url": f"http://127.0.0.1:{port}/v1"})
    return replace(cell, specs=(replace(cell.specs[0], model=model),))


def run(cell: Cell, settings: TrialSettings) -> Trial:
    with open_cassette(cell, settings) as store:
        return run_trial(cell.specs[0], store, settings)


NO_SANDBOX = Hosting(sandbox="docker")
"""Replay must not ask for it."""


def test_steps_are_fresh_conversations_on_one_machine_and_replay_as_one_story(tmp_path, settings):
    task = two_steps(tmp_path / "task")
    with model_server(solve=solve) as server:
        live = run(cell_of(task, server.port), settings)
        asked = [[text_of(message) for message in messages[1:]] for messages in server.asked]
    assert [messages[0] for messages in asked] == ["Write red"] * 2 + ["Write blue"] * 2
    assert [len(messages) for messages in asked] == [1, 3, 1, 3]
    said = [message.text for message in live.trajectory.messages if message.text]
    assert said == ["Write red", "Wrote red.", "Write blue", "Wrote blue."]
    results = [r.content for m in live.trajectory.messages for r in m.tool_results]
    assert results == ["[no output]", "copied\njudged\nred"]
    assert live.verdict is not None
    assert live.verdict.rewards == {"reward": 1}
    assert (live.record.outcome, live.record.model_calls) == ("passed", 4)

    replaying = replace(settings, record_mode="none", hosting=NO_SANDBOX)
    again = run(cell_of(task, server.port), replaying)
    assert again.verdict == live.verdict
    assert again.record.transcript_digest == live.record.transcript_digest
    assert (again.record.served, again.record.recorded) == (4, 0)
    recording = run(cell_of(task, server.port), replace(settings, hosting=NO_SANDBOX))
    assert recording.record.transcript_digest == live.record.transcript_digest
    kinds = [(event.kind, event.iteration) for event in live.trajectory.events]
    assert [(event.kind, event.iteration) for event in again.trajectory.events] == kinds


def test_a_reward_below_the_least_ends_the_trial_live_and_replayed(tmp_path, settings):
    task = two_steps(tmp_path / "task", first="-e /app/green", min_reward={"reward": 1})
    with model_server(solve=solve) as server:
        live = run(cell_of(task, server.port), settings)
        assert len(server.asked) == 2
    again = run(
        cell_of(task, server.port), replace(settings, record_mode="none", hosting=NO_SANDBOX)
    )
    for trial in (live, again):
        assert trial.verdict is not None
        assert trial.verdict.rewards == {"reward": 0}
        assert trial.record.termination_reason == "completed"
        (judged,) = (e for e in trial.trajectory.events if e.kind == "step_judged")
        assert judged.data["stop"] == "reward 0 is below 1, which is needed to go on"


def test_recording_goes_on_in_a_later_step_on_the_machine_as_it_was(tmp_path, settings):
    task = two_steps(tmp_path / "task")
    with model_server(solve=solve, hangs_from=3) as server:
        server.hangs_from, server.refusal = None, ""
        server.solve = lambda messages: solve(messages) if "red" in text_of(messages[1]) else ""
        first = run(cell_of(task, server.port), settings)
    assert first.verdict is not None
    assert first.verdict.rewards == {"reward": 0.5}
    changed = task.model_copy(
        update={
            "steps": (
                task.steps[0],
                task.steps[1].model_copy(update={"instruction": "Write, now, blue"}),
            )
        }
    )
    with model_server(solve=solve) as server:
        on = run(cell_of(changed, server.port), settings)
        assert len(server.asked) == 2
    assert on.verdict is not None
    assert on.verdict.rewards == {"reward": 1}
    results = [r.content for m in on.trajectory.messages for r in m.tool_results]
    assert results == ["[no output]", "copied\njudged\nred"]


def test_a_setup_that_fails_is_the_machines_failure(tmp_path, settings):
    task = two_steps(tmp_path / "task")
    write(tmp_path / "task" / "seed" / "setup.sh", "echo no seed; exit 3")
    with model_server(solve=solve) as server:
        trial = run(cell_of(task, server.port), settings)
    assert trial.record.termination_reason == "infrastructure_error"
    assert trial.record.error == "step two: setup.sh exited with 3: no seed"
    assert trial.record.outcome is None


def test_recorded_steps_run_again_on_a_machine_and_are_judged_anew(tmp_path, settings):
    task = two_steps(tmp_path / "task")
    with model_server(solve=solve) as server:
        run(cell_of(task, server.port), settings)
    write(tmp_path / "task" / "2" / "tests" / "test.sh", "echo 0.5 > /logs/verifier/reward.txt")
    again = run(cell_of(task, server.port), replace(settings, record_mode="none", tools="live"))
    assert again.verdict is not None
    assert again.verdict.rewards == {"reward": 0.75}
    assert (again.record.tool_differences, again.record.recorded) == (0, 0)


def test_a_fork_goes_on_from_a_turn_of_a_later_step(tmp_path, settings):
    task = two_steps(tmp_path / "task")
    with model_server(solve=solve) as server:
        run(cell_of(task, server.port), settings)
    cell = cell_of(task, server.port)
    with open_cassette(cell, replace(settings, record_mode="none")) as store:
        trial, recalled = recall(cell.specs[0], store, replace(settings, record_mode="none"))
    assert calls_before(trial, 4) == 3
    with model_server(solve=lambda _: "Something else.") as server:
        forked = cell_of(task, server.port)
        elsewhere = replace(settings, cassettes=tmp_path / "fork")
        with open_cassette(forked, elsewhere) as store:
            made = run_fork(forked.specs[0], store, elsewhere, recalled, calls=3)
        assert len(server.asked) == 1
    assert made.trajectory.final_text == "Something else."
    assert (made.record.outcome, made.record.recorded) == ("passed", 1)

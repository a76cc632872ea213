"""The shipped suite: every reference solution passes, and doing nothing fails."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.loader.output import output_spec
from harness.loader.suite import load_suite
from harness.loop.validation import first_failure
from harness.runner.task_check import CheckJob, check_task
from harness.schema.suite import Task
from harness.tools.machine import Machine
from tests.runner.made_tasks import hosting_in
from tests.sandbox.here import working_sandbox

SUITE = load_suite(Path(__file__).parents[2] / "suites" / "basics")
TASKS = pytest.mark.parametrize("task", SUITE.tasks, ids=lambda task: task.name)


def solve(task: Task, machine: Machine, logs: Path) -> None:
    """Run the reference solution as an agent's stand-in, and take what it leaves in the logs."""
    (step,) = task.steps
    assert step.solution is not None
    machine.container.upload(step.solution.folder, "/solution")
    done = machine.container.run(["bash", "/solution/solve.sh"], timeout_s=30)
    assert done.exit_code == 0, done.output
    machine.container.download("/logs", logs / "logs", limit=100_000)


def folder(task: Task) -> Path:
    assert task.environment is not None
    return task.environment.context


@TASKS
def test_the_reference_solution_passes_and_doing_nothing_fails(task: Task, tmp_path: Path):
    working_sandbox()
    (found,) = check_task(CheckJob(task, hosting_in(tmp_path)))
    assert (found.oracle, found.nop, found.reason) == (1, 0, None), found.log


@TASKS
def test_the_solution_hands_in_what_the_task_asks_for(task: Task, tmp_path: Path):
    assert task.environment is not None
    machine = Machine(task.environment, working_sandbox)
    try:
        solve(task, machine, tmp_path)
    finally:
        machine.close()
    spec = output_spec(task)
    left = [path.name for path in (tmp_path / "logs" / "agent").iterdir()]
    assert left == (["output.json"] if spec else ["answer.txt"])
    if spec is not None:
        handed_in = json.loads((tmp_path / "logs" / "agent" / "output.json").read_text())
        assert first_failure(handed_in, spec) is None


@TASKS
def test_what_the_agent_is_told_fits_a_small_model(task: Task):
    assert len(task.instruction) < 600
    assert all(len(skill.instructions) < 400 for skill in task.skills)
    files = [path for path in folder(task).rglob("*") if path.is_file()]
    assert all(path.stat().st_size < 1000 for path in files)


@TASKS
def test_the_container_of_other_runners_gets_the_same_files(task: Task):
    dockerfile = (task.folder / "environment" / "Dockerfile").read_text()
    assert "COPY workspace/ /workspace/" in dockerfile
    assert ("COPY skills/ /skills/" in dockerfile) == bool(task.skills)


def test_the_suite_spreads_over_endings_advice_and_vendors():
    assert len(SUITE.tasks) >= 10
    assert sum(task.output is not None for task in SUITE.tasks) >= 5
    assert sum(task.output is None for task in SUITE.tasks) >= 3
    assert sum(bool(task.skills) for task in SUITE.tasks) >= 5
    assert sum(task.model.get("provider") == "anthropic" for task in SUITE.tasks) >= 2

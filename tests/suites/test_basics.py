"""The shipped suite: every reference solution passes, and doing nothing fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.loader.suite import load_suite
from harness.protocols import Mount
from harness.sandbox import probe
from harness.schema.suite import Task
from harness.tools.workspace import Workspace

SUITE = load_suite(Path(__file__).parents[2] / "suites" / "basics")
TASKS = pytest.mark.parametrize("task", SUITE.tasks, ids=lambda task: task.name)


def reward(task: Task, logs: Path, *, solve: bool) -> str:
    """What the verifier says of a fresh folder, with or without the solution run in it."""
    for name in ("agent", "verifier"):
        (logs / name).mkdir()
    workspace = Workspace(task.workdir)
    try:
        mounts = [Mount(workspace.path, "/workspace", True), Mount(logs, "/logs", True)]
        if solve:
            assert task.solution is not None
            seen = [*mounts, Mount(task.solution, "/solution")]
            command = ["bash", "/solution/solve.sh"]
            done = probe.best().run(command, mounts=seen, timeout_s=30)
            assert done.exit_code == 0, done.output
        probe.best().run(
            ["bash", "/tests/test.sh"],
            mounts=[*mounts, Mount(task.tests, "/tests")],
            timeout_s=task.verifier_timeout_s,
        )
    finally:
        workspace.close()
    return (logs / "verifier" / "reward.txt").read_text().strip()


@TASKS
def test_the_reference_solution_passes(task: Task, tmp_path: Path):
    assert reward(task, tmp_path, solve=True) == "1"


@TASKS
def test_doing_nothing_fails(task: Task, tmp_path: Path):
    assert reward(task, tmp_path, solve=False) == "0"


@TASKS
def test_what_the_agent_is_told_fits_a_small_model(task: Task):
    assert len(task.instruction) < 600
    assert all(len(skill.instructions) < 400 for skill in task.skills)
    files = [path for path in task.workdir.rglob("*") if path.is_file()]
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

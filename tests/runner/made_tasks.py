"""Tasks made on the spot: real folders, real scripts, and the records that a loader would make."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness.runner.hosting import Hosting
from harness.runner.plan import Cell, TrialSpec
from harness.sandbox.container import SandboxSettings
from harness.schema.environment import Environment, Solution, Step, Verifier
from harness.schema.loop_config import LoopConfig
from harness.schema.recording import RecordingRules
from harness.schema.suite import ModelConfig, Task, Variant

MODEL = ModelConfig(provider="openai", name="small-1", base_url="http://127.0.0.1:9/v1")
PASS = "echo 1 > /logs/verifier/reward.txt"
FAIL = "echo 0 > /logs/verifier/reward.txt"


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def hosting_in(folder: Path) -> Hosting:
    """Machines that keep nothing outside of a folder."""
    return Hosting(settings=SandboxSettings(cache=folder / "cache"))


def passes_if(condition: str) -> str:
    """A test.sh that gives 1 if a command succeeds, else 0."""
    return f"#!/bin/bash\nif {condition}; then {PASS}; else {FAIL}; fi\n"


def make_step(
    folder: Path,
    *,
    test: str,
    solve: str | None = None,
    verifier: dict[str, Any] | None = None,
    solution: dict[str, Any] | None = None,
    **more: Any,
) -> Step:
    """A step in a folder of its own."""
    write(folder / "tests" / "test.sh", test)
    found = None
    if solve is not None:
        write(folder / "solution" / "solve.sh", solve)
        found = Solution(folder=folder / "solution", **(solution or {}))
    return Step(
        instruction=more.pop("instruction", "Do it."),
        verifier=Verifier(tests=(folder / "tests",), **(verifier or {})),
        solution=found,
        **more,
    )


def make_task(folder: Path, *steps: Step, **more: Any) -> Task:
    """A task of some steps, on a machine whose working directory is /app."""
    context = folder / "environment"
    context.mkdir(parents=True, exist_ok=True)
    environment = {"context": context, "base": "debian:12", "workdir": "/app"}
    environment |= more.pop("environment", {})
    return Task(
        name=folder.name,
        folder=folder,
        instruction=steps[0].instruction,
        tests=folder / "tests",
        environment=Environment(**environment),
        steps=steps,
        digest="d",
        tests_digest="t",
        **more,
    )


def make_cell(task: Task, **loop: Any) -> Cell:
    """The cell of a task's one trial."""
    variant = Variant(name="v", model=MODEL, loop=LoopConfig(**loop))
    spec = TrialSpec("s", "Work.", task, variant, MODEL, 0)
    return Cell("s", task, 0, (spec,), RecordingRules())

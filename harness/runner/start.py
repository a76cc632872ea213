"""Starting a run: its id, its folder, and the facts that let somebody repeat it."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import secrets
import subprocess
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from harness.redaction import Redactor
from harness.runner.log import RunLog
from harness.runner.plan import Cell
from harness.runner.trial import TrialSettings
from harness.schema.presets import PresetName
from harness.schema.results import Fork, RunRecord
from harness.schema.suite import Suite, Task

SHAPING = ("loop-harness", "anthropic", "openai", "vcrpy", "pydantic", "jsonschema")
"""Packages whose version can change a trial."""


def start_run(
    suite: Suite,
    cells: Sequence[Cell],
    settings: TrialSettings,
    *,
    reports: Path,
    out: Path | None = None,
    overrides: Sequence[str] = (),
    preset: PresetName | None = None,
    faults: str | None = None,
    forked: Fork | None = None,
) -> RunLog:
    """Make the run's folder and write run.json.

    Args:
        suite: what is run.
        cells: the plan.
        settings: how it is run.
        reports: where run folders are made.
        out: the run's folder itself, instead of a new one under reports.
        overrides: the `--set` options, as given.
        preset: the `--preset` option, if given.
        faults: the `--faults` option, as given.
        forked: the trial that the run goes on with.

    Raises:
        BadInputError: the folder is there already.
    """
    now = datetime.now(UTC)
    run_id = out.name if out else f"{now:%Y%m%d-%H%M%S}-{suite.name}-{secrets.token_hex(2)}"
    used = {spec.variant.name for cell in cells for spec in cell.specs}
    run = RunRecord(
        run_id=run_id,
        created_at=now,
        suite=suite.name,
        suite_version=suite.version,
        suite_folder=settings.suite_argument,
        description=suite.description,
        record_mode=settings.record_mode,
        tools=settings.tools,
        overrides=tuple(overrides),
        preset=preset,
        front=settings.front,
        pace=settings.pace,
        faults=faults,
        sandbox=settings.hosting.sandbox,
        agent_timeout_multiplier=settings.hosting.agent_timeout,
        verifier_timeout_multiplier=settings.hosting.verifier_timeout,
        forked=forked,
        tasks={cell.task.name: cell.task.digest for cell in cells},
        titles=_titles(cell.task for cell in cells),
        variants=tuple(variant for variant in suite.variants if variant.name in used),
        repeats=1 + max(cell.repeat for cell in cells),
        planned_trials=sum(len(cell.specs) for cell in cells),
        git_revision=_git_revision(suite.folder),
        versions={"python": platform.python_version()} | _versions(),
        host={"system": platform.system(), "cores": os.cpu_count() or 1},
    )
    redactor = Redactor(settings.secrets, extra=suite.recording.redact)
    return RunLog.create(out or reports / run_id, redactor.record(run))


def _titles(tasks: Iterable[Task]) -> dict[str, str]:
    """What scenarios call themselves, by name."""
    return {
        task.name: task.scenario.title for task in tasks if task.scenario and task.scenario.title
    }


def _versions() -> dict[str, str]:
    found = {}
    for package in SHAPING:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found


def _git_revision(folder: Path) -> str | None:
    """The commit the suite's folder is at, marked where files differ from it."""
    command = ["git", "-C", str(folder), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return result.stdout.strip() or None if result.returncode == 0 else None

"""Running a whole cell into the log: what a backend does, here or in another process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass

from harness.runner.log import RunLog
from harness.runner.plan import Cell
from harness.runner.trial import TrialSettings, open_cassette, run_trial
from harness.schema.results import TrialRecord


@dataclass(frozen=True, slots=True)
class CellJob:
    """One cell, how to run it, and where its trials go; picklable."""

    cell: Cell
    settings: TrialSettings
    log: RunLog


def run_cell(job: CellJob) -> Iterator[TrialRecord]:
    """Run the cell's variants one after another; each is in the log before it is yielded.

    Raises:
        CassetteError: the cell's cassette cannot be used; nothing was written over.
    """
    scenario = job.cell.task.scenario
    with nullcontext() if scenario else open_cassette(job.cell, job.settings) as store:
        for spec in job.cell.specs:
            trial = run_trial(spec, store, job.settings)
            job.log.add(trial.record, trial.trajectory.model_dump_json(indent=1))
            yield trial.record

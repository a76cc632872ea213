"""A run that is written as Harbor's job folder and imported again says the same."""

from __future__ import annotations

from pathlib import Path

from harness.redaction import Redactor
from harness.report.exported import write_files
from harness.report.harbor_job import harbor_files
from harness.runner.harbor.importing import import_run
from harness.runner.harbor.trials import read_trials
from harness.runner.harbor.variants import VariantGlob, chosen_by_globs
from harness.schema.loop_config import UNSCORED, TerminationReason
from harness.schema.results import TrialRecord
from tests.report.sample_run import sample_run

_NO_NAME_IN_HARBOR = frozenset(
    {
        TerminationReason.MAX_ITERATIONS,
        TerminationReason.MAX_ATTEMPTS,
        TerminationReason.NO_OUTPUT,
        TerminationReason.LOOP_DETECTED,
        TerminationReason.BUDGET_EXCEEDED,
    }
)
"""Harbor's agents that stop at a limit end like any other."""


def test_a_run_survives_harbors_layout(tmp_path: Path):
    sample = sample_run()
    write_files(tmp_path / "job", harbor_files(sample.run, sample.trials, sample.load))
    trials, _ = read_trials([tmp_path / "job"])
    chosen, _ = chosen_by_globs(trials, [VariantGlob.parse("all=*")])
    log = import_run(chosen, reports=tmp_path, out=tmp_path / "back", redactor=Redactor({}))
    back = log.trials()
    assert len(back) == len(sample.trials) > 100
    assert sorted(map(_told, back)) == sorted(map(_told, sample.trials))


def _told(trial: TrialRecord) -> tuple[str, ...]:
    ending = trial.termination_reason
    return (
        trial.task,
        TerminationReason.COMPLETED if ending in _NO_NAME_IN_HARBOR else ending,
        str(None if ending in UNSCORED else trial.outcome),
        str(trial.usage.output),
    )

"""Whether the structured output passed its checks."""

from __future__ import annotations

from harness.schema.loop_config import TerminationReason
from harness.schema.results import Score
from harness.values import ScoreInput


class Validation:
    """How the output fared under schema and validators."""

    name = "validation"

    def score(self, trial: ScoreInput) -> Score:
        """`first_time`, `after_failures` or `never`; None where no output is asked for."""
        if trial.task.output is None:
            return Score(value=None, explanation="the task asks for no output")
        failures = trial.trajectory.validation_failures
        times = f"{len(failures)} failed validation{'' if len(failures) == 1 else 's'}"
        ended = trial.trajectory.termination_reason
        if not (ended is TerminationReason.COMPLETED and trial.trajectory.output_seen):
            why = f"{times}, the last: {failures[-1]}" if failures else "no output was accepted"
            return Score(value="never", explanation=why)
        if failures:
            return Score(value="after_failures", explanation=f"passed after {times}")
        return Score(value="first_time", explanation="passed the first time")

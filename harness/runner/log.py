"""The run log: a folder that is complete at any moment, and is only ever added to."""

from __future__ import annotations

import fcntl
import os
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from harness.errors import BadInputError, InfrastructureError
from harness.schema.results import RunRecord, TrialRecord
from harness.schema.trajectory import Trajectory

RUN_FILE = "run.json"
TRIALS_FILE = "trials.jsonl"
TRAJECTORIES = "trajectories"


@dataclass(frozen=True, slots=True)
class RunLog:
    """One run's folder. Several processes may add trials to it."""

    folder: Path

    @classmethod
    def create(cls, folder: Path, run: RunRecord) -> RunLog:
        """Start a run: the folder, and what is planned.

        Raises:
            BadInputError: the folder is there already.
        """
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            raise BadInputError(
                f"{folder}: this folder is there already; choose another with --out"
            ) from None
        (folder / RUN_FILE).write_text(run.model_dump_json(indent=2) + "\n", encoding="utf-8")
        (folder / TRIALS_FILE).touch()
        return cls(folder)

    def add(self, trial: TrialRecord, trajectory_json: str) -> None:
        """Add a finished trial: its trajectory first, then its line, on disk before returning.

        Raises:
            InfrastructureError: it could not be written; the log holds what it held before.
        """
        path = self.folder / trial.trajectory
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(trajectory_json + "\n", encoding="utf-8")
            _append(self.folder / TRIALS_FILE, f"{trial.model_dump_json()}\n".encode())
        except OSError as error:
            raise InfrastructureError(
                f"{self.folder}: trial {trial.trial_id} cannot be written: {error.strerror}; "
                "the trials before it are in the log"
            ) from error

    def run(self) -> RunRecord:
        """What was planned.

        Raises:
            BadInputError: no run is here, or it cannot be read.
        """
        path = self.folder / RUN_FILE
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            raise BadInputError(
                f"{self.folder}: no run is here (no {RUN_FILE}); name a folder under reports/"
            ) from None
        except UnicodeDecodeError:
            raise _not_text(path) from None
        try:
            return RunRecord.model_validate_json(text)
        except ValidationError as error:
            raise BadInputError(f"{path}: {first_problem(error)}; run the suite again") from None

    def trials(self) -> tuple[TrialRecord, ...]:
        """All finished trials, sorted by task, variant and repeat.

        A last line without its end was being written when the run was killed: it is left out.

        Raises:
            BadInputError: any other line that cannot be read.
        """
        path = self.folder / TRIALS_FILE
        try:
            whole = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            raise BadInputError(f"{path}: missing; name a folder that `harness run` made") from None
        except UnicodeDecodeError:
            raise _not_text(path) from None
        trials = []
        for number, line in enumerate(whole.split("\n")[:-1], 1):
            try:
                trials.append(TrialRecord.model_validate_json(line))
            except ValidationError as error:
                raise BadInputError(
                    f"{path}, line {number}: {first_problem(error)}; run the suite again"
                ) from None
        return tuple(sorted(trials, key=lambda trial: (trial.task, trial.variant, trial.repeat)))

    def trajectory(self, trial: TrialRecord) -> Trajectory | None:
        """The whole story of a trial, or None where its file is gone.

        Raises:
            BadInputError: the file is there and cannot be read.
        """
        path = self.folder / trial.trajectory
        if not path.resolve().is_relative_to(self.folder.resolve()):
            raise BadInputError(f"{self.folder}: trial {trial.trial_id!r} points outside the run")
        try:
            return Trajectory.model_validate_json(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except UnicodeDecodeError:
            raise _not_text(path) from None
        except ValidationError as error:
            raise BadInputError(f"{path}: {first_problem(error)}; run the suite again") from None


def _append(path: Path, line: bytes) -> None:
    """Write all of a line, or leave the file as it was."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)
    try:
        # Held until the file is closed: what is cut off again must not be another's line.
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        size = os.fstat(descriptor).st_size
        try:
            left = line
            while left:
                left = left[os.write(descriptor, left) :]
            os.fsync(descriptor)
        except OSError:
            os.ftruncate(descriptor, size)
            raise
    finally:
        os.close(descriptor)


def _not_text(path: Path) -> BadInputError:
    return BadInputError(f"{path}: not UTF-8 text; run the suite again")


def first_problem(error: ValidationError) -> str:
    """The first thing that is wrong, with its key and value."""
    problem = error.errors(include_url=False)[0]
    key = ".".join(str(part) for part in problem["loc"]) or "the whole"
    return f"{key}: {problem['msg']} (got {problem['input']!r:.80})"

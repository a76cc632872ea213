"""Which of Harbor's trials belong together: agent, model and job, or as the user says."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from harness.errors import BadInputError
from harness.runner.harbor.trials import HarborTrial
from harness.runner.naming import safe_name
from harness.schema.names import Name


@dataclass(frozen=True, slots=True)
class Chosen:
    """A trial and its variant."""

    trial: HarborTrial
    variant: str


@dataclass(frozen=True, slots=True)
class VariantGlob:
    """`NAME=GLOB`."""

    name: str
    glob: str

    @classmethod
    def parse(cls, text: str) -> VariantGlob:
        """Read what an option says.

        Raises:
            BadInputError: it is not of this form.
        """
        name, equals, glob = text.partition("=")
        if not equals or not glob or re.fullmatch(Name, name) is None:
            raise BadInputError(
                f"--variant {text!r}: expected NAME=GLOB, as in skills=*-with-skills*/*; a name has"
                " letters, digits, '.', '_' and '-' only"
            )
        return cls(name, glob)

    def takes(self, trial: HarborTrial) -> bool:
        """Whether a trial's folder, path or name is meant."""
        return any(fnmatchcase(name, self.glob) for name in trial.names)


def chosen_by_globs(
    trials: Sequence[HarborTrial], globs: Sequence[VariantGlob]
) -> tuple[list[Chosen], list[HarborTrial]]:
    """Each trial under the first variant that takes it, and the trials that none takes.

    Raises:
        BadInputError: a glob that takes no trial.
    """
    taken = {trial.folder: _first(trial, globs) for trial in trials}
    for one in globs:
        if one not in taken.values():
            names = ", ".join(sorted(trial.folder.name for trial in trials)[:5])
            raise BadInputError(
                f"--variant {one.name}={one.glob}: it takes no trial that no earlier one takes;"
                f" there are: {names}"
            )
    chosen = [
        Chosen(trial, one.name) for one in globs for trial in trials if taken[trial.folder] == one
    ]
    return chosen, [trial for trial in trials if taken[trial.folder] is None]


def _first(trial: HarborTrial, globs: Sequence[VariantGlob]) -> VariantGlob | None:
    return next((one for one in globs if one.takes(trial)), None)


def chosen_by_facts(trials: Sequence[HarborTrial]) -> list[Chosen]:
    """By agent and model; by the job as well where an agent with one model was run in several."""
    jobs: dict[str, set[str]] = {}
    for trial in trials:
        jobs.setdefault(_agent(trial), set()).add(_job(trial))
    found = []
    for trial in trials:
        agent, job = _agent(trial), _job(trial)
        shared = [name for name, of_it in jobs.items() if job in of_it]
        name = agent if len(jobs[agent]) == 1 else job if len(shared) == 1 else f"{agent}-{job}"
        found.append(Chosen(trial, safe_name(name)))
    return found


def _agent(trial: HarborTrial) -> str:
    return f"{trial.result.agent_info.name}-{trial.result.model.name}"


def _job(trial: HarborTrial) -> str:
    """The job without what is the trial's own: some have a job for each task."""
    task = re.escape(trial.result.task_name.rpartition("/")[2])
    return re.sub(rf"[-_]*{task}([-_]+[0-9a-f]{{4,12}})?$", "", trial.job) or trial.job

"""The self-check of a task: its reference solution must pass, and doing nothing must fail."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass

from harness.errors import InfrastructureError
from harness.runner.hosting import Hosting, ignored_by, not_runnable
from harness.runner.rewards import combined, shortfall
from harness.runner.stage import Solved, Stage
from harness.schema.record import Record
from harness.schema.results import Verdict
from harness.schema.suite import Task
from harness.scorers.outcome import reward


class TaskCheck(Record):
    """What came of one task's self-check."""

    task: str
    runnable: bool
    """Whether this machine can run it."""
    oracle: float | None
    """Reward of the reference solution, the lowest of all repeats; None where there is none."""
    nop: float | None
    """Reward of doing nothing, the highest of all repeats."""
    reason: str | None
    """Why it does not hold, or cannot be told; None for a task that holds."""
    duration_s: float
    undecided: bool = False
    """Whether this machine failed, and not the task."""
    broken: bool = False
    """Whether the task cannot be loaded."""
    ignored: tuple[str, ...] = ()
    """What the task's files ask for and is not done here, or otherwise."""
    log: str = ""
    """The end of what was written in the first pass that is not as it should be."""
    note: str | None = None
    """What its author should know though it is no reason."""

    @property
    def holds(self) -> bool:
        """Whether the task is to be trusted."""
        return self.runnable and self.reason is None


@dataclass(frozen=True, slots=True)
class CheckJob:
    """One task, and how it is checked; picklable."""

    task: Task
    hosting: Hosting
    repeats: int = 1


@dataclass(frozen=True, slots=True)
class _Pass:
    """One time over all steps."""

    verdict: Verdict | None
    solution_log: str = ""
    notes: tuple[str, ...] = ()
    """What the machine had otherwise than it is asked for."""
    overrun: str | None = None
    """That the solution was ended by its time limit."""

    @property
    def value(self) -> float | None:
        found = reward(self.verdict).value
        return None if found is None else float(found)

    @property
    def log(self) -> str:
        """What was written, that of the solution first."""
        said = "" if self.verdict is None else self.verdict.log
        return "\n".join(part for part in (self.solution_log, said) if part)

    @property
    def told(self) -> str:
        """The reward in words, or why there is none."""
        if self.value is not None:
            return f"{self.value:g}"
        return f"no reward ({reward(self.verdict).explanation})"


def check_task(job: CheckJob) -> Iterator[TaskCheck]:
    """Check one task: what a backend does, here or in another process."""
    began = time.monotonic()
    task = job.task
    assert task.environment is not None

    def found(
        oracle: float | None = None,
        nop: float | None = None,
        reason: str | None = None,
        *,
        runnable: bool = True,
        undecided: bool = False,
        log: str = "",
        passes: Iterable[_Pass] = (),
        note: str | None = None,
    ) -> TaskCheck:
        notes = dict.fromkeys(note for one in passes for note in one.notes)
        return TaskCheck(
            task=task.name,
            runnable=runnable,
            oracle=oracle,
            nop=nop,
            reason=reason,
            duration_s=round(time.monotonic() - began, 3),
            undecided=undecided,
            ignored=(*ignored_by(task, job.hosting), *notes),
            log=log,
            note=note,
        )

    lacking = not_runnable(task, job.hosting, solution=True)
    if lacking is not None:
        yield found(reason=lacking, runnable=False)
        return
    without = [step.name for step in task.steps if step.solution is None]
    if without:
        of = "".join(f" of step {name}" for name in without[:1] if name)
        yield found(reason=f"{task.folder}: there is no reference solution{of}")
        return
    try:
        oracles = [_play(job, solves=True) for _ in range(job.repeats)]
        nops = [_play(job, solves=False) for _ in range(job.repeats)]
    except (InfrastructureError, OSError) as error:
        yield found(reason=str(error), undecided=True)
        return
    reason, log = _judged(oracles, nops)
    overrun = next((one.overrun for one in oracles if one.overrun), None)
    note = None if overrun and overrun in (reason or "") else overrun
    worst = _worst(oracles, min), _worst(nops, max)
    yield found(*worst, reason, log=log, passes=(*oracles, *nops), note=note)


def _play(job: CheckJob, *, solves: bool) -> _Pass:
    """Go once over the steps, on a machine of its own."""
    task = job.task
    solved = Solved("")
    overrun = None
    verdicts: list[tuple[str, Verdict | None]] = []
    assert task.environment is not None
    with closing(job.hosting.machine(task.environment)) as machine:
        stage = Stage(task, machine, job.hosting)
        for step in task.steps:
            stage.begin(step)
            if solves and step.solution is not None:
                solved = stage.solve(step, step.solution)
                overrun = overrun or solved.overrun
            verdict = stage.verify(step, None)
            verdicts.append((step.name, verdict))
            if shortfall(step.min_reward, verdict) is not None:
                break
        notes = () if machine.opened is None else machine.opened.notes
    if len(task.steps) == 1:
        return _Pass(verdicts[0][1], solved.log, notes, overrun)
    return _Pass(combined(task.reward_strategy, verdicts), solved.log, notes, overrun)


def _judged(oracles: Sequence[_Pass], nops: Sequence[_Pass]) -> tuple[str | None, str]:
    """Why a task does not hold, with the log that shows it."""
    for passes, who in ((oracles, "the reference solution"), (nops, "doing nothing")):
        told = [one.told for one in passes]
        if len(set(told)) > 1:
            return f"flaky: {who} gave {', '.join(told)}", _odd(passes).log
    for one in oracles[:1]:
        if one.value is None or one.value < 1:
            who = f"{one.overrun}; it" if one.overrun else "the reference solution"
            return f"{who} gave {one.told}, not 1", one.log
    for one in nops[:1]:
        if one.value is None or one.value > 0:
            return f"doing nothing gave {one.told}, not 0", one.log
    return None, ""


def _odd(passes: Sequence[_Pass]) -> _Pass:
    """The first that is not like the first."""
    return next(one for one in passes if one.told != passes[0].told)


def _worst(passes: Sequence[_Pass], choose: Callable[[Iterable[float]], float]) -> float | None:
    values = [one.value for one in passes]
    known = [value for value in values if value is not None]
    return choose(known) if len(known) == len(values) else None

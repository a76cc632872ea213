"""`harness task`: work on tasks themselves."""

from __future__ import annotations

import os
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any

import click

from harness.analysis import numbers
from harness.analysis.baseline import first_line
from harness.backends.local import LocalBackend
from harness.cassette.secrets import secrets_in
from harness.cli import DOES_NOT_HOLD, FINE, UNDECIDED
from harness.cli.execution import warn_of_typos
from harness.cli.hosting import MachineOptions, machine_options
from harness.cli.options import environment, make_command, repeats
from harness.cli.terminal import Terminal, table
from harness.errors import BadInputError
from harness.loader.suite import Broken, load_suite
from harness.redaction import Redactor
from harness.runner.plan import choose_tasks, suite_folder
from harness.runner.task_check import CheckJob, TaskCheck, check_task
from harness.schema.suite import Task

MOST_REPEATS = 100
_REASON_CHARS = 70
"""Of a reason that are shown in the table."""
_DATA = ("task", "runnable", "oracle", "nop", "reason", "duration_s", "ignored", "log", "note")


@click.group("task", epilog="Example: harness task check suites/basics")
def command() -> None:
    """Work on tasks themselves."""


@make_command("check", example="harness task check suites/basics --task 'sum-*' --repeat 3")
@click.argument("suite", metavar="SUITE")
@click.option("--task", "globs", multiple=True, metavar="GLOB", help="Only these; repeatable.")
@repeats(
    "Check each task so often: a verifier that does not always say the same is flaky.",
    most=MOST_REPEATS,
    default=1,
)
@machine_options
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    metavar="N",
    help="Tasks at a time.  [default: one per core]",
)
def _check(
    terminal: Terminal,
    suite: str,
    globs: tuple[str, ...],
    repeats: int,
    jobs: int | None,
    **options: Any,
) -> int:
    """Check that tasks can be trusted: the reference solution scores 1, and doing nothing 0.

    SUITE is a folder of tasks, with or without a suite.toml, one task's folder, or a name under
    suites/. No model is asked. Each task is run in a sandbox: its solution/solve.sh and then
    its tests, and in another one its tests alone.

    A task that needs what this machine does not give is no failure: `not runnable here: ...` says
    what it needs. One that cannot be loaded is a failure, and the others are checked all the same.
    -v lists what of a Dockerfile is not done here or failed, and how the tests of a task that does
    not hold ended. With --json, a list of {task, runnable, oracle, nop, reason, duration_s,
    ignored, log, note}; log is the end of what was written where a task does not hold, note that a
    solution which holds was ended by its time limit.

    Exits with 0 where every task that can be run holds, 1 where one does not, 3 where none can be
    run or the sandbox failed.
    """
    tasks, broken = _tasks(suite, globs)
    warn_of_typos(tasks, terminal)
    machines = MachineOptions(**options)
    machines.check_sandbox()
    hosting = machines.hosting(tasks)
    work = [CheckJob(task, hosting, repeats) for task in tasks]
    redactor = Redactor(secrets_in(environment(), handed_down=hosting.variables))
    jobs = min(jobs or os.cpu_count() or 1, len(tasks) or 1)
    found, total = broken, len(tasks) + len(broken)
    terminal.progress(f"{len(found)}/{total} tasks")
    for one in map(redactor.record, LocalBackend(jobs).run(check_task, work)):
        found.append(one)
        terminal.progress(f"{len(found)}/{total} tasks · {one.task}")
        terminal.say(f"{len(found)}/{total} {_line(one)}", verbosity=1)
    found.sort(key=lambda one: one.task)
    data = [one.model_dump(mode="json", include=set(_DATA)) for one in found]
    terminal.result(data, _lines(found, detailed=terminal.verbosity > 0))
    return _code(found)


def _tasks(argument: str, globs: Sequence[str]) -> tuple[tuple[Task, ...], list[TaskCheck]]:
    """The tasks to check, and what is found of those that cannot be loaded."""
    folder = suite_folder(argument)
    broken: list[TaskCheck] = []

    def tell(found: Broken) -> None:
        for place, error in found:
            if not globs or any(fnmatchcase(place.name, glob) for glob in globs):
                broken.append(_unloadable(place.name, str(error)))

    suite = load_suite(folder, needs_model=False, on_broken=tell)
    if any(task.scenario is not None for task in suite.tasks):
        raise BadInputError(
            f"{suite.file}: holds scenarios, which have no verifier; harness run {argument} holds "
            "them against what they expect"
        )
    names = [task.name for task in suite.tasks]
    only_broken = [
        glob
        for glob in globs
        if any(fnmatchcase(one.task, glob) for one in broken)
        and not any(fnmatchcase(name, glob) for name in names)
    ]
    rest = [glob for glob in globs if glob not in only_broken]
    return () if only_broken and not rest else choose_tasks(suite, rest), broken


def _unloadable(name: str, error: str) -> TaskCheck:
    return TaskCheck(
        task=name,
        runnable=False,
        oracle=None,
        nop=None,
        reason=error,
        duration_s=0.0,
        broken=True,
    )


def _code(found: Sequence[TaskCheck]) -> int:
    ran = [one for one in found if one.runnable]
    if any(one.broken for one in found) or any(not (one.holds or one.undecided) for one in ran):
        return DOES_NOT_HOLD
    return UNDECIDED if not ran or any(one.undecided for one in ran) else FINE


def _line(one: TaskCheck) -> str:
    said = first_line(one.reason or "") or f"oracle {_reward(one.oracle)}, nop {_reward(one.nop)}"
    return f"{one.task}: {said}, {one.duration_s:.1f} s"


def _lines(found: Sequence[TaskCheck], *, detailed: bool) -> list[str]:
    heading = ["task", "runnable", "oracle", "nop", "seconds", "reason"]
    rows = [
        [
            one.task,
            "yes" if one.runnable else "no",
            _reward(one.oracle),
            _reward(one.nop),
            f"{one.duration_s:.1f}",
            _short(first_line(one.reason or "")),
        ]
        for one in found
    ]
    lines = [*table([heading, *rows], right=(2, 3, 4)), ""]
    for one in found:
        lines += _told(one, detailed=detailed)
    if detailed:
        for one in found:
            lines += _details(one)
    holding = sum(one.holds for one in found)
    ran = sum(one.runnable for one in found)
    broken = sum(one.broken for one in found)
    if ran:
        verb = "holds" if 1 in (holding, ran) else "hold"
        lines.append(f"{holding} of {numbers.plural(ran, 'task')} that can be run here {verb}.")
    if not detailed and any(one.log for one in found):
        lines.append("-v shows what was written where a task does not hold.")
    if not detailed and any("\n" in (one.reason or "") for one in found):
        lines.append("-v shows why in full.")
    if broken:
        lines.append(f"{numbers.plural(broken, 'task')} cannot be loaded.")
    if ran + broken < len(found):
        lines.append(f"{numbers.plural(len(found) - ran - broken, 'task')} not runnable here.")
    return lines


def _told(one: TaskCheck, *, detailed: bool) -> list[str]:
    """What a table cannot hold: with whole paragraphs in it, it is none."""
    reason = (one.reason or "") if detailed else first_line(one.reason or "")
    lines = [reason] if reason != _short(reason) else []
    lines += [one.note] if one.note else []
    return [part for line in lines for part in (f"{one.task}: {line}", "")]


def _details(one: TaskCheck) -> list[str]:
    # What a command said has lines of its own.
    told = [line.replace("\n", "\n    ") for line in one.ignored]
    lines = [f"  not done here: {line}" for line in told]
    lines += [f"  | {line}" for line in one.log.splitlines()]
    return [f"{one.task}:", *lines, ""] if lines else []


def _short(reason: str) -> str:
    line = " ".join(reason.split())
    return line if len(line) <= _REASON_CHARS else f"{line[: _REASON_CHARS - 1]}…"


def _reward(value: float | None) -> str:
    return numbers.ABSENT if value is None else f"{value:g}"


command.add_command(_check)

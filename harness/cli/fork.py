"""`harness fork`: what if a trial had gone on otherwise from some turn on."""

from __future__ import annotations

import glob
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import click

from harness.analysis import numbers
from harness.analysis.exact import unscored_trial
from harness.analysis.misses import group_misses
from harness.cassette.file.view import read
from harness.cli import FINE, UNDECIDED
from harness.cli.execution import REPLAY, Answering, Planned, Selection, check_keys, plan_suite
from harness.cli.hosting import env_option
from harness.cli.options import Folder, environment, make_command
from harness.cli.run_folder import REPORTS, find_run, write_report
from harness.cli.show import find_trial
from harness.cli.terminal import Terminal
from harness.cli.unscored import unscored_lines
from harness.errors import BadInputError
from harness.report.marks import word_of
from harness.runner.fork import Recalled, calls_before, recall, run_fork
from harness.runner.log import RunLog
from harness.runner.start import start_run
from harness.runner.trial import open_cassette
from harness.schema.loop_config import UNSCORED
from harness.schema.results import Fork, RunRecord, TrialRecord

ForkMode = Literal["new_episodes", "none"]


@make_command("fork", example="harness fork last fruit/plain/0 --turn 3 --set loop.reflection=true")
@click.argument("run")
@click.argument("trial")
@click.option(
    "--turn",
    type=click.IntRange(min=1),
    required=True,
    metavar="N",
    help="The first turn that is not as recorded, as `harness show` counts them.",
)
@click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change a setting, as in model.temperature=0; repeatable.",
)
@click.option(
    "--record-mode",
    type=click.Choice(["new_episodes", "none"]),
    default="new_episodes",
    show_default=True,
    help="new_episodes: ask the live model from turn N on, and record it in the new run's folder; "
    "none: ask nobody, what the trial's cassette does not hold is a miss.",
)
@click.option(
    "--cassettes",
    type=Folder(path_type=Path),
    default=Path("cassettes"),
    show_default=True,
    metavar="DIR",
    help="Folder of the recordings that the run used.",
)
@click.option(
    "--out",
    type=Folder(path_type=Path),
    metavar="DIR",
    help="The new run's folder. [default: a new one under reports/]",
)
@env_option
@click.option("--allow-live", is_flag=True, help="Allow live calls where CI is set.")
def command(
    terminal: Terminal,
    run: str,
    trial: str,
    turn: int,
    overrides: tuple[str, ...],
    record_mode: ForkMode,
    cassettes: Path,
    out: Path | None,
    env: tuple[str, ...],
    allow_live: bool,
) -> int:
    """Go on with a recorded trial from turn N on, live or with changed settings.

    The turns before N are answered as recorded, whatever the changed settings ask, and their tools
    run again to rebuild the folder. The result is a new run with this one trial. No recording is
    changed.

    RUN is a run's folder, its id under reports/, or `last`. TRIAL is task/variant/repeat.
    """
    if record_mode != "none" and environment().get("CI") and not allow_live:
        raise BadInputError(
            "fork calls a model, and CI is set; add --allow-live or --record-mode none"
        )
    log = find_run(run)
    source = _source(log, trial)
    fork = Fork(run_id=source.run.run_id, trial_id=source.trial.trial_id, turn=turn)
    planned = source.plan(cassettes, overrides, Answering(record_mode=record_mode), out, env)
    if record_mode != "none":
        check_keys(planned)
    recalled, calls = _recall(source, turn, cassettes, record_mode)
    made = _run(planned, fork, recalled, calls)
    record = made.trials()[0]
    report = write_report(made)
    data = {
        "run": str(made.folder),
        "forked": fork.model_dump(mode="json"),
        "before": source.trial.model_dump(mode="json"),
        "trial": record.model_dump(mode="json"),
        "report": str(report),
    }
    compare = f"harness compare {log.folder} {made.folder}"
    terminal.result(
        data, [*_lines(source.trial, record, turn, calls), compare, f"Report: {report}"]
    )
    if record.termination_reason in UNSCORED:
        explained = unscored_lines(
            [unscored_trial(record)], group_misses([record]), trials=1, record=""
        )
        terminal.error("\n".join(explained))
        return UNDECIDED
    return FINE


@dataclass(frozen=True, slots=True)
class _Source:
    """The trial that is forked."""

    log: RunLog
    run: RunRecord
    trial: TrialRecord

    def plan(
        self,
        cassettes: Path,
        overrides: tuple[str, ...] = (),
        answering: Answering = REPLAY,
        out: Path | None = None,
        env: tuple[str, ...] = (),
    ) -> Planned:
        """The trial alone, as its run had it, with further settings.

        Raises:
            BadInputError: the suite does not have it any more, or the settings cannot be used.
        """
        selection = Selection(
            variants=self.trial.variant,
            tasks=(glob.escape(self.trial.task),),
            repeats=self.trial.repeat + 1,
            cassettes=cassettes,
            out=out,
            env=env,
        ).as_in(self.run)
        selection = replace(selection, overrides=(*selection.overrides, *overrides))
        planned = plan_suite(self.run.suite_folder, selection, answering)
        (cell,) = (cell for cell in planned.cells if cell.repeat == self.trial.repeat)
        return replace(planned, cells=(cell,))


def _source(log: RunLog, trial: str) -> _Source:
    """A trial that can be forked.

    Raises:
        BadInputError: there is no such trial, or its run did not play its suite as it was recorded.
    """
    run = log.run()
    if run.imported is not None:
        raise BadInputError(
            f"{log.folder}: was imported from {run.imported}, so there is no recording to go on"
            " with; make one with: harness import conversation"
        )
    if run.forked is not None:
        raise BadInputError(
            f"{log.folder}: is a fork of {run.forked.trial_id!r} in run {run.forked.run_id!r}; "
            f"fork that one: harness fork {run.forked.run_id} {run.forked.trial_id}"
        )
    if run.faults is not None:
        raise BadInputError(
            f"{log.folder}: was run with --faults {run.faults}, so its trials do not replay as "
            "they were; fork a run without it"
        )
    return _Source(log, run, find_trial(log, trial))


def _recall(source: _Source, turn: int, cassettes: Path, mode: ForkMode) -> tuple[Recalled, int]:
    """Replay the trial as it was; gives what it was given, and its model calls before the turn.

    Raises:
        BadInputError: it does not replay as it was, or has no such turn.
    """
    trial = source.trial
    if trial.cassette is None:
        raise BadInputError(f"{trial.trial_id}: a scenario has no recording to fork")
    planned = source.plan(cassettes)
    file = cassettes / trial.cassette
    if mode == "none" and file.exists() and read(file).header.match == "position":
        raise BadInputError(
            f"--record-mode none: {file} gives its answers in order, whatever is asked; leave it "
            "out to go on with a live model"
        )
    with open_cassette(planned.cells[0], planned.settings) as store:
        again, recalled = recall(planned.specs[0], store, planned.settings)
    if again.record.transcript_digest != trial.transcript_digest:
        raise BadInputError(
            f"{trial.trial_id} does not replay as it was in {source.log.folder}: the suite or its "
            f"recordings have changed since; run {source.run.suite_folder} again and fork that run"
        )
    last = trial.iterations + 1
    if turn > last:
        raise BadInputError(
            f"--turn {turn}: {trial.trial_id} has {numbers.plural(trial.iterations, 'turn')}; "
            f"give 1 to {last}"
        )
    return recalled, calls_before(again, turn)


def _run(planned: Planned, fork: Fork, recalled: Recalled, calls: int) -> RunLog:
    selection, settings = planned.selection, planned.settings
    log = start_run(
        planned.suite,
        planned.cells,
        settings,
        reports=REPORTS,
        out=selection.out,
        overrides=selection.overrides,
        preset=selection.preset,
        forked=fork,
    )
    if settings.record_mode != "none":
        # What is paid for is kept beside the run; the suite's recordings stay as they are.
        settings = replace(settings, cassettes=log.folder / "cassettes", record_options=())
    with open_cassette(planned.cells[0], settings) as store:
        made = run_fork(planned.specs[0], store, settings, recalled, calls)
        log.add(made.record, made.trajectory.model_dump_json(indent=1))
    return log


def _lines(before: TrialRecord, now: TrialRecord, turn: int, calls: int) -> list[str]:
    live = numbers.plural(now.recorded, "live model call")
    return [
        f"{now.trial_id} from turn {turn} on: {_ending(now)} (before: {_ending(before)})",
        f"{numbers.plural(min(calls, now.served), 'model call')} as recorded, {live}",
    ]


def _ending(trial: TrialRecord) -> str:
    return (
        f"{trial.termination_reason}, {word_of(trial)}"
        if trial.outcome
        else (str(trial.termination_reason))
    )

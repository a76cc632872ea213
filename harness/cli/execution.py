"""Planning a suite and running it: what `run`, `check` and `demo` do alike."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path

from harness.backends.local import LocalBackend
from harness.cassette.playback import FaultPlan
from harness.cassette.replay.store import check_file
from harness.cassette.secrets import secrets_in
from harness.cli.hosting import MachineOptions
from harness.cli.options import environment
from harness.cli.run_folder import REPORTS
from harness.cli.terminal import Terminal
from harness.errors import BadInputError
from harness.loader.scenarios import kept_settings, refuse_repeats
from harness.loader.suite import Broken, load_suite, together
from harness.providers.catalog import VENDORS
from harness.redaction import Redactor
from harness.runner.cell import CellJob, run_cell
from harness.runner.log import RunLog
from harness.runner.plan import Cell, TrialSpec, plan, public_names, suite_folder
from harness.runner.start import start_run
from harness.runner.trial import TrialSettings, cassette_file, open_cassette
from harness.runner.trial_loop import check_loops
from harness.schema.presets import PresetName
from harness.schema.recording import Front, Pace
from harness.schema.results import RecordMode, RunRecord, ToolsMode, TrialRecord
from harness.schema.suite import Suite, Task

CASSETTES = Path("cassettes")


@dataclass(frozen=True, slots=True)
class Selection:
    """Which trials of a suite, and how."""

    variants: str | None = None
    tasks: tuple[str, ...] = ()
    repeats: int | None = None
    overrides: tuple[str, ...] = ()
    preset: PresetName | None = None
    cassettes: Path = CASSETTES
    jobs: int | None = None
    out: Path | None = None
    sandbox: str | None = None
    timeout_multiplier: float | None = None
    agent_timeout_multiplier: float | None = None
    verifier_timeout_multiplier: float | None = None
    env: tuple[str, ...] = ()

    @property
    def machines(self) -> MachineOptions:
        """What is said of the machines of tasks."""
        return MachineOptions(
            self.sandbox,
            self.timeout_multiplier,
            self.agent_timeout_multiplier,
            self.verifier_timeout_multiplier,
            self.env,
        )

    def as_in(self, run: RunRecord) -> Selection:
        """The same trials with the settings that a run had."""
        agent, verifier = run.agent_timeout_multiplier, run.verifier_timeout_multiplier
        return replace(
            self,
            overrides=run.overrides,
            preset=run.preset,
            sandbox=run.sandbox,
            timeout_multiplier=None,
            agent_timeout_multiplier=None if agent == 1 else agent,
            verifier_timeout_multiplier=None if verifier == 1 else verifier,
        )

    def refuse_broken(self, broken: Broken) -> None:
        """Raise the errors of tasks that cannot be loaded, of all that are among those chosen."""
        globs = self.tasks or ("*",)
        chosen = [
            (place, error)
            for place, error in broken
            if any(fnmatchcase(place.name, glob) for glob in globs)
        ]
        if chosen:
            raise together(chosen)

    @property
    def variant_names(self) -> list[str]:
        """The chosen variants; empty means all."""
        return [name.strip() for name in (self.variants or "").split(",") if name.strip()]


@dataclass(frozen=True, slots=True)
class Answering:
    """Where answers and tool results come from, and how recorded ones are given."""

    record_mode: RecordMode = "none"
    tools: ToolsMode = "replay"
    front: Front = "http"
    pace: Pace = "fast"
    faults: str | None = None
    """As in `--faults`."""

    @property
    def runs_live(self) -> bool:
        """Whether tools and verifiers may really run."""
        return self.tools == "live" or self.record_mode != "none"


REPLAY = Answering()
"""At once, from the recordings, as they are."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A suite, loaded and checked, with the trials that are to be run."""

    suite: Suite
    cells: tuple[Cell, ...]
    settings: TrialSettings
    selection: Selection
    answering: Answering = REPLAY

    @property
    def specs(self) -> list[TrialSpec]:
        """Every trial."""
        return [spec for cell in self.cells for spec in cell.specs]

    @property
    def recordable(self) -> list[Cell]:
        """Cells that have a cassette: scenarios have none."""
        return [cell for cell in self.cells if cell.task.scenario is None]


def plan_suite(argument: str, selection: Selection, answering: Answering = REPLAY) -> Planned:
    """Load a suite, choose its trials, and check all that can be checked before running.

    Raises:
        BadInputError: anything that cannot be used, a damaged cassette included.
    """
    _check_folder(selection.cassettes)
    faults = None if answering.faults is None else FaultPlan.parse(answering.faults)
    suite = load_suite(
        suite_folder(argument),
        overrides=selection.overrides,
        preset=selection.preset,
        on_broken=selection.refuse_broken,
    )
    scripted = any(task.scenario is not None for task in suite.tasks)
    if scripted:
        _check_scenario_options(suite, selection, answering)
    cells = plan(
        suite,
        variants=selection.variant_names,
        tasks=selection.tasks,
        repeats=selection.repeats,
    )
    check_loops(spec for cell in cells if cell.repeat == 0 for spec in cell.specs)
    variables = environment()
    keys = {vendor.key_variable for vendor in VENDORS.values()}
    if answering.runs_live and not scripted:
        selection.machines.check_sandbox()
    hosting = selection.machines.hosting(suite.tasks)
    settings = TrialSettings(
        cassettes=selection.cassettes,
        record_mode=answering.record_mode,
        tools=answering.tools,
        front=answering.front,
        pace=answering.pace,
        faults=faults,
        suite_argument=argument,
        record_options=_record_options(selection),
        api_keys={name: key for name in keys if (key := variables.get(name, "").strip())},
        secrets=secrets_in(variables, public_names(suite), hosting.variables),
        hosting=hosting,
    )
    planned = Planned(suite, cells, settings, selection, answering)
    if answering.record_mode == "none":
        check_cassettes(planned)
    return planned


def _check_scenario_options(suite: Suite, selection: Selection, answering: Answering) -> None:
    for name in ("record_mode", "front", "pace", "faults"):
        value = getattr(answering, name)
        if value != getattr(REPLAY, name):
            raise BadInputError(
                f"--{name.replace('_', '-')} {value}: scenarios ask no model; "
                f"leave it out for {suite.file}"
            )
    if selection.repeats not in (None, 1):
        refuse_repeats(f"--repeats {selection.repeats}", suite.file)


def say_first(planned: Planned, terminal: Terminal) -> None:
    """Tell what looks mistyped, and which options do not reach some scenarios."""
    tasks = {spec.task.name: spec.task for spec in planned.specs}
    warn_of_typos(tasks.values(), terminal)
    for variant in planned.suite.variants:
        for line in kept_settings(tasks.values(), variant, planned.selection.preset):
            terminal.say(line)


def warn_of_typos(tasks: Iterable[Task], terminal: Terminal) -> None:
    """Tell of each task's keys that mean nothing and are close to one that does."""
    for task in tasks:
        for line in task.typos:
            terminal.say(f"warning: {task.folder}/{line}")


def _check_folder(cassettes: Path) -> None:
    if cassettes.exists() and not cassettes.is_dir():
        raise BadInputError(
            f"{cassettes}: not a folder; give the folder that holds the recordings: --cassettes DIR"
        )


def _record_options(selection: Selection) -> tuple[str, ...]:
    """What a command that records a miss must have in common with this one."""
    options = [part for text in selection.overrides for part in ("--set", text)]
    if selection.preset is not None:
        options += ["--preset", selection.preset]
    if selection.cassettes != CASSETTES:
        options += ["--cassettes", str(selection.cassettes)]
    if selection.variant_names:
        options += ["--variants", ",".join(selection.variant_names)]
    if selection.repeats is not None:
        options += ["--repeats", str(selection.repeats)]
    return (*options, *selection.machines.arguments)


def accept_command(suite: str, selection: Selection, secrets: Mapping[str, str]) -> str:
    """The command that records just what a selection of a suite misses, without secrets."""
    return suite_command(("accept",), suite, selection, secrets)


def suite_command(
    words: Sequence[str], suite: str, selection: Selection, secrets: Mapping[str, str]
) -> str:
    """A command about a selection of a suite, without secrets."""
    tasks = [part for glob in selection.tasks for part in ("--task", glob)]
    command = shlex.join(("harness", *words, suite, *tasks, *_record_options(selection)))
    return Redactor(secrets).text(command)


def check_cassettes(planned: Planned) -> None:
    """Open every cassette that is there, as the run will, and check each of its lines.

    Nothing is paid for and then lost, and no run breaks off where a line is reached.

    Raises:
        CassetteError: one cannot be used, or somebody else is recording it.
    """
    for cell in planned.recordable:
        path = planned.settings.cassettes / cassette_file(cell)
        if path.exists() or path.with_name(f"{path.name}.partial").exists():
            open_cassette(cell, planned.settings).close(finished=False)
        if path.exists():
            check_file(path)


def check_keys(planned: Planned) -> None:
    """Look for the keys that recording needs: a run must not end where the first one is missing.

    Raises:
        BadInputError: one is not set.
    """
    for spec in (spec for cell in planned.recordable for spec in cell.specs):
        vendor = VENDORS[spec.model.provider]
        variable = vendor.key_variable
        is_own = spec.model.base_url is None and vendor.needs_key
        if is_own and variable not in planned.settings.api_keys:
            raise BadInputError(
                f"recording {spec.trial_id} calls {spec.model.provider} and {variable} is not set; "
                "set it, or give the model a base_url"
            )


def execute(planned: Planned, terminal: Terminal, *, reports: Path = REPORTS) -> RunLog:
    """Run what is planned into a new run folder.

    Raises:
        BadInputError: the folder is there already, or a cassette turned out to be damaged.
    """
    selection, recording = planned.selection, planned.settings.record_mode != "none"
    if planned.recordable and not recording and not selection.cassettes.exists():
        terminal.say(
            f"warning: {selection.cassettes}: no such folder, so nothing is recorded; run from the "
            "project's folder or give --cassettes DIR"
        )
    log = start_run(
        planned.suite,
        planned.cells,
        planned.settings,
        reports=reports,
        out=selection.out,
        overrides=selection.overrides,
        preset=selection.preset,
        faults=planned.answering.faults,
    )
    jobs = selection.jobs or (1 if recording else _workers(len(planned.specs)))
    work = [CellJob(cell, planned.settings, log) for cell in planned.cells]
    total = len(planned.specs)
    terminal.progress(f"0/{total} trials")
    try:
        for done, trial in enumerate(LocalBackend(jobs).run(run_cell, work), 1):
            terminal.progress(f"{done}/{total} trials · {trial.trial_id}")
            terminal.say(f"{done}/{total} {_line(trial)}", verbosity=0 if recording else 1)
    except KeyboardInterrupt:
        terminal.say(f"What was finished is in {log.folder}")
        raise
    return log


def _workers(trials: int) -> int:
    """Workers that pay: starting one takes as long as replaying some fifty trials."""
    return min(os.cpu_count() or 1, 1 + trials // 50)


def _line(trial: TrialRecord) -> str:
    outcome = f", {trial.outcome}" if trial.outcome else ""
    return (
        f"{trial.trial_id}: {trial.termination_reason}{outcome}, {trial.model_calls} model calls "
        f"({trial.recorded} live), {trial.duration_s:.1f} s"
    )

"""The one place that wires a trial: model, tools, cassette, loop, verifier and scorers."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from harness.cassette import http
from harness.cassette.direct import DirectProvider
from harness.cassette.file.tape import Origin
from harness.cassette.playback import FaultPlan, Playback
from harness.cassette.replay.answers import Answers
from harness.cassette.replay.session import Session
from harness.cassette.replay.store import Store
from harness.cassette.replay.tool_results import RecordedTools
from harness.cassette.request.rules import Rules
from harness.errors import BadInputError
from harness.loader.task.skills import trial_skills
from harness.protocols import Provider
from harness.providers.catalog import NO_KEY, VENDORS, dialect_of, live_client
from harness.redaction import Redactor
from harness.runner.hosting import Hosting, ignored_by, not_runnable
from harness.runner.plan import Cell, TrialSpec
from harness.runner.replay_difference import request_changes, tool_changes
from harness.runner.scenario.trial import run_scenario
from harness.runner.stage import Stage
from harness.runner.steps import UNFINISHED, StepPlayer
from harness.runner.trial_loop import trial_loop, trial_tools
from harness.runner.trial_record import Replayed, Trial, trial_record
from harness.schema.environment import Step
from harness.schema.loop_config import TerminationReason
from harness.schema.recording import Front, Pace
from harness.schema.results import MissCause, RecordMode, ToolsMode, Verdict
from harness.schema.suite import ModelConfig
from harness.schema.trajectory import Trajectory
from harness.scorers.standard import score_trial
from harness.tools.machine import Machine
from harness.values import ScoreInput


@dataclass(frozen=True, slots=True)
class TrialSettings:
    """How the trials of a run are run; picklable."""

    cassettes: Path
    """Folder of cassettes; a cell's file is SUITE/TASK/REPEAT.jsonl in it."""
    record_mode: RecordMode = "none"
    tools: ToolsMode = "replay"
    suite_argument: str = "SUITE"
    """The suite as the user named it, for the commands that messages suggest."""
    record_options: tuple[str, ...] = ()
    """Further options that such a command needs."""
    api_keys: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Key variable -> key, for live calls."""
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Variable -> value that must reach no file."""
    front: Front = "http"
    """What answers the loop's model calls: the vendor's SDK over HTTP, or the cassette itself."""
    pace: Pace = "fast"
    faults: FaultPlan | None = None
    hosting: Hosting = field(default_factory=Hosting)
    """What makes the machines that tools and verifiers run on, where they do."""

    def __post_init__(self) -> None:
        """Refuse what needs a whole recording together with a mode that adds to it.

        Raises:
            BadInputError: names the two options.
        """
        given = {
            "--front direct": self.front == "direct",
            "--faults": self.faults is not None,
        }
        for option, is_given in given.items():
            if is_given and self.record_mode != "none":
                raise BadInputError(
                    f"{option} only replays and --record-mode {self.record_mode} may record;"
                    " leave one of them out"
                )

    def playback(self, spec: TrialSpec) -> Playback:
        """How the recorded answers of one trial are given."""
        faults = None if self.faults is None else self.faults.begin(spec.trial_id)
        return Playback(self.pace, faults)


def cassette_file(cell: Cell | TrialSpec) -> Path:
    """Where a cell's cassette is, relative to the cassettes folder."""
    return Path(cell.suite, cell.task.name, f"{cell.repeat}.jsonl")


def open_cassette(cell: Cell, settings: TrialSettings) -> Store:
    """The cassette that all trials of a cell share; a scenario's cell has none.

    Raises:
        CassetteError: the file is damaged, cut or of another format.
    """
    return Store.open(
        settings.cassettes / cassette_file(cell),
        settings.record_mode,
        origin=Origin(cell.suite, cell.task.name, cell.repeat, cell.task.digest),
        redactor=Redactor(settings.secrets, extra=cell.recording.redact),
        rules=Rules(cell.recording),
        record_hint=shlex.join(
            (
                *("harness", "run", settings.suite_argument, "--task", cell.task.name),
                *settings.record_options,
                *("--record-mode", "new_episodes", "--allow-live"),
            )
        ),
    )


Around = Callable[[Session, Provider], tuple[Answers, Provider]]
"""Puts something before a trial's cassette and model."""


def run_trial(
    spec: TrialSpec, store: Store | None, settings: TrialSettings, around: Around | None = None
) -> Trial:
    """Run one trial on one machine against one cassette, and score it.

    A scenario needs neither: what its model and its tools do is written down. A trial that would
    have to run what this host cannot is skipped.
    """
    if spec.task.scenario is not None:
        return run_scenario(spec, Redactor(settings.secrets))
    assert store is not None
    assert spec.task.environment is not None
    started = time.monotonic()
    session = store.session(spec.variant.name)
    if _runs_live(session, settings):
        lacking = not_runnable(spec.task, settings.hosting)
        if lacking is not None:
            return _skipped(spec, lacking, session.redactor, settings.hosting)
    redactor = session.redactor
    playback = settings.playback(spec)
    provider = _provider(spec.model, settings, session, playback)
    answers: Answers = session
    if around is not None:
        answers, provider = around(session, provider)
    machine = settings.hosting.machine(trial_skills(spec.variant, spec.task).environment)
    player = _player(spec, session, answers, provider, machine, settings, playback)
    try:
        trajectory, verdict = player.play()
        trajectory = _skipped_after_all(spec, trajectory, settings, machine)
        session.finish(complete=trajectory.termination_reason not in UNFINISHED)
    finally:
        opened = machine.opened
        machine.close()
    return _trial(
        spec,
        trajectory,
        verdict,
        redactor,
        duration_s=round(time.monotonic() - started, 6),
        replayed=_replayed(spec, session, player.tools, playback),
        ignored=(
            *ignored_by(spec.task, settings.hosting),
            *(() if opened is None else opened.notes),
        ),
        sandbox=None if opened is None else opened.kind,
    )


def _player(
    spec: TrialSpec,
    session: Session,
    answers: Answers,
    provider: Provider,
    machine: Machine,
    settings: TrialSettings,
    playback: Playback,
) -> StepPlayer:
    """What plays the trial's steps, with tools that act on its machine."""
    tools = RecordedTools(
        trial_tools(spec, machine),
        answers,
        mode=settings.tools,
        sandbox=lambda: settings.hosting.chosen().kind,
    )

    def run(step: Step) -> Trajectory:
        loop = trial_loop(
            spec,
            step,
            provider=provider,
            tools=tools,
            clock=lambda: session.elapsed_s,
            agent_timeout=settings.hosting.agent_timeout,
        )
        # With the direct front as well: a tool's own requests go here, and never to the network.
        with http.use(answers, playback=playback):
            trajectory = loop.run(step.instruction, system=spec.system, run_id=spec.trial_id)
        # Before the verdict, which is found by what was said: replay must say the same.
        return session.redactor.record(_true_ending(trajectory, session))

    return StepPlayer(
        task=spec.task,
        session=session,
        tools=tools,
        stage=Stage(spec.task, machine, settings.hosting),
        run=run,
        is_live=settings.tools == "live" and not session.recording,
    )


def _runs_live(session: Session, settings: TrialSettings) -> bool:
    """Whether tools will run: surely where they are to run again or nothing is recorded."""
    return settings.tools == "live" or (session.recording and not session.is_recorded)


def _skipped(spec: TrialSpec, reason: str, redactor: Redactor, hosting: Hosting) -> Trial:
    """A trial that was not begun."""
    trajectory = Trajectory(
        termination_reason=TerminationReason.SKIPPED, run_id=spec.trial_id, error=reason
    )
    ignored = ignored_by(spec.task, hosting)
    return _trial(spec, trajectory, None, redactor, duration_s=0.0, ignored=ignored)


def _skipped_after_all(
    spec: TrialSpec, trajectory: Trajectory, settings: TrialSettings, machine: Machine
) -> Trajectory:
    """A recording that was gone on with until something had to run that cannot run here."""
    ended = trajectory.termination_reason
    if ended is not TerminationReason.INFRASTRUCTURE_ERROR or machine.opened is not None:
        return trajectory
    lacking = not_runnable(spec.task, settings.hosting)
    if lacking is None:
        return trajectory
    skipped = {"termination_reason": TerminationReason.SKIPPED, "error": lacking}
    return trajectory.model_copy(update=skipped)


def _trial(
    spec: TrialSpec,
    trajectory: Trajectory,
    verdict: Verdict | None,
    redactor: Redactor,
    *,
    duration_s: float,
    ignored: tuple[str, ...],
    replayed: Replayed | None = None,
    sandbox: str | None = None,
) -> Trial:
    """The trial, scored and without secrets."""
    record = trial_record(
        spec,
        trajectory,
        verdict,
        score_trial(
            ScoreInput(task=spec.task, model=spec.model, trajectory=trajectory, verdict=verdict)
        ),
        duration_s=duration_s,
        replayed=replayed,
        ignored=ignored,
        sandbox=sandbox,
    )
    return Trial(
        redactor.record(record),
        redactor.record(trajectory),
        None if verdict is None else redactor.record(verdict),
    )


def _replayed(
    spec: TrialSpec, session: Session, tools: RecordedTools, playback: Playback
) -> Replayed:
    """What the trial used of its cassette."""
    return Replayed(
        cassette=cassette_file(spec).as_posix(),
        served=session.served,
        recorded=session.recorded,
        calls_with_retries=None if playback.faults is None else playback.faults.calls,
        tool_differences=len(tools.differences),
        tool_changes=tool_changes(tools.differences, session.redactor),
        request_differences=len(session.turn_differences),
        request_changes=request_changes(session.turn_differences),
        unused=session.unused,
        miss=_first_miss(session),
    )


def _provider(
    model: ModelConfig, settings: TrialSettings, session: Session, playback: Playback
) -> Provider:
    """The vendor's SDK, or the direct front.

    What a broken or a slow answer is to an agent is for the SDK to say, and none of that is fast.
    """
    if settings.front == "http" or playback != Playback():
        return _live_client(model, settings)
    return DirectProvider(dialect_of(model), session, lambda: _live_client(model, settings))


def _live_client(model: ModelConfig, settings: TrialSettings) -> Provider:
    key = settings.api_keys.get(VENDORS[model.provider].key_variable, NO_KEY)
    return live_client(model, key)


def _first_miss(session: Session) -> MissCause | None:
    if not session.misses:
        return None
    return MissCause(cause=session.misses[0].cause, difference=session.misses[0].difference)


def _true_ending(trajectory: Trajectory, session: Session) -> Trajectory:
    """A miss or a model out of reach is the ending, whatever the agent made of it."""
    if session.misses:
        ending, error = TerminationReason.REPLAY_MISS, session.misses[0].text
    elif trajectory.termination_reason is TerminationReason.MODEL_ERROR and session.unanswered:
        # A refusal that was recorded is part of the trial; a server that was gone is not.
        ending, error = TerminationReason.INFRASTRUCTURE_ERROR, trajectory.error or ""
    else:
        return trajectory
    return trajectory.model_copy(update={"termination_reason": ending, "error": error})

"""The one place that wires a trial: model, tools, cassette, loop, verifier and scorers."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from harness.cassette.direct import DirectProvider
from harness.cassette.file.tape import Origin
from harness.cassette.http import use
from harness.cassette.playback import FaultPlan, Playback
from harness.cassette.replay.answers import Answers
from harness.cassette.replay.session import Session
from harness.cassette.replay.store import Store
from harness.cassette.replay.tool_results import RecordedTools
from harness.cassette.request.rules import Rules
from harness.errors import BadInputError, InfrastructureError
from harness.protocols import Provider
from harness.providers.catalog import NO_KEY, VENDORS, dialect_of, live_client
from harness.redaction import Redactor
from harness.runner.plan import Cell, TrialSpec
from harness.runner.replay_difference import request_changes, tool_changes
from harness.runner.scenario_trial import run_scenario
from harness.runner.trial_loop import trial_loop, trial_tools
from harness.runner.trial_record import Replayed, Trial, transcript_digest, trial_record
from harness.runner.verifier import verify
from harness.sandbox.choose import best
from harness.schema.loop_config import UNSCORED, TerminationReason
from harness.schema.recording import Front, Pace
from harness.schema.results import MissCause, RecordMode, ToolsMode, Verdict
from harness.schema.suite import ModelConfig
from harness.schema.trajectory import Trajectory
from harness.scorers.standard import score_trial
from harness.tools.machine import Machine
from harness.values import ScoreInput

UNFINISHED = (TerminationReason.INFRASTRUCTURE_ERROR, TerminationReason.CANCELLED)
"""Endings that replay would not come to: recording again goes on with such a trial."""


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
    """Run one trial in one working folder against one cassette, and score it.

    A scenario needs neither: what its model and its tools do is written down.
    """
    if spec.task.scenario is not None:
        return run_scenario(spec, Redactor(settings.secrets))
    assert store is not None
    assert spec.task.environment is not None
    started = time.monotonic()
    session = store.session(spec.variant.name)
    redactor = session.redactor
    playback = settings.playback(spec)
    provider = _provider(spec.model, settings, session, playback)
    answers: Answers = session
    if around is not None:
        answers, provider = around(session, provider)
    machine = Machine(spec.task.environment, best)
    tools = RecordedTools(
        trial_tools(spec, machine),
        answers,
        mode=settings.tools,
        sandbox=lambda: best().kind,
    )
    try:
        loop = trial_loop(
            spec,
            provider=provider,
            tools=tools,
            clock=lambda: session.elapsed_s,
        )
        # With the direct front as well: a tool's own requests go here, and never to the network.
        with use(answers, playback=playback):
            trajectory = loop.run(spec.task.instruction, system=spec.system, run_id=spec.trial_id)
        # Before the verdict, which is found by what was said: replay must say the same.
        trajectory = redactor.record(_true_ending(trajectory, session))
        verdict, trajectory = _verdict(spec, trajectory, session, tools, machine, settings)
        session.finish(complete=trajectory.termination_reason not in UNFINISHED)
    finally:
        machine.close()
    duration_s = round(time.monotonic() - started, 6)
    scores = score_trial(
        ScoreInput(task=spec.task, model=spec.model, trajectory=trajectory, verdict=verdict)
    )
    record = trial_record(
        spec,
        trajectory,
        verdict,
        scores,
        duration_s=duration_s,
        replayed=_replayed(spec, session, tools, playback),
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


def _verdict(
    spec: TrialSpec,
    trajectory: Trajectory,
    session: Session,
    tools: RecordedTools,
    machine: Machine,
    settings: TrialSettings,
) -> tuple[Verdict | None, Trajectory]:
    """The verifier's word, recorded or live; a sandbox that fails changes the ending."""
    if trajectory.termination_reason in UNSCORED:
        return None, trajectory
    transcript = transcript_digest(trajectory)
    live = settings.tools == "live" and not session.recording
    recorded = session.verdict(transcript, spec.task.tests_digest)
    if (recorded is not None or not session.recording) and not live:
        return recorded, trajectory
    try:
        tools.rebuild()
        verdict = verify(
            spec.task.steps[0].verifier,
            machine.container,
            answer=trajectory.final_text,
            output=trajectory.output,
            output_seen=trajectory.output_seen,
        )
    except InfrastructureError as error:
        broken = {
            "termination_reason": TerminationReason.INFRASTRUCTURE_ERROR,
            "error": str(error),
        }
        return None, trajectory.model_copy(update=broken)
    if session.recording and trajectory.termination_reason not in UNFINISHED:
        return session.record_verdict(transcript, spec.task.tests_digest, verdict), trajectory
    return verdict, trajectory

"""The one place that wires a trial: model, tools, cassette, loop, verifier and scorers."""

from __future__ import annotations

import shlex
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from harness.cassette.canonical import digest
from harness.cassette.http import use
from harness.cassette.redact import Redactor
from harness.cassette.session import Session
from harness.cassette.store import Store
from harness.cassette.tape import Origin
from harness.cassette.tool_results import RecordedTools
from harness.errors import InfrastructureError
from harness.loader.output import output_spec
from harness.loop.engine import Loop
from harness.loop.skills import with_skills
from harness.protocols import Provider, ScoreInput
from harness.providers.catalog import VENDORS, all_dialects, live_client
from harness.runner.log import TRAJECTORIES
from harness.runner.plan import Cell, TrialSpec
from harness.runner.tool_difference import first_difference
from harness.runner.verifier import verify
from harness.sandbox.probe import best
from harness.schema.loop_config import UNSCORED, LoopConfig, TerminationReason
from harness.schema.results import RecordMode, ToolsMode, TrialRecord, Verdict
from harness.schema.suite import ModelConfig
from harness.schema.trajectory import Trajectory
from harness.scorers.efficiency import cost_usd
from harness.scorers.outcome import outcome
from harness.scorers.standard import score_trial
from harness.tools.builtin import builtin_tools
from harness.tools.registry import Registry
from harness.tools.workspace import Workspace

NO_KEY = "no-key"
"""Sent where no key is set: local servers take any, and replaying sends nothing."""

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


@dataclass(frozen=True, slots=True)
class Trial:
    """A finished trial: its line in the log, and its story. Neither holds a secret."""

    record: TrialRecord
    trajectory: Trajectory
    verdict: Verdict | None


def cassette_file(cell: Cell | TrialSpec) -> Path:
    """Where a cell's cassette is, relative to the cassettes folder."""
    return Path(cell.suite, cell.task.name, f"{cell.repeat}.jsonl")


def open_cassette(cell: Cell, settings: TrialSettings) -> Store:
    """The cassette that all trials of a cell share.

    Raises:
        CassetteError: the file is damaged, cut or of another format.
    """
    return Store.open(
        settings.cassettes / cassette_file(cell),
        settings.record_mode,
        origin=Origin(cell.suite, cell.task.name, cell.repeat, cell.task.digest),
        redactor=Redactor(settings.secrets),
        record_hint=shlex.join(
            (
                *("harness", "run", settings.suite_argument, "--task", cell.task.name),
                *settings.record_options,
                *("--record-mode", "new_episodes", "--allow-live"),
            )
        ),
    )


def run_trial(spec: TrialSpec, store: Store, settings: TrialSettings) -> Trial:
    """Run one trial in one working folder against one cassette, and score it."""
    started = time.monotonic()
    redactor = Redactor(settings.secrets)
    workspace = Workspace(spec.task.workdir)
    session = store.session(spec.variant.name)
    tools = RecordedTools(
        Registry(builtin_tools(spec.task.tools, workspace, best)),
        session,
        mode=settings.tools,
        sandbox=lambda: best().kind,
    )
    try:
        loop = Loop(
            _live_client(spec.model, settings),
            model=spec.model.name,
            tools=tools,
            output=output_spec(spec.task),
            config=_loop_config(spec),
            temperature=spec.model.temperature,
            clock=lambda: session.elapsed_s,
        )
        with use(session, all_dialects()):
            trajectory = loop.run(spec.task.instruction, system=_system(spec))
        # Before the verdict, which is found by what was said: replay must say the same.
        trajectory = redactor.record(_true_ending(trajectory, session))
        verdict, trajectory = _verdict(spec, trajectory, session, tools, workspace, settings)
        session.finish(complete=trajectory.termination_reason not in UNFINISHED)
    finally:
        workspace.close()
    duration_s = round(time.monotonic() - started, 6)
    record = _record(spec, trajectory, verdict, session, tools, duration_s)
    return Trial(
        redactor.record(record),
        redactor.record(trajectory),
        None if verdict is None else redactor.record(verdict),
    )


def _live_client(model: ModelConfig, settings: TrialSettings) -> Provider:
    key = settings.api_keys.get(VENDORS[model.provider].key_variable, NO_KEY)
    return live_client(model, key)


def _loop_config(spec: TrialSpec) -> LoopConfig:
    """The variant's settings, within the time that the task gives."""
    config, limit = spec.variant.loop, spec.task.agent_timeout_s
    own = config.budget.max_duration_s
    if limit is None or (own is not None and own <= limit):
        return config
    budget = config.budget.model_copy(update={"max_duration_s": limit})
    return config.model_copy(update={"budget": budget})


def _system(spec: TrialSpec) -> str:
    active = spec.task.skills if spec.variant.skills == "curated" else ()
    return with_skills(spec.system, active)


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
    workspace: Workspace,
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
            spec.task,
            workspace.path,
            best(),
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


def transcript_digest(trajectory: Trajectory) -> str:
    """Identity of what was said and handed in, word for word."""
    dumped = trajectory.model_dump(mode="json")
    parts = ("system", "messages", "final_text", "output_seen", "output")
    return digest({part: dumped[part] for part in parts})


def _record(
    spec: TrialSpec,
    trajectory: Trajectory,
    verdict: Verdict | None,
    session: Session,
    tools: RecordedTools,
    duration_s: float,
) -> TrialRecord:
    scores = score_trial(
        ScoreInput(task=spec.task, model=spec.model, trajectory=trajectory, verdict=verdict)
    )
    variant = spec.variant.model_dump(mode="json", exclude={"name", "description", "tasks"})
    return TrialRecord(
        trial_id=spec.trial_id,
        suite=spec.suite,
        task=spec.task.name,
        variant=spec.variant.name,
        repeat=spec.repeat,
        termination_reason=trajectory.termination_reason,
        outcome=outcome(verdict),
        iterations=trajectory.iterations,
        attempts=trajectory.attempts,
        model_calls=trajectory.model_calls,
        tool_calls_made=trajectory.tool_calls_made,
        tools_used=trajectory.tools_used,
        validation_failures=len(trajectory.validation_failures),
        confirmed=trajectory.confirmed,
        usage=trajectory.usage,
        cost_usd=cost_usd(trajectory.usage, spec.model.price),
        duration_s=duration_s,
        scores=scores,
        error=trajectory.error,
        response_models=trajectory.models,
        mixed=len(trajectory.models) > 1,
        served=session.served,
        recorded=session.recorded,
        tool_differences=len(tools.differences),
        first_tool_difference=first_difference(tools.differences, session.redactor),
        transcript_digest=transcript_digest(trajectory),
        task_digest=spec.task.digest,
        variant_digest=digest(variant),
        cassette=cassette_file(spec).as_posix(),
        trajectory=f"{TRAJECTORIES}/{spec.trial_id}.json",
    )

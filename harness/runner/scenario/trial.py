"""Wires a scenario: scripted model, behaving tools, loop and expectations."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import cast

from harness.errors import ConfigurationError, RunFailedError, error_line
from harness.loader.output import output_spec
from harness.loader.scenarios import scenario_loop
from harness.loop.engine import Loop
from harness.redaction import Redactor
from harness.runner.plan import TrialSpec
from harness.runner.scenario.parts import (
    ScenarioModel,
    raising_callbacks,
    scenario_checks,
    scenario_hooks,
    scenario_tools,
    terminal_check,
)
from harness.runner.scenario.stage import Stage
from harness.runner.trial_record import Trial, trial_record
from harness.schema.loop_config import TerminationReason
from harness.schema.messages import Message, Text
from harness.schema.results import Verdict
from harness.schema.scenario import Scenario
from harness.schema.suite import Skill
from harness.schema.trajectory import Event, SuspendedRun, Trajectory
from harness.scorers.scenario import NAME, PlayedScenario, score_scenario
from harness.scorers.standard import score_trial
from harness.values import ScoreInput


def run_scenario(spec: TrialSpec, redactor: Redactor) -> Trial:
    """Play one scenario and hold what came of it against its expectations."""
    scenario = spec.task.scenario
    assert scenario is not None
    started = time.monotonic()
    played = play(spec, scenario)
    duration_s = round(time.monotonic() - started, 6)
    score = score_scenario(scenario, played)
    trajectory = played.trajectory or _no_run(played)
    assert isinstance(score.value, float)
    verdict = Verdict(rewards={"reward": score.value}, log=score.explanation)
    scores = score_trial(
        ScoreInput(task=spec.task, model=spec.model, trajectory=trajectory, verdict=verdict)
    )
    record = trial_record(spec, trajectory, verdict, {NAME: score, **scores}, duration_s=duration_s)
    return Trial(redactor.record(record), redactor.record(trajectory), redactor.record(verdict))


def _no_run(played: PlayedScenario) -> Trajectory:
    error = played.failure
    if played.config_error is not None:
        error = f"the loop was refused: {played.config_error}"
    return Trajectory(termination_reason=TerminationReason.ERROR, error=error)


def play(spec: TrialSpec, scenario: Scenario) -> PlayedScenario:
    """Build the loop and let it make its runs; whatever goes wrong is part of what is seen."""
    stage = Stage(scenario)
    try:
        loop = _loop(spec, scenario, stage)
    except ConfigurationError as error:
        return PlayedScenario(None, config_error=str(error))
    trajectory, failure = None, None
    try:
        trajectory = _runs(loop, scenario, stage)
    except _CannotResume as error:
        trajectory, failure = error.trajectory, str(error)
    except Exception as error:  # noqa: BLE001 - the engine is what is checked here
        failure = error_line(error)
    finally:
        stage.close()
    return PlayedScenario(
        trajectory,
        failure=failure,
        requests=tuple(stage.requests),
        events=tuple(stage.events),
        tool_arguments=dict(stage.tool_arguments),
        paused_before_call=stage.paused_before_call,
        model_calls=stage.model_calls,
    )


def _loop(spec: TrialSpec, scenario: Scenario, stage: Stage) -> Loop:
    signal = scenario.on_iteration_limit
    loop = Loop(
        ScenarioModel(scenario, stage),
        model=spec.model.name,
        tools=scenario_tools(scenario, stage),
        output=output_spec(spec.task),
        config=scenario_loop(spec.task, spec.variant),
        terminal_tools=scenario.terminal_tools,
        terminal_check=terminal_check(scenario.signals),
        on_iteration_limit=None if signal is None else lambda: signal,
        hooks=scenario_hooks(scenario, stage),
        checks=scenario_checks(scenario.governance),
        skills=_skills(scenario),
        active_skills=scenario.active_skills,
        observers=(stage.observe, raising_callbacks(scenario)),
    )
    stage.loop = loop
    return loop


def _skills(scenario: Scenario) -> list[Skill]:
    return [
        Skill(
            name=name,
            description=skill.description,
            instructions=skill.instructions,
            allowed_tools=skill.allowed_tools,
            disallowed_tools=skill.disallowed_tools,
        )
        for name, skill in scenario.skills.items()
    ]


class _CannotResume(Exception):
    """The run to be resumed did not end suspended."""

    def __init__(self, trajectory: Trajectory) -> None:
        super().__init__(f"a run that ended {trajectory.termination_reason}: nothing to resume")
        self.trajectory = trajectory


def _runs(loop: Loop, scenario: Scenario, stage: Stage) -> Trajectory:
    messages = [
        Message(role=said.role, content=(Text(text=said.content),)) for said in scenario.messages
    ]
    for number in range(scenario.runs):
        stage.begin_run()
        if number == 0:
            stage.cancel_if("before_start")
        trajectory = _run(loop, messages, scenario.system)
    if scenario.resume is None:
        return trajectory
    if trajectory.suspended is None:
        raise _CannotResume(trajectory)
    stage.begin_part()
    # Through its JSON: whoever resumes a run may have kept it in a file.
    state = SuspendedRun.model_validate_json(trajectory.suspended.model_dump_json())
    reply = scenario.resume.text
    return _ended(lambda: loop.resume_suspended(state, reply))


def _run(loop: Loop, messages: Sequence[Message], system: str | None) -> Trajectory:
    if loop.config.stream:
        return _ended(lambda: _streamed(loop.stream(messages, system=system)))
    return _ended(lambda: loop.run(messages, system=system))


def _streamed(events: Iterable[Event]) -> Trajectory:
    *_, last = events
    if not isinstance(last.payload, Trajectory):
        raise TypeError(f"the last event streamed is {last.kind}, without the run's result")
    return last.payload


def _ended(run: Callable[[], Trajectory]) -> Trajectory:
    """What a run came to, also where it is set to raise on failure."""
    try:
        return run()
    except RunFailedError as error:
        return cast(Trajectory, error.trajectory)

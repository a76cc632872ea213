"""The loop of a trial, and whether a plan's trials have loops that can work."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from harness.errors import ConfigurationError
from harness.loader.output import output_spec
from harness.loader.task.skills import offered_tools, trial_skills
from harness.loop.engine import Loop
from harness.protocols import Provider, ToolProvider
from harness.providers.scripted import Scripted
from harness.runner.plan import TrialSpec
from harness.sandbox.choose import sandbox
from harness.schema.environment import Step
from harness.schema.loop_config import LoopConfig
from harness.tools.builtin import builtin_tools
from harness.tools.machine import Machine
from harness.tools.recorded import RecordedTool
from harness.tools.registry import Registry
from harness.tools.skills import LoadSkill


def trial_loop(
    spec: TrialSpec,
    step: Step,
    *,
    provider: Provider,
    tools: ToolProvider,
    clock: Callable[[], float],
    agent_timeout: float = 1.0,
) -> Loop:
    """The loop that a step of a trial runs.

    Args:
        spec: The trial.
        step: The step of its task.
        provider: What answers.
        tools: What the agent may call.
        clock: Seconds; only differences count.
        agent_timeout: The agent gets this times the time that its task gives.

    Raises:
        ConfigurationError: it could never work.
    """
    given = trial_skills(spec.variant, spec.task)
    skills = () if given.on_demand else given.skills
    return Loop(
        provider,
        model=spec.model.name,
        tools=tools,
        output=output_spec(spec.task),
        config=_loop_config(spec, step, agent_timeout),
        temperature=spec.model.temperature,
        price=spec.model.price,
        skills=skills,
        active_skills=[skill.name for skill in skills],
        clock=clock,
    )


def trial_tools(spec: TrialSpec, machine: Machine) -> Registry:
    """The live tools of a trial."""
    builtin = builtin_tools(offered_tools(spec.variant, spec.task), machine)
    recorded = map(RecordedTool, spec.task.recorded_tools)
    given = trial_skills(spec.variant, spec.task)
    on_demand = [LoadSkill(given.skills, given.root)] if given.on_demand else []
    return Registry((*builtin, *recorded, *on_demand))


def check_loops(specs: Iterable[TrialSpec]) -> None:
    """Build the loop of each trial once, so that no run breaks off where one cannot be.

    Scenarios are left out: some expect to be refused.

    Raises:
        ConfigurationError: names file, variant and task.
    """
    for spec in specs:
        if spec.task.environment is None:
            continue
        tools = trial_tools(spec, Machine(spec.task.environment, sandbox))
        try:
            for step in spec.task.steps:
                trial_loop(spec, step, provider=Scripted([]), tools=tools, clock=time.monotonic)
        except ConfigurationError as error:
            file = spec.task.folder.parent / "suite.toml"
            where = f"{file}: variant {spec.variant.name!r} on task {spec.task.name!r}"
            raise ConfigurationError(f"{where}: {error}") from error


def _loop_config(spec: TrialSpec, step: Step, agent_timeout: float) -> LoopConfig:
    """The variant's settings, within the time that the step gives."""
    config = spec.variant.loop
    if step.agent_timeout_s is None:
        return config
    limit = step.agent_timeout_s * agent_timeout
    own = config.budget.max_duration_s
    if own is not None and own <= limit:
        return config
    budget = config.budget.model_copy(update={"max_duration_s": limit})
    return config.model_copy(update={"budget": budget})

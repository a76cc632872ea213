"""Wires the parts of one run."""

from __future__ import annotations

from dataclasses import dataclass

from harness.loop.audit import AuditLog
from harness.loop.breaker import Breaker
from harness.loop.budget import BudgetMeter
from harness.loop.completion import TextCompletion
from harness.loop.control import Control
from harness.loop.endings import Ending
from harness.loop.events import EventLog
from harness.loop.foreign import specs_of
from harness.loop.governance import Governor
from harness.loop.guards import Guards
from harness.loop.handed_in import HandedIn
from harness.loop.hooks import HookChain, HookFailures
from harness.loop.model_calls import ModelCaller
from harness.loop.recall import MOST_ITEMS, with_recalled
from harness.loop.requests import ModelOptions, Requests
from harness.loop.setup import Setup
from harness.loop.skills import narrowed, with_skills
from harness.loop.stopping import LoopDetector, StopConditions
from harness.loop.text_protocols import PROTOCOLS, TextProtocolProvider
from harness.loop.tool_calls import ToolCallAnswerer
from harness.loop.transcript import Transcript
from harness.schema.messages import ToolSpec
from harness.schema.record import storable
from harness.schema.trajectory import SuspendedRun


@dataclass(frozen=True, slots=True)
class Parts:
    """What a run is made of."""

    setup: Setup
    system: str | None
    transcript: Transcript
    events: EventLog
    control: Control
    hooks: HookChain
    requests: Requests
    model: ModelCaller
    handed_in: HandedIn
    answerer: ToolCallAnswerer
    completion: TextCompletion
    budget: BudgetMeter
    loop_detector: LoopDetector
    stop_conditions: StopConditions

    def offered(self) -> tuple[ToolSpec, ...] | Ending:
        """The tools of the next model call: helpers, then output, then submit.

        An ending when the tools fail to say what they are.
        """
        setup = self.setup
        helpers = specs_of(setup.tools)
        if isinstance(helpers, Ending):
            return helpers
        return (*narrowed(helpers, setup.active), *self.handed_in.specs())


def fresh_parts(
    setup: Setup,
    transcript: Transcript,
    system: str | None,
    *,
    query: str,
    run_id: str,
    control: Control,
    hook_failures: HookFailures,
) -> Parts:
    """The parts of a run that begins.

    Args:
        setup: What the loop was made with.
        transcript: The conversation to begin with.
        system: The system prompt; skills and what is recalled come after it.
        query: What to recall for.
        run_id: Names the run.
        control: What was asked of the run already.
        hook_failures: Counts of the loop's hooks.
    """
    events = EventLog(setup.observers, setup.clock, run_id=run_id)
    hooks = HookChain(setup.hooks, hook_failures, events)
    system = _full_system(setup, system, query, events)
    budget = BudgetMeter(setup.config.budget, setup.price)
    return _wired(setup, transcript, system, events, control, hooks, budget)


def resumed_parts(
    setup: Setup,
    state: SuspendedRun,
    text: str,
    *,
    control: Control,
    hook_failures: HookFailures,
) -> Parts:
    """The parts of a suspended run that goes on with the user's text; every meter is kept."""
    transcript = Transcript(state.messages)
    transcript.add_user(text)
    events = EventLog(setup.observers, setup.clock, run_id=state.run_id, elapsed_s=state.elapsed_s)
    events.iteration = state.iterations
    hooks = HookChain(setup.hooks, hook_failures, events)
    budget = BudgetMeter(
        setup.config.budget,
        setup.price,
        calls_made=len(state.tools_executed),
        files_modified=state.files_modified,
        lines_changed=state.lines_changed,
    )
    parts = _wired(setup, transcript, state.system, events, control, hooks, budget)
    parts.model.take_over(state)
    parts.answerer.executed.extend(state.tools_executed)
    return parts


def _wired(
    setup: Setup,
    transcript: Transcript,
    system: str | None,
    events: EventLog,
    control: Control,
    hooks: HookChain,
    budget: BudgetMeter,
) -> Parts:
    config = setup.config
    handed_in = HandedIn(setup.output, config, events)
    guards = Guards(
        config=config,
        tools=setup.tools,
        hooks=hooks,
        governor=Governor(config.governance, setup.checks, setup.clock),
        budget=budget,
        breaker=Breaker(config.breaker),
    )
    provider = setup.provider
    if config.text_protocol is not None:
        provider = TextProtocolProvider(provider, PROTOCOLS[config.text_protocol])
    return Parts(
        setup=setup,
        system=system,
        transcript=transcript,
        events=events,
        control=control,
        hooks=hooks,
        requests=Requests(
            config, ModelOptions(setup.model, system, setup.temperature), transcript, events
        ),
        model=ModelCaller(
            provider,
            config,
            events=events,
            redact=setup.redact,
            vendor=getattr(setup.provider, "vendor", None),
        ),
        handed_in=handed_in,
        answerer=ToolCallAnswerer(
            config=config,
            tools=setup.tools,
            terminal_tools=setup.terminal_tools,
            handed_in=handed_in,
            guards=guards,
            control=control,
            events=events,
            audit=AuditLog(events.run_id, setup.redact),
        ),
        completion=TextCompletion(
            config, setup.output, events, has_terminal_tools=bool(setup.terminal_tools)
        ),
        budget=budget,
        loop_detector=LoopDetector(config.loop_detection),
        stop_conditions=StopConditions(config, setup.stop_conditions),
    )


def _full_system(setup: Setup, system: str | None, query: str, events: EventLog) -> str | None:
    """The system prompt with skills and with what is recalled for the task."""
    if setup.skills:
        system = with_skills(system, setup.skills, setup.active)
    if setup.recall is None:
        return system
    try:
        found = setup.recall.search(query, MOST_ITEMS)
        return with_recalled(system, [storable(item) for item in found])
    except Exception as error:  # noqa: BLE001 - what cannot be recalled never breaks a run
        events.collect("recall", error)
        return system

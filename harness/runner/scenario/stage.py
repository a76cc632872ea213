"""What happens around a scripted run: it is watched, cancelled, spoken to and resumed."""

from __future__ import annotations

import threading
from collections import defaultdict

from harness.loop.engine import Loop
from harness.schema.record import JsonObject
from harness.schema.scenario import Scenario
from harness.schema.trajectory import Event, EventKind
from harness.scorers.scenario import SentRequest
from harness.values import IterationPlan, ToolInvocation


class Stage:
    """Sees a run from outside and from inside its model, tools and hooks, and acts on it.

    A cancel and an injected text each happen once, at the first occasion; what is seen is that of
    the last run.
    """

    def __init__(self, scenario: Scenario) -> None:
        self.loop: Loop | None = None
        """Set once it is built: the loop is built from what refers to the stage."""
        self.iteration = 0
        self.resume_after_s = 0.0
        """Of the hook that asks to pause."""
        self.requests: list[SentRequest] = []
        self.model_calls = 0
        """Over all runs."""
        self.events: list[EventKind] = []
        self.tool_arguments: dict[str, list[JsonObject]] = defaultdict(list)
        self.paused_before_call: int | None = None
        self._is_paused = False
        self._cancel = scenario.cancel
        self._injections = list(scenario.inject)
        self._timers: list[threading.Timer] = []

    def begin_run(self) -> None:
        """Forget what was seen of the run before."""
        self.iteration = 0
        self.requests.clear()
        self.tool_arguments.clear()
        self.paused_before_call = None
        self.begin_part()

    def begin_part(self) -> None:
        """A run, or a suspended one that is taken up again: its events are told anew."""
        self.events.clear()

    def observe(self, event: Event) -> None:
        """Take note of an event, and end a pause that begins with it after its time."""
        self.events.append(event.kind)
        self.iteration = event.iteration
        if event.kind == "tool_started" and isinstance(event.payload, ToolInvocation):
            self.tool_arguments[event.payload.name].append(event.payload.arguments)
        if event.kind == "paused":
            self._hold()
        if event.kind == "resumed":
            self._is_paused = False

    def _hold(self) -> None:
        assert self.loop is not None
        if self.paused_before_call is None:
            self.paused_before_call = len(self.requests) + 1
            self._is_paused = True
        timer = threading.Timer(self.resume_after_s, self.loop.resume)
        timer.daemon = True
        self._timers.append(timer)
        timer.start()

    def model_called(self, sent: SentRequest) -> None:
        """Called by the scripted model before it answers."""
        assert self.loop is not None
        self.requests.append(sent)
        self.model_calls += 1
        if self._is_paused:
            # The pause did not hold this call back.
            self.paused_before_call = None
        self.cancel_if("in_model")
        for injection in [one for one in self._injections if one.at == self.iteration]:
            self._injections.remove(injection)
            self.loop.inject(injection.text)

    def before_iteration(self, plan: IterationPlan) -> None:
        """Called as a hook."""
        self.iteration = plan.iteration
        self.cancel_if("before_iteration")

    def cancel_if(self, occasion: str) -> None:
        """Cancel the run where the scenario says so."""
        cancel = self._cancel
        if cancel is None or cancel.when != occasion or cancel.at not in (None, self.iteration):
            return
        self._cancel = None
        assert self.loop is not None
        self.loop.cancel("the scenario cancels the run")

    def close(self) -> None:
        """End the timers of pauses that ended otherwise."""
        for timer in self._timers:
            timer.cancel()
            timer.join()

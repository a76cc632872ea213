"""A loop: one configuration, and the runs that are made with it."""

from __future__ import annotations

import queue
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextvars import copy_context
from dataclasses import dataclass, field, fields

from harness.errors import ConfigurationError, RunFailedError
from harness.loop.configuration import check_configuration
from harness.loop.control import Control
from harness.loop.given import check_messages, check_suspended, check_text
from harness.loop.hooks import HookFailures
from harness.loop.parts import Parts, fresh_parts, resumed_parts
from harness.loop.progress import Progress, resumed_progress
from harness.loop.run import Run
from harness.loop.setup import Setup
from harness.loop.transcript import Transcript, user_text
from harness.schema.loop_config import SUCCEEDED
from harness.schema.messages import Message
from harness.schema.trajectory import Event, SuspendedRun, Trajectory


@dataclass(frozen=True, eq=False)
class Loop(Setup):
    """One configuration of the loop. It makes one run at a time.

    A run is a fresh conversation, or with `history = "continue"` goes on with that of the last
    run. Hooks live as long as the loop.
    """

    _state: _State = field(default_factory=lambda: _State(), init=False, repr=False)

    def __post_init__(self) -> None:
        """Refuse what could never work.

        Raises:
            ConfigurationError: says what to add or to remove.
        """
        check_configuration(self)

    def run(
        self,
        messages: str | Sequence[Message],
        *,
        system: str | None = None,
        run_id: str | None = None,
    ) -> Trajectory:
        """Run one conversation to its end.

        Args:
            messages: The conversation so far, or the text of its one user message. It is copied.
            system: The system prompt.
            run_id: Names the run in events, logs and traces; a random one if not given.

        Raises:
            RunFailedError: only with `raise_on_failure`, when the run failed.
        """
        return self._start(self, messages, system, run_id)

    def resume_suspended(self, state: SuspendedRun, text: str) -> Trajectory:
        """Go on with a suspended run: iterations, budget, usage and what else its state holds.

        The rate limit, the breaker and the rows of failures and repeated turns begin anew.

        The loop should be made like the one that was suspended: model, tools, output and settings
        are its own, and are not in the state. A tool that is gone is an unknown one to the model.

        Args:
            state: What `Trajectory.suspended` held.
            text: The answer that was waited for; the model reads it as the user's.

        Raises:
            ConfigurationError: the run has called tools, and this loop has none.
            RunFailedError: only with `raise_on_failure`, when the run failed.
        """
        check_suspended(self, state)
        check_text("text", text)

        def parts(control: Control) -> Parts:
            return resumed_parts(
                self, state, text, control=control, hook_failures=self._state.hook_failures
            )

        return self._run(parts, resumed_progress(state))

    def stream(
        self,
        messages: str | Sequence[Message],
        *,
        system: str | None = None,
        run_id: str | None = None,
    ) -> Iterator[Event]:
        """Run one conversation, with its events as they happen and answers as they are written.

        The last event is `run_completed`; its payload is the trajectory. Closing the iterator
        early cancels the run.

        Raises:
            RunFailedError: only with `raise_on_failure`, when the run failed.
        """
        events: queue.SimpleQueue[Event | BaseException | None] = queue.SimpleQueue()
        given = {one.name: getattr(self, one.name) for one in fields(Setup)}
        given["config"] = self.config.model_copy(update={"stream": True})
        given["observers"] = (*self.observers, events.put)
        streaming = Setup(**given)
        begun: list[Control] = []

        def work() -> None:
            try:
                self._start(streaming, messages, system, run_id, begun.append)
            except BaseException as error:  # noqa: BLE001 - raised again where they are read
                events.put(error)
            finally:
                events.put(None)

        thread = threading.Thread(target=copy_context().run, args=(work,), daemon=True)
        thread.start()
        try:
            while (event := events.get()) is not None:
                if isinstance(event, BaseException):
                    raise event
                yield event
            begun.clear()
        finally:
            # Not the loop's own `cancel`: once this run is over that would hit the next one.
            for control in begun:
                control.cancel("nobody reads its events any more")
            thread.join()

    def cancel(self, reason: str = "") -> None:
        """Start no further model call in the current run, or in the next if none is running."""
        check_text("reason", reason)
        self._state.control.cancel(reason)

    def pause(self, reason: str = "") -> None:
        """Hold the next model call until `resume`."""
        check_text("reason", reason)
        self._state.control.pause(reason)

    def resume(self) -> None:
        """Go on after a pause."""
        self._state.control.resume()

    def inject(self, text: str) -> None:
        """Say something to the model with the next user turn, after the results of its calls."""
        check_text("text", text)
        self._state.control.inject(text)

    def _start(
        self,
        setup: Setup,
        messages: str | Sequence[Message],
        system: str | None,
        run_id: str | None,
        begun: Callable[[Control], None] = lambda _: None,
    ) -> Trajectory:
        check_messages(messages)
        check_text("system", system, optional=True)
        check_text("run_id", run_id, optional=True)
        given = (user_text(messages),) if isinstance(messages, str) else tuple(messages)

        def parts(control: Control) -> Parts:
            begun(control)
            transcript = Transcript(self._state.history or given)
            if self._state.history:
                transcript.extend(given)
            return fresh_parts(
                setup,
                transcript,
                system,
                query=given[-1].text,
                run_id=run_id or uuid.uuid4().hex,
                control=control,
                hook_failures=self._state.hook_failures,
            )

        return self._run(parts, Progress())

    def _run(self, parts: Callable[[Control], Parts], progress: Progress) -> Trajectory:
        state = self._state
        if not state.running.acquire(blocking=False):
            raise ConfigurationError("this loop is running already: make another loop for each run")
        try:
            trajectory = Run(parts(state.control), progress).to_the_end()
            if self.config.history == "continue":
                state.history = trajectory.messages
        finally:
            state.control = Control()
            state.running.release()
        if self.config.raise_on_failure and trajectory.termination_reason not in SUCCEEDED:
            why = trajectory.error or "no further detail"
            raise RunFailedError(
                f"the run ended {trajectory.termination_reason}: {why}", trajectory
            )
        return trajectory


class _State:
    """What a loop remembers between its runs."""

    def __init__(self) -> None:
        self.control = Control()
        self.hook_failures: HookFailures = HookFailures()
        self.history: Sequence[Message] = ()
        self.running = threading.Lock()

"""The event log of one run: kept for the trajectory, and shown to observers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from harness.errors import error_line
from harness.protocols import Observer
from harness.schema.record import Json, JsonObject, storable
from harness.schema.trajectory import Event, EventKind, Trajectory


class EventLog:
    """Numbers and dates events, keeps them, and isolates observers that raise."""

    def __init__(
        self,
        observers: Sequence[Observer],
        clock: Callable[[], float],
        *,
        run_id: str = "",
        elapsed_s: float = 0,
    ) -> None:
        """Begin a log.

        Args:
            observers: See every event.
            clock: Seconds; only differences count.
            run_id: Carried by each event.
            elapsed_s: Seconds the run took before, when it is one that was suspended.
        """
        self.observers = tuple(observers)
        self.events: list[Event] = []
        self.callback_errors: list[str] = []
        self.iteration = 0
        self.run_id = run_id
        self.clock = clock
        self.started = clock() - elapsed_s

    @property
    def elapsed_s(self) -> float:
        """Seconds since the run began."""
        return self.clock() - self.started

    def emit(self, kind: EventKind, /, *, payload: object = None, **data: Json) -> None:
        """Record an event and show it to every observer, with the live object it is about.

        Of the deltas of a streamed answer only the first is kept, for its time: the answer
        itself holds them all.
        """
        event = self._record(kind, data)
        if self.observers:
            self._show(event, payload)

    def conclude(self, trajectory: Trajectory, **data: Json) -> Trajectory:
        """Emit the last event; the trajectory that it shows, and gives back, holds all of them.

        Each observer is shown what those before it raised as well, so that the last one, which
        may be the reader of a stream, gets what the caller gets.
        """
        event = self._record("run_completed", data)
        for observer in self.observers:
            payload = self._completed(trajectory)
            self._show_to(observer, event.model_copy(update={"payload": payload}))
        return self._completed(trajectory)

    def collect(self, what: str, error: Exception) -> None:
        """Note an error of the user's code that must not break the run."""
        self.note(f"{what}: {error_line(error)}")

    def note(self, what: str) -> None:
        """Note what went wrong in the user's code."""
        self.callback_errors.append(storable(what))

    def _completed(self, trajectory: Trajectory) -> Trajectory:
        told = {"events": tuple(self.events), "callback_errors": tuple(self.callback_errors)}
        return trajectory.model_copy(update=told)

    def _record(self, kind: EventKind, data: JsonObject) -> Event:
        event = Event(
            kind=kind,
            iteration=self.iteration,
            at_s=round(self.elapsed_s, 6),
            data={
                key: storable(value) if isinstance(value, str) else value
                for key, value in data.items()
            },
            run_id=self.run_id,
        )
        if kind != "model_delta" or self.events[-1].kind != "model_delta":
            self.events.append(event)
        return event

    def _show(self, event: Event, payload: object) -> None:
        event = event.model_copy(update={"payload": payload})
        for observer in self.observers:
            self._show_to(observer, event)

    def _show_to(self, observer: Observer, event: Event) -> None:
        try:
            observer(event)
        except Exception as error:  # noqa: BLE001 - an observer never breaks a run
            raised = error.exceptions if isinstance(error, ExceptionGroup) else (error,)
            for one in raised:
                self.collect(event.kind, one)

"""The event log of one run: kept for the trajectory, and shown to observers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from harness.protocols import Observer
from harness.schema.record import Json
from harness.schema.trajectory import Event, EventKind


class EventLog:
    """Numbers and dates events, keeps them, and isolates observers that raise."""

    def __init__(self, observers: Sequence[Observer], clock: Callable[[], float]) -> None:
        self.observers = tuple(observers)
        self.events: list[Event] = []
        self.callback_errors: list[str] = []
        self.iteration = 0
        self.clock = clock
        self.started = clock()

    @property
    def elapsed_s(self) -> float:
        """Seconds since the run began."""
        return self.clock() - self.started

    def emit(self, kind: EventKind, **data: Json) -> None:
        """Record an event and show it to every observer."""
        event = Event(kind=kind, iteration=self.iteration, at_s=round(self.elapsed_s, 6), data=data)
        self.events.append(event)
        for observer in self.observers:
            try:
                observer(event)
            except Exception as error:  # noqa: BLE001 - an observer never breaks a run
                self.callback_errors.append(f"{kind}: {type(error).__name__}: {error}")

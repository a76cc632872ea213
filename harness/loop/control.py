"""Control from outside while a run goes on: pause, resume, cancel, inject."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Literal

Phase = Literal["start", "iteration", "model_call", "tool_calls", "validation"]
"""What a run is doing."""


class Control:
    """What was asked of a run from other threads, from its hooks, or before it began."""

    def __init__(self) -> None:
        self.cancelled: str | None = None
        self.cancelled_in: Phase = "start"
        self.phase: Phase = "start"
        self._pause_reason: str | None = None
        self._changed = threading.Condition()
        self._injected: deque[str] = deque()

    def cancel(self, reason: str) -> None:
        """Start no further model call; the first reason given stays."""
        with self._changed:
            if self.cancelled is None:
                self.cancelled = reason
                self.cancelled_in = self.phase
            self._changed.notify_all()

    @property
    def is_cancelled(self) -> bool:
        """Whether a cancel was asked for."""
        return self.cancelled is not None

    def pause(self, reason: str) -> None:
        """Hold the next model call until `resume`."""
        with self._changed:
            self._pause_reason = reason

    def resume(self) -> None:
        """Go on after a pause."""
        with self._changed:
            self._pause_reason = None
            self._changed.notify_all()

    def wait_while_paused(self, on_pause: Callable[[str], None]) -> bool:
        """Wait for `resume` or `cancel` if a pause was asked for; says whether there was one."""
        with self._changed:
            reason = self._pause_reason
        if reason is None:
            return False
        on_pause(reason)
        with self._changed:
            self._changed.wait_for(lambda: self._pause_reason is None or self.cancelled is not None)
        return True

    def inject(self, text: str) -> None:
        """Say something to the model with the next user turn."""
        self._injected.append(text)

    @property
    def has_injected(self) -> bool:
        """Whether injected text waits for its delivery."""
        return bool(self._injected)

    def take_injected(self) -> list[str]:
        """What was injected since the last time, in order."""
        taken = []
        while self._injected:
            taken.append(self._injected.popleft())
        return taken

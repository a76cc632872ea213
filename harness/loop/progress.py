"""How far a run has come."""

from __future__ import annotations

from dataclasses import dataclass, field

from harness.loop.endings import Draft
from harness.schema.signals import Suspend
from harness.schema.trajectory import SuspendedRun


@dataclass(slots=True)
class Progress:
    """How far a run has come."""

    iterations: int = 0
    attempts: int = 0
    attempt_iterations: int = 0
    draft: Draft | None = None
    final_text: str = ""
    confirmed: bool | None = None
    truncated: bool = False
    wrapped_up: bool = False
    suspend: Suspend | None = None
    validation_failures: list[str] = field(default_factory=list)

    def start_attempt(self) -> None:
        """Count an attempt; neither a draft nor a confirmation outlives the last one."""
        self.attempts += 1
        self.attempt_iterations = 0
        self.draft = self.confirmed = None

    def start_iteration(self) -> None:
        """Count an iteration."""
        self.iterations += 1
        self.attempt_iterations += 1


def resumed_progress(state: SuspendedRun) -> Progress:
    """The counts of a run that goes on."""
    return Progress(
        iterations=state.iterations,
        attempts=state.attempts,
        attempt_iterations=state.attempt_iterations,
        draft=Draft(state.draft) if state.has_draft else None,
        final_text=state.final_text,
        validation_failures=list(state.validation_failures),
    )

"""What a trial used of a cassette: what its last line will say."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime

from harness.cassette.format import TrialLine


@dataclass(slots=True)
class Used:
    """Ids of the lines that a trial used so far, in order."""

    interactions: list[str] = field(default_factory=list)
    tools: list[str] = field(default_factory=list)
    verdicts: list[str] = field(default_factory=list)

    def finished(self, variant: str, task_digest: str) -> TrialLine | None:
        """The trial as finished now; None where it used nothing."""
        if not (self.interactions or self.tools or self.verdicts):
            return None
        return TrialLine(
            variant=variant,
            task_digest=task_digest,
            finished_at=datetime.now(UTC),
            interactions=tuple(self.interactions),
            tools=tuple(self.tools),
            verdicts=tuple(self.verdicts),
        )

"""A line in the log for each tool call that was run."""

from __future__ import annotations

import json
import logging

from harness.protocols import Redact
from harness.redaction import Redactor
from harness.schema.record import Json, JsonObject

LOG = logging.getLogger("harness.audit")


class AuditLog:
    """Writes one JSON object per execution to the logger `harness.audit`, without secrets."""

    def __init__(self, run_id: str, redact: Redact | None = None) -> None:
        """Log the executions of one run; by default what looks like a credential is left out."""
        self.run_id = run_id
        self.redact = redact or Redactor({}).json

    def executed(
        self,
        *,
        iteration: int,
        tool: str,
        arguments: JsonObject,
        verdict: str,
        error: str | None,
        duration_s: float,
    ) -> None:
        """Log a call that was run.

        Args:
            iteration: Of the run.
            tool: The tool's name.
            arguments: As it got them.
            verdict: Why it was run: `allowed`, `warned` or `approved`.
            error: What the model was told of its failure; None is a success.
            duration_s: How long it took.
        """
        if not LOG.isEnabledFor(logging.INFO):
            return
        entry: dict[str, Json] = {
            "run_id": self.run_id,
            "iteration": iteration,
            "tool": tool,
            "arguments": self.redact(arguments),
            "verdict": verdict,
            "success": error is None,
            "error": self.redact(error),
            "duration_s": duration_s,
        }
        LOG.info("%s", json.dumps(entry, ensure_ascii=False))

"""Tools of others, of which only recorded results are known."""

from __future__ import annotations

from collections.abc import Sequence

from harness.schema.messages import ToolSpec
from harness.schema.record import JsonObject
from harness.values import Effect, ToolOutcome


class RecordedTool:
    """Stands where a tool was, so that a recording of its calls can be replayed."""

    sequential = False

    def __init__(self, spec: ToolSpec) -> None:
        self.spec = spec
        self.settings: JsonObject = {}

    def effects(self, arguments: JsonObject) -> Sequence[Effect] | None:
        """Nobody knows what the tool did."""
        return None

    def call(self, arguments: JsonObject, timeout_s: float) -> ToolOutcome:
        """Fail: what answers its calls stands before it."""
        return ToolOutcome(
            f"the tool {self.spec.name!r} is not here; only recorded calls of it are answered",
            "failed",
        )

"""Asking the model: counting, charging, and telling failures apart."""

from __future__ import annotations

from harness.errors import ContextExceededError, InfrastructureError, ReplayMissError
from harness.loop.events import EventLog
from harness.loop.tool_calls import Ending
from harness.loop.usage import UsageMeter
from harness.protocols import ModelRequest, Provider
from harness.schema.loop_config import TerminationReason
from harness.schema.messages import ModelTurn
from harness.schema.trajectory import CallTag


class ModelCaller:
    """Makes the model calls of one run; every one is counted and charged, of whatever kind."""

    def __init__(self, provider: Provider, events: EventLog, llm_error_threshold: int) -> None:
        self.provider = provider
        self.events = events
        self.llm_error_threshold = llm_error_threshold
        self.usage = UsageMeter()
        self.made = 0
        self.failed = 0
        self.failed_in_row = 0
        self.models: list[str] = []

    def call(self, request: ModelRequest, tag: CallTag) -> ModelTurn | Ending | None:
        """The model's turn, an ending, or None after a failure that may be tried again."""
        self.made += 1
        self.events.emit("model_request", tag=tag, tools=[tool.name for tool in request.tools])
        try:
            turn = self.provider.complete(request)
        except Exception as error:  # noqa: BLE001 - a run has a result for every ending
            return self._failed(error)
        self.failed_in_row = 0
        self.usage.add(turn.usage, tag)
        if turn.model and turn.model not in self.models:
            self.models.append(turn.model)
        usage = turn.usage.model_dump() if turn.usage else None
        self.events.emit("model_response", tag=tag, stop=turn.stop.value, usage=usage)
        return turn

    def _failed(self, error: Exception) -> Ending | None:
        self.failed += 1
        self.failed_in_row += 1
        text = str(error) or type(error).__name__
        self.events.emit("model_error", error=text, type=type(error).__name__)
        match error:
            case ReplayMissError():
                return Ending(TerminationReason.REPLAY_MISS, text)
            case InfrastructureError():
                return Ending(TerminationReason.INFRASTRUCTURE_ERROR, text)
            case ContextExceededError():
                return Ending(TerminationReason.CONTEXT_EXCEEDED, text)
        if self.failed_in_row >= self.llm_error_threshold:
            return Ending(TerminationReason.MODEL_ERROR, text)
        return None

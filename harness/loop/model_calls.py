"""Asking the model: counting, charging, and telling failures apart."""

from __future__ import annotations

import json
import logging
from dataclasses import replace

from harness.errors import (
    ContextExceededError,
    InfrastructureError,
    OutOfTimeError,
    ReplayMissError,
)
from harness.loop.endings import Ending
from harness.loop.events import EventLog
from harness.loop.foreign import as_turn
from harness.loop.tracing import trace_model_call
from harness.loop.usage import UsageMeter
from harness.protocols import Provider, Redact
from harness.schema.loop_config import LoopConfig, TerminationReason
from harness.schema.messages import ModelTurn
from harness.schema.record import Json, JsonObject
from harness.schema.trajectory import CallTag, SuspendedRun
from harness.values import ModelDelta, ModelRequest

ASIDE: tuple[CallTag, ...] = ("compaction", "wrap_up")
"""Calls beside the iterations: a run goes on, or ends as it did, without their answer."""

_LOG = logging.getLogger("harness.llm")
"""Where `debug_llm` writes."""


class ModelCaller:
    """Makes the model calls of one run; every one is counted and charged, of whatever kind."""

    def __init__(
        self,
        provider: Provider,
        config: LoopConfig,
        *,
        events: EventLog,
        redact: Redact,
        vendor: str | None = None,
    ) -> None:
        """Begin to count.

        Args:
            provider: Answers.
            config: Of the run.
            events: Told of every call.
            redact: What the debug log is written through.
            vendor: Named in spans.
        """
        self.provider = provider
        self.vendor = vendor
        self.config = config
        self.events = events
        self.redact = redact
        self.usage = UsageMeter()
        self.made = 0
        self.failed = 0
        self.failed_in_row = 0
        self.models: list[str] = []

    def call(self, request: ModelRequest, tag: CallTag) -> ModelTurn | Ending | None:
        """The model's turn, an ending, or None after a failure that may be tried again."""
        self.made += 1
        names: list[Json] = [tool.name for tool in request.offered]
        self.events.emit("model_request", payload=request, tag=tag, tools=names)
        if self.config.debug_llm:
            request = self._logged(request, tag)
        try:
            with trace_model_call(request, tag, self.vendor) as span:
                show = self._show if self.config.stream else None
                turn = as_turn(self.provider.complete(request, show))
                span.set_turn(turn)
        except Exception as error:  # noqa: BLE001 - a run has a result for every ending
            return self._failed(error, tag)
        self.failed_in_row = 0
        self.usage.add(turn.usage, tag)
        if turn.model and turn.model not in self.models:
            self.models.append(turn.model)
        usage = turn.usage.model_dump() if turn.usage else None
        self.events.emit("model_response", payload=turn, tag=tag, stop=turn.stop.value, usage=usage)
        return turn

    def take_over(self, state: SuspendedRun) -> None:
        """Start from the counts of a suspended run."""
        self.made, self.failed = state.model_calls, state.failed_calls
        self.usage.total, self.usage.by_tag = state.usage, dict(state.usage_by_tag)
        self.models = list(state.models)

    def _show(self, delta: ModelDelta) -> None:
        self.events.emit("model_delta", payload=delta, kind=delta.kind, text=delta.text)

    def _logged(self, request: ModelRequest, tag: CallTag) -> ModelRequest:
        """The request, and its vendor's form once it is known, in the log without secrets."""
        number = self.made

        def write(what: str, value: JsonObject) -> None:
            try:
                text = json.dumps(self.redact(value), ensure_ascii=False)
            except Exception as error:  # noqa: BLE001 - what cannot be redacted is not logged
                self.events.collect("redact", error)
                return
            _LOG.info("model call %d (%s) %s: %s", number, tag, what, text)

        messages: list[Json] = [message.model_dump(mode="json") for message in request.messages]
        write("messages", {"system": request.system, "messages": messages})
        return replace(request, on_wire=lambda body: write("vendor request", body))

    def _failed(self, error: Exception, tag: CallTag) -> Ending | None:
        self.failed += 1
        text = str(error) or type(error).__name__
        self.events.emit("model_error", payload=error, error=text, type=type(error).__name__)
        match error:
            case ReplayMissError():
                return Ending(TerminationReason.REPLAY_MISS, text)
            case InfrastructureError():
                return Ending(TerminationReason.INFRASTRUCTURE_ERROR, text)
            case OutOfTimeError():
                return Ending(TerminationReason.DURATION_EXCEEDED, text)
            case ContextExceededError():
                return Ending(TerminationReason.CONTEXT_EXCEEDED, text)
        if tag in ASIDE:
            return None
        self.failed_in_row += 1
        if self.failed_in_row >= self.config.llm_error_threshold:
            return Ending(TerminationReason.MODEL_ERROR, text)
        return None

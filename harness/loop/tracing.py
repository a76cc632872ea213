"""OpenTelemetry spans of a run: run > iteration > model call, tool call.

Names and attributes are those of the GenAI semantic conventions, with our own under `harness.`.
Each span is the current one while its block runs, so that spans which a tool or a client library
opens by itself become its children; a block that raises marks its span as failed. Unless the
process was set up to export spans, they cost a few microseconds and go nowhere. No span holds what
was said: no messages, no arguments, no results, no error texts.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache

from opentelemetry import trace
from opentelemetry.trace import Span, SpanKind, StatusCode, Tracer
from opentelemetry.util.types import AttributeValue

from harness.schema.loop_config import SUCCEEDED
from harness.schema.messages import ModelTurn, Usage
from harness.schema.trajectory import CallTag, Trajectory, UsageTotal
from harness.values import ModelRequest, ToolInvocation, ToolOutcome


@dataclass(frozen=True, slots=True)
class RunSpan:
    """The span of a run."""

    _span: Span

    def set_trajectory(self, trajectory: Trajectory) -> None:
        """Say how the run ended; it failed unless it completed or a signal ended it."""
        reason = trajectory.termination_reason
        self._span.set_attribute("harness.termination_reason", reason.value)
        self._span.set_attributes(_usage(trajectory.usage))
        if reason not in SUCCEEDED:
            _fail(self._span, reason.value)


@dataclass(frozen=True, slots=True)
class ModelCallSpan:
    """The span of a model call."""

    _span: Span

    def set_turn(self, turn: ModelTurn) -> None:
        """Say what the model answered, but for the content."""
        self._span.set_attribute("gen_ai.response.finish_reasons", [turn.stop.value])
        if turn.model is not None:
            self._span.set_attribute("gen_ai.response.model", turn.model)
        if turn.usage is not None:
            self._span.set_attributes(_usage(turn.usage))


@dataclass(frozen=True, slots=True)
class ToolCallSpan:
    """The span of a tool call."""

    _span: Span

    def set_outcome(self, outcome: ToolOutcome) -> None:
        """Say whether the call failed."""
        if outcome.status != "ok":
            _fail(self._span, outcome.status)


@contextmanager
def trace_run(run_id: str) -> Iterator[RunSpan]:
    """The span of a whole run."""
    attributes: dict[str, AttributeValue] = {
        "gen_ai.operation.name": "invoke_agent",
        "harness.run_id": run_id,
    }
    with _open("invoke_agent", SpanKind.INTERNAL, attributes) as span:
        yield RunSpan(span)


@contextmanager
def trace_iteration(number: int) -> Iterator[None]:
    """The span of one iteration, counted from 1 over the run."""
    with _open("iteration", SpanKind.INTERNAL, {"harness.iteration": number}):
        yield


@contextmanager
def trace_model_call(
    request: ModelRequest, tag: CallTag, vendor: str | None = None
) -> Iterator[ModelCallSpan]:
    """The span of one model call, of whatever kind."""
    attributes: dict[str, AttributeValue] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": request.model,
        "gen_ai.request.max_tokens": request.max_output_tokens,
        "harness.call_tag": tag,
    }
    if vendor is not None:
        attributes["gen_ai.provider.name"] = vendor
    if request.temperature is not None:
        attributes["gen_ai.request.temperature"] = request.temperature
    with _open(f"chat {request.model}", SpanKind.CLIENT, attributes) as span:
        yield ModelCallSpan(span)


@contextmanager
def trace_tool_call(invocation: ToolInvocation) -> Iterator[ToolCallSpan]:
    """The span of one tool call."""
    attributes: dict[str, AttributeValue] = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": invocation.name,
        "gen_ai.tool.call.id": invocation.call_id,
        "gen_ai.tool.type": "function",
    }
    with _open(f"execute_tool {invocation.name}", SpanKind.INTERNAL, attributes) as span:
        yield ToolCallSpan(span)


@cache
def _tracer() -> Tracer:
    # Finds the provider by itself when one is set up later.
    return trace.get_tracer("harness")


@contextmanager
def _open(name: str, kind: SpanKind, attributes: dict[str, AttributeValue]) -> Iterator[Span]:
    # OpenTelemetry's own handling of exceptions would put their texts into the span.
    with _tracer().start_as_current_span(
        name,
        kind=kind,
        attributes=attributes,
        record_exception=False,
        set_status_on_exception=False,
    ) as span:
        try:
            yield span
        except Exception as error:
            _fail(span, type(error).__qualname__)
            raise


def _fail(span: Span, error_type: str) -> None:
    span.set_attribute("error.type", error_type)
    span.set_status(StatusCode.ERROR)


def _usage(usage: Usage | UsageTotal) -> dict[str, AttributeValue]:
    """Reported tokens; in the conventions' input tokens, those of the cache are contained."""
    cached = (usage.cache_write or 0) + (usage.cache_read or 0)
    counts = {
        "gen_ai.usage.input_tokens": None if usage.input is None else usage.input + cached,
        "gen_ai.usage.output_tokens": usage.output,
        "gen_ai.usage.cache_creation.input_tokens": usage.cache_write,
        "gen_ai.usage.cache_read.input_tokens": usage.cache_read,
    }
    return {name: count for name, count in counts.items() if count is not None}

"""OpenTelemetry spans of a run: run > iteration > model call, tool call.

Names and attributes are those of the GenAI semantic conventions, with our own under `harness.`.
Without an exporter of the user's the spans cost a few microseconds and go nowhere. No span holds
what was said: no messages, no arguments, no results, no error texts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from opentelemetry import trace
from opentelemetry.trace import Span, SpanKind, StatusCode, TracerProvider
from opentelemetry.util.types import AttributeValue

from harness.protocols import ModelRequest, ToolInvocation, ToolOutcome
from harness.schema.loop_config import TerminationReason
from harness.schema.messages import ModelTurn, Usage
from harness.schema.trajectory import CallTag, Trajectory, UsageTotal

_GOOD_ENDINGS = (TerminationReason.COMPLETED, TerminationReason.SIGNAL)


class Tracing:
    """Opens the spans of one run.

    Each span is the current one while its block runs, so that spans which a tool or a client
    library opens by itself become its children. A block that raises marks its span as failed.
    """

    def __init__(self, provider: TracerProvider | None = None) -> None:
        """Begin tracing.

        Args:
            provider: Makes the spans; None is the one that the process was set up with.
        """
        self._tracer = trace.get_tracer("harness", tracer_provider=provider)

    @contextmanager
    def run(self, run_id: str, model: str) -> Iterator[Callable[[Trajectory], None]]:
        """The span of a whole run; what it yields takes the finished run."""
        attributes: dict[str, AttributeValue] = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.request.model": model,
            "harness.run_id": run_id,
        }
        with self._span("invoke_agent", SpanKind.INTERNAL, attributes) as span:

            def ended(trajectory: Trajectory) -> None:
                reason = trajectory.termination_reason
                span.set_attribute("harness.termination_reason", reason.value)
                span.set_attributes(_usage(trajectory.usage))
                if reason not in _GOOD_ENDINGS:
                    _fail(span, reason.value)

            yield ended

    @contextmanager
    def iteration(self, number: int) -> Iterator[None]:
        """The span of one iteration, counted from 1 over the run."""
        with self._span("iteration", SpanKind.INTERNAL, {"harness.iteration": number}):
            yield

    @contextmanager
    def model_call(
        self, request: ModelRequest, tag: CallTag
    ) -> Iterator[Callable[[ModelTurn], None]]:
        """The span of one model call; what it yields takes the answer."""
        attributes: dict[str, AttributeValue] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": request.model,
            "gen_ai.request.max_tokens": request.max_output_tokens,
            "harness.call_tag": tag,
        }
        if request.temperature is not None:
            attributes["gen_ai.request.temperature"] = request.temperature
        with self._span(f"chat {request.model}", SpanKind.CLIENT, attributes) as span:

            def answered(turn: ModelTurn) -> None:
                span.set_attribute("gen_ai.response.finish_reasons", [turn.stop.value])
                if turn.model is not None:
                    span.set_attribute("gen_ai.response.model", turn.model)
                if turn.usage is not None:
                    span.set_attributes(_usage(turn.usage))

            yield answered

    @contextmanager
    def tool_call(self, invocation: ToolInvocation) -> Iterator[Callable[[ToolOutcome], None]]:
        """The span of one tool call; what it yields takes the outcome."""
        attributes: dict[str, AttributeValue] = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": invocation.name,
            "gen_ai.tool.call.id": invocation.call_id,
            "gen_ai.tool.type": "function",
        }
        with self._span(f"execute_tool {invocation.name}", SpanKind.INTERNAL, attributes) as span:

            def came_out(outcome: ToolOutcome) -> None:
                if outcome.status != "ok":
                    _fail(span, outcome.status)

            yield came_out

    @contextmanager
    def _span(
        self, name: str, kind: SpanKind, attributes: dict[str, AttributeValue]
    ) -> Iterator[Span]:
        # OpenTelemetry's own handling of exceptions would put their texts into the span.
        with self._tracer.start_as_current_span(
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

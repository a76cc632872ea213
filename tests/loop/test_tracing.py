"""The spans that a user's exporter receives."""

from __future__ import annotations

import contextvars
import threading

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import NoOpTracerProvider, SpanKind, StatusCode, get_current_span

from harness.errors import RateLimitedError
from harness.loop.tracing import Tracing
from harness.protocols import ModelRequest, ToolInvocation, ToolOutcome
from harness.schema.loop_config import TerminationReason
from harness.schema.messages import Message, ModelTurn, StopReason, Text, Usage
from harness.schema.trajectory import Trajectory, UsageTotal

REQUEST = ModelRequest(
    "model-1",
    "secret system",
    (Message(role="user", content=(Text(text="secret task"),)),),
    temperature=0.5,
    max_output_tokens=100,
)
INVOCATION = ToolInvocation("call-1", "look", {"path": "secret path"}, 0, 5)
TURN = ModelTurn(
    content=(Text(text="secret answer"),),
    stop=StopReason.TOOL_USE,
    usage=Usage(input=10, output=5, cache_read=100),
    model="model-1-2026",
)


class Exported:
    """A provider whose finished spans can be looked at."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.tracing = Tracing(self.provider)

    def spans(self) -> dict[str, ReadableSpan]:
        return {span.name: span for span in self.exporter.get_finished_spans()}

    def parent(self, name: str) -> str | None:
        parent = self.spans()[name].parent
        if parent is None:
            return None
        ids = {span.context.span_id: name for name, span in self.spans().items() if span.context}
        return ids[parent.span_id]


@pytest.fixture
def exported() -> Exported:
    return Exported()


def small_run(exported: Exported) -> Trajectory:
    tracing = exported.tracing
    trajectory = Trajectory(
        termination_reason=TerminationReason.COMPLETED,
        final_text="secret end",
        usage=UsageTotal(input=10, output=5, cache_read=100),
    )
    with tracing.run("run-1", "model-1") as ended:
        with tracing.iteration(1):
            with tracing.model_call(REQUEST, "main") as answered:
                answered(TURN)
            with tracing.tool_call(INVOCATION) as came_out:
                came_out(ToolOutcome("secret result"))
        ended(trajectory)
    return trajectory


def test_model_and_tool_calls_stand_in_their_iteration_and_that_in_its_run(exported: Exported):
    small_run(exported)
    assert exported.parent("invoke_agent") is None
    assert exported.parent("iteration") == "invoke_agent"
    assert exported.parent("chat model-1") == "iteration"
    assert exported.parent("execute_tool look") == "iteration"


def test_attributes_are_those_of_the_conventions(exported: Exported):
    small_run(exported)
    spans = exported.spans()
    assert dict(spans["invoke_agent"].attributes or {}) == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.request.model": "model-1",
        "gen_ai.usage.input_tokens": 110,
        "gen_ai.usage.output_tokens": 5,
        "gen_ai.usage.cache_read.input_tokens": 100,
        "harness.run_id": "run-1",
        "harness.termination_reason": "completed",
    }
    assert dict(spans["iteration"].attributes or {}) == {"harness.iteration": 1}
    assert dict(spans["chat model-1"].attributes or {}) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "model-1",
        "gen_ai.request.max_tokens": 100,
        "gen_ai.request.temperature": 0.5,
        "gen_ai.response.model": "model-1-2026",
        "gen_ai.response.finish_reasons": ("tool_use",),
        "gen_ai.usage.input_tokens": 110,
        "gen_ai.usage.output_tokens": 5,
        "gen_ai.usage.cache_read.input_tokens": 100,
        "harness.call_tag": "main",
    }
    assert spans["chat model-1"].kind is SpanKind.CLIENT
    assert dict(spans["execute_tool look"].attributes or {}) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "look",
        "gen_ai.tool.call.id": "call-1",
        "gen_ai.tool.type": "function",
    }


def test_what_was_not_reported_is_not_there(exported: Exported):
    with exported.tracing.model_call(REQUEST, "main") as answered:
        answered(ModelTurn(content=(), stop=StopReason.END_TURN))
    attributes = exported.spans()["chat model-1"].attributes or {}
    assert not [name for name in attributes if "usage" in name or name == "gen_ai.response.model"]


def test_good_spans_have_no_status(exported: Exported):
    small_run(exported)
    assert {span.status.status_code for span in exported.spans().values()} == {StatusCode.UNSET}


def test_a_failed_model_call_marks_its_own_span_only(exported: Exported):
    with (
        exported.tracing.iteration(1),
        pytest.raises(RateLimitedError),
        exported.tracing.model_call(REQUEST, "main"),
    ):
        raise RateLimitedError("slow down, secret")
    spans = exported.spans()
    assert spans["chat model-1"].status.status_code is StatusCode.ERROR
    assert (spans["chat model-1"].attributes or {})["error.type"] == "RateLimitedError"
    assert spans["iteration"].status.status_code is StatusCode.UNSET


@pytest.mark.parametrize("status", ["failed", "raised", "timed_out"])
def test_a_failed_tool_call_is_marked(exported: Exported, status: str):
    with exported.tracing.tool_call(INVOCATION) as came_out:
        came_out(ToolOutcome("secret", status))  # type: ignore[arg-type]
    span = exported.spans()["execute_tool look"]
    assert span.status.status_code is StatusCode.ERROR
    assert (span.attributes or {})["error.type"] == status


@pytest.mark.parametrize("reason", list(TerminationReason))
def test_a_run_is_marked_unless_it_completed_or_was_ended_by_a_signal(
    exported: Exported, reason: TerminationReason
):
    with exported.tracing.run("run-1", "model-1") as ended:
        ended(Trajectory(termination_reason=reason))
    span = exported.spans()["invoke_agent"]
    assert (span.attributes or {})["harness.termination_reason"] == reason.value
    good = reason.value in ("completed", "signal")
    assert span.status.status_code is (StatusCode.UNSET if good else StatusCode.ERROR)
    assert (span.attributes or {}).get("error.type") == (None if good else reason.value)


def test_no_span_holds_what_was_said(exported: Exported):
    small_run(exported)
    with (
        pytest.raises(ValueError, match="secret"),
        exported.tracing.tool_call(INVOCATION),
    ):
        raise ValueError("secret")
    for span in exported.exporter.get_finished_spans():
        assert "secret" not in span.to_json()


def test_spans_of_a_tools_own_stand_under_its_call(exported: Exported):
    def tool() -> None:
        with exported.provider.get_tracer("tool").start_as_current_span("own"):
            pass

    with exported.tracing.tool_call(INVOCATION):
        context = contextvars.copy_context()
        thread = threading.Thread(target=context.run, args=(tool,))
        thread.start()
        thread.join()
    assert exported.parent("own") == "execute_tool look"


def test_without_a_real_provider_nothing_is_recorded():
    tracing = Tracing(NoOpTracerProvider())
    with tracing.run("run-1", "model-1") as ended:
        with tracing.model_call(REQUEST, "main") as answered:
            assert not get_current_span().is_recording()
            answered(TURN)
        ended(Trajectory(termination_reason=TerminationReason.COMPLETED))

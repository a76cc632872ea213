"""The spans that a user's exporter receives."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Iterator

import pytest
from opentelemetry import trace
from opentelemetry.trace import SpanKind, StatusCode

from harness.errors import RateLimitedError
from harness.loop.engine import Loop
from harness.loop.tracing import trace_iteration, trace_model_call, trace_run, trace_tool_call
from harness.providers.scripted import Scripted, turn
from harness.schema.loop_config import LoopConfig, TerminationReason
from harness.schema.messages import Message, ModelTurn, StopReason, Text, Usage
from harness.schema.trajectory import Trajectory, UsageTotal
from harness.values import ModelRequest, ToolInvocation, ToolOutcome
from tests.loop.spans import Spans, caught
from tests.loop.support import call, raises, returns, run

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


@pytest.fixture
def spans() -> Iterator[Spans]:
    with caught() as spans:
        yield spans


def small_run() -> None:
    trajectory = Trajectory(
        termination_reason=TerminationReason.COMPLETED,
        final_text="secret end",
        usage=UsageTotal(input=10, output=5, cache_write=20),
    )
    with trace_run("run-1") as run:
        with trace_iteration(1):
            with trace_model_call(REQUEST, "main") as model_call:
                model_call.set_turn(TURN)
            with trace_tool_call(INVOCATION) as tool_call:
                tool_call.set_outcome(ToolOutcome("secret result"))
        run.set_trajectory(trajectory)


def test_model_and_tool_calls_stand_in_their_iteration_and_that_in_its_run(spans: Spans):
    small_run()
    assert spans.tree() == [
        "invoke_agent",
        "invoke_agent > iteration",
        "invoke_agent > iteration > chat model-1",
        "invoke_agent > iteration > execute_tool look",
    ]


def test_attributes_are_those_of_the_conventions(spans: Spans):
    small_run()
    assert spans.attributes("invoke_agent") == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.usage.input_tokens": 30,
        "gen_ai.usage.output_tokens": 5,
        "gen_ai.usage.cache_creation.input_tokens": 20,
        "harness.run_id": "run-1",
        "harness.termination_reason": "completed",
    }
    assert spans.attributes("iteration") == {"harness.iteration": 1}
    assert spans.attributes("chat model-1") == {
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
    assert spans.attributes("execute_tool look") == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "look",
        "gen_ai.tool.call.id": "call-1",
        "gen_ai.tool.type": "function",
    }


def test_what_was_not_reported_is_not_there(spans: Spans):
    with trace_model_call(REQUEST, "main") as model_call:
        model_call.set_turn(ModelTurn(content=(), stop=StopReason.END_TURN))
    found = spans.attributes("chat model-1")
    assert not [name for name in found if "usage" in name or name == "gen_ai.response.model"]


def test_good_spans_have_no_status(spans: Spans):
    small_run()
    assert {span.status.status_code for span in spans.all()} == {StatusCode.UNSET}


def test_a_failed_model_call_marks_its_own_span_only(spans: Spans):
    with (
        trace_iteration(1),
        pytest.raises(RateLimitedError),
        trace_model_call(REQUEST, "main"),
    ):
        raise RateLimitedError("slow down, secret")
    assert spans["chat model-1"].status.status_code is StatusCode.ERROR
    assert spans.attributes("chat model-1")["error.type"] == "RateLimitedError"
    assert spans["iteration"].status.status_code is StatusCode.UNSET


@pytest.mark.parametrize(
    "outcome",
    [ToolOutcome("no", "failed"), ToolOutcome("no", "raised"), ToolOutcome("no", "timed_out")],
)
def test_a_failed_tool_call_is_marked(spans: Spans, outcome: ToolOutcome):
    with trace_tool_call(INVOCATION) as tool_call:
        tool_call.set_outcome(outcome)
    assert spans["execute_tool look"].status.status_code is StatusCode.ERROR
    assert spans.attributes("execute_tool look")["error.type"] == outcome.status


@pytest.mark.parametrize("reason", list(TerminationReason))
def test_a_run_is_marked_when_it_failed(spans: Spans, reason: TerminationReason):
    with trace_run("run-1") as run:
        run.set_trajectory(Trajectory(termination_reason=reason))
    found = spans.attributes("invoke_agent")
    assert found["harness.termination_reason"] == reason.value
    good = reason.value in ("completed", "signal", "suspended")
    expected = StatusCode.UNSET if good else StatusCode.ERROR
    assert spans["invoke_agent"].status.status_code is expected
    assert found.get("error.type") == (None if good else reason.value)


def test_no_span_holds_what_was_said(spans: Spans):
    small_run()
    with pytest.raises(ValueError, match="secret"), trace_tool_call(INVOCATION):
        raise ValueError("secret")
    assert len(spans.all()) == 5
    assert not [span for span in spans.all() if "secret" in span.to_json()]


def test_spans_of_a_tools_own_stand_under_its_call(spans: Spans):
    def tool() -> None:
        with trace.get_tracer("tool").start_as_current_span("own"):
            pass

    with trace_tool_call(INVOCATION):
        context = contextvars.copy_context()
        thread = threading.Thread(target=context.run, args=(tool,))
        thread.start()
        thread.join()
    assert spans.tree() == ["execute_tool look", "execute_tool look > own"]


def test_the_engine_opens_the_spans_of_a_run(spans: Spans):
    tools = [returns("look", "seen"), raises("bad")]
    run([turn(calls=[call("c1", "look"), call("c2", "bad")]), turn("done")], tools=tools)
    assert spans.tree() == [
        "invoke_agent",
        "invoke_agent > iteration",
        "invoke_agent > iteration > chat scripted-1",
        "invoke_agent > iteration > execute_tool look",
        "invoke_agent > iteration > execute_tool bad",
        "invoke_agent > iteration",
        "invoke_agent > iteration > chat scripted-1",
    ]
    assert spans.attributes("execute_tool bad")["error.type"] == "raised"
    assert spans.attributes("invoke_agent")["harness.termination_reason"] == "completed"


def test_the_vendor_is_named_where_the_provider_says_it(spans: Spans):
    class Vendors(Scripted):
        vendor = "some.vendor"

    for provider in (Vendors([turn("done")]), Scripted([turn("done")])):
        Loop(provider, model="m", config=LoopConfig(text_protocol="json")).run("Do it.")
    named = [span.attributes or {} for span in spans.all() if span.name == "chat m"]
    assert [found.get("gen_ai.provider.name") for found in named] == ["some.vendor", None]

"""Catches the spans of a test. A process has one provider for good: it records when told to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import Decision, Sampler, SamplingResult
from opentelemetry.trace import Link, SpanKind, TraceState
from opentelemetry.util.types import Attributes


class Switch(Sampler):
    def __init__(self) -> None:
        self.on = False

    def should_sample(
        self,
        parent_context: Context | None,
        trace_id: int,
        name: str,
        kind: SpanKind | None = None,
        attributes: Attributes = None,
        links: Sequence[Link] | None = None,
        trace_state: TraceState | None = None,
    ) -> SamplingResult:
        return SamplingResult(Decision.RECORD_AND_SAMPLE if self.on else Decision.DROP, attributes)

    def get_description(self) -> str:
        return "on while a test looks"


@cache
def _provider() -> tuple[Switch, InMemorySpanExporter]:
    switch, exporter = Switch(), InMemorySpanExporter()
    provider = TracerProvider(sampler=switch)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    return switch, exporter


class Spans:
    """The finished spans, in the order they ended."""

    def __init__(self, exporter: InMemorySpanExporter) -> None:
        self._exporter = exporter

    def all(self) -> tuple[ReadableSpan, ...]:
        return self._exporter.get_finished_spans()

    def __getitem__(self, name: str) -> ReadableSpan:
        (found,) = (span for span in self.all() if span.name == name)
        return found

    def attributes(self, name: str) -> dict[str, object]:
        return dict(self[name].attributes or {})

    def parent(self, span: ReadableSpan) -> ReadableSpan | None:
        for other in self.all():
            if span.parent and other.context and other.context.span_id == span.parent.span_id:
                return other
        return None

    def tree(self) -> list[str]:
        """Names with those of the spans they stand in, by time of start."""
        paths = []
        for span in sorted(self.all(), key=lambda span: span.start_time or 0):
            names = [span.name]
            above = self.parent(span)
            while above is not None:
                names.insert(0, above.name)
                above = self.parent(above)
            paths.append(" > ".join(names))
        return paths


@contextmanager
def caught() -> Iterator[Spans]:
    """Spans that end meanwhile."""
    switch, exporter = _provider()
    exporter.clear()
    switch.on = True
    try:
        yield Spans(exporter)
    finally:
        switch.on = False

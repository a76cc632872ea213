"""Live calls through a vendor's SDK; which SDK is the caller's business."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass

from harness.errors import HarnessError, MalformedAnswerError
from harness.protocols import Dialect, OnDelta
from harness.providers import failures
from harness.providers.deadline import limited
from harness.schema.messages import ModelTurn, StopReason, Text
from harness.schema.record import Json, JsonObject
from harness.values import ModelRequest


def vendor_of(dialect: Dialect) -> str:
    """The vendor of a dialect, as OpenTelemetry's GenAI conventions call it."""
    vendor = dialect.name.partition("-")[0]
    return "gcp.gemini" if vendor == "google" else vendor


@dataclass(frozen=True, slots=True)
class SdkClient:
    """Answers model requests over HTTP."""

    url: str
    dialect: Dialect
    send: Callable[[JsonObject], Json]
    """The SDK's call: takes the request's body, gives the answer's; its text if it is no JSON."""
    stream: Callable[[JsonObject], AbstractContextManager[Iterable[Json]]]
    """The SDK's streamed call: gives the answer's events, each as it came. Left, it is closed."""
    errors: tuple[type[Exception], ...]
    """All that the two calls may raise."""
    failure: Callable[[Exception], HarnessError]
    """What such an error means."""

    @property
    def vendor(self) -> str:
        """Whose format it speaks, as OpenTelemetry's GenAI conventions call it."""
        return vendor_of(self.dialect)

    def complete(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelTurn:
        """Answer one request, streamed if somebody wants to see the pieces.

        A request that the vendor's content policy turns down is a turn that stops with a refusal,
        as if the model had refused: asking again would not help.

        Raises:
            ModelCallError: the call failed.
            OutOfTimeError: it was cut when its time was over.
        """
        body = self.dialect.to_request(request, stream=on_delta is not None)
        if request.on_wire is not None:
            request.on_wire(body)
        try:
            with limited(request.limit_s):
                answer = self._send(body) if on_delta is None else self._stream(body, on_delta)
            return self.dialect.from_response(answer)
        except failures.RefusedError as refusal:
            return ModelTurn(content=(Text(text=str(refusal)),), stop=StopReason.REFUSAL)

    def _send(self, body: JsonObject) -> JsonObject:
        try:
            answer = self.send(body)
        except self.errors as error:
            raise self.failure(error) from error
        return failures.answer_object(answer, self.url)

    def _stream(self, body: JsonObject, on_delta: OnDelta) -> JsonObject:
        assembler = self.dialect.assembler()
        with closing(self._events(body)) as events:
            for event in events:
                for delta in assembler.add(event):
                    on_delta(delta)
        return assembler.body()

    def _events(self, body: JsonObject) -> Generator[JsonObject]:
        """The events. What a reader of the deltas raises does not pass through here."""
        try:
            with self.stream(body) as events:
                for event in events:
                    if not isinstance(event, dict):
                        raise MalformedAnswerError(
                            f"{self.url} streamed {str(event)[:200]!r}, not a JSON object;"
                            " check that the endpoint speaks this provider's format"
                        )
                    yield event
        except self.errors as error:
            raise self.failure(error) from error

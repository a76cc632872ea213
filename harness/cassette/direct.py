"""The direct front: our own loop's model calls, answered with no SDK and no HTTP in between."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from harness.cassette import http
from harness.cassette.format import InteractionLine, StoredResponse
from harness.cassette.replay.answers import Answers, Before
from harness.cassette.request.canonical import CanonicalRequest, model_request
from harness.cassette.request.growing import Growing
from harness.errors import (
    ConfigurationError,
    HarnessError,
    InfrastructureError,
    ModelCallError,
    ReplayMissError,
)
from harness.protocols import Dialect, OnDelta, Provider
from harness.providers import anthropic_messages, ollama_chat
from harness.providers.deadline import TimeIsUp, limited
from harness.providers.ollama_call_ids import CallIds
from harness.providers.sdk_client import vendor_of
from harness.providers.wire_json import parsed
from harness.schema.messages import ModelTurn
from harness.schema.record import Json, JsonObject
from harness.values import ModelDelta, ModelRequest


@dataclass(frozen=True, slots=True)
class DirectProvider:
    """Answers model requests from a recording.

    The dialect alone makes the request and reads the answer, as long as the answer is a plain
    success. All else (errors, refusals, streams that were cut) is left to the vendor's SDK behind
    the HTTP front: what becomes of it, and how often it is tried again, is for the SDK to say.
    """

    dialect: Dialect
    session: Answers
    sdk: Callable[[], Provider]
    """Makes the live client; asked only for such an answer."""
    growing: Growing = field(default_factory=Growing)
    """Makes the identities of requests."""

    @property
    def vendor(self) -> str:
        """Whose format it speaks, as OpenTelemetry's GenAI conventions call it."""
        return vendor_of(self.dialect)

    def complete(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelTurn:
        """Answer one request, in pieces first if somebody wants to see them.

        Raises:
            ReplayMissError: the recording holds no answer.
            ModelCallError: it holds a call that failed.
            OutOfTimeError: it holds one that was cut when its time was over.
        """
        body = self.dialect.to_request(request, stream=on_delta is not None)
        if request.on_wire is not None:
            request.on_wire(body)
        with limited(request.limit_s):
            line = self._claimed(body)
            if line.response.is_out_of_time:
                raise TimeIsUp
        try:
            turn, deltas = self._read(body, line.response, streamed=on_delta is not None)
        except (ModelCallError, _NotPlainError):
            return self._read_by_sdk(line, replace(request, on_wire=None), on_delta)
        if on_delta is not None:
            for delta in deltas:
                on_delta(delta)
        return turn

    def _claimed(self, body: JsonObject) -> InteractionLine:
        try:
            line = self.session.claim(model_request(self.dialect, body, self.growing.request))
        except HarnessError as error:
            # Whatever is wrong with the cassette: the session knows it and ends the trial with it.
            raise ReplayMissError(str(error)) from error
        if line is None:
            raise ConfigurationError("the direct front cannot record; use the HTTP front for that")
        return line

    def _read(
        self, body: JsonObject, response: StoredResponse, *, streamed: bool
    ) -> tuple[ModelTurn, list[ModelDelta]]:
        """The turn, and the pieces of a streamed one."""
        if response.status != 200 or response.cut:
            raise _NotPlainError
        is_ollama = self.dialect.name == ollama_chat.NAME
        complete = CallIds(body).given if is_ollama else _as_it_is
        if not streamed:
            if response.type != "json":
                raise _NotPlainError
            return self.dialect.from_response(_object(complete(response.body))), []
        assembler = self.dialect.assembler()
        is_lines = is_ollama and response.type != "events"
        pieces = _lines(response) if is_lines else self._events(response)
        deltas = [delta for piece in pieces for delta in assembler.add(_object(complete(piece)))]
        return self.dialect.from_response(assembler.body()), deltas

    def _events(self, response: StoredResponse) -> Iterator[Json]:
        """The data of server-sent events, as the SDKs give it."""
        if response.type != "events":
            raise _NotPlainError
        is_anthropic = self.dialect.name == anthropic_messages.NAME
        for event in map(_object, _list(response.body)):
            if event.get("text") == "[DONE]" and vendor_of(self.dialect) == "openai":
                return
            data = _object(event.get("data"))
            # This vendor's SDK goes by the names, and passes over events that bear none.
            if is_anthropic and event.get("event") != data.get("type"):
                raise _NotPlainError
            yield data

    def _read_by_sdk(
        self, line: InteractionLine, request: ModelRequest, on_delta: OnDelta | None
    ) -> ModelTurn:
        try:
            sdk = self.sdk()
        except ConfigurationError as error:
            raise InfrastructureError(str(error)) from error
        with http.use(_WithAnswer(self.session, line)):
            return sdk.complete(request, on_delta)


class _NotPlainError(Exception):
    """A recorded answer that only the vendor's SDK can say the meaning of."""


class _WithAnswer(Before):
    """Gives one answer first, which was claimed before."""

    def __init__(self, answers: Answers, line: InteractionLine) -> None:
        super().__init__(answers)
        self._line: InteractionLine | None = line

    def claim(self, request: CanonicalRequest) -> InteractionLine | None:
        line, self._line = self._line, None
        return super().claim(request) if line is None else line


def _lines(response: StoredResponse) -> Iterator[Json]:
    """The lines of a stream of JSON lines; a single one is kept as JSON."""
    if response.type == "json":
        yield response.body
    elif response.type == "text":
        yield from (parsed(line) for line in str(response.body).split("\n") if line.strip())
    else:
        raise _NotPlainError


def _as_it_is(answer: Json) -> Json:
    return answer


def _object(value: Json) -> JsonObject:
    if not isinstance(value, dict):
        raise _NotPlainError
    return value


def _list(value: Json) -> list[Json]:
    if not isinstance(value, list):
        raise _NotPlainError
    return value

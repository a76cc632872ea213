"""A streamed answer in Ollama's chat format, put together again."""

from __future__ import annotations

from collections.abc import Sequence

from harness.errors import MalformedAnswerError, ModelCallError
from harness.providers import failures
from harness.providers.object_arguments import as_text
from harness.providers.wire_json import field, items
from harness.schema.record import Json, JsonObject
from harness.values import ModelDelta

TEXTS = ("content", "thinking")
"""Keys of a message that come in pieces."""


class OllamaAssembler:
    """Takes the JSON lines of an answer, up to the one that says it is done."""

    def __init__(self) -> None:
        self._texts: dict[str, list[str]] = {key: [] for key in TEXTS}
        self._calls: list[Json] = []
        self._others: JsonObject = {}
        self._last: JsonObject = {}

    def add(self, event: JsonObject) -> Sequence[ModelDelta]:
        """Take the next line.

        Raises:
            ModelCallError: the line is an error, or no line of this format.
        """
        if event.get("error"):
            raise failure_in(event, "the stream")
        self._last = event
        message = field(event, "message", dict, "the stream")
        deltas: list[ModelDelta] = []
        for key, value in message.items():
            if key in TEXTS and value is not None:
                piece = field(message, key, str, "message")
                self._texts[key].append(piece)
                if key == "content" and piece:
                    deltas.append(ModelDelta("text", piece))
            elif key == "tool_calls" and value is not None:
                for call in items(field(message, key, list, "message"), key):
                    deltas += _shown(call, len(self._calls))
                    self._calls.append(call)
            else:
                self._others[key] = value
        return deltas

    def body(self) -> JsonObject:
        """The answer as the vendor gives it without streaming.

        Raises:
            MalformedAnswerError: it is not done.
        """
        if self._last.get("done") is not True:
            raise MalformedAnswerError("the stream ended before the answer did")
        message = self._others | {key: "".join(pieces) for key, pieces in self._texts.items()}
        if not message["thinking"]:
            del message["thinking"]
        if self._calls:
            message["tool_calls"] = [*self._calls]
        return self._last | {"message": message}


def _shown(call: JsonObject, position: int) -> list[ModelDelta]:
    """Calls come whole."""
    function = field(call, "function", dict, "tool call")
    id_ = field(call, "id", str, "tool call") if call.get("id") else f"call_{position}"
    arguments = as_text(field(function, "arguments", dict, "tool call"))
    return [
        ModelDelta("call_start", field(function, "name", str, "tool call"), id_),
        ModelDelta("call_arguments", arguments, id_),
        ModelDelta("call_done", call_id=id_),
    ]


def failure_in(answer: JsonObject, source: str) -> ModelCallError:
    """The format has a text there and seldom a status; what broke an answer broke at the server."""
    error = answer["error"]
    if isinstance(error, dict):
        return failures.reported(error, source)
    status = answer.get("status_code")
    if isinstance(status, int):
        return failures.reported({"message": error, "code": status}, source)
    failure = failures.reported(error, source)
    if type(failure) is ModelCallError:
        return failures.reported({"message": error, "type": "server_error"}, source)
    return failure

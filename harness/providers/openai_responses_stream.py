"""A streamed response of OpenAI's responses format, put together again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from harness.errors import MalformedAnswerError
from harness.providers import failures
from harness.providers.legal_names import original
from harness.schema.record import Json, JsonObject, storable
from harness.values import ModelDelta

ENDINGS = frozenset({"response.completed", "response.incomplete", "response.failed"})


class OpenAIResponsesAssembler:
    """Takes the events of one answer. The last one brings it whole; the others are for readers."""

    def __init__(self) -> None:
        self._answer: JsonObject | None = None
        self._calls: dict[Json, str] = {}
        """Output index of a call -> its id."""
        self._begun: set[Json] = set()
        """Output indexes of which some text or arguments were shown."""
        self._items: dict[int, JsonObject] = {}

    def add(self, event: JsonObject) -> list[ModelDelta]:
        """Take the next event.

        Raises:
            ModelCallError: the event is an error.
        """
        kind = event.get("type")
        if kind == "error" or event.get("error"):
            raise failures.reported(event.get("error") or event, "the answer")
        response, item = event.get("response"), event.get("item")
        if kind in ENDINGS and isinstance(response, dict):
            self._answer = response
        elif kind == "response.output_item.added" and isinstance(item, dict):
            return list(self._begin(item, event.get("output_index")))
        elif kind == "response.output_item.done" and isinstance(item, dict):
            return list(self._end(item, event.get("output_index")))
        elif kind in ("response.output_text.delta", "response.refusal.delta"):
            return list(self._show("text", event, ""))
        elif kind == "response.function_call_arguments.delta":
            call_id = self._calls.get(event.get("output_index"), "")
            return list(self._show("call_arguments", event, call_id))
        return []

    def body(self) -> JsonObject:
        """The answer as a response.

        Raises:
            MalformedAnswerError: the stream ended before the answer did.
        """
        if self._answer is None:
            raise MalformedAnswerError(
                "the stream ended before the answer did: no response.completed event;"
                " check that the endpoint streams this provider's format"
            )
        if self._answer.get("output") or not self._items:
            return self._answer
        # Some servers send the items only one by one.
        return self._answer | {"output": [self._items[index] for index in sorted(self._items)]}

    def _begin(self, item: JsonObject, index: Json) -> Iterator[ModelDelta]:
        call_id, name = item.get("call_id"), item.get("name")
        if item.get("type") != "function_call":
            return
        if isinstance(call_id, str) and isinstance(name, str) and index not in self._calls:
            self._calls[index] = storable(call_id)
            yield ModelDelta("call_start", original(storable(name)), storable(call_id))

    def _end(self, item: JsonObject, index: Json) -> Iterator[ModelDelta]:
        if isinstance(index, int):
            self._items[index] = item
        yield from self._begin(item, index)
        if index not in self._begun:
            yield from self._whole(item, index)
        if index in self._calls:
            yield ModelDelta("call_done", call_id=self._calls[index])

    def _show(
        self, kind: Literal["text", "call_arguments"], event: JsonObject, call_id: str
    ) -> Iterator[ModelDelta]:
        text = event.get("delta")
        if isinstance(text, str) and text:
            self._begun.add(event.get("output_index"))
            yield ModelDelta(kind, storable(text), call_id)

    def _whole(self, item: JsonObject, index: Json) -> Iterator[ModelDelta]:
        """What a finished item shows that came in one piece."""
        content = item.get("content")
        for part in content if item.get("type") == "message" and isinstance(content, list) else ():
            text = (part.get("text") or part.get("refusal")) if isinstance(part, dict) else None
            if isinstance(text, str) and text:
                yield ModelDelta("text", storable(text))
        arguments = item.get("arguments")
        if index in self._calls and isinstance(arguments, str) and arguments:
            yield ModelDelta("call_arguments", storable(arguments), self._calls[index])

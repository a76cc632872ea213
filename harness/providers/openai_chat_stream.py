"""A streamed chat completion, put together again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from harness.errors import MalformedAnswerError
from harness.providers import failures
from harness.providers.legal_names import original
from harness.providers.wire_json import items
from harness.schema.record import Json, JsonObject, storable
from harness.values import ModelDelta

REASONING_TEXTS = ("text", "summary", "data")
"""What of an entry of OpenRouter's `reasoning_details` comes in pieces."""


def made_id(answer_id: Json, index: int) -> str:
    """An id for a call that came without one; unique as far as the answer's own id is."""
    return f"{answer_id}_{index}" if isinstance(answer_id, str) and answer_id else f"call_{index}"


@dataclass(slots=True)
class _Call:
    """A tool call so far."""

    id: str
    index: Json
    name: str
    extra: JsonObject
    arguments: list[str] = field(default_factory=list)


class OpenAIChatAssembler:
    """Takes the chunks of one answer, as OpenAI and the servers that speak like it send them."""

    def __init__(self) -> None:
        self._answer: JsonObject = {}
        self._choice: JsonObject = {}
        self._message: JsonObject = {"role": "assistant", "content": None}
        self._texts: dict[str, list[str]] = {}
        self._calls: list[_Call] = []
        self._is_finished = False

    def add(self, event: JsonObject) -> list[ModelDelta]:
        """Take the next chunk.

        Raises:
            ModelCallError: the chunk is an error, or no chunk.
        """
        if event.get("error"):
            raise failures.reported(event["error"], "the answer")
        _merge(self._answer, {k: v for k, v in event.items() if k != "choices"})
        choices = event.get("choices")
        deltas: list[ModelDelta] = []
        # The chunk with the usage has no choices.
        for choice in items(choices if isinstance(choices, list) else (), "choices"):
            if choice.get("index") in (None, 0):
                deltas += self._add_choice(choice)
        return deltas

    def body(self) -> JsonObject:
        """The answer as a chat completion.

        Raises:
            MalformedAnswerError: the stream ended before the answer did.
        """
        if not self._is_finished:
            raise MalformedAnswerError(
                "the stream ended before the answer did: no chunk had a finish_reason;"
                " check that the endpoint streams this provider's format"
            )
        message = dict(self._message)
        for key, parts in self._texts.items():
            message[key] = "".join(parts)
        if self._calls:
            message["tool_calls"] = [_wire_call(call) for call in self._calls]
        answer = self._answer | {"object": "chat.completion"}
        return answer | {"choices": [self._choice | {"index": 0, "message": message}]}

    def _add_choice(self, choice: JsonObject) -> Iterator[ModelDelta]:
        _merge(self._choice, {k: v for k, v in choice.items() if k not in ("delta", "index")})
        delta = choice.get("delta")
        if isinstance(delta, dict):
            yield from self._add_delta(delta)
        if choice.get("finish_reason") is not None and not self._is_finished:
            self._is_finished = True
            # Pieces of several calls may come interleaved: none is done before all are.
            for call in self._calls:
                yield ModelDelta("call_done", call_id=storable(call.id))

    def _add_delta(self, delta: JsonObject) -> Iterator[ModelDelta]:
        whole: JsonObject = {}
        for key, value in delta.items():
            if isinstance(value, str) and key != "role":
                self._texts.setdefault(key, []).append(value)
                if value and key in ("content", "refusal"):
                    yield ModelDelta("text", storable(value))
            elif key != "tool_calls":
                whole[key] = value
        _merge(self._message, whole)
        calls = delta.get("tool_calls")
        for piece in items(calls if isinstance(calls, list) else (), "tool_calls"):
            yield from self._add_call(piece)

    def _add_call(self, piece: JsonObject) -> Iterator[ModelDelta]:
        function = piece.get("function")
        function = function if isinstance(function, dict) else {}
        call = self._open_call(piece, function)
        if call is None:
            call = self._new_call(piece, function)
            yield ModelDelta("call_start", original(storable(call.name)), storable(call.id))
        arguments = function.get("arguments")
        if isinstance(arguments, str) and arguments:
            call.arguments.append(arguments)
            yield ModelDelta("call_arguments", storable(arguments), storable(call.id))
        elif arguments not in (None, ""):
            raise MalformedAnswerError(f"tool call: 'arguments' is {arguments!r}, expected str")

    def _open_call(self, piece: JsonObject, function: JsonObject) -> _Call | None:
        """The call that a piece goes on with; None when it begins one.

        Servers differ: some give no index, some give every call the same, some repeat id and name
        with each piece, some have no ids.
        """
        index, call_id = piece.get("index"), piece.get("id")
        same = [c for c in self._calls if index is None or c.index == index]
        if call_id:
            named = next((c for c in same if c.id == call_id), None)
            if named is not None or function.get("name"):
                return named
        elif index is None and function.get("name"):
            return None
        return same[-1] if same else None

    def _new_call(self, piece: JsonObject, function: JsonObject) -> _Call:
        name, call_id = function.get("name"), piece.get("id")
        if not isinstance(name, str) or not isinstance(call_id, str | None):
            raise MalformedAnswerError(f"tool call: it begins without a name: {piece!r}")
        known = ("index", "id", "function")
        extra: JsonObject = {"type": "function"}
        extra |= {k: v for k, v in piece.items() if k not in known and v}
        call = _Call(
            id=call_id or made_id(self._answer.get("id"), len(self._calls)),
            index=piece.get("index"),
            name=name,
            extra=extra,
        )
        self._calls.append(call)
        return call


def _wire_call(call: _Call) -> JsonObject:
    function: JsonObject = {"name": call.name, "arguments": "".join(call.arguments)}
    return {"id": call.id, **call.extra, "function": function}


def _merge(whole: JsonObject, piece: JsonObject) -> None:
    """Add a piece: lists are continued, a null says nothing, all else is replaced."""
    for key, new in piece.items():
        old = whole.get(key)
        if isinstance(new, list) and isinstance(old, list | None):
            whole[key] = _continued(old or [], new)
        elif new is not None or key not in whole:
            whole[key] = new


def _continued(entries: list[Json], pieces: list[Json]) -> list[Json]:
    """A longer list. A piece that bears the index of an entry goes on with it, as OpenRouter's do.

    It is the texts of reasoning that come in pieces; all else in a piece is whole.
    """
    grown = [*entries]
    for piece in pieces:
        place, entry = next(((n, e) for n, e in enumerate(grown) if _is_same(e, piece)), (0, None))
        if not isinstance(entry, dict) or not isinstance(piece, dict):
            grown.append(piece)
            continue
        whole = dict(entry)
        for key, new in piece.items():
            old = whole.get(key)
            if key in REASONING_TEXTS and isinstance(old, str) and isinstance(new, str):
                whole[key] = old + new
            elif new is not None:
                whole[key] = new
        grown[place] = whole
    return grown


def _is_same(entry: Json, piece: Json) -> bool:
    if not isinstance(entry, dict) or not isinstance(piece, dict):
        return False
    same = all(entry.get(key) == piece.get(key) for key in ("index", "type"))
    return same and isinstance(piece.get("index"), int)

"""A provider that answers from a script, for tests and scenarios."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence

from harness.errors import ModelCallError
from harness.protocols import OnDelta
from harness.schema.messages import Block, ModelTurn, StopReason, Text, ToolCall, Usage
from harness.values import ModelDelta, ModelRequest

PIECE = 7
"""Characters of a streamed piece: few, so that short texts come in several."""


class Scripted:
    """Gives its turns in order, raises those that are exceptions, remembers what it was asked."""

    def __init__(self, turns: Iterable[ModelTurn | Exception]) -> None:
        """Take the script; it is read one turn per call, so it may be a generator."""
        self._turns = iter(turns)
        self.requests: list[ModelRequest] = []
        """As they were when they came."""

    def complete(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelTurn:
        """Give the next turn, in pieces first if somebody wants to see them.

        Raises:
            ModelCallError: the script has ended.
        """
        self.requests.append(dataclasses.replace(request, messages=tuple(request.messages)))
        answer = next(self._turns, None)
        if answer is None:
            raise ModelCallError(
                f"the script has no answer to model call {len(self.requests)}; add a turn to it"
            )
        if isinstance(answer, Exception):
            raise answer
        if on_delta is not None:
            for delta in _deltas(answer):
                on_delta(delta)
        return answer


def turn(
    text: str = "",
    *,
    calls: Sequence[tuple[str, str, str]] = (),
    stop: StopReason | None = None,
    usage: Usage | None = None,
    model: str | None = None,
) -> ModelTurn:
    """A turn of text and of calls, each (id, name, raw arguments)."""
    content: list[Block] = [Text(text=text)] if text else []
    content += [ToolCall(id=id_, name=name, arguments=raw) for id_, name, raw in calls]
    natural = StopReason.TOOL_USE if calls else StopReason.END_TURN
    return ModelTurn(content=tuple(content), stop=stop or natural, usage=usage, model=model)


def _deltas(answer: ModelTurn) -> Iterator[ModelDelta]:
    for block in answer.content:
        if isinstance(block, Text):
            for piece in _pieces(block.text):
                yield ModelDelta("text", piece)
        elif isinstance(block, ToolCall):
            yield ModelDelta("call_start", block.name, block.id)
            for piece in _pieces(block.arguments):
                yield ModelDelta("call_arguments", piece, block.id)
            yield ModelDelta("call_done", call_id=block.id)


def _pieces(text: str) -> Iterator[str]:
    return (text[start : start + PIECE] for start in range(0, len(text), PIECE))

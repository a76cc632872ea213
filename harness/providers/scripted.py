"""A provider that answers from a script, for tests and scenarios."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from harness.errors import ModelCallError
from harness.protocols import ModelRequest
from harness.schema.messages import Block, ModelTurn, StopReason, Text, ToolCall, Usage


class Scripted:
    """Gives its turns in order, raises those that are exceptions, remembers what it was asked."""

    def __init__(self, turns: Iterable[ModelTurn | Exception]) -> None:
        """Take the script; it is read one turn per call, so it may be a generator."""
        self._turns = iter(turns)
        self.requests: list[ModelRequest] = []

    def complete(self, request: ModelRequest) -> ModelTurn:
        """Give the next turn.

        Raises:
            ModelCallError: the script has ended.
        """
        self.requests.append(request)
        answer = next(self._turns, None)
        if answer is None:
            raise ModelCallError(
                f"the script has no answer to model call {len(self.requests)}; add a turn to it"
            )
        if isinstance(answer, Exception):
            raise answer
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

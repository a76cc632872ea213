"""The calls of a cassette as conversations: each after the one that its trial made before.

The file names as parent any recorded conversation that a request begins with, whoever had it; a
reader wants to see what one trial said and was told.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from harness.cassette.file.view import CassetteView, InteractionView
from harness.schema.record import JsonObject


@dataclass(frozen=True, slots=True)
class Call:
    """One model call in its conversation."""

    interaction: InteractionView
    number: int
    """Counted from 1 along the conversation."""
    before: str | None
    """Id of the call that this one follows."""
    said: tuple[JsonObject, ...]
    """The messages that come after those of the call before."""
    new_settings: bool
    """Whether its parameters differ from those of the call before."""


@dataclass(frozen=True, slots=True)
class Conversations:
    """All calls of a cassette."""

    calls: dict[str, Call]
    """By id, in the order recorded."""
    after: dict[str | None, tuple[str, ...]]
    """The calls that follow one; None for those that begin a conversation."""


def conversations(view: CassetteView) -> Conversations:
    """Arrange the calls of a cassette."""
    by_chain: dict[str, list[InteractionView]] = {}
    calls: dict[str, Call] = {}
    after: dict[str | None, list[str]] = {}
    for name, one in view.interactions.items():
        before = _call_before(view, one, by_chain)
        known = 0 if before is None else len(view.messages(before.line.id))
        calls[name] = Call(
            interaction=one,
            number=1 if before is None else calls[before.line.id].number + 1,
            before=None if before is None else before.line.id,
            said=tuple(view.messages(name)[known:]),
            new_settings=before is None or before.line.parameters != one.line.parameters,
        )
        after.setdefault(calls[name].before, []).append(name)
        by_chain.setdefault(one.line.chain, []).append(one)
    return Conversations(calls, {name: tuple(names) for name, names in after.items()})


def _call_before(
    view: CassetteView, one: InteractionView, by_chain: dict[str, list[InteractionView]]
) -> InteractionView | None:
    """The longest beginning of a conversation that the same trial had, or one with its settings."""
    alike: InteractionView | None = None
    for chain in _beginnings(view, one):
        # Of a request made again the last: what went on from there had that answer.
        for other in reversed(by_chain.get(chain, ())):
            if set(other.variants) & set(one.variants):
                return other
            if alike is None and other.line.parameters == one.line.parameters:
                alike = other
    return alike


def _beginnings(view: CassetteView, one: InteractionView) -> Iterator[str]:
    """The recorded conversations that a request goes on from, the longest first."""
    current: InteractionView | None = one
    while current is not None:
        parent = current.line.parent
        if parent is not None and parent != one.line.chain:
            yield parent
        current = None if current.parent is None else view.interactions[current.parent]

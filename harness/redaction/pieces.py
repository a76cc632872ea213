"""The texts that a stream's events bring piece by piece."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

from harness.schema.record import Json

_FIXED = frozenset(
    {
        "event", "finish_reason", "id", "item_id", "model", "object", "obfuscation", "response_id",
        "role", "service_tier", "system_fingerprint", "type",
    }
)  # fmt: skip
"""Keys whose values are whole in each event."""
_PLACES = ("index", "output_index", "content_index", "summary_index")
"""Keys that say which of several texts a piece belongs to."""

_Holder: TypeAlias = dict[str, Json] | list[Json]


class Pieces:
    """Texts of a stream, each as its pieces in the order they came."""

    def __init__(self, events: Json) -> None:
        """Collect the texts at the same place of each event."""
        self._found: dict[tuple[str | int, ...], list[tuple[_Holder, str | int, str]]] = {}
        for event in events if isinstance(events, list) else ():
            if isinstance(event, dict):
                self._collect(event, ())

    def texts(self) -> Iterator[list[str]]:
        """The texts that have several pieces."""
        for pieces in self._found.values():
            if len(pieces) > 1:
                yield [text for _, _, text in pieces]

    def replace(self, change: Callable[[Sequence[str]], Sequence[str]]) -> None:
        """Put other pieces in their places, in the events themselves."""
        for pieces in self._found.values():
            for (holder, key, _), text in zip(
                pieces, change([text for _, _, text in pieces]), strict=True
            ):
                holder[key] = text  # type: ignore[index]

    def _collect(self, value: _Holder, place: tuple[str | int, ...]) -> None:
        items: Iterable[tuple[str | int, Json]]
        if isinstance(value, dict):
            items = value.items()
            for name in _PLACES:
                if name in value:
                    place = (*place, name, str(value[name]))
        else:
            items = enumerate(value)
        for key, item in items:
            if key in _FIXED:
                continue
            if isinstance(item, str):
                self._found.setdefault((*place, key), []).append((value, key, item))
            elif isinstance(item, dict | list):
                # An item that says which it is may be at another place in each event.
                numbered = isinstance(key, int) and isinstance(item, dict) and "index" in item
                self._collect(item, place if numbered else (*place, key))

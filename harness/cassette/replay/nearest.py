"""Which recorded request is nearest to one that was not recorded."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import cast

from harness.cassette.file.tree import Tree
from harness.cassette.format import InteractionLine, ParametersLine
from harness.cassette.request.canonical import CanonicalRequest, canonical_json
from harness.cassette.show.text_diff import text_lines
from harness.redaction import Redactor
from harness.schema.record import Json, JsonObject

_READ_WHOLE = 40
"""Of more recordings beside each other, only those that look most alike are read whole."""
_SAMPLES = 10
_SAMPLE_BYTES = 16


@dataclass(frozen=True, slots=True)
class Nearest:
    """The recorded request that shares the longest beginning with a missed one."""

    variant: str
    """The variant that recorded it."""
    equal_messages: int
    next_message: JsonObject | None
    """The first recorded message that is not equal; None where the recording has no more."""
    recorded_on: str
    endpoint: str
    parameters: JsonObject
    had_s: float | None = None
    """The time it had, where it was cut when that was over."""

    def redacted(self, redactor: Redactor) -> Nearest:
        """The same without secrets: a key may have been recorded before it was known as one."""
        clean = redactor.json([self.endpoint, self.parameters, self.next_message])
        endpoint, parameters, message = cast(tuple[str, JsonObject, JsonObject | None], clean)
        return replace(self, endpoint=endpoint, parameters=parameters, next_message=message)


def find_nearest(tree: Tree, request: CanonicalRequest) -> Nearest | None:
    """Search the conversation tree along the request's own path, and beside it.

    The longest common beginning counts first; then how few lines differ after it.
    """
    search = _Search(tree, request)
    best: tuple[tuple[bool, int, int, int], Nearest] | None = None
    for depth, name in search.candidates():
        rank, found = search.measure(depth, name)
        if best is None or rank > best[0]:
            best = rank, found
    return None if best is None else best[1]


def find_clean(
    tree: Tree, request: CanonicalRequest, asked: CanonicalRequest, redactor: Redactor
) -> Nearest | None:
    """The nearest to a request, as it is kept or as it was asked, without secrets."""
    forms = (request,) if request.digest == asked.digest else (request, asked)
    found = [one for form in forms if (one := find_nearest(tree, form)) is not None]
    nearest = max(found, key=lambda one: one.equal_messages, default=None)
    return None if nearest is None else nearest.redacted(redactor)


class _Search:
    def __init__(self, tree: Tree, request: CanonicalRequest) -> None:
        self._tree = tree
        self._request = request
        self._canonical = [canonical_json(message) for message in request.messages]
        self._parameters: dict[str, tuple[ParametersLine, int]] = {}

    def candidates(self) -> Iterator[tuple[int, str]]:
        """What continues the longest recorded beginning of the request, or a shorter one."""
        path = [(None, 0), *((chain, at) for at, chain in enumerate(self._request.chain, 1))]
        for chain, depth in reversed(path):
            beside = self._tree.children.get(chain, ())
            for name in self._most_alike(depth, beside):
                yield depth, name

    def _most_alike(self, depth: int, beside: Sequence[str]) -> Sequence[str]:
        if len(beside) <= _READ_WHOLE:
            return beside
        samples = self._samples(depth)
        alike = [
            (sum(sample in raw for sample in samples), -at)
            for at, raw in enumerate(map(self._tree.raw, beside))
        ]
        return [beside[-at] for _, at in sorted(alike, reverse=True)[:_READ_WHOLE]]

    def _samples(self, depth: int) -> list[bytes]:
        """Pieces of what the request adds, as they would stand in a line of the file."""
        added = self._request.messages[depth:]
        written = json.dumps(added, ensure_ascii=False, separators=(",", ":")).encode()
        step = max(1, len(written) // _SAMPLES)
        return [written[at : at + _SAMPLE_BYTES] for at in range(0, len(written), step)]

    def measure(self, depth: int, name: str) -> tuple[tuple[bool, int, int, int], Nearest]:
        line = self._tree.interaction(name)
        parameters, other_parameters = self._read_parameters(line.parameters)
        equal = 0
        for ours, theirs in zip(self._canonical[depth:], line.add, strict=False):
            if ours != canonical_json(theirs):
                break
            equal += 1
        rest = line.add[equal:]
        at = depth + equal
        now = self._request.messages[at] if at < len(self._canonical) else None
        other_lines = _lines_apart(rest[0] if rest else None, now)
        rank = (
            parameters.endpoint == self._request.endpoint,
            at,
            -(other_lines + other_parameters),
            -abs(depth + len(line.add) - len(self._canonical)),
        )
        return rank, Nearest(
            line.variant,
            at,
            rest[0] if rest else None,
            line.recorded_at.date().isoformat(),
            parameters.endpoint,
            parameters.body,
            line.latency_s if line.response.is_out_of_time else None,
        )

    def _read_parameters(self, name: str) -> tuple[ParametersLine, int]:
        """A set of parameters, and how many of its lines differ."""
        if name not in self._parameters:
            line = self._tree.parameters(name)
            self._parameters[name] = line, _lines_apart(line.body, self._request.parameters)
        return self._parameters[name]


def _lines_apart(before: Json, now: Json) -> int:
    return len(set(text_lines(before)) ^ set(text_lines(now)))


def compared(tree: Tree, line: InteractionLine, request: CanonicalRequest) -> Nearest:
    """A recorded request beside another one."""
    messages = tree.conversation(line)
    equal = 0
    for ours, theirs in zip(request.messages, messages, strict=False):
        if canonical_json(ours) != canonical_json(theirs):
            break
        equal += 1
    parameters = tree.parameters(line.parameters)
    return Nearest(
        line.variant,
        equal,
        messages[equal] if equal < len(messages) else None,
        line.recorded_at.date().isoformat(),
        parameters.endpoint,
        parameters.body,
    )

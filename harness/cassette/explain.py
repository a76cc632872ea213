"""A miss explains itself: the nearest recording, the first difference, the way to record."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass

from harness.cassette.canonical import CanonicalRequest, canonical_json
from harness.cassette.index import Entry, Index, read_interaction, read_parameters
from harness.cassette.journal import Journal
from harness.schema.record import Json, JsonObject

_LONG_LINE = 160
_MAX_DIFF_LINES = 60
_SENTENCE_END = re.compile(r"(?<=[.;:!?]) ")


@dataclass(frozen=True, slots=True)
class Miss:
    """Something that replay was asked for and that was never recorded."""

    cause: str
    """Short key: equal for misses that have the same reason."""
    text: str
    """The explanation, ready to be shown."""


@dataclass(frozen=True, slots=True)
class Nearest:
    """The recorded request that shares the longest beginning with a missed one."""

    entry: Entry
    equal_messages: int
    next_message: JsonObject | None
    """The first recorded message that is not equal; None where the recording has no more."""
    recorded_on: str
    endpoint: str
    parameters: JsonObject


def find_nearest(journal: Journal, index: Index, request: CanonicalRequest) -> Nearest | None:
    """Search the conversation tree; only lines along the request's own path are read."""
    canonical = [canonical_json(message) for message in request.messages]
    best: tuple[tuple[bool, int, bool, int], Nearest] | None = None
    open_nodes: list[tuple[str | None, int]] = [(None, 0)]
    seen: set[str] = set()
    while open_nodes:
        parent, depth = open_nodes.pop()
        for entry in index.children.get(parent, ()):
            line = read_interaction(journal, entry)
            equal = _common(canonical[depth:], line.add)
            if equal == len(line.add) and entry.chain not in seen:
                seen.add(entry.chain)
                open_nodes.append((entry.chain, depth + equal))
            parameters = read_parameters(journal, index, entry.parameters)
            rest = line.add[equal:]
            rank = (
                parameters.endpoint == request.endpoint,
                depth + equal,
                entry.parameters == request.parameters_digest,
                -abs(depth + len(line.add) - len(canonical)),
            )
            if best is None or rank > best[0]:
                best = rank, Nearest(
                    entry,
                    depth + equal,
                    rest[0] if rest else None,
                    line.recorded_at.date().isoformat(),
                    parameters.endpoint,
                    parameters.body,
                )  # fmt: skip
    return None if best is None else best[1]


def _common(canonical: list[bytes], messages: list[JsonObject]) -> int:
    count = 0
    for ours, theirs in zip(canonical, messages, strict=False):
        if ours != canonical_json(theirs):
            break
        count += 1
    return count


def first_difference(request: CanonicalRequest, nearest: Nearest) -> tuple[str, str]:
    """The cause of a miss, and a diff of the first thing that is not equal."""
    at = nearest.equal_messages
    if nearest.endpoint != request.endpoint:
        return "endpoint", _diff(nearest.endpoint, request.endpoint)
    if at < len(request.messages) or nearest.next_message is not None:
        now = request.messages[at] if at < len(request.messages) else None
        shown = now if now is not None else nearest.next_message
        role = shown.get("role") if shown is not None else None
        named = f" ({role})" if isinstance(role, str) else ""
        return f"message {at + 1}{named}", _diff(nearest.next_message, now)
    for key in sorted(request.parameters.keys() | nearest.parameters.keys()):
        before, now_value = nearest.parameters.get(key), request.parameters.get(key)
        if canonical_json(before) != canonical_json(now_value):
            return f"parameter {key}", _diff(before, now_value)
    return "repetition", ""


def _diff(before: Json, now: Json) -> str:
    lines = list(
        difflib.unified_diff(
            list(_lines(before)), list(_lines(now)), "recorded", "now", n=2, lineterm=""
        )
    )
    if len(lines) > _MAX_DIFF_LINES:
        more = len(lines) - _MAX_DIFF_LINES
        lines = [*lines[:_MAX_DIFF_LINES], f"... {more} more lines"]
    return "\n".join(lines)


def _lines(value: Json, indent: str = "") -> Iterator[str]:
    """A value as lines in which one changed word changes one line."""
    if value is None and not indent:
        return
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _entry(f"{indent}{key}:", item, indent)
    elif isinstance(value, list):
        for item in value:
            yield from _entry(f"{indent}-", item, indent)
    elif isinstance(value, str):
        for line in value.split("\n"):
            parts = _SENTENCE_END.split(line) if len(line) > _LONG_LINE else [line]
            yield from (indent + part for part in parts)
    else:
        yield indent + canonical_json(value).decode()


def _entry(head: str, item: Json, indent: str) -> Iterator[str]:
    nested = list(_lines(item, indent + "  "))
    if isinstance(item, (dict, list)) and item:
        yield head
        yield from nested
    elif len(nested) == 1:
        yield f"{head} {nested[0].strip()}"
    else:
        yield head
        yield from nested


def explain(
    request: CanonicalRequest,
    nearest: Nearest | None,
    *,
    task_changed: bool | None,
    where: str,
    record_hint: str,
) -> Miss:
    """Put a miss into words."""
    count = len(request.messages)
    size = f" ({count} message{'s' * (count != 1)})" if request.is_model_call else ""
    head = f"{where} has no recording of this request to {request.endpoint}{size}."
    parts = [head]
    if nearest is None:
        cause = "nothing recorded"
        parts.append("It holds no recorded request at all.")
    else:
        cause, diff = first_difference(request, nearest)
        parts.append(
            f"The nearest one was recorded on {nearest.recorded_on} by variant"
            f" {nearest.entry.variant!r}; {nearest.equal_messages} of {count} messages are equal."
        )
        if diff:
            parts.append(f"First difference, in {cause}:\n{diff}")
        else:
            parts.append("It is the same request, made more often than it was recorded.")
    if task_changed is not None:
        parts.append(
            "The task has changed since it was recorded."
            if task_changed
            else "The task has not changed since it was recorded."
        )
    if record_hint:
        parts.append(f"To record from here on: {record_hint}")
    return Miss(cause, "\n".join(parts))

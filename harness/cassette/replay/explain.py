"""A miss explains itself: the nearest recording, the first difference, the way to record."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from harness.cassette.file.tape import ToolKey
from harness.cassette.format import ToolLine
from harness.cassette.replay.nearest import Nearest
from harness.cassette.request.canonical import CanonicalRequest, canonical_json
from harness.cassette.show.text_diff import difference, harmless
from harness.cassette.show.transcript import declared_tools
from harness.redaction import Redactor
from harness.schema.record import Json, JsonObject

SYSTEM_PROMPT = "the system prompt"
REPETITION = "repetition"
UNFINISHED = "an unfinished recording is beside it"
_MAX_ARGUMENTS_CHARS = 300
_SYSTEM_ROLES = ("system", "developer")
_SYSTEM_PARAMETERS = ("system", "instructions", "systemInstruction", "system_instruction")


@dataclass(frozen=True, slots=True)
class Miss:
    """Something that replay was asked for and that was never recorded."""

    cause: str
    """Short key: what is not as it was recorded."""
    text: str
    """The explanation, ready to be shown."""
    difference: str = ""
    """The first difference as a unified diff, or in words; empty where there is none to show."""

    def redacted(self, redactor: Redactor) -> Miss:
        """The same without secrets."""
        return Miss(*map(redactor.text, (self.cause, self.text, self.difference)))


@dataclass(frozen=True, slots=True)
class _Found:
    cause: str
    difference: str
    also: tuple[str, ...] = ()
    """Further things that differ."""


def first_difference(request: CanonicalRequest, nearest: Nearest) -> tuple[str, str]:
    """What is not as it was recorded, and a diff of it."""
    found = _first(request, nearest)
    return harmless(found.cause), harmless(found.difference)


def _first(request: CanonicalRequest, nearest: Nearest) -> _Found:
    if nearest.endpoint != request.endpoint:
        return _Found("endpoint", difference(nearest.endpoint, request.endpoint))
    changed = _changed_parameters(request.parameters, nearest.parameters)
    at = nearest.equal_messages
    if at < len(request.messages) or nearest.next_message is not None:
        now = request.messages[at] if at < len(request.messages) else None
        cause = name_message(at, now or nearest.next_message or {})
        before, after = _shown_messages(nearest.next_message, now)
        return _Found(cause, difference(before, after), tuple(map(_name_parameter, changed)))
    if not changed:
        return _Found(REPETITION, "")
    return _parameters_differ(changed, nearest.parameters, request.parameters)


def _changed_parameters(now: JsonObject, before: JsonObject) -> list[str]:
    """Names of what differs: instructions first, then tools, then settings."""
    names = [
        name
        for name in sorted(now.keys() | before.keys())
        if canonical_json(before.get(name)) != canonical_json(now.get(name))
    ]
    return sorted(names, key=lambda name: (name not in _SYSTEM_PARAMETERS, name != "tools"))


def name_message(at: int, message: JsonObject) -> str:
    """A message by its place, counted from 1, and role."""
    role = message.get("role")
    if at == 0 and role in _SYSTEM_ROLES:
        return SYSTEM_PROMPT
    return f"message {at + 1} ({role})" if isinstance(role, str) else f"message {at + 1}"


def _name_parameter(name: str) -> str:
    if name in _SYSTEM_PARAMETERS:
        return SYSTEM_PROMPT
    return "the tools" if name == "tools" else f"parameter {name}"


def _shown_messages(before: JsonObject | None, now: JsonObject | None) -> tuple[Json, Json]:
    """Two messages without what they have in common around their text."""
    texts = [None if message is None else _only_text(message) for message in (before, now)]
    roles = {message.get("role") for message in (before, now) if message is not None}
    if len(roles) == 1 and all(
        text is not None or message is None
        for text, message in zip(texts, (before, now), strict=True)
    ):
        return texts[0], texts[1]
    return before, now


def _only_text(value: Json) -> str | None:
    """The text of a message or parameter that holds nothing else."""
    if isinstance(value, dict) and set(value) == {"role", "content"}:
        value = value["content"]
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
        if isinstance(value, dict) and set(value) == {"type", "text"}:
            value = value["text"]
    return value if isinstance(value, str) else None


def _parameters_differ(changed: list[str], before: JsonObject, now: JsonObject) -> _Found:
    first = changed[0]
    if first in _SYSTEM_PARAMETERS:
        old, new = _only_text(before.get(first)), _only_text(now.get(first))
        if old is None or new is None:
            diff = difference(before.get(first), now.get(first))
        else:
            diff = difference(old, new)
        return _Found(SYSTEM_PROMPT, diff, tuple(map(_name_parameter, changed[1:])))
    if first == "tools":
        also = tuple(map(_name_parameter, changed[1:]))
        return _tools_differ(before.get(first), now.get(first), also)
    # Settings are short: all of them at once.
    old_values: JsonObject = {name: before[name] for name in changed if name in before}
    new_values: JsonObject = {name: now[name] for name in changed if name in now}
    kind = "parameter" if len(changed) == 1 else "parameters"
    return _Found(f"{kind} {', '.join(changed)}", difference(old_values, new_values))


def _tools_differ(before: Json, now: Json, also: tuple[str, ...]) -> _Found:
    """Tool lists compared by name."""
    old, new = _by_name(before), _by_name(now)
    if old is None or new is None:
        return _Found("the tools", difference(before, now), also)
    added = [name for name in new if name not in old]
    removed = [name for name in old if name not in new]
    changed = [
        name
        for name in old
        if name in new and canonical_json(old[name]) != canonical_json(new[name])
    ]
    said = [
        f"{word} {', '.join(names)}"
        for word, names in (("added", added), ("removed", removed), ("changed", changed))
        if names
    ]
    parts: list[str] = [f"Tools: {'; '.join(said) or 'in another order'}."]
    if changed:
        first: Json = {name: old[name] for name in changed}
        parts.append(difference(first, {name: new[name] for name in changed}))
    else:
        names: list[Json] = list(old)
        parts.append(difference(names, list(new)))
    return _Found("the tools", "\n".join(parts), also)


def _by_name(tools: Json) -> dict[str, Json] | None:
    """Tools by their names; None where they have none, or share one."""
    if tools is None:
        return {}
    if not isinstance(tools, list):
        return None
    found: dict[str, Json] = {}
    for tool in declared_tools(tools):
        inner = tool.get("function", tool) if isinstance(tool, dict) else None
        name = inner.get("name") if isinstance(inner, dict) else None
        if not isinstance(name, str) or name in found:
            return None
        found[name] = inner
    return found


def explain_tool(key: ToolKey, beside: Iterable[ToolLine], *, where: str, record_hint: str) -> Miss:
    """Put into words why a tool call has no recorded result.

    Args:
        key: The call.
        beside: What is recorded of the calls of the same turn.
        where: The cassette.
        record_hint: Command that records it.
    """
    arguments = canonical_json(key.arguments).decode()
    if len(arguments) > _MAX_ARGUMENTS_CHARS:
        arguments = arguments[:_MAX_ARGUMENTS_CHARS] + "…"
    reason = _tool_difference(key, beside)
    parts = [
        f"{where} has no recorded result of the tool call {key.name} {arguments}"
        f" with a timeout of {key.timeout_s:g} s.",
        reason,
    ]
    if record_hint:
        parts.append(f"To record from here on: {record_hint}")
    return Miss(harmless(f"tool {key.name}"), harmless("\n".join(parts)), reason)


def _tool_difference(key: ToolKey, beside: Iterable[ToolLine]) -> str:
    """What is not as it was with a call of the same place, name and arguments."""
    wanted = canonical_json(key.arguments)
    alike = [
        line
        for line in beside
        if (line.position, line.name) == (key.position, key.name)
        and canonical_json(line.arguments) == wanted
    ]
    if not alike:
        return "Nothing is recorded of this call: its recording may have been interrupted."
    last = alike[-1]
    if last.identity != key.identity:
        return (
            "It was recorded with another version of the tool: its schema or its settings differ."
        )
    if last.timeout_s != key.timeout_s:
        return f"It was recorded with a timeout of {last.timeout_s:g} s."
    return "It was made more often than it was recorded."


def explain_end(where: str, record_hint: str) -> Miss:
    """Put into words that an answer was recorded only so far as it was read."""
    text = f"{where}: the recording of this answer ends where the agent closed the stream."
    if record_hint:
        text += f"\nTo record it anew: {record_hint.replace('new_episodes', 'all')}"
    return Miss("the end of a closed stream", harmless(text))


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
    found = _Found("nothing recorded", UNFINISHED if UNFINISHED in where else "")
    if nearest is None:
        parts.append("It holds no recorded request at all.")
    else:
        found = _first(request, nearest)
        parts.append(
            f"The nearest one was recorded on {nearest.recorded_on} by variant"
            f" {nearest.variant!r}; {nearest.equal_messages} of {count} messages are equal."
        )
        if found.cause == REPETITION and nearest.had_s is not None:
            found = _Found("the run's time", "")
            parts.append(
                f"It is the same request, which was cut after {nearest.had_s:g} s: its run's time"
                " was used up. Now there is more time."
            )
        elif found.cause == REPETITION:
            parts.append("It is the same request, made more often than it was recorded.")
        else:
            parts.append(f"First difference, in {found.cause}:\n{found.difference}")
        if found.also:
            parts.append(f"Also different: {', '.join(found.also)}.")
    if task_changed is not None:
        parts.append(
            "The task has changed since it was recorded."
            if task_changed
            else "The task has not changed since it was recorded."
        )
    if record_hint:
        parts.append(f"To record from here on: {record_hint}")
    return Miss(harmless(found.cause), harmless("\n".join(parts)), harmless(found.difference))

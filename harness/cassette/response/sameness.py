"""Whether something that was recorded again came out the same."""

from __future__ import annotations

from harness.cassette.format import InteractionLine, StoredResponse, ToolLine, TrialLine
from harness.providers.catalog import all_dialects
from harness.schema.record import Json, JsonObject

_VOLATILE = {dialect.name: dialect.volatile for dialect in all_dialects()}
_COUNTING_HEADERS = frozenset({"content-type", "location"})


def same_answer(endpoint: str, old: InteractionLine, new: InteractionLine) -> bool:
    """Whether two answers to the same request say the same to the agent."""
    volatile = _VOLATILE.get(endpoint, frozenset())
    return old.repeats == new.repeats and _said(old.response, volatile) == _said(
        new.response, volatile
    )


def same_result(old: ToolLine, new: ToolLine) -> bool:
    """Whether two results of the same tool call are the same, but for the time they took."""
    before, now = old.result, new.result
    return (before.content, before.status, before.asks) == (now.content, now.status, now.asks)


def same_trial(old: TrialLine, new: TrialLine) -> bool:
    """Whether two trials are the same, but for the time they were finished."""
    return old.model_copy(update={"finished_at": new.finished_at}) == new


def _said(response: StoredResponse, volatile: frozenset[str]) -> list[Json]:
    """What of an answer counts, told apart as JSON does it: `1` is not `true`."""
    body = response.body
    if response.type == "json":
        body = _without(body, volatile)
    elif response.type == "events" and isinstance(body, list):
        body = [_event(event, volatile) for event in body]
    headers: JsonObject = {n: v for n, v in response.headers.items() if n in _COUNTING_HEADERS}
    return [response.status, headers, response.type, response.cut, repr(body)]


def _event(event: Json, volatile: frozenset[str]) -> Json:
    """An event without the time it came, and without what its data calls the answer."""
    if not isinstance(event, dict):
        return event
    kept = {name: value for name, value in event.items() if name not in ("at_s", "data")}
    data = event.get("data")
    if isinstance(data, dict):
        # The first event of an Anthropic stream wraps the message, and only that has an id.
        wrapped = {n: _without(v, volatile) for n, v in data.items() if n == "message"}
        data = {n: v for n, v in data.items() if n not in volatile} | wrapped
    return {**kept, "data": data}


def _without(value: Json, names: frozenset[str]) -> Json:
    if not isinstance(value, dict):
        return value
    return {name: item for name, item in value.items() if name not in names}

"""Cassettes in the formats of others: vcrpy's YAML, and plain conversations."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vcr.serializers import yamlserializer  # type: ignore[import-untyped]

from harness.cassette.convert.spelling import is_model_endpoint, plain_message, sent_request
from harness.cassette.convert.vcr import interaction_to_vcr, vcr_cassette
from harness.cassette.file.journal import replace_file
from harness.cassette.file.view import CassetteView, InteractionView
from harness.cassette.format import StoredResponse
from harness.cassette.request.canonical import canonical_json
from harness.cassette.show.transcript import is_the_models
from harness.errors import BadInputError, InfrastructureError, ModelCallError
from harness.providers.catalog import dialects_by_name, recorded_body
from harness.schema.record import Json, JsonObject

_DIALECTS = dialects_by_name()


@dataclass(frozen=True, slots=True)
class _Call:
    """An interaction with its whole conversation."""

    entry: InteractionView
    messages: list[JsonObject]
    said: list[JsonObject] | None
    """What the answer adds to the conversation, as it was given; None where it is none."""


def to_vcr(view: CassetteView, *, base_url: str | None = None) -> str:
    """A cassette as YAML that vcrpy replays when it matches by method, URI and body.

    Requests are spelled as vendors document them, and an answer with tool calls that is sent back
    as it came: what is recorded is what identifies a request, not how a client spelled it.

    Args:
        view: The cassette.
        base_url: What the client's SDK has as its base URL; None for each vendor's own.
    """
    text: str = yamlserializer.serialize(vcr_data(view, base_url=base_url))
    return text


def vcr_data(view: CassetteView, *, base_url: str | None = None) -> dict[str, Any]:
    """A cassette as the data that vcrpy's serializers write; see `to_vcr`."""
    calls = _calls(view)
    given = {
        canonical_json(_canonical(call.entry.endpoint, message)): message
        for call in calls
        for message in call.said or ()
        if _asks_for_tools(message)
    }
    interactions = []
    for call in _by_trial(view, calls):
        line = call.entry.line
        sent = sent_request(
            call.entry.endpoint,
            view.parameters[line.parameters].body,
            [given.get(canonical_json(message), message) for message in call.messages],
            base_url=base_url,
        )
        interactions.append(interaction_to_vcr(sent, line.response))
    return vcr_cassette(interactions)


def to_messages(view: CassetteView) -> tuple[str, int]:
    """Each conversation to its end as a line of JSON, and how many there are.

    Messages are in the format of the endpoint that was called.
    """
    lines = []
    for call in _leaves(_calls(view)):
        messages = [*call.messages, *(_canonical(call.entry.endpoint, m) for m in call.said or ())]
        header = view.header
        meta: JsonObject = {
            **(header.meta or {}),
            "suite": header.suite,
            "task": header.task,
            "repeat": header.repeat,
            "variants": [*call.entry.variants],
            "endpoint": call.entry.endpoint,
            "parameters": view.parameters[call.entry.line.parameters].body,
        }
        value = {"messages": [plain_message(message) for message in messages], "meta": meta}
        lines.append(json.dumps(value, ensure_ascii=False) + "\n")
    return "".join(lines), len(lines)


def write_export(text: str, path: Path) -> None:
    """Write a file that is not there yet; it is there when it is whole.

    Raises:
        BadInputError: there is one.
        InfrastructureError: it cannot be written.
    """
    if path.exists():
        raise BadInputError(f"{path}: is there already; remove it, or choose another name")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InfrastructureError(f"{path}: cannot be written: {error.strerror}") from error
    replace_file(path, [text.encode()])


def _calls(view: CassetteView) -> list[_Call]:
    """All that got an answer."""
    return [
        _Call(entry, view.messages(name), _said(entry.endpoint, entry.line.response))
        for name, entry in view.interactions.items()
        if not entry.line.response.is_out_of_time
    ]


def _by_trial(view: CassetteView, calls: Iterable[_Call]) -> list[_Call]:
    """One finished trial's calls, then what the next one used beside them, then the rest.

    vcrpy hands answers to the same request out in turn: those of one trial stay together.
    """
    by_id = {call.entry.line.id: call for call in calls}
    used = [name for trial in view.trials.values() for name in trial.interactions]
    return [by_id[name] for name in dict.fromkeys([*used, *by_id]) if name in by_id]


def _said(endpoint: str, response: StoredResponse) -> list[JsonObject] | None:
    dialect = _DIALECTS.get(endpoint)
    if dialect is None or response.status != 200:
        return None
    try:
        body = recorded_body(dialect, response.body)
    except ModelCallError:
        return None
    match endpoint:
        case "anthropic-messages":
            return [{"role": "assistant", "content": body.get("content")}]
        case "openai-responses":
            return _objects(body.get("output"))
        case "ollama-chat":
            return _objects([body.get("message")])
        case _:
            choices = _objects(body.get("candidates" if "google" in endpoint else "choices"))
            key = "content" if "google" in endpoint else "message"
            return _objects([choice.get(key) for choice in choices[:1]])


def _objects(values: Json) -> list[JsonObject]:
    found = values if isinstance(values, list) else []
    return [value for value in found if isinstance(value, dict)]


def _canonical(endpoint: str, message: JsonObject) -> JsonObject:
    """A message of an answer as it is when it is sent back."""
    dialect = _DIALECTS[endpoint]
    _, [canonical] = dialect.split({dialect.messages_key: [message]})
    return canonical


def _asks_for_tools(message: JsonObject) -> bool:
    content = message.get("content")
    blocks = _objects(content)
    return bool(message.get("tool_calls")) or any(b.get("type") == "tool_use" for b in blocks)


def _leaves(calls: Iterable[_Call]) -> Iterator[_Call]:
    """The calls whose answers end a conversation: no recorded request goes on from them."""
    by_chain: dict[str, list[_Call]] = {}
    model_calls = [call for call in calls if is_model_endpoint(call.entry.endpoint)]
    for call in model_calls:
        by_chain.setdefault(call.entry.line.chain, []).append(call)
    continued: set[str] = set()
    for call in model_calls:
        before = by_chain.get(call.entry.line.parent or "", [])
        same = [one for one in before if _goes_on_from(call, one)]
        # An answer that was changed before it was sent back was the first's, most likely.
        guessed = before[:1] if any(map(is_the_models, call.entry.line.add[:1])) else []
        continued.update(one.entry.line.id for one in same or guessed)
    return (call for call in model_calls if call.said and call.entry.line.id not in continued)


def _goes_on_from(call: _Call, before: _Call) -> bool:
    """Whether a request sends another's answer back as it came."""
    answer = [_canonical(before.entry.endpoint, message) for message in before.said or ()]
    sent = call.entry.line.add[: len(answer)]
    return bool(answer) and canonical_json([*sent]) == canonical_json([*answer])

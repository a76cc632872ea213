"""Whole answers as the streams that a client may ask for instead."""

from __future__ import annotations

import json
from collections.abc import Iterator

from harness.cassette.format import StoredResponse
from harness.schema.record import Json, JsonObject


def streamed(endpoint: str, response: StoredResponse) -> StoredResponse | None:
    """An answer as server-sent events; None where that is not known for the endpoint."""
    body = response.body
    if response.type != "json" or response.status != 200:
        return response
    if not isinstance(body, dict):
        return None
    match endpoint:
        case "openai-chat":
            events: list[Json] = [{"data": chunk} for chunk in _chunks(body)]
            events.append({"text": "[DONE]"})
        case "anthropic-messages":
            events = [{"event": one["type"], "data": one} for one in _message_events(body)]
        case _:
            return None
    return StoredResponse(
        status=200, headers={"content-type": "text/event-stream"}, type="events", body=events
    )


def _chunks(body: JsonObject) -> Iterator[JsonObject]:
    """OpenAI's chunks: what is said in one, then why it ends, then the tokens."""
    head = {k: v for k, v in body.items() if k not in ("choices", "usage")}
    head["object"] = "chat.completion.chunk"
    for choice in _objects(body.get("choices")):
        message = choice.get("message")
        delta = dict(message) if isinstance(message, dict) else {}
        calls = _objects(delta.get("tool_calls"))
        if calls:
            delta["tool_calls"] = [{**call, "index": place} for place, call in enumerate(calls)]
        index = choice.get("index", 0)
        end: JsonObject = {"index": index, "delta": {}}
        end["finish_reason"] = choice.get("finish_reason")
        yield {**head, "choices": [{"index": index, "delta": delta, "finish_reason": None}]}
        yield {**head, "choices": [end]}
    if body.get("usage") is not None:
        yield {**head, "choices": [], "usage": body["usage"]}


_PIECES = {"text": "text_delta", "thinking": "thinking_delta"}


def _message_events(body: JsonObject) -> Iterator[JsonObject]:
    """Anthropic's events: each block begins empty, is filled, and ends."""
    end = {key: body.get(key) for key in ("stop_reason", "stop_sequence")}
    start = {**body, "content": [], **dict.fromkeys(end)}
    yield {"type": "message_start", "message": start}
    for index, block in enumerate(_objects(body.get("content"))):
        empty, deltas = _block(block)
        yield {"type": "content_block_start", "index": index, "content_block": empty}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    yield {"type": "message_delta", "delta": end, "usage": body.get("usage") or {}}
    yield {"type": "message_stop"}


def _block(block: JsonObject) -> tuple[JsonObject, list[JsonObject]]:
    """A block as it begins, and what fills it; blocks of other kinds come whole."""
    kind = str(block.get("type"))
    if kind == "tool_use":
        data = json.dumps(block.get("input"), ensure_ascii=False)
        return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": data}]
    if kind not in _PIECES:
        return block, []
    deltas: list[JsonObject] = [{"type": _PIECES[kind], kind: block.get(kind)}]
    empty = {**block, kind: ""}
    if "signature" in block:
        deltas.append({"type": "signature_delta", "signature": block["signature"]})
        empty["signature"] = ""
    return empty, deltas


def _objects(values: Json) -> list[JsonObject]:
    found = values if isinstance(values, list) else []
    return [value for value in found if isinstance(value, dict)]

"""A messages endpoint as strict as Anthropic's, and stricter where our dialect promises more."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from tests.providers.lookalikes.server import Answer, Endpoint, only, require, stream

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
ID = re.compile(r"[a-zA-Z0-9_-]+")
THINKING = ("thinking", "redacted_thinking")
MODEL_BLOCKS = ("text", "tool_use", "server_tool_use", "web_search_tool_result", *THINKING)
USER_BLOCKS = ("text", "tool_result", "image", "document")
OPTIONAL = {"system", "tools", "tool_choice", "temperature", "stream"}

ANSWER: dict[str, Any] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-test-2026",
    "content": [{"type": "text", "text": "Hi ☃"}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {
        "input_tokens": 7,
        "cache_creation_input_tokens": 3,
        "cache_read_input_tokens": 4,
        "output_tokens": 2,
    },
}


def thinking(text: str) -> dict[str, Any]:
    """A thinking block as the vendor would have signed it."""
    return {"type": "thinking", "thinking": text, "signature": _signature(text)}


def _signature(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def check(body: dict[str, Any]) -> None:
    """Raise Rejected for what the vendor refuses."""
    only(body, {"model", "messages", "max_tokens"}, OPTIONAL)
    require(body["model"], "model is empty")
    require(isinstance(body["max_tokens"], int) and body["max_tokens"] >= 1, "bad max_tokens")
    require(0 <= body.get("temperature", 0) <= 1, "bad temperature")
    _check_system(body.get("system", "S"))
    names = _check_tools(body.get("tools", []))
    if "tool_choice" in body:
        _check_choice(body["tool_choice"], names)
    _check_turns(body["messages"])
    uses = [b for turn in body["messages"] for b in turn["content"] if b["type"] == "tool_use"]
    require(names or not uses, "tool_use blocks without tools")
    require(len({use["id"] for use in uses}) == len(uses), "tool_use ids must be unique")
    require(json.dumps(body).count('"cache_control"') <= 4, "more than 4 cache_control marks")


def _check_system(system: Any) -> None:
    for block in [{"type": "text", "text": system}] if isinstance(system, str) else system:
        only(block, {"type", "text"}, {"cache_control"})
        require(block["text"].strip(), "system is blank")
        _check_mark(block)


def _check_tools(tools: list[Any]) -> list[str]:
    for tool in tools:
        only(tool, {"name", "input_schema"}, {"description"})
        require(NAME.fullmatch(tool["name"]), f"bad tool name {tool['name']!r}")
        require(tool["input_schema"].get("type") == "object", "input_schema.type must be object")
    names = [tool["name"] for tool in tools]
    require(len(names) == len(set(names)), "tool names must be unique")
    return names


def _check_choice(choice: dict[str, Any], names: list[str]) -> None:
    require(names, "tool_choice without tools")
    kind = choice.get("type")
    require(kind in ("auto", "any", "none", "tool"), f"unknown tool_choice {kind!r}")
    only(choice, {"type", "name"} if kind == "tool" else {"type"})
    require(kind != "tool" or choice["name"] in names, "tool_choice names no tool")


def _check_turns(turns: list[Any]) -> None:
    require(turns, "messages is empty")
    for turn in turns:
        only(turn, {"role", "content"})
        require(turn["role"] in ("user", "assistant"), "unknown role")
        require(turn["content"], "content is empty")
        for block in turn["content"]:
            allowed = USER_BLOCKS if turn["role"] == "user" else MODEL_BLOCKS
            require(block["type"] in allowed, f"a {turn['role']} turn with {block['type']}")
            _check_block(block)
    require(turns[0]["role"] == "user", "the first message is not the user's")
    require(all(a["role"] != b["role"] for a, b in pairwise(turns)), "roles do not alternate")
    open_calls: list[str] = []
    for turn in turns:
        if turn["role"] == "user":
            _check_results(turn["content"], open_calls)
        else:
            _check_thinking(turn["content"])
        open_calls = [block["id"] for block in turn["content"] if block["type"] == "tool_use"]
    require(not open_calls, f"unanswered tool_use {open_calls}")
    last = turns[-1]["content"][-1]
    if turns[-1]["role"] == "assistant" and last["type"] == "text":
        require(last["text"] == last["text"].rstrip(), "final assistant text ends in white space")


def _check_results(content: list[dict[str, Any]], calls: list[str]) -> None:
    kinds = [block["type"] == "tool_result" for block in content]
    require(kinds == sorted(kinds, reverse=True), "tool_result after other content")
    answered = [block["tool_use_id"] for block in content if block["type"] == "tool_result"]
    require(set(answered) <= set(calls), f"tool_result without its tool_use: {answered}")
    require(sorted(answered) == sorted(calls), f"unanswered tool_use: {calls}, got {answered}")


def _check_thinking(content: list[dict[str, Any]]) -> None:
    before = ""
    for block in content:
        kind = block["type"]
        fits = before in ("", *THINKING, "server_tool_use", "web_search_tool_result")
        # Two turns in one: what began with thinking may go on with it.
        fits = fits or content[0]["type"] in THINKING
        require(kind not in THINKING or fits, "thinking is not first")
        before = kind
    require(before not in THINKING, "the final block cannot be thinking")


def _check_block(block: dict[str, Any]) -> None:
    kind = block["type"]
    _check_mark(block)
    if kind == "text":
        only(block, {"type", "text"}, {"cache_control", "citations"})
        require(block["text"].strip(), "text is blank")
    elif kind == "tool_use":
        only(block, {"type", "id", "name", "input"})
        require(ID.fullmatch(block["id"]), f"bad tool_use id {block['id']!r}")
        require(NAME.fullmatch(block["name"]), f"bad tool_use name {block['name']!r}")
        require(isinstance(block["input"], dict), "input is no object")
    elif kind == "tool_result":
        only(block, {"type", "tool_use_id"}, {"content", "is_error", "cache_control"})
        require(ID.fullmatch(block["tool_use_id"]), f"bad tool_use_id {block['tool_use_id']!r}")
        said = str(block.get("content", "")).strip()
        require(said or not block.get("is_error"), "content cannot be empty if `is_error` is true")
    elif kind == "thinking":
        only(block, {"type", "thinking", "signature"})
        require(block["signature"] == _signature(block["thinking"]), "thinking was changed")
    elif kind == "redacted_thinking":
        only(block, {"type", "data"})
        require(block["data"].startswith("sealed:"), "redacted thinking was changed")


def _check_mark(block: dict[str, Any]) -> None:
    if "cache_control" in block:
        require(block["type"] not in THINKING, "cache_control on thinking")
        require(block["cache_control"] == {"type": "ephemeral"}, "unknown cache_control")


def in_threes(text: str) -> list[str]:
    return [text[start : start + 3] for start in range(0, len(text), 3)]


def events(
    message: dict[str, Any], cut: Callable[[str], list[str]] = in_threes
) -> list[dict[str, Any]]:
    """The events in which the vendor streams a message, its texts cut into pieces."""
    usage = message.get("usage") or {}
    end = {key: message[key] for key in ("stop_reason", "stop_sequence") if key in message}
    start = message | {"content": [], "stop_reason": None, "stop_sequence": None}
    start["usage"] = usage | {"output_tokens": 1}
    found: list[dict[str, Any]] = [{"type": "message_start", "message": start}, {"type": "ping"}]
    for index, block in enumerate(message["content"]):
        empty, deltas = _in_pieces(block, cut)
        found.append({"type": "content_block_start", "index": index, "content_block": empty})
        found += [{"type": "content_block_delta", "index": index, "delta": d} for d in deltas]
        found.append({"type": "content_block_stop", "index": index})
    totals = {"output_tokens": usage.get("output_tokens", 0), "cache_read_input_tokens": None}
    found.append({"type": "message_delta", "delta": end, "usage": totals})
    return [*found, {"type": "an_event_of_next_year"}, {"type": "message_stop"}]


def _in_pieces(
    block: dict[str, Any], cut: Callable[[str], list[str]]
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    kind = block["type"]
    if kind == "text":
        pieces = [{"type": "text_delta", "text": p} for p in cut(block["text"])]
        quotes = [{"type": "citations_delta", "citation": c} for c in block.get("citations", [])]
        empty: dict[str, Any] = {"text": ""} | ({"citations": []} if quotes else {})
        return block | empty, [*quotes, *pieces]
    if kind == "thinking":
        pieces = [{"type": "thinking_delta", "thinking": p} for p in cut(block["thinking"])]
        signature = {"type": "signature_delta", "signature": block["signature"]}
        return block | {"thinking": "", "signature": ""}, [*pieces, signature]
    if kind in ("tool_use", "server_tool_use"):
        wrapped = block["input"].get("INVALID_JSON")
        raw = wrapped if wrapped else json.dumps(block["input"])
        pieces = [{"type": "input_json_delta", "partial_json": p} for p in cut(raw)]
        return block | {"input": {}}, pieces
    return block, []


def error(kind: str, message: str = "because") -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}


def _answer(path: str, body: dict[str, Any]) -> Answer:
    return stream(*events(ANSWER), names=True) if body.get("stream") else Answer(200, ANSWER)


ENDPOINT = Endpoint("/v1/messages", check, _answer, lambda why: error("invalid_request_error", why))

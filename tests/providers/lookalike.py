"""Anthropic's messages: what the vendor refuses, and how it answers."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

from tests.providers.lookalikes.server import Answer, Endpoint, only, require

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")

ANTHROPIC_ANSWER: dict[str, Any] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-test-2026",
    "content": [{"type": "text", "text": "Hi ☃"}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {"input_tokens": 7, "output_tokens": 2},
}


def check_anthropic(body: dict[str, Any]) -> None:
    """The rules of a messages request, turns strictly alternating."""
    only(body, {"model", "messages", "max_tokens"}, {"system", "tools", "temperature"})
    require(body["max_tokens"] >= 1, "max_tokens is below 1")
    require("system" not in body or body["system"].strip(), "system is blank")
    for tool in body.get("tools", []):
        only(tool, {"name", "input_schema"}, {"description"})
        require(NAME.fullmatch(tool["name"]), "bad tool name")
    roles = [message["role"] for message in body["messages"]]
    require(roles and roles[0] == "user", "the first message is not the user's")
    require(roles[-1] == "user", "the last message is not the user's")
    require(all(a != b for a, b in pairwise(roles)), "roles do not alternate")
    open_calls: list[str] = []
    for message in body["messages"]:
        only(message, {"role", "content"})
        require(message["content"], "content is empty")
        if message["role"] == "user":
            _check_anthropic_results(message["content"], open_calls)
            open_calls = []
        for block in message["content"]:
            open_calls += _check_anthropic_block(block)
        require(len(open_calls) == len(set(open_calls)), "tool_use ids are not unique")


def _check_anthropic_results(content: list[dict[str, Any]], calls: list[str]) -> None:
    kinds = [block["type"] == "tool_result" for block in content]
    require(kinds == sorted(kinds, reverse=True), "tool_result after other content")
    answered = [block["tool_use_id"] for block in content if block["type"] == "tool_result"]
    require(sorted(answered) == sorted(calls), f"calls {calls} answered by {answered}")


def _check_anthropic_block(block: dict[str, Any]) -> list[str]:
    kind = block["type"]
    if kind == "text":
        only(block, {"type", "text"})
        require(block["text"].strip(), "text is blank")
    elif kind == "tool_use":
        only(block, {"type", "id", "name", "input"})
        require(isinstance(block["input"], dict), "input is no object")
        return [block["id"]]
    elif kind == "tool_result":
        only(block, {"type", "tool_use_id"}, {"content", "is_error"})
    else:
        require(kind in ("thinking", "redacted_thinking"), f"unknown block {kind!r}")
    return []


def rejection(message: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": "invalid_request_error", "message": message}}


MESSAGES = Endpoint(
    "/v1/messages", check_anthropic, lambda *_: Answer(200, ANTHROPIC_ANSWER), rejection
)

"""A chat endpoint in Ollama's format, stricter than the real one, which trusts its reader."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

from tests.providers.lookalikes.server import Answer, Endpoint, only, require

ANSWER: dict[str, Any] = {
    "model": "qwen-test",
    "created_at": "2026-11-20T10:00:00.123456789Z",
    "message": {"role": "assistant", "content": "Hi ☃ \x85 there"},
    "done": True,
    "done_reason": "stop",
    "total_duration": 1,
    "prompt_eval_count": 7,
    "eval_count": 2,
}


def check(body: dict[str, Any]) -> None:
    """Raise Rejected for what makes no sense to a server."""
    only(body, {"model", "messages", "stream", "options"}, {"tools"})
    require(isinstance(body["stream"], bool), "stream is no boolean")
    only(body["options"], {"num_predict"}, {"temperature"})
    require(body["messages"], "messages is empty")
    for tool in body.get("tools", []):
        only(tool, {"type", "function"})
        only(tool["function"], {"name", "description", "parameters"})
    open_calls: list[tuple[str, str]] = []
    for message in body["messages"]:
        if message.get("role") == "tool":
            only(message, {"role", "content", "tool_name", "tool_call_id"})
            require(open_calls, "a result without its call")
            called = (message["tool_call_id"], message["tool_name"])
            require(called == open_calls.pop(0), f"a result without its call: {called}")
            continue
        require(not open_calls, f"unanswered calls {open_calls}")
        open_calls = _check_message(message)
    require(not open_calls, f"unanswered calls {open_calls}")


def _check_message(message: dict[str, Any]) -> list[tuple[str, str]]:
    role = message.get("role")
    require(role in ("system", "user", "assistant"), f"invalid role {role!r}")
    if role != "assistant":
        only(message, {"role", "content"}, {"images"} if role == "user" else ())
        for image in message.get("images", []):
            base64.b64decode(image, validate=True)
        return []
    only(message, {"role", "content"}, {"tool_calls", "thinking"})
    require(isinstance(message["content"], str), "content is no string")
    calls = message.get("tool_calls", [])
    for call in calls:
        only(call, {"id", "function"})
        only(call["function"], {"name", "arguments"})
        require(isinstance(call["function"]["arguments"], dict), "arguments is no object")
    return [(call["id"], call["function"]["name"]) for call in calls]


def in_threes(text: str) -> list[str]:
    return [text[start : start + 3] for start in range(0, len(text), 3)]


def lines(
    answer: dict[str, Any], cut: Callable[[str], list[str]] = in_threes
) -> list[dict[str, Any]]:
    """The lines in which the vendor streams an answer: thinking, text, then whole calls."""
    message = answer["message"]
    pieces: list[dict[str, Any]] = [
        {"content": "", "thinking": piece} for piece in cut(message.get("thinking", ""))
    ]
    pieces += [{"content": piece} for piece in cut(message["content"])]
    pieces += [{"content": "", "tool_calls": [call]} for call in message.get("tool_calls", [])]
    head = {key: answer[key] for key in ("model", "created_at") if key in answer}
    found = [{**head, "message": {"role": "assistant"} | p, "done": False} for p in pieces]
    return [*found, answer | {"message": {"role": "assistant", "content": ""}}]


def streamed(found: list[dict[str, Any]], *, is_cut: bool = False) -> Answer:
    """Lines as they travel: control characters of JSON are escaped, U+0085 is none of them."""
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in found)
    headers = {"content-type": "application/x-ndjson"}
    return Answer(200, text, headers, is_stream=True, is_cut=is_cut)


def _answer(path: str, body: dict[str, Any]) -> Answer:
    return streamed(lines(ANSWER)) if body["stream"] else Answer(200, ANSWER)


ENDPOINT = Endpoint("/api/chat", check, _answer, lambda why: {"error": why})

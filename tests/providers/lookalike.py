"""A server on loopback that is as strict as the vendors' own: what they reject gets HTTP 400."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from typing import Any

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")

OPENAI_ANSWER: dict[str, Any] = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1,
    "model": "gpt-test-2026",
    "choices": [
        {
            "index": 0,
            "finish_reason": "stop",
            "logprobs": None,
            "message": {"role": "assistant", "content": "Hi ☃", "refusal": None, "annotations": []},
        }
    ],
    "usage": {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9},
}

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


class Rejected(Exception):
    """What the vendor would answer with HTTP 400."""


def require(condition: object, why: str) -> None:
    if not condition:
        raise Rejected(why)


def only(holder: dict[str, Any], required: set[str], optional: Collection[str] = ()) -> None:
    require(required <= set(holder), f"missing {sorted(required - set(holder))}")
    unknown = set(holder) - required - set(optional)
    require(not unknown, f"unknown {sorted(unknown)}")


def check_openai(body: dict[str, Any]) -> None:
    """The rules of a chat completion request, as OpenAI's newer models hold them."""
    only(body, {"model", "messages"}, {"tools", "max_completion_tokens", "temperature"})
    require(body["messages"], "messages is empty")
    require(body.get("max_completion_tokens", 1) >= 1, "max_completion_tokens is below 1")
    for tool in body.get("tools", []):
        only(tool, {"type", "function"})
        only(tool["function"], {"name"}, {"description", "parameters"})
        require(NAME.fullmatch(tool["function"]["name"]), "bad tool name")
    open_calls: list[str] = []
    for message in body["messages"]:
        if message["role"] == "tool":
            only(message, {"role", "tool_call_id", "content"})
            require(message["tool_call_id"] in open_calls, "tool message without its call")
            open_calls.remove(message["tool_call_id"])
            continue
        require(not open_calls, f"unanswered tool calls {open_calls}")
        open_calls = _check_openai_turn(message)
    require(not open_calls, f"unanswered tool calls {open_calls}")


def _check_openai_turn(message: dict[str, Any]) -> list[str]:
    role = message["role"]
    require(role in ("system", "developer", "user", "assistant"), f"bad role {role!r}")
    if role != "assistant":
        only(message, {"role", "content"})
        return []
    only(message, {"role", "content"}, {"tool_calls", "reasoning_content"})
    require(isinstance(message["content"], str), "assistant content is no string")
    calls = message.get("tool_calls")
    require(calls is None or calls, "tool_calls is empty")
    for call in calls or []:
        only(call, {"id", "type", "function"})
        only(call["function"], {"name", "arguments"})
        require(isinstance(call["function"]["arguments"], str), "arguments is no string")
    return [call["id"] for call in calls or []]


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


@dataclass
class Answer:
    """What the server sends next, whatever it is asked."""

    status: int
    body: Any
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class Lookalike:
    """A running server: its address, what to answer, what it received."""

    url: str
    answers: list[Answer] = field(default_factory=list)
    """Consumed first to last; after that a plain answer."""
    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    def answer(self, path: str, body: dict[str, Any]) -> Answer:
        self.bodies.append(body)
        if self.answers:
            return self.answers.pop(0)
        check, usual = {
            "/v1/chat/completions": (check_openai, OPENAI_ANSWER),
            "/v1/messages": (check_anthropic, ANTHROPIC_ANSWER),
        }[path]
        try:
            check(body)
        except Rejected as error:
            detail = {"type": "invalid_request_error", "message": str(error)}
            return Answer(400, {"type": "error", "error": detail})
        return Answer(200, usual)


@contextmanager
def serving() -> Iterator[Lookalike]:
    """Serve on a free port of loopback."""
    look: Lookalike

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            text = self.rfile.read(int(self.headers["content-length"]))
            look.headers.append({key.lower(): value for key, value in self.headers.items()})
            answer = look.answer(self.path, json.loads(text))
            raw = answer.body if isinstance(answer.body, str) else json.dumps(answer.body)
            self.send_response(answer.status)
            self.send_header("content-type", "application/json")
            for key, value in answer.headers.items():
                self.send_header(key, value)
            self.end_headers()
            self.wfile.write(raw.encode())

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    look = Lookalike(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield look
    finally:
        server.shutdown()
        thread.join()
        server.server_close()

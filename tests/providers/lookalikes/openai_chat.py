"""OpenAI's chat completions: what the vendor's newer models refuse, and how it answers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from tests.providers.lookalikes.server import Answer, Endpoint, Rejected, only, require, stream

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")

ANSWER: dict[str, Any] = {
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


def rejection(message: str) -> dict[str, Any]:
    detail = {"type": "invalid_request_error", "message": message, "param": None, "code": None}
    return {"error": detail}


def check(body: dict[str, Any]) -> None:
    optional = {"tools", "tool_choice", "max_completion_tokens", "temperature"}
    only(body, {"model", "messages"}, optional | {"stream", "stream_options"})
    require(body["messages"], "messages is empty")
    require(body.get("max_completion_tokens", 1) >= 1, "max_completion_tokens is below 1")
    require("stream_options" not in body or body.get("stream"), "stream_options without stream")
    for tool in body.get("tools", []):
        only(tool, {"type", "function"})
        only(tool["function"], {"name"}, {"description", "parameters"})
        require(NAME.fullmatch(tool["function"]["name"]), "bad tool name")
        check_schema(tool["function"].get("parameters", {"type": "object"}))
    names = [tool["function"]["name"] for tool in body.get("tools", [])]
    require("tools" not in body or names, "tools is empty")
    require(len(set(names)) == len(names), "two tools of one name")
    if "tool_choice" in body:
        require(names, "tool_choice without tools")
        check_choice(body["tool_choice"], names)
    _check_conversation(body["messages"])


def check_schema(schema: Any) -> None:
    require(isinstance(schema, dict) and schema.get("type") == "object", "schema of no object")


def check_arguments(arguments: Any) -> None:
    """OpenAI takes any text; vLLM and llama.cpp take what is the text of an object, or empty."""
    require(isinstance(arguments, str), "arguments is no string")
    try:
        value = json.loads(arguments or "{}")
    except ValueError as error:
        raise Rejected(f"arguments: {error}") from None
    require(isinstance(value, dict), "arguments is no object")


def check_choice(choice: Any, names: list[str]) -> None:
    if isinstance(choice, str):
        require(choice in ("auto", "none", "required"), f"bad tool_choice {choice!r}")
        return
    only(choice, {"type", "function"})
    only(choice["function"], {"name"})
    require(choice["function"]["name"] in names, "tool_choice names no tool")


def _check_conversation(messages: list[dict[str, Any]]) -> None:
    open_calls: list[str] = []
    for message in messages:
        if message.get("role") == "tool":
            only(message, {"role", "tool_call_id", "content"})
            require(message["tool_call_id"] in open_calls, "tool message without its call")
            _check_content(message["content"], {"text"})
            open_calls.remove(message["tool_call_id"])
            continue
        require(not open_calls, f"unanswered tool calls {open_calls}")
        open_calls = _check_turn(message)
    require(not open_calls, f"unanswered tool calls {open_calls}")


def _check_turn(message: dict[str, Any]) -> list[str]:
    role = message.get("role")
    require(role in ("system", "developer", "user", "assistant"), f"unknown role {role!r}")
    if role != "assistant":
        only(message, {"role", "content"})
        kinds = {"text", "image_url", "input_audio", "file"} if role == "user" else {"text"}
        _check_content(message["content"], kinds)
        return []
    only(message, {"role"}, {"content", "tool_calls", "refusal", "reasoning_content"})
    calls = message.get("tool_calls")
    require(calls is None or calls, "tool_calls is empty")
    content = message.get("content")
    require(calls or content is not None, "neither content nor tool_calls")
    require(content is None or isinstance(content, str), "assistant content is no string")
    for call in calls or []:
        only(call, {"id", "type", "function"}, {"extra_content"})
        only(call["function"], {"name", "arguments"})
        require(NAME.fullmatch(call["function"]["name"]), "bad name in a tool call")
        check_arguments(call["function"]["arguments"])
    ids = [call["id"] for call in calls or []]
    require(all(isinstance(i, str) and i for i in ids), "a tool call without an id")
    require(len(set(ids)) == len(ids), "duplicate tool call ids")
    return ids


def _check_content(content: Any, kinds: set[str]) -> None:
    if isinstance(content, str):
        return
    require(isinstance(content, list) and content, "content is neither text nor parts")
    for part in content:
        kind = part.get("type")
        require(kind in kinds, f"bad part {kind!r}")
        only(part, {"type", kind})


def chunks(answer: dict[str, Any], *, size: int = 3, usage: bool = True) -> Iterator[Any]:
    """An answer as the vendor streams it."""
    head = {k: v for k, v in answer.items() if k not in ("choices", "usage")}
    head |= {"object": "chat.completion.chunk", "usage": None} if usage else {}
    choice = answer["choices"][0]
    message = choice["message"]

    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        rest = {k: v for k, v in choice.items() if k not in ("message", "finish_reason", "index")}
        return head | {"choices": [{"index": 0, "delta": delta, "finish_reason": finish, **rest}]}

    yield chunk({"role": "assistant", "content": None if message.get("tool_calls") else ""})
    for key, value in message.items():
        if key == "tool_calls":
            for index, call in enumerate(value or ()):
                function = call["function"]
                begun = {**call, "function": {"name": function["name"], "arguments": ""}}
                yield chunk({"tool_calls": [{"index": index, **begun}]})
                for piece in pieces(function["arguments"], size):
                    yield chunk(
                        {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}
                    )
        elif isinstance(value, str) and key != "role":
            yield from (chunk({key: piece}) for piece in pieces(value, size))
        elif key != "role":
            yield chunk({key: value})
    yield chunk({}, choice["finish_reason"])
    if usage and answer.get("usage"):
        yield head | {"choices": [], "usage": answer["usage"]}


def pieces(text: str, size: int) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]


def streamed(answer: dict[str, Any], *, usage: bool = True) -> Answer:
    return stream(*chunks(answer, usage=usage), end="data: [DONE]\n\n")


def _answer(_: str, body: dict[str, Any]) -> Answer:
    if not body.get("stream"):
        return Answer(200, ANSWER)
    options = body.get("stream_options") or {}
    return streamed(ANSWER, usage=options.get("include_usage", False))


CHAT = Endpoint("/v1/chat/completions", check, _answer, rejection)

"""OpenAI's responses: what the vendor refuses, and how it answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.providers.lookalikes.openai_chat import (
    NAME,
    check_arguments,
    check_schema,
    pieces,
    rejection,
)
from tests.providers.lookalikes.server import Answer, Endpoint, only, require, stream

SAID = ("function_call", "reasoning")

ANSWER: dict[str, Any] = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "status": "completed",
    "error": None,
    "incomplete_details": None,
    "model": "gpt-test-2026",
    "output": [
        {
            "type": "message",
            "id": "msg_1",
            "status": "completed",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "Hi ☃", "annotations": [], "logprobs": []}],
        }
    ],
    "usage": {
        "input_tokens": 7,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": 2,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 9,
    },
}


def check(body: dict[str, Any]) -> None:
    optional = {"instructions", "tools", "tool_choice", "max_output_tokens", "temperature"}
    only(body, {"model", "input"}, optional | {"store", "stream"})
    require(body["input"], "input is empty")
    require(body.get("max_output_tokens", 16) >= 16, "max_output_tokens is below 16")
    for tool in body.get("tools", []):
        only(tool, {"type", "name", "parameters", "strict"}, {"description"})
        require(NAME.fullmatch(tool["name"]), "bad tool name")
        check_schema(tool["parameters"])
    names = [tool["name"] for tool in body.get("tools", [])]
    require(len(set(names)) == len(names), "two tools of one name")
    choice = body.get("tool_choice", "auto")
    if isinstance(choice, str):
        require(choice in ("auto", "none", "required"), f"bad tool_choice {choice!r}")
        require(choice != "required" or names, "tool_choice without tools")
    else:
        only(choice, {"type", "name"})
        require(choice["name"] in names, "tool_choice names no tool")
    _check_input(body["input"])


def _check_input(items: list[dict[str, Any]]) -> None:
    seen: list[str] = []
    open_calls: list[str] = []
    for item, after in zip(items, [*items[1:], None], strict=True):
        kind = item.get("type", "message")
        if kind == "function_call":
            only(item, {"type", "call_id", "name", "arguments"}, {"id", "status"})
            require(NAME.fullmatch(item["name"]), "bad name in a function call")
            check_arguments(item["arguments"])
            require(item["call_id"] and item["call_id"] not in seen, "duplicate call ids")
            seen.append(item["call_id"])
            open_calls.append(item["call_id"])
        elif kind == "function_call_output":
            only(item, {"type", "call_id", "output"}, {"id", "status"})
            require(item["call_id"] in open_calls, "no tool call found for function call output")
            require(isinstance(item["output"], str | list), "output is no text")
            open_calls.remove(item["call_id"])
        elif kind == "reasoning":
            only(item, {"type", "id", "summary"}, {"encrypted_content", "content", "status"})
            require(item.get("encrypted_content"), "a reasoning item that was not stored")
            require(
                after and (after.get("role") == "assistant" or after["type"] in SAID),
                "a reasoning item without its required following item",
            )
        else:
            require(kind == "message", f"unknown item {kind!r}")
            _check_message(item)
    require(not open_calls, f"no tool output found for function call {open_calls}")


def _check_message(item: dict[str, Any]) -> None:
    only(item, {"role", "content"}, {"type", "id", "status", "phase"})
    require(item["role"] in ("user", "assistant", "system", "developer"), "unknown role")
    if isinstance(item["content"], str):
        return
    require(item["content"], "content is empty")
    said = {"output_text", "refusal"}
    kinds = said if item["role"] == "assistant" else {"input_text", "input_image", "input_file"}
    for part in item["content"]:
        require(part.get("type") in kinds, f"bad part {part.get('type')!r}")


def events(answer: dict[str, Any], *, size: int = 3) -> Iterator[Any]:
    """An answer as the vendor streams it."""
    begun = answer | {"status": "in_progress", "output": [], "usage": None}
    yield {"type": "response.created", "response": begun}
    for index, item in enumerate(answer["output"]):
        at = {"output_index": index, "item_id": item.get("id")}
        empty = {"message": {"content": []}, "function_call": {"arguments": ""}}
        started = item | {"status": "in_progress"} | empty.get(item["type"], {})
        yield {"type": "response.output_item.added", "item": started, **at}
        if item["type"] == "function_call":
            name = "response.function_call_arguments"
            for piece in pieces(item["arguments"], size):
                yield {"type": f"{name}.delta", "delta": piece, **at}
            yield {"type": f"{name}.done", "arguments": item["arguments"], **at}
        for number, part in enumerate(item["content"] if item["type"] == "message" else ()):
            place = at | {"content_index": number}
            key = "refusal" if part["type"] == "refusal" else "text"
            name = f"response.{part['type']}"
            yield {"type": "response.content_part.added", "part": part | {key: ""}, **place}
            for piece in pieces(part[key], size):
                yield {"type": f"{name}.delta", "delta": piece, **place}
            yield {"type": f"{name}.done", key: part[key], **place}
            yield {"type": "response.content_part.done", "part": part, **place}
        yield {"type": "response.output_item.done", "item": item, **at}
    yield {"type": f"response.{answer['status']}", "response": answer}


def numbered(answer: dict[str, Any], *, size: int = 3) -> Iterator[Any]:
    for number, event in enumerate(events(answer, size=size)):
        yield event | {"sequence_number": number}


def streamed(answer: dict[str, Any]) -> Answer:
    return stream(*numbered(answer), names=True)


def _answer(_: str, body: dict[str, Any]) -> Answer:
    return streamed(ANSWER) if body.get("stream") else Answer(200, ANSWER)


RESPONSES = Endpoint("/v1/responses", check, _answer, rejection)

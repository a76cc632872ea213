"""Agent conversations as the vendors see them, the same on every run; the standard library only.

Call `i` is turn `i % TURNS` of conversation `i // TURNS`: a system prompt, three tools, a task, and
for every earlier turn a tool call and its result. Requests grow from 2.6 to 19.5 KB within a
conversation; an answer has 1.2 KB and asks for one tool.
"""

from __future__ import annotations

import functools
import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

Body = dict[str, Any]

TURNS = 10
MAX_TOKENS = 1024
TOOL_NAMES = ("open_file", "find_text", "edit_file")

_VOCABULARY = """
    order invoice stock price customer parcel route depot driver shelf label refund report margin
    supplier batch counter ticket season region branch storage weight barcode return credit
"""
_WORDS = _VOCABULARY.split()


@dataclass(frozen=True, slots=True)
class Step:
    """What a model says in one turn, and what its tool answers."""

    call_id: str
    tool: str
    arguments: dict[str, str | int]
    says: str
    result: str

    @property
    def raw_arguments(self) -> str:
        """As OpenAI sends them."""
        return json.dumps(self.arguments)


@functools.lru_cache(maxsize=8 * TURNS)
def step(conversation: int, turn: int) -> Step:
    """One turn of a conversation."""
    return Step(
        call_id=f"call_{conversation}_{turn}",
        tool=TOOL_NAMES[(conversation + turn) % len(TOOL_NAMES)],
        arguments={"file": f"shop_{conversation}/part_{turn}.py", "lines": 80 + turn},
        says=_prose(f"says {conversation} {turn}", 500),
        result=_prose(f"result {conversation} {turn}", 1100),
    )


def task(conversation: int) -> str:
    """What the user asks for."""
    about = _prose(f"task {conversation}", 300)
    return f"Ticket {conversation}: the totals of the shop are wrong. {about}"


def _prose(seed: str, chars: int) -> str:
    words = random.Random(seed).choices(_WORDS, k=chars // 5)
    return " ".join(words)[:chars]


SYSTEM = "You repair the software of a shop. Look before you change. " + _prose("system", 900)
DESCRIPTIONS = {name: _prose(f"description {name}", 120) for name in TOOL_NAMES}
SCHEMAS: dict[str, Body] = {
    name: {
        "type": "object",
        "properties": {
            "file": {"type": "string", "description": _prose(f"file {name}", 60)},
            "lines": {"type": "integer"},
        },
        "required": ["file"],
    }
    for name in TOOL_NAMES
}


def conversation_order(calls: int, sample: int) -> Iterator[int]:
    """Numbers of calls to make: conversations in a random order, the turns of each in their own."""
    whole = list(range(-(-calls // TURNS)))
    random.Random(11).shuffle(whole)
    numbers = (number * TURNS + turn for number in whole for turn in range(TURNS))
    wanted = (number for number in numbers if number < calls)
    return (number for number, _ in zip(wanted, range(sample), strict=False))


def _openai_request(number: int) -> Body:
    conversation, turn = divmod(number, TURNS)
    messages: list[Body] = [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": task(conversation)},
    ]
    for earlier in range(turn):
        one = step(conversation, earlier)
        messages.append(_openai_message(one))
        messages.append({"role": "tool", "tool_call_id": one.call_id, "content": one.result})
    tools = [
        {
            "type": "function",
            "function": {
                "name": name,
                "description": DESCRIPTIONS[name],
                "parameters": SCHEMAS[name],
            },
        }
        for name in TOOL_NAMES
    ]
    return {
        "model": "gpt-4.1-mini",
        "messages": messages,
        "max_completion_tokens": MAX_TOKENS,
        "tools": tools,
    }


def _openai_message(one: Step) -> Body:
    function = {"name": one.tool, "arguments": one.raw_arguments}
    call = {"id": one.call_id, "type": "function", "function": function}
    return {"role": "assistant", "content": one.says, "tool_calls": [call]}


def _openai_answer(number: int) -> Body:
    conversation, turn = divmod(number, TURNS)
    message = {**_openai_message(step(conversation, turn)), "refusal": None}
    choice = {
        "index": 0,
        "finish_reason": "tool_calls",
        "logprobs": None,
        "message": message,
    }
    prompt = 650 + 420 * turn
    return {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": 1_790_000_000 + number,
        "model": "gpt-4.1-mini-2025-04-14",
        "choices": [choice],
        "usage": {
            "prompt_tokens": prompt,
            "completion_tokens": 130,
            "total_tokens": prompt + 130,
            "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0},
        },
        "system_fingerprint": "fp_shop",
        "service_tier": "default",
    }


def _anthropic_request(number: int) -> Body:
    conversation, turn = divmod(number, TURNS)
    messages: list[Body] = [{"role": "user", "content": task(conversation)}]
    for earlier in range(turn):
        one = step(conversation, earlier)
        result = {"type": "tool_result", "tool_use_id": one.call_id, "content": one.result}
        messages.append({"role": "assistant", "content": _anthropic_content(one)})
        messages.append({"role": "user", "content": [result]})
    tools = [
        {"name": name, "description": DESCRIPTIONS[name], "input_schema": SCHEMAS[name]}
        for name in TOOL_NAMES
    ]
    return {
        "max_tokens": MAX_TOKENS,
        "messages": messages,
        "model": "claude-sonnet-5",
        "system": SYSTEM,
        "tools": tools,
    }


def _anthropic_content(one: Step) -> list[Body]:
    call = {"type": "tool_use", "id": one.call_id, "name": one.tool, "input": one.arguments}
    return [{"type": "text", "text": one.says}, call]


def _anthropic_answer(number: int) -> Body:
    conversation, turn = divmod(number, TURNS)
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-5",
        "content": _anthropic_content(step(conversation, turn)),
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "usage": {
            "input_tokens": 650 + 420 * turn,
            "output_tokens": 130,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
        },
    }


@dataclass(frozen=True, slots=True)
class Vendor:
    """One wire format: what is sent, and what is answered."""

    name: str
    title: str
    model: str
    path: str
    request: Callable[[int], Body]
    answer: Callable[[int], Body]

    def request_bytes(self, number: int) -> bytes:
        """As the SDK puts a request on the wire, byte for byte."""
        return json.dumps(self.request(number), separators=(",", ":"), ensure_ascii=False).encode()

    def answer_bytes(self, number: int) -> bytes:
        """As a server answers."""
        return json.dumps(self.answer(number)).encode()


VENDORS = {
    vendor.name: vendor
    for vendor in (
        Vendor(
            "openai",
            "OpenAI chat completions",
            "gpt-4.1-mini",
            "/v1/chat/completions",
            _openai_request,
            _openai_answer,
        ),
        Vendor(
            "anthropic",
            "Anthropic messages",
            "claude-sonnet-5",
            "/v1/messages",
            _anthropic_request,
            _anthropic_answer,
        ),
    )
}


def number_of(body: Body) -> int:
    """The call that a request is."""
    asked = next(m["content"] for m in body["messages"] if m["role"] == "user")
    conversation = int(asked.split(":", 1)[0].removeprefix("Ticket "))
    said = [message for message in body["messages"] if message["role"] == "assistant"]
    return conversation * TURNS + len(said)

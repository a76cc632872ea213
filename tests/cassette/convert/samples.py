"""One conversation in each format that is imported, and how it is asked for again."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import openai

MODEL = "tiny"

USER = "How long is notes.txt?"
CALL: dict[str, Any] = {
    "id": "call_1",
    "type": "function",
    "function": {"name": "count", "arguments": '{"file": "notes.txt"}'},
}

MESSAGES: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": USER},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "call_1", "content": "12 lines"},
    {"role": "assistant", "content": "It has 12 lines.\n\u2028✓"},
    {"role": "user", "content": "Thanks."},
    {"role": "assistant", "content": "You are welcome."},
]

PLAIN: list[dict[str, Any]] = [
    {"role": "user", "content": "one"},
    {"role": "assistant", "content": "two"},
    {"role": "user", "content": "three"},
    {"role": "assistant", "content": "four"},
]


def atif(version: str = "ATIF-v1.8") -> dict[str, Any]:
    """`MESSAGES` as a trajectory."""
    arguments = json.loads(CALL["function"]["arguments"])
    call = {"tool_call_id": "call_1", "function_name": "count", "arguments": arguments}
    steps: list[dict[str, Any]] = [
        {"source": "system", "message": MESSAGES[0]["content"]},
        {"source": "user", "message": USER},
        {
            "source": "agent",
            "timestamp": "2026-01-02T03:04:05Z",
            "message": "",
            "tool_calls": [call],
            "observation": {"results": [{"source_call_id": "call_1", "content": "12 lines"}]},
            "metrics": {"prompt_tokens": 20, "completion_tokens": 5, "cached_tokens": 10},
        },
        {"source": "agent", "message": MESSAGES[4]["content"], "model_name": "other"},
        {"source": "user", "message": "Thanks."},
        {"source": "agent", "message": MESSAGES[6]["content"]},
    ]
    return {
        "schema_version": version,
        "session_id": "s1",
        "agent": {"name": "bench", "version": "2", "model_name": MODEL},
        "steps": [{"step_id": number, **step} for number, step in enumerate(steps, start=1)],
    }


def episodes() -> list[dict[str, Any]]:
    """`PLAIN` as prompts and responses."""
    pairs = zip(PLAIN[::2], PLAIN[1::2], strict=True)
    return [
        {"episode": number, "prompt": asked["content"], "response": said["content"]}
        for number, (asked, said) in enumerate(pairs)
    ]


def call_log() -> str:
    """`PLAIN` as the calls that went over the wire, one of them tried twice."""
    lines: list[dict[str, Any]] = [
        {
            "request": {"path": "/v1/chat/completions", "body": {"model": MODEL, "messages": []}},
            "response": {"status_code": 429, "body": {"error": {"message": "slow down"}}},
            "duration_ms": 3,
            "metadata": {"purpose": "agent"},
        }
    ]
    lines[0]["request"]["body"]["messages"] = PLAIN[:1]
    for place in (1, 3):
        choice = {"index": 0, "message": PLAIN[place], "finish_reason": "stop"}
        body = {"object": "chat.completion", "model": "tiny-1", "choices": [choice]}
        lines.append(
            {
                "request": {
                    "method": "POST",
                    "path": "/v1/chat/completions",
                    "body": {"model": MODEL, "messages": PLAIN[:place]},
                },
                "response": {"status_code": 200, "body": body},
                "duration_ms": 1500,
                "metadata": {"purpose": "agent"},
            }
        )
    return "".join(json.dumps(line) + "\n" for line in lines)


def in_file(path: Path, value: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return path


@functools.cache
def _client() -> openai.OpenAI:
    """One for all: making one costs more than a call."""
    return openai.OpenAI(api_key="unused", base_url="http://127.0.0.1:9/v1", max_retries=0)


def ask(messages: list[dict[str, Any]]) -> dict[str, Any]:
    """One call through the real SDK; gives the message of the answer, as it came."""
    asked: Any = messages
    answer = _client().chat.completions.create(model=MODEL, messages=asked)
    return answer.choices[0].message.to_dict()


def replay(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """All calls of a conversation, each with the messages before its answer."""
    places = [i for i, message in enumerate(messages) if message["role"] == "assistant"]
    return [ask(messages[:place]) for place in places]


def answers(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [message for message in messages if message["role"] == "assistant"]

"""Cassettes of small conversations, and edits of them by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from harness.cassette.file.tape import Origin, ToolKey
from harness.cassette.format import StoredResponse, StoredResult
from harness.cassette.replay.session import Session
from harness.cassette.request.canonical import CanonicalRequest
from harness.schema.record import JsonObject
from harness.schema.results import Verdict
from tests.cassette.cells import ORIGIN, open_store, request


def chat(text: str) -> StoredResponse:
    """A chat completion."""
    choice: JsonObject = {
        "index": 0,
        "message": {"role": "assistant", "content": text},
        "finish_reason": "stop",
    }
    usage: JsonObject = {"prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15}
    body: JsonObject = {"model": "tiny-1", "choices": [choice], "usage": usage}
    return StoredResponse(status=200, type="json", body=body)


def call(session: Session, asked: CanonicalRequest, answer: str) -> None:
    if session.claim(asked) is None:
        session.append(asked, chat(answer), latency_s=0.5)


def record(
    path: Path,
    *,
    origin: Origin = ORIGIN,
    settings: dict[str, dict[str, Any]] | None = None,
    unfinished: tuple[str, ...] = (),
    **variants: list[str],
) -> Path:
    """Record what is missing: each variant says and is told texts in turn, the user begins."""
    with open_store(path, "new_episodes", origin=origin) as store:
        for variant, texts in variants.items():
            session = store.session(variant)
            for end in range(1, len(texts), 2):
                asked = request(*texts[:end], **(settings or {}).get(variant, {}))
                call(session, asked, texts[end])
            if variant not in unfinished:
                session.finish()
    return path


def record_judged(path: Path) -> Path:
    """Variant `a` with a tool call and a verdict."""
    with open_store(path, "new_episodes") as store:
        session = store.session("a")
        call(session, request("go"), "ls")
        key = ToolKey(session.last, 0, "shell", {"command": "ls"}, "identity", 60.0)
        result = StoredResult(content="one file", status="ok", duration_s=0.25)
        session.record_tool(key, result, "bench")
        call(session, request("go", "ls", "one file"), "done")
        session.record_verdict("transcript", "tests", Verdict(rewards={"reward": 1}))
        session.finish()
    return path


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def edit(path: Path, old: str, new: str) -> None:
    """Replace a text by hand."""
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def drop(path: Path, *numbers: int) -> None:
    """Remove lines by hand; they count from 1."""
    kept = [
        line
        for number, line in enumerate(path.read_bytes().splitlines(keepends=True), start=1)
        if number not in numbers
    ]
    path.write_bytes(b"".join(kept))

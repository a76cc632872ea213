"""A cell, and calls to it that need neither SDK nor HTTP."""

from __future__ import annotations

from pathlib import Path

from harness.cassette.file.tape import Origin
from harness.cassette.format import StoredResponse
from harness.cassette.replay.session import Session
from harness.cassette.replay.store import Store
from harness.cassette.request.canonical import CanonicalRequest
from harness.cassette.request.rules import Rules
from harness.redaction import Redactor
from harness.schema.record import JsonObject
from harness.schema.results import RecordMode
from harness.values import ToolInvocation, ToolOutcome

ORIGIN = Origin(suite="basics", task="count", repeat=0, task_digest="t1")
HINT = "harness run suites/basics --task count --record-mode new_episodes --allow-live"


def open_store(
    path: Path,
    mode: RecordMode = "none",
    *,
    origin: Origin = ORIGIN,
    secrets: dict[str, str] | None = None,
    rules: Rules | None = None,
) -> Store:
    redactor = Redactor(secrets or {})
    return Store.open(path, mode, origin=origin, redactor=redactor, rules=rules, record_hint=HINT)


def request(*texts: str, **parameters: object) -> CanonicalRequest:
    """A conversation in which user and assistant take turns."""
    roles = ("user", "assistant")
    messages: list[JsonObject] = [
        {"role": roles[i % 2], "content": text} for i, text in enumerate(texts)
    ]
    given: JsonObject = {"model": "tiny", **parameters}  # type: ignore[dict-item]
    return CanonicalRequest.of("openai-chat", given, messages, is_model_call=True)


def answer(text: str) -> StoredResponse:
    return StoredResponse(status=200, type="json", body={"text": text})


class Tool:
    """A tool that tells a text, or the argument that is named in braces."""

    def __init__(self, tells: str) -> None:
        self.tells = tells

    def specs(self) -> tuple[()]:
        return ()

    def identity(self, name: str) -> str:
        return name

    def is_sequential(self, name: str) -> bool:
        return False

    def effects(self, name: str, arguments: JsonObject) -> None:
        return None

    def invoke(self, invocation: ToolInvocation) -> ToolOutcome:
        return ToolOutcome(self.tells.format(**invocation.arguments))


def ask(session: Session, *texts: str, live: str) -> str:
    """One call: the recorded answer, or the live one, which is recorded."""
    call = request(*texts)
    stored = session.claim(call)
    if stored is None:
        session.append(call, answer(live), latency_s=0.01)
        return live
    assert isinstance(stored.response.body, dict)
    return str(stored.response.body["text"])

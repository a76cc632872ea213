"""A planted key is in no byte of any file, wherever it went through."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import anthropic
import openai
import pytest

from harness.cassette.format import StoredResponse
from harness.cassette.http import use
from harness.cassette.replay.session import Session
from harness.cassette.replay.tool_results import RecordedTools
from harness.cassette.request.canonical import canonical_request
from harness.redaction import PLACEHOLDER, Redactor
from harness.schema.results import Verdict
from harness.values import ToolInvocation, ToolOutcome
from tests.cassette.cells import Tool, open_store
from tests.loopback import on_loopback
from tests.redaction.planted import PLANTED, Planted

KNOWN = Planted('pl"än\\ted/key+1', "it is ")
"""Not known by its shape, and written differently wherever it stands."""

KINDS = {"A_API_KEY": KNOWN, **PLANTED}
SECRETS = {"A_API_KEY": KNOWN.secret}
GROUPS = [list(KINDS)[at : at + 11] for at in range(0, len(KINDS), 11)]
"""Kinds that go through the same calls: one by one they would take a while."""


class Echo(BaseHTTPRequestHandler):
    """Says in a header, a body or a stream what it was asked to, a few letters at a time."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        text = body["messages"][-1]["content"]
        is_anthropic = self.path.endswith("/messages")
        kind = "application/json"
        if body.get("stream"):
            kind = "text/event-stream"
            pieces = [text[at : at + 3] for at in range(0, len(text), 3)]
            data = "".join((anthropic_stream if is_anthropic else openai_stream)(pieces))
        else:
            data = json.dumps(anthropic_message(text) if is_anthropic else openai_message(text))
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("x-request-id", in_header(text))
        self.send_header("content-length", str(len(data.encode())))
        self.end_headers()
        self.wfile.write(data.encode())

    def log_message(self, format: str, *args: object) -> None:
        """Tests are quiet."""


def openai_message(text: str) -> dict[str, Any]:
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return {
        "id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice],
    }  # fmt: skip


def openai_stream(pieces: list[str]) -> Iterator[str]:
    for piece in pieces:
        delta = {"content": piece}
        chunk = {
            "id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",
            "choices": [{"index": 0, "delta": delta, "finish_reason": None}],
        }  # fmt: skip
        yield f"data: {json.dumps(chunk)}\n\n"
    yield "data: [DONE]\n\n"


def anthropic_message(text: str) -> dict[str, Any]:
    return {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m",
        "content": [{"type": "text", "text": text}], "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }  # fmt: skip


def anthropic_stream(pieces: list[str]) -> Iterator[str]:
    """A tool's arguments, which come as the pieces of a JSON text."""
    message = {**anthropic_message(""), "content": [], "stop_reason": None}
    use = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}}
    arguments = json.dumps({"key": "".join(pieces)})
    parts = [arguments[at : at + 3] for at in range(0, len(arguments), 3)]
    end = {"stop_reason": "tool_use", "stop_sequence": None}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": use},
        *(
            {
                "type": "content_block_delta", "index": 0,
                "delta": {"type": "input_json_delta", "partial_json": part},
            }
            for part in parts
        ),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": end, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    ]  # fmt: skip
    return (f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)


@dataclass(frozen=True)
class Clients:
    """Making one takes longer than all its calls."""

    chat: openai.OpenAI
    other: anthropic.Anthropic


@pytest.fixture(scope="module")
def clients() -> Iterator[Clients]:
    with (
        on_loopback(Echo) as url,
        openai.OpenAI(api_key="none", base_url=f"{url}/v1", max_retries=0) as chat,
        anthropic.Anthropic(api_key="none", base_url=url, max_retries=0) as other,
    ):
        yield Clients(chat, other)


def talk(clients: Clients, text: str, secrets: list[str]) -> None:
    """The keys in headers, in bodies asked and answered, in streams and in a query."""
    says: Any = [{"role": "user", "content": text}]
    call = {"name": "f", "arguments": json.dumps({"key": text})}
    told: Any = [
        {"role": "assistant", "tool_calls": [{"id": "c", "type": "function", "function": call}]},
        {"role": "tool", "tool_call_id": "c", "content": text},
    ]
    parameters = {"type": "object", "properties": {text: {"type": "string"}}}
    function = {"name": "f", "description": text, "parameters": parameters}
    tools: Any = [{"type": "function", "function": function}]
    headers = {f"x-api-key-{number}": in_header(one) for number, one in enumerate(secrets)}
    query = "&".join(f"access_token={quote(one, safe='')}" for one in secrets)
    chat: Any = clients.chat.chat.completions
    more: Any = {"model": "m", "extra_headers": headers}
    chat.create(messages=[*told, *says], tools=tools, **more)
    assert list(chat.create(messages=says, stream=True, user=text, **more))
    clients.chat.post(f"/search?page=2&{query}", body={"messages": says}, cast_to=object)
    messages: Any = clients.other.messages
    messages.create(max_tokens=9, messages=says, system=text, **more)
    assert list(messages.create(max_tokens=9, messages=says, stream=True, **more))


def in_header(text: str) -> str:
    return text.encode("ascii", "replace").decode().replace("\n", "")


def tell(session: Session, text: str, mode: Any) -> ToolOutcome:
    call = ToolInvocation("c1", "f", {"key": text}, 0, 1)
    return RecordedTools(Tool("the key is {key}"), session, mode=mode).invoke(call)


def spellings(secret: str) -> set[str]:
    return {
        secret,
        json.dumps(secret)[1:-1],
        json.dumps(secret, ensure_ascii=False)[1:-1],
        json.dumps(json.dumps(secret))[3:-3],
        quote(secret),
        quote(secret, safe=""),
        quote_plus(secret),
        base64.b64encode(secret.encode()).decode().rstrip("="),
        base64.b64encode(f"user:{secret}".encode()).decode().rstrip("="),
    }


@pytest.mark.parametrize("kinds", GROUPS, ids=lambda kinds: kinds[0])
def test_a_planted_key_is_in_no_byte_of_any_file(
    tmp_path: Path, clients: Clients, kinds: list[str]
):
    text = "".join(f"see {KINDS[kind].text} ok\n" for kind in kinds)
    secrets = [KINDS[kind].secret for kind in kinds]
    path = tmp_path / "0.jsonl"
    with open_store(path, "new_episodes", secrets=SECRETS) as store:
        session = store.session("a")
        with use(session):
            talk(clients, text, secrets)
        outcome = tell(session, text, "live")
        session.record_verdict("t", "t", Verdict(rewards={"reward": 1}, log=text))
        session.finish()
        recorded = session.recorded
    (file,) = (file for file in tmp_path.rglob("*") if file.is_file())
    data = file.read_text()
    for secret in secrets:
        assert [spelling for spelling in spellings(secret) if spelling in data] == []
        assert secret not in outcome.content
    assert_joined_texts_are_clean(data, secrets)
    # What took its place is the same each time: everything is found again.
    with open_store(path, secrets=SECRETS) as store:
        session = store.session("a")
        with use(session):
            talk(clients, text, secrets)
        assert tell(session, text, "replay") == outcome
        assert (session.misses, session.served) == ([], recorded)


def assert_joined_texts_are_clean(data: str, secrets: list[str]) -> None:
    """No stream puts them together again."""
    streams = []
    for line in map(json.loads, data.splitlines()):
        if line["kind"] == "interaction" and line["response"]["type"] == "events":
            streams.append("".join(map(said, line["response"]["body"])))
    assert len(streams) == 2
    for text in streams:
        assert text.count(PLACEHOLDER) == len(secrets)
        for secret in secrets:
            assert secret not in text
            assert json.dumps(secret)[1:-1] not in text


def said(event: dict[str, Any]) -> str:
    if "data" not in event:
        return ""
    if "choices" in event["data"]:
        return str(event["data"]["choices"][0]["delta"]["content"])
    return str(event["data"].get("delta", {}).get("partial_json", ""))


@pytest.mark.parametrize("kind", KINDS)
def test_a_key_in_an_old_recording_is_found(kind: str):
    line = json.dumps({"kind": "x", "add": [{"content": f"see {KINDS[kind].text} ok"}]})
    assert [found.rule for found in Redactor(SECRETS).find(line)] == [kind]


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_key_in_the_bytes_of_a_request_is_in_no_file_and_is_found_again(
    tmp_path: Path, pack: Callable[[bytes], bytes]
):
    url = "http://a/search"
    path = tmp_path / "0.jsonl"
    key = KINDS["OpenAI key, and others of its form"].secret
    body = pack(f"{KNOWN.secret} and {key} ".encode() + b"\xff")
    with open_store(path, "new_episodes", secrets=SECRETS) as store:
        session = store.session("a")
        request = canonical_request("POST", url, body)
        assert session.claim(request) is None
        session.append(request, StoredResponse(status=200, type="text", body="ok"), latency_s=0)
        session.finish()
    (line,) = [
        one for one in map(json.loads, path.read_text().splitlines()) if one["kind"] == "parameters"
    ]
    assert base64.b64decode(line["body"]["base64"]) == b"[redacted] and [redacted] \xff"
    with open_store(path, secrets=SECRETS) as store:
        again = canonical_request("POST", url, body)
        assert store.session("a").claim(again) is not None

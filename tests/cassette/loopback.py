"""A model server on loopback that both SDKs talk to, and what the tests share around it."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import anthropic
import httpx2
import openai

from harness.protocols import Dialect
from harness.providers.anthropic_messages import AnthropicMessages
from harness.providers.openai_chat import OpenAIChat

DIALECTS: tuple[Dialect, ...] = (OpenAIChat(), AnthropicMessages())


@dataclass
class Upstream:
    """What the server does, and what it was asked."""

    port: int
    answers: list[str] = field(default_factory=list)
    """Texts of the next answers; then `answer N`."""
    statuses: list[int] = field(default_factory=list)
    """Statuses of the next answers; then 200."""
    headers: dict[str, str] = field(default_factory=dict)
    """Added to every answer."""
    compress: bool = False
    before_answer: Callable[[], object] | None = None
    """Called before an answer to a POST is sent."""
    before_event: Callable[[int], object] | None = None
    """Called before each event of a streamed answer is sent, and before its end."""
    events_sent: int | None = None
    """How many events of a streamed answer are sent before the connection is closed."""
    asked: list[dict[str, Any]] = field(default_factory=list)

    def next_text(self) -> str:
        return self.answers.pop(0) if self.answers else f"answer {len(self.asked)}"


BINARY = bytes(range(256)) * 8
LISTING = json.dumps({"files": ["one", "two"], "size": 1.0}).encode()


def openai_body(text: str, stream: bool) -> bytes:
    usage = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
    head = {"id": "chatcmpl-1", "created": 1, "model": "tiny-1", "system_fingerprint": "fp_1"}
    if not stream:
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        whole = {**head, "object": "chat.completion", "choices": [choice], "usage": usage}
        return json.dumps(whole, indent=1).encode()
    head["object"] = "chat.completion.chunk"
    words = [{"delta": {"content": word}, "index": 0} for word in text.split(" ")]
    chunks: list[dict[str, Any]] = [{**head, "choices": [word]} for word in words]
    chunks.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]
    return "".join([*lines, "data: [DONE]\n\n"]).encode()


def anthropic_body(text: str, stream: bool) -> bytes:
    message: dict[str, Any] = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "tiny-2",
        "content": [{"type": "text", "text": text}], "stop_reason": "end_turn",
        "stop_sequence": None, "usage": {"input_tokens": 7, "output_tokens": 3},
    }  # fmt: skip
    if not stream:
        return json.dumps(message).encode()
    block = {"type": "text", "text": ""}
    delta = {"type": "text_delta", "text": text}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn", "stop_sequence": None},
            "usage": {"output_tokens": 5},
        },
        {"type": "message_stop"},
    ]
    return "".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events).encode()


def ollama_body(text: str) -> bytes:
    """Streamed, as JSON lines."""
    turns = [{"role": "assistant", "content": word} for word in text.split(" ")]
    lines: list[dict[str, Any]] = [{"model": "tiny-3", "message": t, "done": False} for t in turns]
    end = {"role": "assistant", "content": ""}
    lines.append({"model": "tiny-3", "message": end, "done": True, "eval_count": 3})
    return "".join(f"{json.dumps(line)}\n" for line in lines).encode()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256
    state: Upstream


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_GET(self) -> None:
        if self.path == "/moved":
            self.send_response(302)
            self.send_header("location", "/listing")
            self.send_header("content-length", "0")
            self.end_headers()
        elif self.path == "/missing":
            self.answer(404, "text/plain", b"no such page")
        elif self.path == "/listing":
            self.answer(200, "application/json", LISTING)
        else:
            self.answer(200, "application/octet-stream", BINARY)

    def do_POST(self) -> None:
        state = self.server.state
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        state.asked.append(body)
        if state.before_answer is not None:
            state.before_answer()
        status = state.statuses.pop(0) if state.statuses else 200
        stream = bool(body.get("stream"))
        kind = "text/event-stream" if stream else "application/json"
        if status != 200:
            error = {"error": {"type": "refused", "message": "refused"}}
            self.answer(status, "application/json", json.dumps(error).encode())
            return
        if self.path.endswith("/api/chat"):
            kind, data = "application/x-ndjson", ollama_body(state.next_text())
        elif self.path.endswith("/messages"):
            data = anthropic_body(state.next_text(), stream)
        else:
            data = openai_body(state.next_text(), stream)
        if stream and (state.before_event or state.events_sent is not None):
            self.answer_slowly(kind, data)
        else:
            self.answer(status, kind, data)

    def answer(self, status: int, kind: str, data: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        if self.server.state.compress:
            data = gzip.compress(data)
            self.send_header("content-encoding", "gzip")
        for name, value in self.server.state.headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def answer_slowly(self, kind: str, data: bytes) -> None:
        """In chunks, one for each event."""
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        end = b"\n" if "ndjson" in kind else b"\n\n"
        events = [event + end for event in data.split(end) if event]
        for number, event in enumerate(events):
            if number == self.server.state.events_sent:
                self.close_connection = True
                return
            if self.server.state.before_event is not None:
                self.server.state.before_event(number)
            self.wfile.write(f"{len(event):x}\r\n".encode() + event + b"\r\n")
        if self.server.state.before_event is not None:
            self.server.state.before_event(len(events))
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, format: str, *args: object) -> None:
        """Tests are quiet."""


@contextmanager
def upstream() -> Iterator[Upstream]:
    """Serve until the block ends."""
    server = _Server(("127.0.0.1", 0), _Handler)
    server.state = Upstream(server.server_port)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server.state
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def cheap() -> dict[str, Any]:
    """Options of an SDK's client: loading certificates is most of what making one costs."""
    return {"http_client": httpx2.Client(verify=False)}


def cheap_async() -> dict[str, Any]:
    """The same for asyncio."""
    return {"http_client": httpx2.AsyncClient(verify=False)}


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def ask_openai(port: int, *messages: dict[str, Any], retries: int = 0, **more: Any) -> str:
    """One call through the real SDK."""
    url = f"http://127.0.0.1:{port}/v1"
    arguments: Any = {"model": "tiny", "messages": list(messages), **more}
    with openai.OpenAI(api_key="unused", base_url=url, max_retries=retries, **cheap()) as client:
        text = client.chat.completions.create(**arguments).choices[0].message.content
    assert isinstance(text, str)
    return text


def ask_anthropic(port: int, *messages: dict[str, Any], retries: int = 0, **more: Any) -> str:
    """One call through the real SDK."""
    url = f"http://127.0.0.1:{port}"
    arguments: Any = {"model": "tiny", "max_tokens": 9, "messages": list(messages), **more}
    with anthropic.Anthropic(
        api_key="unused", base_url=url, max_retries=retries, **cheap()
    ) as client:
        block = client.messages.create(**arguments).content[0]
    assert block.type == "text"
    return str(block.text)

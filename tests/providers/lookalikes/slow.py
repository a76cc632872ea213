"""An HTTP server on loopback that takes longer to answer than anybody waits."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler

from tests.loopback import on_loopback

PATIENCE_S = 20
"""Then it answers after all, and a call that was not cut is seen."""
LATE_S = 0.5
"""Takes no time when it is replayed at once."""


@dataclass
class Slow:
    """A server that has its own ways to take long."""

    url: str = ""
    ways: list[str] = field(default_factory=list)
    """What it does with the next requests: `hang`, `trickle`, `fail`, answer `late`, or answer and
    `keep` the connection; then it answers."""
    asked: int = 0
    hung_up: threading.Event = field(default_factory=threading.Event)
    over: threading.Event = field(default_factory=threading.Event)


ANSWERS = {
    "/v1/chat/completions": {
        "choices": [
            {"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}
        ]
    },
    "/v1/responses": {
        "status": "completed",
        "output": [
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "Hi", "annotations": []}],
            }
        ],
    },
    "/v1/messages": {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "text", "text": "Hi"}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 1, "output_tokens": 1},
    },
    "/v1/models/model-1:generateContent": {
        "candidates": [
            {"content": {"role": "model", "parts": [{"text": "Hi"}]}, "finishReason": "STOP"}
        ]
    },
    "/api/chat": {"message": {"role": "assistant", "content": "Hi"}, "done": True},
}


def pad(path: str, *, streamed: bool) -> str:
    """What means nothing before an answer, or in it."""
    if not streamed or path == "/api/chat":
        return "\n"
    return "data: {}\n\n" if "stream" in path else ": still here\n\n"


def trickle(slow: Slow, text: str) -> Iterator[str]:
    for _ in range(PATIENCE_S * 20):
        yield text
        if slow.over.wait(0.05):
            return


def handler_of(slow: Slow) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            slow.asked += 1
            way = slow.ways.pop(0) if slow.ways else "answer"
            streamed = bool(body.get("stream")) or "stream" in self.path
            if way == "hang":
                slow.over.wait(PATIENCE_S)
            elif way == "late":
                slow.over.wait(LATE_S)
            self.send_response(500 if way == "fail" else 200)
            self.send_header(
                "content-type", "text/event-stream" if streamed else "application/json"
            )
            self.send_header("transfer-encoding", "chunked")
            if way != "keep":
                self.send_header("connection", "close")
            self.end_headers()
            try:
                padding = pad(self.path, streamed=streamed)
                for text in trickle(slow, padding) if way == "trickle" else ():
                    self._piece(text)
                self._piece(json.dumps(ANSWERS.get(self.path, {})))
                self.wfile.write(b"0\r\n\r\n")
            except ConnectionError:
                slow.hung_up.set()
                self.close_connection = True

        def _piece(self, text: str) -> None:
            self.wfile.write(f"{len(text):x}\r\n{text}\r\n".encode())

        def log_message(self, *_: object) -> None:
            pass

    return Handler


@contextmanager
def slow_server() -> Iterator[Slow]:
    slow = Slow()
    with on_loopback(handler_of(slow)) as slow.url:
        try:
            yield slow
        finally:
            slow.over.set()

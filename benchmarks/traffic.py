"""Growing agent conversations, the same on every run, and a loopback server that answers them."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TURNS = 10
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "shell",
            "description": "Run a command.",
            "parameters": {"type": "object", "properties": {"command": {"type": "string"}}},
        },
    }
]


def requests(conversations: int) -> Iterator[dict[str, Any]]:
    """Every request of some conversations of ten turns; each repeats the whole history."""
    for number in range(conversations):
        messages: list[dict[str, Any]] = [
            {"role": "system", "content": "You work in a folder. " * 40},
            {"role": "user", "content": f"Task {number}: tidy up the folder."},
        ]
        for turn in range(TURNS):
            yield {"model": "bench", "messages": list(messages), "tools": TOOLS}
            messages.append({"role": "assistant", "content": f"Step {turn}. " + "I look. " * 40})
            messages.append({"role": "user", "content": f"Result {turn}: " + "a line\n" * 80})


def answer() -> bytes:
    """One chat completion of about a kilobyte."""
    message = {"role": "assistant", "content": "I look at the next file. " * 40}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    usage = {"prompt_tokens": 900, "completion_tokens": 200, "total_tokens": 1100}
    body = {"id": "x", "object": "chat.completion", "created": 1, "model": "bench"}
    return json.dumps({**body, "choices": [choice], "usage": usage}).encode()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        body = answer()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def server() -> Iterator[str]:
    """A model endpoint on a free port; gives its base URL."""
    httpd = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    thread = threading.Thread(target=httpd.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{httpd.server_port}/v1"
    finally:
        httpd.shutdown()
        httpd.server_close()
        thread.join()

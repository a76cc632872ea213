"""An engine that answers what it is told to, down to the bytes."""

from __future__ import annotations

import json
import socketserver
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import cast

GOOD: Mapping[str, object] = {
    "GET /version": {"ApiVersion": "1.47", "Os": "linux"},
    "GET /containers/json": [],
    "GET /images/": {"Id": "sha256:1", "Config": {"WorkingDir": "/"}},
    "POST /containers/create": {"Id": "1", "Warnings": []},
    "POST /containers/1/start": None,
    "POST /containers/1/restart": None,
    "HEAD /containers/1/archive": None,
    "PUT /containers/1/archive": None,
    "POST /containers/1/exec": {"Id": "2"},
    "GET /exec/2/json": {"Running": False, "ExitCode": 0},
    "GET /containers/1/top": {"Titles": ["PID"], "Processes": [["1"], ["2"]]},
    "DELETE /containers/1": None,
}
"""Request -> what an honest engine answers; those that are not here answer with an empty stream."""

FOLDER = b"eyJuYW1lIjoieCIsInNpemUiOjAsIm1vZGUiOjIxNDc0ODQxNDF9"
"""What lies at each path: a folder."""


def answer(content: object = None, status: int = 200) -> bytes:
    body = b"" if content is None else json.dumps(content).encode()
    return raw(body, status)


def raw(body: bytes, status: int = 200, length: int | None = None) -> bytes:
    size = len(body) if length is None else length
    head = f"HTTP/1.1 {status} Some reason\r\nContent-Length: {size}\r\n"
    return head.encode() + b"X-Docker-Container-Path-Stat: " + FOLDER + b"\r\n\r\n" + body


@contextmanager
def lying(lies: Mapping[str, bytes]) -> Iterator[str]:
    """An engine; gives its address.

    Args:
        lies: The beginning of a request's line, without version -> all that is sent back.
    """
    with tempfile.TemporaryDirectory(prefix="engine-") as folder:
        path = str(Path(folder, "a.sock"))
        with _Server(path, _Handler) as server:
            server.lies = lies
            threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
            try:
                yield f"unix://{path}"
            finally:
                server.shutdown()


class _Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    lies: Mapping[str, bytes]


class _Handler(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        line = self.rfile.readline().decode().replace("/v1.47/", "/")
        length = 0
        while (header := self.rfile.readline().strip().lower()) != b"":
            name, _, value = header.partition(b":")
            length = int(value) if name == b"content-length" else length
        self.rfile.read(length)
        for start, lie in cast(_Server, self.server).lies.items():
            if line.startswith(start):
                # Who reads it may have had enough.
                with suppress(BrokenPipeError):
                    self.wfile.write(lie)
                return
        honest = [content for start, content in GOOD.items() if line.startswith(start)]
        status = 201 if line.startswith("POST /containers/1/exec") else 200
        self.wfile.write(answer(honest[0], status) if honest else b"HTTP/1.1 101 UPGRADED\r\n\r\n")

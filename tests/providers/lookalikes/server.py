"""HTTP servers on loopback that answer like a vendor, and refuse what the vendor refuses."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from itertools import cycle
from typing import Any

from tests.loopback import on_loopback

SIZES = (1, 9, 2, 31, 5, 120, 3)
"""Bytes of the pieces that a stream is sent in: they end within events, lines and characters."""
CHOPPED = 20_000
"""Bytes after which the rest of a stream is sent in one piece."""


class Rejected(Exception):
    """What the vendor would answer with HTTP 400."""


def require(condition: object, why: str) -> None:
    if not condition:
        raise Rejected(why)


def only(holder: dict[str, Any], required: set[str], optional: Collection[str] = ()) -> None:
    require(required <= set(holder), f"missing {sorted(required - set(holder))}")
    unknown = set(holder) - required - set(optional)
    require(not unknown, f"unknown {sorted(unknown)}")


@dataclass
class Answer:
    """One answer, whatever is asked."""

    status: int
    body: Any
    """JSON, or the text as it is."""
    headers: dict[str, str] = field(default_factory=dict)
    is_stream: bool = False
    is_cut: bool = False
    """The connection breaks where the body ends."""


def stream(*events: Any, names: bool = False, end: str = "", is_cut: bool = False) -> Answer:
    """Server-sent events; a text stands for itself."""
    text = "".join(
        event
        if isinstance(event, str)
        else (f"event: {event['type']}\n" if names else "")
        + f"data: {json.dumps(event, ensure_ascii=False)}\n\n"
        for event in events
    )
    return Answer(200, text + end, is_stream=True, is_cut=is_cut)


@dataclass(frozen=True)
class Endpoint:
    """One of a vendor's paths."""

    path: str
    """A pattern that matches it whole."""
    check: Callable[[dict[str, Any]], None]
    """Raises Rejected for a body that the vendor would refuse."""
    answer: Callable[[str, dict[str, Any]], Answer]
    """What it answers to a path and a good body."""
    rejection: Callable[[str], Any]
    """How it words a refusal."""


@dataclass
class Lookalike:
    """A running server: its address, what to answer, what it received."""

    url: str
    endpoints: Sequence[Endpoint]
    answers: list[Answer] = field(default_factory=list)
    """Given first to last whatever is asked; after that the usual ones, to good requests only."""
    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    hung_up: threading.Event = field(default_factory=threading.Event)
    """Set when a client closed a stream before its end."""

    def answer(self, path: str, body: dict[str, Any]) -> Answer:
        self.paths.append(path)
        self.bodies.append(body)
        if self.answers:
            return self.answers.pop(0)
        endpoint = next((e for e in self.endpoints if re.fullmatch(e.path, path)), None)
        if endpoint is None:
            return Answer(404, {"error": {"message": f"no such path: {path}"}})
        try:
            endpoint.check(body)
        except Rejected as error:
            return Answer(400, endpoint.rejection(str(error)))
        return endpoint.answer(path, body)


@contextmanager
def serving(*endpoints: Endpoint) -> Iterator[Lookalike]:
    """Serve on a free port of loopback."""
    look: Lookalike

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            text = self.rfile.read(int(self.headers["content-length"]))
            look.headers.append({key.lower(): value for key, value in self.headers.items()})
            answer = look.answer(self.path, json.loads(text))
            raw = answer.body if isinstance(answer.body, str) else json.dumps(answer.body)
            kind = "text/event-stream" if answer.is_stream else "application/json"
            self.send_response(answer.status)
            for key, value in {"content-type": kind, **answer.headers}.items():
                self.send_header(key, value)
            self.send_header("connection", "close")
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            self._send(raw.encode(), answer)

        def _send(self, raw: bytes, answer: Answer) -> None:
            sizes = cycle(SIZES)
            sent = 0
            try:
                while sent < len(raw):
                    is_chopped = answer.is_stream and sent < CHOPPED
                    piece = raw[sent : sent + next(sizes)] if is_chopped else raw[sent:]
                    sent += len(piece)
                    self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
                if not answer.is_cut:
                    self.wfile.write(b"0\r\n\r\n")
            except ConnectionError:
                look.hung_up.set()

        def log_message(self, *_: object) -> None:
            pass

    with on_loopback(Handler) as url:
        look = Lookalike(url, endpoints)
        yield look

"""The HTTP front: every request of a patched client library goes to the session of its context."""

from __future__ import annotations

import http
import json
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from vcr.cassette import Cassette, CassetteContextDecorator  # type: ignore[import-untyped]
from vcr.request import Request  # type: ignore[import-untyped]

from harness.cassette.body import response_bytes, store_response
from harness.cassette.canonical import CanonicalRequest, canonical_request
from harness.cassette.explain import Miss
from harness.cassette.format import StoredResponse
from harness.cassette.session import Session
from harness.errors import HarnessError

# Says nothing about the agent: overload and time-outs are tried again, a refused key is replaced.
# 404 and 405 come from a wrong base_url or model name. Where a server listens is no part of a
# request's identity, so they would be served even after the address was put right.
_NOT_RECORDED = frozenset({401, 403, 404, 405, 407, 408, 409, 429})


@dataclass(frozen=True, slots=True)
class _Use:
    session: Session


@dataclass(frozen=True, slots=True)
class _Claim:
    """What became of a request; kept with it, since some client stubs ask twice."""

    use: _Use | None
    request: CanonicalRequest | None
    answer: dict[str, Any] | None
    """None where it goes to the live model."""
    started: float


_current: ContextVar[_Use | None] = ContextVar("harness_cassette", default=None)
_lock = threading.Lock()
_open: list[_Use] = []
_patch: list[CassetteContextDecorator] = []


@contextmanager
def use(session: Session) -> Iterator[Session]:
    """Answer the HTTP requests made inside from a session.

    In a thread that does not know the context, the only open session is meant; where several are
    open, such a request is refused and every open session has a miss.
    """
    entry = _Use(session)
    _enter(entry)
    token = _current.set(entry)
    try:
        yield session
    finally:
        _current.reset(token)
        _leave(entry)


def _enter(entry: _Use) -> None:
    with _lock:
        if not _open:
            patch = Router.use(path="harness")
            patch.__enter__()
            _patch.append(patch)
        _open.append(entry)


def _leave(entry: _Use) -> None:
    with _lock:
        # By identity: the same session may be in use twice.
        del _open[next(i for i, other in enumerate(_open) if other is entry)]
        if not _open:
            _patch.pop().__exit__(None, None, None)


class Router(Cassette):  # type: ignore[misc]  # vcrpy is untyped
    """Stands where vcrpy's stubs expect a cassette; these are the members that they use."""

    write_protected = False

    def _load(self) -> None:
        """Nothing to load: sessions bring their recordings."""

    def _save(self, force: bool = False) -> None:
        """Nothing to save: each interaction is on disk already."""

    def can_play_response_for(self, request: Request) -> bool:
        """Whether the request is answered here."""
        claim: _Claim | None = getattr(request, "harness_claim", None)
        if claim is None:
            claim = _claim(request)
            request.harness_claim = claim
        return claim.answer is not None

    def play_response(self, request: Request) -> dict[str, Any]:
        """The answer, in vcrpy's shape."""
        answer: dict[str, Any] = request.harness_claim.answer
        return answer

    def append(self, request: Request, response: dict[str, Any]) -> None:
        """Record a live answer."""
        claim: _Claim = request.harness_claim
        status = int(response["status"]["code"])
        if claim.use is None or claim.request is None or status in _NOT_RECORDED or status >= 500:
            return
        headers = {name: ", ".join(values) for name, values in response["headers"].items()}
        session = claim.use.session
        stored = store_response(status, headers, response["body"]["string"], session.redactor)
        session.append(claim.request, stored, latency_s=time.monotonic() - claim.started)


def _claim(request: Request) -> _Claim:
    started = time.monotonic()
    chosen = _current.get()
    if chosen is None:
        with _lock:
            entries = list(_open)
        if len(entries) != 1:
            return _Claim(None, None, _refuse(request, entries), started)
        chosen = entries[0]
    canonical = canonical_request(request.method, request.uri, request.body_bytes or b"")
    try:
        recorded = chosen.session.claim(canonical)
    except HarnessError as error:
        return _Claim(chosen, canonical, _miss_answer(str(error)), started)
    answer = None if recorded is None else _answer(recorded.response)
    return _Claim(chosen, canonical, answer, started)


def _refuse(request: Request, entries: Sequence[_Use]) -> dict[str, Any]:
    """Refuse a request that could belong to several trials; each of them may have lost it."""
    text = (
        f"{request.method} {request.uri} came from a thread without a context while"
        f" {len(entries)} cassettes were open, so it is not known which one is meant."
        " Start the thread with contextvars.copy_context().run, or run fewer trials at once."
    )
    for entry in entries:
        entry.session.miss(Miss("no context", entry.session.redactor.text(text)))
    return _miss_answer(text)


def _answer(stored: StoredResponse) -> dict[str, Any]:
    return _vcr_response(stored.status, stored.headers, response_bytes(stored))


def _miss_answer(text: str) -> dict[str, Any]:
    """A miss as the SDKs understand it at once: a bad request that is not worth a retry."""
    error = {"type": "replay_miss", "code": "replay_miss", "message": text}
    headers = {"content-type": "application/json", "x-should-retry": "false"}
    body = {"type": "error", "error": error}
    return _vcr_response(400, headers, json.dumps(body).encode())


def _vcr_response(status: int, headers: dict[str, str], body: bytes) -> dict[str, Any]:
    try:
        phrase = http.HTTPStatus(status).phrase
    except ValueError:
        phrase = ""
    return {
        "status": {"code": status, "message": phrase},
        "headers": {name: [value] for name, value in headers.items()},
        "body": {"string": body},
    }

"""What becomes of a request: a recorded answer, a fault, a refusal, or a live call."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from harness.cassette.body import response_bytes
from harness.cassette.canonical import CanonicalRequest, canonical_request, sent_digest
from harness.cassette.events import event_pieces
from harness.cassette.explain import Miss
from harness.cassette.format import StoredResponse
from harness.cassette.http.routing import Use, candidates
from harness.cassette.playback import Fault, Playback
from harness.errors import HarnessError

_ERROR_TYPES: Final = {
    400: ("invalid_request_error", "INVALID_ARGUMENT"),
    401: ("authentication_error", "UNAUTHENTICATED"),
    403: ("permission_error", "PERMISSION_DENIED"),
    404: ("not_found_error", "NOT_FOUND"),
    408: ("timeout_error", "DEADLINE_EXCEEDED"),
    409: ("conflict_error", "ABORTED"),
    413: ("request_too_large", "INVALID_ARGUMENT"),
    429: ("rate_limit_error", "RESOURCE_EXHAUSTED"),
    503: ("overloaded_error", "UNAVAILABLE"),
    504: ("timeout_error", "DEADLINE_EXCEEDED"),
    529: ("overloaded_error", "UNAVAILABLE"),
}
_AT_ONCE = Playback()
_JSON = {"content-type": "application/json"}


@dataclass(frozen=True, slots=True)
class Live:
    """The request goes to the live model, and its answer is recorded."""

    use: Use
    request: CanonicalRequest
    started: float

    def record(self, response: StoredResponse, first_byte_s: float | None = None) -> None:
        """Record the answer."""
        latency_s = time.monotonic() - self.started
        self.use.session.append(
            self.request, response, latency_s=latency_s, first_byte_s=first_byte_s
        )


@dataclass(frozen=True, slots=True)
class Answer:
    """The request is answered here."""

    response: StoredResponse
    started: float = 0.0
    wait_s: float = 0.0
    """From the request to the beginning of the answer."""
    timed: bool = False
    """Whether its pieces come in their own time."""
    ending: Literal["whole", "timeout", "cut"] = "whole"
    """`timeout`: it never comes. `cut`: the connection breaks in the middle."""

    def pieces(self) -> Iterator[tuple[float, bytes]]:
        """When each piece comes, in seconds from the request, and what it is; half if cut."""
        content_type = self.response.headers.get("content-type", "")
        if self.response.type == "events":
            pieces = [
                (self.wait_s if at_s is None else at_s, piece)
                for at_s, piece in event_pieces(self.response.body, content_type)
            ]
            yield from pieces if self.ending == "whole" else pieces[: len(pieces) // 2]
        else:
            body = response_bytes(self.response)
            yield self.wait_s, body if self.ending == "whole" else body[: len(body) // 2]


def answer_to(method: str, url: str, body: bytes) -> Answer | Live:
    """Find the answer to a request of this context."""
    started = time.monotonic()
    uses = candidates()
    if len(uses) != 1 or not uses[0].open:
        return _refused(method, url, uses)
    use = uses[0]
    sent = sent_digest(url, body)
    try:
        line = use.session.claim_as_sent(sent) if use.playback == _AT_ONCE else None
        if line is not None:
            return Answer(line.response)
        request = canonical_request(method, url, body, use.growing.request)
        if not request.is_model_call:
            return _answer(use, request, None, started)
        faults = use.playback.faults
        fault = None if faults is None else faults.next()
        return _answer(use, replace(request, sent=sent), fault, started)
    except HarnessError as error:
        return _miss(str(error))


def _answer(
    use: Use, request: CanonicalRequest, fault: Fault | None, started: float
) -> Answer | Live:
    if fault is not None and fault.kind == "status":
        return Answer(_status_fault(fault.status))
    if fault is not None and fault.kind == "timeout":
        return Answer(_status_fault(504), ending="timeout")
    line = use.owed.pop(request.digest, None) or use.session.claim(request)
    if line is None:
        return Live(use, request, started)
    response = line.response
    if fault is not None:
        use.owed[request.digest] = line
        if fault.kind == "malformed":
            response = _malformed(response)
    if use.playback.pace == "fast":
        return Answer(response, ending=_ending(fault))
    wait_s = line.latency_s if line.first_byte_s is None else line.first_byte_s
    return Answer(response, started, wait_s, timed=True, ending=_ending(fault))


def _ending(fault: Fault | None) -> Literal["whole", "cut"]:
    return "cut" if fault is not None and fault.kind == "cut" else "whole"


def _refused(method: str, url: str, uses: Sequence[Use]) -> Answer:
    """Refuse a request that could belong to several trials; each of them may have lost it."""
    if len(uses) == 1:
        text = f"{method} {url} came after its cassette was closed: wait for its task before."
    else:
        text = (
            f"{method} {url} came from a thread without a context while"
            f" {len(uses)} cassettes were open, so it is not known which one is meant."
            " Start the thread with contextvars.copy_context().run, or run fewer trials at once."
        )
    for use in uses:
        use.session.miss(Miss("no context", use.session.redactor.text(text)))
    return _miss(text)


def _miss(text: str) -> Answer:
    """A miss as the SDKs understand it at once: a bad request that is not worth a retry."""
    return Answer(
        _error(400, {"type": "replay_miss", "code": "replay_miss", "message": text}, retry=False)
    )


def _status_fault(status: int) -> StoredResponse:
    """An error that every SDK reads; without a retry-after, so that its own short wait counts."""
    kind, code = _ERROR_TYPES.get(status, ("api_error", "INTERNAL"))
    message = f"Injected fault: HTTP {status}."
    return _error(status, {"type": kind, "code": status, "status": code, "message": message})


def _error(status: int, error: dict[str, str | int], *, retry: bool = True) -> StoredResponse:
    headers = _JSON if retry else {**_JSON, "x-should-retry": "false"}
    return StoredResponse(
        status=status, headers=headers, type="json", body={"type": "error", "error": {**error}}
    )


def _malformed(response: StoredResponse) -> StoredResponse:
    """The answer with a piece missing: half of a body, or one event that is no JSON."""
    content_type = response.headers.get("content-type", "")
    pieces = [piece for _, piece in event_pieces(response.body, content_type)]
    if response.type == "events" and pieces:
        middle = (len(pieces) - 1) // 2
        broken = pieces[middle].rstrip()
        pieces[middle] = broken[: len(broken) - 1] + b"\n\n"
        body = b"".join(pieces[: middle + 1])
    else:
        body = response_bytes(response)
        body = body[: len(body) // 2]
    text = body.decode("utf-8", "ignore")
    return response.model_copy(update={"status": 200, "type": "text", "body": text})

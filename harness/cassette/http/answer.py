"""What becomes of a request: a recorded answer, a fault, a refusal, or a live call."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from harness.cassette.format import StoredResponse
from harness.cassette.http.routing import CURRENT, Use, candidates, missed
from harness.cassette.playback import Fault, Playback
from harness.cassette.replay.explain import explain_end
from harness.cassette.request.canonical import CanonicalRequest, canonical_request, sent_digest
from harness.cassette.response.body import response_bytes
from harness.cassette.response.events import event_pieces
from harness.errors import HarnessError, ReplayMissError
from harness.providers.deadline import limit_s

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

    def out_of_time(self) -> None:
        """Record that there was no answer when the run's time was over.

        It took a grain more than what was left: so it does on replay, however that is rounded.
        """
        latency_s = (math.ceil((limit_s() or 0.0) * 10_000) + 1) / 10_000
        self.use.session.append(self.request, StoredResponse.out_of_time(), latency_s=latency_s)


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
    use: Use | None = None
    """Whose recording it is."""

    def missing_rest(self) -> ReplayMissError | None:
        """Have it missed what came after the end of a recording that the agent had closed.

        None where the recording is whole.
        """
        if self.use is None or not self.response.cut:
            return None
        session = self.use.session
        return session.miss(explain_end(session.where, session.record_hint))

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


def answer_to(method: str, url: str, body: bytes) -> Answer | Live | None:
    """Find the answer to a request of this context; None where no cassette is open any more."""
    started = time.monotonic()
    uses = candidates()
    if len(uses) != 1:
        return _refused(method, url, uses) if uses else None
    use = uses[0]
    sent = sent_digest(url, body)
    as_sent = use.playback == _AT_ONCE and method.upper() == "POST"
    try:
        line = use.session.claim_as_sent(sent) if as_sent else None
        if line is not None:
            return Answer(line.response, use=use)
        with use.session.remembering():
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
        return Answer(response, ending=_ending(fault), use=use)
    wait_s = line.latency_s if line.first_byte_s is None else line.first_byte_s
    return Answer(response, started, wait_s, timed=True, ending=_ending(fault), use=use)


def _ending(fault: Fault | None) -> Literal["whole", "cut"]:
    return "cut" if fault is not None and fault.kind == "cut" else "whole"


def _refused(method: str, url: str, uses: Sequence[Use]) -> Answer:
    """Refuse a request that could belong to several trials; each of them may have lost it."""
    if not uses[0].open:
        text = (
            f"{method} {url} came from a task that was started while {uses[0].session.where} was"
            " open, and that is closed: end the task before."
        )
    else:
        text = (
            f"{method} {url} came from a thread without a context while"
            f" {len(uses)} cassettes were open, so it is not known which one is meant."
            " Start the thread with contextvars.copy_context().run, or run fewer trials at once."
        )
    return _miss(missed(uses, "no context", text))


def late_answer(method: str, url: str) -> Answer | None:
    """What a request gets whose cassette was closed before; None for any other."""
    use = CURRENT.get()
    return _refused(method, url, (use,)) if use is not None and use.over else None


def not_comparable(method: str, url: str, error: Exception) -> Answer | None:
    """Refuse a request whose body cannot be read; None where no cassette is open any more."""
    uses = candidates()
    if not uses:
        return None
    text = (
        f"{method} {url}: its body cannot be compared with recordings ({error}); send bytes, text"
        " or JSON"
    )
    return _miss(missed(uses, "no body", text))


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

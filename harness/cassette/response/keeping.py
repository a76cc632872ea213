"""What is kept of an answer, by its status; and errors that are held until they are got over."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass, replace
from typing import Literal

from harness.cassette.format import StoredResponse
from harness.cassette.request.canonical import CanonicalRequest

# A refused key is replaced, and 404 and 405 come from a wrong base_url or model name. Where a
# server listens is no part of a request's identity: they would be served when it was put right.
_NEVER = frozenset({401, 403, 404, 405, 407})
# Overload and time-outs say nothing about the agent, and are tried again.
_RETRYABLE = frozenset({408, 409, 429})
_WAITS = frozenset({"retry-after", "retry-after-ms", "x-should-retry"})


def keeping(status: int, *, keep_errors: bool) -> Literal["never", "held", "kept"]:
    """What becomes of an answer: `held` until it is known whether a retry got over it."""
    if status in _NEVER:
        return "never"
    if (status in _RETRYABLE or status >= 500) and not keep_errors:
        return "held"
    return "kept"


def is_passing(status: int) -> bool:
    """Whether an answer is an error that a retry may get over."""
    return keeping(status, keep_errors=False) == "held"


@dataclass(frozen=True, slots=True)
class LiveAnswer:
    """An answer that came from the live model, and its request, without secrets."""

    request: CanonicalRequest
    response: StoredResponse
    latency_s: float
    first_byte_s: float | None

    def for_good(self) -> LiveAnswer:
        """An error as it answers every such request: nobody waits, since nothing will change."""
        headers = {n: v for n, v in self.response.headers.items() if n not in _WAITS}
        return self._with_headers(headers | {"x-should-retry": "false"})

    def at_once(self) -> LiveAnswer:
        """An error in its place: what comes next is there, and nobody waits for it."""
        headers = {n: v for n, v in self.response.headers.items() if not n.startswith("retry-")}
        return self._with_headers(headers)

    def _with_headers(self, headers: dict[str, str]) -> LiveAnswer:
        return replace(self, response=self.response.model_copy(update={"headers": headers}))


@dataclass(slots=True)
class _Held:
    """Errors in a row that one request got."""

    errors: list[LiveAnswer]
    asker: object
    """Who got the last of them."""
    is_followed: bool = False
    """Whether something else was asked since."""
    is_left: bool = False
    """Whether the same asker did so."""

    @property
    def may_be_got_over(self) -> bool:
        """Whether the same request, now, is another try."""
        is_model_call = self.errors[0].request.is_model_call
        is_next = not self.is_followed or self.asker == _asker()
        return is_model_call and is_next and not self.is_left


def _asker() -> object:
    """The thread, and the task in it, that asks here: a client tries again where it is."""
    try:
        task = asyncio.current_task()
    except RuntimeError:
        task = None
    return threading.get_ident(), task


class Unsettled:
    """The live requests of one trial that have not got an answer that is kept."""

    def __init__(self, *, keep_errors: bool, replaces: bool) -> None:
        """Start before the first request.

        Args:
            keep_errors: Whether errors are kept that a retry may get over.
            replaces: Whether the recording is to take the place of another.
        """
        self._keep_errors = keep_errors
        self._replaces = replaces
        self._asked: set[str] = set()
        self._held: dict[str, _Held] = {}
        self._refused: dict[str, str] = {}

    def ask(self, request: CanonicalRequest) -> None:
        """A request goes to the network."""
        self.go_on(request.digest)
        if request.is_model_call:
            self._asked.add(request.digest)

    def go_on(self, digest: str) -> None:
        """Something was asked: errors that other requests got may have been given up."""
        for other, held in self._held.items():
            if other != digest:
                held.is_followed = True
                held.is_left = held.is_left or held.asker == _asker()

    def given_up(self, digest: str, *, is_repeated: bool) -> list[LiveAnswer]:
        """The errors that stand before another such request, unless it is a retry of them.

        Args:
            digest: Of the request that is made now.
            is_repeated: Whether it had an answer before: then it may be made again for that.
        """
        held = self._held.get(digest)
        if held is None or (held.may_be_got_over and not is_repeated):
            return []
        del self._held[digest]
        self._asked.discard(digest)
        return held.errors

    def settles(self, answer: LiveAnswer, number: int) -> bool:
        """Whether an answer is kept at once; if not, it is remembered.

        Args:
            answer: What came.
            number: The request's place in its trial, to name it.
        """
        request, status = answer.request, answer.response.status
        kept = keeping(status, keep_errors=self._keep_errors)
        if kept == "never" and request.is_model_call:
            self._refused[request.digest] = (
                f"HTTP {status} is never kept, and request {number} ({request.endpoint}) got"
                " nothing else"
            )
            return False
        self._refused.pop(request.digest, None)
        if kept == "held":
            before = self._held.get(request.digest)
            errors = [] if before is None else before.errors
            self._held[request.digest] = _Held([*errors, answer], _asker())
            return False
        self._held.pop(request.digest, None)
        self._asked.discard(request.digest)
        return True

    def take_errors(self) -> list[LiveAnswer]:
        """The errors that were never got over; they are settled with that."""
        errors = [held.errors[-1] for held in self._held.values()]
        self._held.clear()
        return errors

    def lacking(self) -> str | None:
        """What keeps the trial from being complete, in words."""
        if self._refused:
            return next(iter(self._refused.values()))
        # An error is better than nothing, but no better than the answers of an old recording.
        if self._replaces and self._held:
            status = next(iter(self._held.values())).errors[-1].response.status
            return f"the old recording stays, since a request got nothing but HTTP {status}"
        if self._replaces and self._asked:
            return "the old recording stays, since a model call got no answer"
        return None

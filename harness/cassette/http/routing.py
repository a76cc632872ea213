"""Which open cassette a request belongs to."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress
from contextvars import ContextVar
from typing import Protocol

from harness.cassette.format import InteractionLine
from harness.cassette.playback import Playback
from harness.cassette.replay.answers import Answers
from harness.cassette.replay.explain import Miss
from harness.cassette.request.growing import Growing
from harness.errors import HarnessError


class Unfinished(Protocol):
    """A live answer that is still on its way to the agent."""

    def leave(self) -> None:
        """Record it as far as it came."""


class Use:
    """A session in use by the code of one context."""

    def __init__(self, session: Answers, playback: Playback) -> None:
        """Begin; the patch makes it known."""
        self.session = session
        self.playback = playback
        self.owed: dict[str, InteractionLine] = {}
        """Digest of a request -> its answer, which a fault has spoiled: for the same again."""
        self.growing = Growing()
        self.open = True
        self.over = False
        """Whether the code that it was for has ended: what still comes in its context is late."""
        self._unfinished: set[Unfinished] = set()
        self._lock = threading.Lock()

    def begins(self, answer: Unfinished) -> bool:
        """Remember an answer that is on its way; False where it comes too late to be recorded."""
        with self._lock:
            if self.open:
                self._unfinished.add(answer)
            return self.open

    def ends(self, answer: Unfinished) -> None:
        """Forget it: it is recorded, or never will be."""
        with self._lock:
            self._unfinished.discard(answer)

    def close(self) -> None:
        """Record what is on its way as far as it came: later there is nowhere to write it."""
        with self._lock:
            self.open = False
            unfinished = list(self._unfinished)
        for answer in unfinished:
            # The session remembers it, and `finish` raises it: here it would hide what the user's
            # code raised, and the other answers would not be asked.
            with suppress(HarnessError):
                answer.leave()


CURRENT: ContextVar[Use | None] = ContextVar("harness_cassette", default=None)
LOCK = threading.Lock()
"""Held while OPEN changes, and the patch with it."""
OPEN: list[Use] = []


def candidates() -> Sequence[Use]:
    """The use of this context; where there is no context, as in a pool's thread, all open ones.

    Where the use of the context is closed, it and all open ones; none where nothing is open.
    """
    chosen = CURRENT.get()
    if chosen is not None and chosen.open:
        return (chosen,)
    with LOCK:
        uses = tuple(OPEN)
    return uses if chosen is None or not uses else (chosen, *uses)


def missed(uses: Sequence[Use], cause: str, text: str) -> str:
    """Have a request be missed by all that may have lost it; gives the text without secrets."""
    for use in uses:
        text = use.session.redactor.text(text)
        use.session.miss(Miss(cause, text))
    return text

"""Putting sessions in use: one patch per process, there while any cassette is open."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from vcr.cassette import CassetteContextDecorator  # type: ignore[import-untyped]

from harness.cassette.http.around import around_patches
from harness.cassette.http.connections import connection_patches
from harness.cassette.http.late import refuse_late_requests
from harness.cassette.http.routing import CURRENT, LOCK, OPEN, Use
from harness.cassette.http.stubs import Router, aiohttp_patches
from harness.cassette.http.transports import transport_patches
from harness.cassette.playback import Playback
from harness.cassette.replay.answers import Answers
from harness.errors import BadInputError

_FAST = Playback()
_patch: list[CassetteContextDecorator] = []


@contextmanager
def use(session: Answers, playback: Playback | None = None) -> Iterator[None]:
    """Answer the HTTP requests made inside from a session.

    In a thread that does not know the context, the only open session is meant; where several are
    open, such a request is refused and every open session has a miss.

    Args:
        session: What answers, and records where it may.
        playback: How fast, and with which faults, recorded answers are given; at once without.

    Raises:
        BadInputError: faults are asked for while recording.
    """
    playback = playback or _FAST
    if playback.faults is not None and session.recording:
        raise BadInputError("faults spoil recorded answers: they need the record mode 'none'")
    entry = Use(session, playback)
    _enter(entry)
    token = CURRENT.set(entry)
    try:
        yield
    finally:
        is_here = False
        try:
            # A fixture's beginning and end may be two tasks, and so two contexts: then this one
            # never had it, and what is closed answers nothing in the other.
            with suppress(ValueError):
                CURRENT.reset(token)
                is_here = True
        finally:
            _leave(entry)
            entry.over = is_here


def _enter(entry: Use) -> None:
    with LOCK:
        if not OPEN:
            refuse_late_requests()
            patch = Router.use(
                path="harness",
                skip_patchers=("httpx", "httpx2", "aiohttp"),
                custom_patches=(
                    *transport_patches(),
                    *aiohttp_patches(),
                    *connection_patches(),
                    *around_patches(),
                ),
            )
            patch.__enter__()
            _patch.append(patch)
        OPEN.append(entry)


def _leave(entry: Use) -> None:
    with LOCK:
        # By identity: the same session may be in use twice.
        del OPEN[next(i for i, other in enumerate(OPEN) if other is entry)]
        if not OPEN:
            _patch.pop().__exit__(None, None, None)
    entry.close()

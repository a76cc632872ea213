"""Bodies of answers as httpx and httpx2 read them, in plain code and in asyncio."""

from __future__ import annotations

import importlib
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from types import ModuleType
from typing import Any

import anyio

from harness.cassette.http.answer import Answer
from harness.cassette.http.recording import Recording
from harness.errors import HarnessError


def installed(*names: str) -> list[ModuleType]:
    """Those of the modules that are installed."""
    found = []
    for name in names:
        with suppress(ImportError):
            found.append(importlib.import_module(name))
    return found


LIBRARIES = installed("httpx2", "httpx")
"""Those of the two that are installed: alike, but each with classes of its own."""

_BODY = tuple(library.SyncByteStream for library in LIBRARIES)
_ASYNC_BODY = tuple(library.AsyncByteStream for library in LIBRARIES)


class Tee(*_BODY):  # type: ignore[misc]
    """Passes a live body on, and records it."""

    def __init__(self, stream: Any, recording: Recording) -> None:
        """Stand before a body."""
        self._stream = stream
        self._recording = recording

    def __iter__(self) -> Iterator[bytes]:
        """Read it."""
        with self._recording.passed_on():
            for piece in self._stream:
                self._recording.take(piece)
                yield piece

    def close(self) -> None:
        """Leave it; what was read is recorded."""
        try:
            _leave(self._recording)
        finally:
            self._stream.close()


class AsyncTee(*_ASYNC_BODY):  # type: ignore[misc]
    """Passes a live body on, and records it."""

    def __init__(self, stream: Any, recording: Recording) -> None:
        """Stand before a body."""
        self._stream = stream
        self._recording = recording

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Read it."""
        with self._recording.passed_on():
            async for piece in self._stream:
                self._recording.take(piece)
                yield piece

    async def aclose(self) -> None:
        """Leave it; what was read is recorded."""
        try:
            _leave(self._recording)
        finally:
            await self._stream.aclose()


def _leave(recording: Recording) -> None:
    # The session remembers what could not be written; an agent that tidies up need not know.
    with suppress(HarnessError):
        recording.leave()


class Paced(*_BODY, *_ASYNC_BODY):  # type: ignore[misc]
    """A recorded body in its own time, or one that breaks off."""

    def __init__(self, answer: Answer, broken: Callable[[], Exception | None]) -> None:
        """Prepare it; what `broken` gives at the end is raised, since the connection breaks."""
        self._answer = answer
        self._broken = broken

    def __iter__(self) -> Iterator[bytes]:
        """Read it."""
        for at_s, piece in self._answer.pieces():
            time.sleep(left_s(self._answer, at_s))
            yield piece
        if (error := self._broken()) is not None:
            raise error

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Read it."""
        for at_s, piece in self._answer.pieces():
            if wait_s := left_s(self._answer, at_s):
                await anyio.sleep(wait_s)
            yield piece
        if (error := self._broken()) is not None:
            raise error


def left_s(answer: Answer, at_s: float) -> float:
    """How long it still is until a moment after the request."""
    return max(0.0, answer.started + at_s - time.monotonic()) if answer.timed else 0.0

"""The thread on which async tools run, so that they work inside a running event loop too."""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

Result = TypeVar("Result")


class LoopThread:
    """An event loop in a daemon thread, started when it is first needed.

    It ends when nothing refers to this object any more.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def submit(self, coroutine: Coroutine[Any, Any, Result]) -> Future[Result]:
        """Start a coroutine with a copy of the caller's context; cancelling ends it there."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._running())

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                loop = asyncio.new_event_loop()
                threading.Thread(target=_run, args=(loop,), name="tools", daemon=True).start()
                stop = weakref.finalize(self, loop.call_soon_threadsafe, loop.stop)
                # At the interpreter's exit daemon threads are stopped anyway.
                stop.atexit = False
                self._loop = loop
            return self._loop


def _run(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    loop.run_forever()
    left = asyncio.all_tasks(loop)
    for task in left:
        task.cancel()
    loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()

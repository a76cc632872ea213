"""A sandboxed process that runs beside the caller until it is ended."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import ExitStack

from harness.errors import SandboxError
from harness.sandbox.excerpt import OUTPUT_LIMIT
from harness.sandbox.namespaces.process import Keeper, Launch, Watch

_START_TIMEOUT_S = 60.0


class LongProcess:
    """A process on a terminal, with all that it starts.

    A thread of its own follows it, and starts it where no keeper does: a launcher dies with the
    thread that started it, and a tool's call may run in one that soon ends.
    """

    def __init__(
        self, launch: Callable[[ExitStack], Launch], terminal: int, keeper: Keeper | None
    ) -> None:
        """Start it; when this returns, it runs.

        Raises:
            SandboxError: it could not be started.
        """
        self._launch = launch
        self._terminal = terminal
        self._keeper = keeper
        self._watch: Watch | None = None
        self._told_to_end = threading.Event()
        self._started = threading.Event()
        self._failure: SandboxError | OSError | None = None
        self._thread = threading.Thread(target=self._live, name="terminal", daemon=True)
        self._thread.start()
        self._started.wait()
        if self._failure is not None:
            self._thread.join()
            raise self._failure

    def end(self) -> None:
        """Kill it and all it started; when this returns, they are dead."""
        self._told_to_end.set()
        if self._watch is not None:
            self._watch.kill()
        self._thread.join()

    def _live(self) -> None:
        try:
            with ExitStack() as opened:
                watch = self._watch = Watch(
                    self._launch(opened),
                    self._keeper,
                    opened,
                    output_limit=OUTPUT_LIMIT,
                    terminal=self._terminal,
                )
                try:
                    watch.follow(time.monotonic() + _START_TIMEOUT_S, lambda: watch.started)
                    if not watch.started:
                        raise watch.failure()
                    self._started.set()
                    watch.follow(None, self._told_to_end.is_set)
                finally:
                    watch.end()
        except (SandboxError, OSError) as error:
            self._failure = error
        finally:
            self._started.set()

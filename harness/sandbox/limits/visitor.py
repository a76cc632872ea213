"""The thread that goes into control groups of version 1, to start processes there."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from queue import SimpleQueue
from subprocess import Popen

from harness.errors import SandboxError

Start = Callable[[], Popen[bytes]]

_ITSELF = b"0"
"""Moves the thread that writes it, alone; for any other number the kernel would wait."""


class Visitor:
    """Starts processes in groups, one after the other, and goes back after each.

    It is no executor's thread: a launcher dies with the thread that started it, and executors end
    theirs before the last threads of a process. Nor is it the first thread of the process, which
    stands for all of it where the memory of a group is short.
    """

    def __init__(self, back: Sequence[Path]) -> None:
        """Begin, to live as long as this process.

        Args:
            back: By which files it leaves the groups it was in.

        Raises:
            OSError: they cannot be written.
        """
        # Open from now on: in a group that is full of files or memory it might be too late.
        self._back = [os.open(place, os.O_WRONLY | os.O_CLOEXEC) for place in back]
        self._asked: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        threading.Thread(target=self._live, name="control-groups", daemon=True).start()

    def start(self, launch: Start, places: Sequence[Path]) -> Popen[bytes]:
        """Start a process in groups.

        Args:
            launch: Starts it.
            places: By which files a thread goes into the groups.

        Raises:
            SandboxError: it cannot go there, or not back.
        """
        future: Future[Popen[bytes]] = Future()

        def answer() -> None:
            try:
                future.set_result(self._start(launch, places))
            except BaseException as error:  # noqa: BLE001 -- it is raised where it was asked for
                future.set_exception(error)

        self._asked.put(answer)
        try:
            return future.result()
        except BaseException:
            # A signal's handler may have raised it. What is being handed over must stay open until
            # it is, and nobody would wait for what was started.
            if future.exception() is None:
                _kill(future.result())
            raise

    def end(self) -> None:
        """Let it end after what it was asked to do."""
        self._asked.put(None)

    def _live(self) -> None:
        while (answer := self._asked.get()) is not None:
            answer()
        for fd in self._back:
            os.close(fd)

    def _start(self, launch: Start, places: Sequence[Path]) -> Popen[bytes]:
        try:
            for place in places:
                with open(place, "wb", buffering=0) as file:
                    file.write(_ITSELF)
        except OSError as error:
            self._return()
            raise SandboxError(f"its limits cannot be set: {error}") from error
        try:
            started = launch()
        except BaseException:
            self._return()
            raise
        if (stuck := self._return()) is not None:
            _kill(started)
            raise SandboxError(f"a control group cannot be left: {stuck}")
        return started

    def _return(self) -> OSError | None:
        """Go back, as far as that can be; what is in the way of it."""
        stuck = None
        for fd in self._back:
            try:
                os.write(fd, _ITSELF)
            except OSError as error:
                stuck = error
        return stuck


def _kill(process: Popen[bytes]) -> None:
    process.kill()
    process.wait()

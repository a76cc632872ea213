"""This machine: in this process, or in a pool of processes."""

from __future__ import annotations

import multiprocessing
import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

from harness.errors import InfrastructureError

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class LocalBackend:
    """Runs items here, `jobs` at a time."""

    jobs: int = 1

    def run(
        self, function: Callable[[Item], Iterable[Result]], items: Sequence[Item]
    ) -> Iterator[Result]:
        """Yield what the function gives for each item, as it comes.

        Raises:
            InfrastructureError: a worker process died; what it had finished is in the log.
        """
        if self.jobs == 1 or len(items) <= 1:
            for item in items:
                yield from function(item)
            return
        others = multiprocessing.active_children()
        pool = ProcessPoolExecutor(
            min(self.jobs, len(items)),
            mp_context=multiprocessing.get_context("fork" if _is_alone() else "spawn"),
            initializer=_begin_worker,
        )
        try:
            futures = [pool.submit(_collect, function, item) for item in items]
            for future in as_completed(futures):
                yield from future.result()
        except BrokenProcessPool as error:
            raise InfrastructureError(
                "a worker process died; what was finished is in the run log: run again, "
                "with --jobs 1 if it happens again"
            ) from error
        except (KeyboardInterrupt, GeneratorExit):
            for worker in multiprocessing.active_children():
                if worker not in others:
                    worker.terminate()
            raise
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _is_alone() -> bool:
    """Whether no other thread works in this process.

    Then a copy of it is a worker that has everything loaded. What another thread is in the middle
    of, the SDKs' included, would be copied as well, and stay so for ever.
    """
    try:
        return len(os.listdir("/proc/self/task")) == 1
    except FileNotFoundError:
        return False


def _begin_worker() -> None:
    """An interrupt is the parent's to handle; a parent that is gone takes its workers along."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    assert parent.pid is not None
    if sys.platform == "linux":
        # Not by what it holds open: copies of it, the other workers, hold that as well.
        with suppress(ProcessLookupError):
            ended = os.pidfd_open(parent.pid)
            if parent.pid == os.getppid():
                select.select([ended], [], [])
    else:
        parent.join()
    os._exit(1)


def _collect(function: Callable[[Item], Iterable[Result]], item: Item) -> list[Result]:
    return list(function(item))

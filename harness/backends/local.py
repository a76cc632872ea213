"""This machine: in this process, or in a pool of processes."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
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
        # spawn: a forked child would inherit threads and locks of the SDKs in a broken state.
        context = multiprocessing.get_context("spawn")
        pool = ProcessPoolExecutor(min(self.jobs, len(items)), mp_context=context)
        try:
            futures = [pool.submit(_collect, function, item) for item in items]
            for future in as_completed(futures):
                yield from future.result()
        except BrokenProcessPool as error:
            raise InfrastructureError(
                "a worker process died; what was finished is in the run log: run again, "
                "with --jobs 1 if it happens again"
            ) from error
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _collect(function: Callable[[Item], Iterable[Result]], item: Item) -> list[Result]:
    return list(function(item))

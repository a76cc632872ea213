"""Running several calls of a turn at the same time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def run_together(function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """What a function gives for each item, in order; one item runs in the caller's own thread."""
    if len(items) < 2:
        return [function(item) for item in items]
    with ThreadPoolExecutor(len(items), thread_name_prefix="tool-calls") as pool:
        # A copy of the context for each: two threads cannot enter the same one.
        futures = [pool.submit(copy_context().run, function, item) for item in items]
        return [future.result() for future in futures]

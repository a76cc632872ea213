"""How much memory a process came to need."""

from __future__ import annotations

import gc
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_SELF = Path("/proc/self")


class Growth:
    """Filled when the block ends."""

    mb = 0.0


@contextmanager
def growth() -> Iterator[Growth]:
    """By how much the peak inside the block is above what the process held before, in MB."""
    found = Growth()
    gc.collect()
    before = _held_and_reset()
    yield found
    found.mb = (_peak() - before) / 1e6


def _held_and_reset() -> int:
    """What the process holds; the peak counts from here on, where the system can do that."""
    try:
        _SELF.joinpath("clear_refs").write_text("5")
        return _status("VmRSS")
    except OSError:
        return _peak()


def _peak() -> int:
    try:
        return _status("VmHWM")
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _status(name: str) -> int:
    lines = _SELF.joinpath("status").read_text().splitlines()
    line = next(line for line in lines if line.startswith(f"{name}:"))
    return int(line.split()[1]) * 1024

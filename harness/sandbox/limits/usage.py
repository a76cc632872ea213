"""What a container uses, looked at while it runs: for what the kernel holds it to nothing."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from harness.errors import SandboxError

_COUNT_TIMEOUT_S = 30.0
_COUNT_EVERY_S = 5.0
_COUNT_PAUSES = 20
"""So many times as long as counting took, it is not done again for its own sake."""
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_SHARE = re.compile(rb"^Pss: +(\d+) kB$", re.MULTILINE)


class Disk:
    """The disk space that a folder takes.

    Counting its files is slow, so it is done once the whole file system has lost as much, and from
    time to time: what others give back at the same moment hides what this one takes.
    """

    def __init__(self, folder: Path, *, storage_bytes: int, files: int) -> None:
        """Begin now, with a folder that is small.

        Raises:
            SandboxError: nothing here can count files.
        """
        if shutil.which("du") is None:
            raise SandboxError("du is not installed: it counts what the files of a container take")
        self._folder = folder
        self._most = (storage_bytes, files)
        self._taken = (0, 0)
        """Bytes and files at most: what was counted, and what the file system has lost since."""
        self._free = self._look()
        self._count_at = time.monotonic() + _COUNT_EVERY_S

    def trouble(self) -> str | None:
        """Why its processes have to be killed, if they have."""
        now = self._look()
        # What others give back between two other looks must not hide what this one takes.
        lost = [max(0, before - after) for before, after in zip(self._free, now, strict=True)]
        self._free = now
        self._taken = (self._taken[0] + lost[0], self._taken[1] + lost[1])
        started = time.monotonic()
        is_little = self._taken[0] <= self._most[0] and self._taken[1] <= self._most[1]
        if is_little and started < self._count_at:
            return None
        taken = (_counted(self._folder, "--block-size=1"), _counted(self._folder, "--inodes"))
        ended = time.monotonic()
        self._count_at = ended + max(_COUNT_EVERY_S, _COUNT_PAUSES * (ended - started))
        if taken[0] is None or taken[1] is None:
            return "its files are too many to be counted"
        self._taken = (taken[0], taken[1])
        if taken[0] > self._most[0]:
            return f"its files take more than {self._most[0] >> 20} MiB"
        return f"it has more than {self._most[1]} files" if taken[1] > self._most[1] else None

    def _look(self) -> tuple[int, int]:
        found = os.statvfs(self._folder)
        return found.f_bfree * found.f_frsize, found.f_ffree


class Memory:
    """The memory that processes take together, found by their process namespace."""

    def __init__(self, memory_bytes: int) -> None:
        self._most = memory_bytes
        self._namespaces: set[int] = set()

    def admit(self, pid: int) -> None:
        """Count a process, and all that are in its namespace."""
        self._namespaces.add(os.stat(f"/proc/{pid}/ns/pid").st_ino)

    def trouble(self) -> str | None:
        """Why its processes have to be killed, if they have."""
        taken = {place: _resident(place) for place in self._processes()}
        if sum(taken.values()) <= self._most:
            return None
        # Exact and slower: what several share counts once.
        if sum(_share(place) for place in taken) <= self._most:
            return None
        return "out of memory"

    def _processes(self) -> list[str]:
        found = []
        for name in os.listdir("/proc"):
            if name.isdigit():
                # Of others nothing can be seen, or they are gone.
                with suppress(OSError):
                    if os.stat(f"/proc/{name}/ns/pid").st_ino in self._namespaces:
                        found.append(f"/proc/{name}")
        return found


def _resident(place: str) -> int:
    with suppress(OSError), open(f"{place}/statm", "rb") as file:
        return int(file.read().split()[1]) * _PAGE_BYTES
    return 0


def _share(place: str) -> int:
    with suppress(OSError), open(f"{place}/smaps_rollup", "rb") as file:
        found = _SHARE.search(file.read())
        return int(found[1]) << 10 if found else 0
    return 0


def _counted(folder: Path, unit: str) -> int | None:
    """What a folder's files take of the disk; None if that takes too long."""
    command = ["du", "--summarize", "--one-file-system", unit, "--", str(folder)]
    try:
        done = subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_COUNT_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None
    # Of what goes away while it is counted nothing is said.
    return int(done.stdout.split()[0]) if done.stdout else 0

"""Control groups: what holds root to a number of processes and to an amount of memory."""

from __future__ import annotations

import itertools
import os
import re
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from harness.errors import SandboxError

_NAME = "harness-{pid}-{number}"
_OURS = re.compile(r"harness-(\d+)-\d+")
_REMOVE_TIMEOUT_S = 2.0
_ESCAPED = re.compile(r"\\([0-7]{3})")

_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class Parents:
    """The groups in which those of containers are made; None is a controller that is not there."""

    processes: Path | None
    memory: Path | None
    unified: bool
    """Version 2: both are the same group."""


class Group:
    """The groups of one container, made when its first process comes."""

    def __init__(self, parents: Parents, *, processes: int, memory_bytes: int) -> None:
        self._parents = parents
        self._name = _NAME.format(pid=os.getpid(), number=next(_numbers))
        self._limits: dict[Path, dict[str, int]] = {}
        if parents.processes is not None:
            self._limits[parents.processes] = {"pids.max": processes}
        if parents.memory is not None:
            # In version 1 the second number is of memory and swap together.
            limits = {"memory.limit_in_bytes": memory_bytes}
            limits["memory.memsw.limit_in_bytes"] = memory_bytes
            if parents.unified:
                limits = {"memory.max": memory_bytes, "memory.swap.max": 0}
            self._limits[parents.memory] = self._limits.get(parents.memory, {}) | limits

    @property
    def holds(self) -> bool:
        """Whether there is a limit that they hold."""
        return bool(self._limits)

    def admit(self, pid: int) -> None:
        """Put a process into them; what it starts is in them as well.

        Raises:
            SandboxError: they cannot be made.
        """
        try:
            for parent, limits in self._limits.items():
                group = parent / self._name
                if not group.is_dir():
                    _make(group, limits)
                (group / "cgroup.procs").write_text(str(pid))
        except OSError as error:
            raise SandboxError(f"its limits cannot be set: {error}") from error

    def killed_for_memory(self) -> int:
        """How many of its processes the kernel has killed since they used too much."""
        if self._parents.memory is None:
            return 0
        name = "memory.events" if self._parents.unified else "memory.oom_control"
        try:
            text = (self._parents.memory / self._name / name).read_text()
        except FileNotFoundError:
            return 0
        found = re.search(r"^oom_kill (\d+)$", text, re.MULTILINE)
        return int(found[1]) if found else 0

    def close(self) -> None:
        """Remove them; no process may be left."""
        for parent in self._limits:
            _remove(parent / self._name)


def get_ready() -> None:
    """Begin what the next move into a group would have to wait for.

    For the first move after a while the kernel waits some ten milliseconds for all processors; the
    next one soon after takes none. This one leads from a group to the same, while others work.
    """
    threading.Thread(target=_stay, daemon=True).start()


def _stay() -> None:
    places = _places()
    own = places.get("pids", places.get(""))
    if own is not None:
        with suppress(OSError):
            (own / "cgroup.procs").write_text(str(os.getpid()))


@cache
def parents() -> Parents:
    """Where this process may make groups: found out by making one."""
    places = _places()
    if "" in places and (unified := _unified(places[""])) is not None:
        return Parents(unified, unified, unified=True)
    return Parents(
        _usable(places.get("pids"), {"pids.max": 10}),
        _usable(places.get("memory"), {"memory.limit_in_bytes": 1 << 30}),
        unified=False,
    )


def _unified(own: Path) -> Path | None:
    # A group that has processes of its own gives its children no controllers.
    for place in (own, own.parent):
        try:
            given = (place / "cgroup.subtree_control").read_text().split()
        except OSError:
            continue
        if {"pids", "memory"} <= set(given):
            usable = _usable(place, {"pids.max": 10, "memory.max": 1 << 30})
            if usable is not None:
                return usable
    return None


def _usable(place: Path | None, limits: dict[str, int]) -> Path | None:
    if place is None:
        return None
    _remove_left_over(place)
    trial = place / _NAME.format(pid=os.getpid(), number=next(_numbers))
    try:
        _make(trial, limits)
        trial.rmdir()
    except OSError:
        return None
    return place


def _make(group: Path, limits: dict[str, int]) -> None:
    group.mkdir(exist_ok=True)
    for name, value in limits.items():
        # Where the kernel does not count swap, there is no file for it.
        if "sw" in name and not (group / name).exists():
            continue
        (group / name).write_text(str(value))


def _remove(group: Path) -> None:
    deadline = time.monotonic() + _REMOVE_TIMEOUT_S
    while True:
        try:
            group.rmdir()
        except FileNotFoundError:
            return
        except OSError:
            # The kernel may still be busy with what has died in it.
            if time.monotonic() > deadline:
                return
            time.sleep(0.002)
        else:
            return


def _remove_left_over(parent: Path) -> None:
    """Groups of a harness that was killed."""
    with suppress(OSError):
        for place in parent.iterdir():
            found = _OURS.fullmatch(place.name)
            if found and not Path("/proc", found[1]).exists():
                with suppress(OSError):
                    place.rmdir()


def _places() -> dict[str, Path]:
    """This process's own groups by controller; version 2 has no name."""
    try:
        own = Path("/proc/self/cgroup").read_text().splitlines()
        mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    except OSError:
        return {}
    groups = {
        controller: path
        for _, controllers, path in (line.split(":", 2) for line in own)
        for controller in controllers.split(",")
    }
    places: dict[str, Path] = {}
    for line in mounts:
        before, _, after = line.partition(" - ")
        kind, _, options = after.split(" ", 2)
        root, point = (_unescaped(field) for field in before.split(" ")[3:5])
        names = {"cgroup2": [""], "cgroup": options.split(" ")[-1].split(",")}.get(kind, [])
        for name in names:
            if name in groups:
                inside = groups[name].removeprefix(root.rstrip("/")).lstrip("/")
                places.setdefault(name, Path(point, inside))
    return places


def _unescaped(field: str) -> str:
    return _ESCAPED.sub(lambda found: chr(int(found[1], 8)), field)

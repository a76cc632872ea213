"""Control groups: what holds root to a number of processes and to an amount of memory.

To move a process of another the kernel has to wait for all processors, some ten milliseconds. With
version 1 a thread that moves alone need not, and what it starts is where it is: so a thread of the
harness goes into a container's groups while it starts a process of the container. See
cgroup_procs_write_start() in https://github.com/torvalds/linux/blob/master/kernel/cgroup/cgroup.c.

Version 2 allows a group either processes or controllers for the groups in it, so those of
containers are made beside this process's own group; nothing is moved or enabled for that.
See https://docs.kernel.org/admin-guide/cgroup-v2.html, "No Internal Process Constraint".
"""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from harness.errors import FullError, SandboxError
from harness.sandbox.limits.visitor import Start, Visitor

_NAME = "harness-{pid}-{number}"
_OURS = re.compile(r"harness-(\d+)-\d+")
_REMOVE_TIMEOUT_S = 2.0
_LAUNCHER = 4
"""Processes that a launcher has at most, before its command."""
_TRIED = {"pids": 10, "memory": 1 << 30}
_ESCAPED = re.compile(r"\\([0-7]{3})")

_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class Parents:
    """The groups in which those of containers are made; None is a controller that is not there."""

    processes: Path | None
    memory: Path | None
    unified: bool
    """Version 2: both are the same group, if both are there."""
    threads: tuple[Path, ...] = ()
    """Files by which a thread leaves a container's groups; none where it cannot go alone."""


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

    def start(self, launch: Start) -> subprocess.Popen[bytes]:
        """Start a process, in them already if that can be; what it starts is in them as well.

        Args:
            launch: Starts it, and need not wait for it.

        Raises:
            FullError: they have as many processes as they may.
            SandboxError: they cannot be made.
        """
        if not self._limits:
            return launch()
        if self._parents.threads:
            with _setting_limits():
                visitor = _visitor(os.getpid(), self._parents.threads)
                places = [group / "tasks" for group in self._made()]
            try:
                return visitor.start(launch, places)
            except BlockingIOError as error:
                kind = FullError if self.is_full() else SandboxError
                raise kind(f"no process can be started: {error.strerror}") from error
        started = launch()
        threading.Thread(target=_stay, daemon=True).start()
        return started

    def admit(self, pid: int) -> None:
        """Put a process into them that was not started there.

        Raises:
            SandboxError: they cannot be made.
        """
        if self._parents.threads:
            return
        with _setting_limits():
            for group in self._made():
                (group / "cgroup.procs").write_text(str(pid))

    def _made(self) -> list[Path]:
        groups = []
        for parent, limits in self._limits.items():
            group = parent / self._name
            if not group.is_dir():
                _make(group, limits)
            groups.append(group)
        return groups

    def is_full(self) -> bool:
        """Whether there is no room for a launcher beside the processes in them."""
        parent = self._parents.processes
        if parent is None:
            return False
        try:
            current = int((parent / self._name / "pids.current").read_text())
        except FileNotFoundError:
            return False
        return current + _LAUNCHER > self._limits[parent]["pids.max"]

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


_making = threading.Lock()
_visitors: dict[int, Visitor] = {}


def _visitor(process: int, back: tuple[Path, ...]) -> Visitor:
    """The one of this process; a copy of a process has none of its threads."""
    with _making:
        if process not in _visitors:
            _visitors[process] = Visitor(back)
        return _visitors[process]


@contextmanager
def _setting_limits() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise SandboxError(f"its limits cannot be set: {error}") from error


def _stay() -> None:
    """Begin what the next move into a group would have to wait for.

    For the first move after a while the kernel waits for all processors; the next one soon after
    takes no time. This one leads from a group to the same, while others work.
    """
    places = own_places()
    own = places.get("pids", places.get(""))
    if own is not None:
        with suppress(OSError):
            (own / "cgroup.procs").write_text(str(os.getpid()))


@cache
def parents() -> Parents:
    """Where this process may make groups: found out by making one."""
    places = own_places()
    if "" in places and (found := _unified(places[""])) is not None:
        return found
    processes = _usable(places.get("pids"), {"pids.max": _TRIED["pids"]})
    memory = _usable(places.get("memory"), {"memory.limit_in_bytes": _TRIED["memory"]})
    used = [place for place in (processes, memory) if place is not None]
    alone = all(_usable(place, {}, trying=_go_and_return) is not None for place in used)
    threads = tuple(place / "tasks" for place in used) if alone else ()
    return Parents(processes, memory, unified=False, threads=threads)


def _unified(own: Path) -> Parents | None:
    # The root of all groups alone may have both; in a namespace, what is above is out of reach.
    for place in (own, own.parent):
        given = enabled(place)
        limits = {f"{name}.max": _TRIED[name] for name in ("pids", "memory") if name in given}
        # Whether processes may be moved there depends on the groups on the way.
        if "pids" in given and _usable(place, limits, trying=_move_in_and_end) is not None:
            return Parents(place, place if "memory" in given else None, unified=True)
    return None


def enabled(group: Path) -> set[str]:
    """The controllers that groups in a group of version 2 have."""
    try:
        return set((group / "cgroup.subtree_control").read_text().split())
    except OSError:
        return set()


def _usable(
    place: Path | None, limits: dict[str, int], *, trying: Callable[[Path], None] | None = None
) -> Path | None:
    if place is None:
        return None
    _remove_left_over(place)
    trial = place / _NAME.format(pid=os.getpid(), number=next(_numbers))
    try:
        _make(trial, limits)
        if trying is not None:
            trying(trial)
    except OSError:
        return None
    finally:
        if trial.exists():
            _remove(trial)
    return place


def _move_in_and_end(group: Path) -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        try:
            (group / "cgroup.procs").write_text(str(process.pid))
        finally:
            process.kill()


def _go_and_return(group: Path) -> None:
    visitor = Visitor((group.parent / "tasks",))
    try:
        visitor.start(lambda: subprocess.Popen(["true"]), [group / "tasks"]).wait()
    except SandboxError as error:
        raise OSError(str(error)) from error
    finally:
        visitor.end()


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


def own_places(process: Path = Path("/proc/self")) -> dict[str, Path]:
    """A process's own groups by controller; version 2 has no name.

    Args:
        process: What the kernel tells of it.
    """
    try:
        own = (process / "cgroup").read_text().splitlines()
        mounts = (process / "mountinfo").read_text().splitlines()
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

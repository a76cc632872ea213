"""What one container may use of the host: processes, memory, files and disk."""

from __future__ import annotations

import resource
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from subprocess import Popen

from harness.errors import SandboxError
from harness.sandbox.limits import cgroups
from harness.sandbox.limits.usage import Disk, Memory
from harness.sandbox.limits.visitor import Start
from harness.values import ProcessResult

_MIB = 1 << 20

_HIGHEST = 1000
_KILLED_BEFORE = 500
"""Of that: where memory is short, half of all there is counts as this process's."""

_FEW = 4
_NOT_HELD = "not held"
_TRY_TOO_MANY = f"for _ in {'. ' * 2 * _FEW}; do sleep 60 & done; echo {_NOT_HELD}"


@dataclass(frozen=True, slots=True)
class Limits:
    """Of one container."""

    memory_mb: int = 4096
    processes: int = 512
    """At a time; threads count."""
    storage_mb: int = 10_240
    """Of all files; one alone may not be longer."""
    files: int = 1_000_000
    open_files: int = 16_384
    """Of each process."""

    def for_task(self, memory_mb: int | None, storage_mb: int | None) -> Limits:
        """What a task asks for, in place of what there is by default."""
        return replace(
            self,
            memory_mb=memory_mb or self.memory_mb,
            storage_mb=storage_mb or self.storage_mb,
        )


DEFAULT_LIMITS = Limits()


class LimitKeeper:
    """Holds the processes of one container within limits.

    Control groups do, where they can be made; elsewhere process limits do, which hold everybody
    but root, and a look at the memory of all together.
    """

    def __init__(self, limits: Limits, folder: Path | None = None) -> None:
        """Hold nothing yet.

        Args:
            limits: What they are held to.
            folder: Holds all that they can write to the disk.
        """
        parents = cgroups.parents()
        self._group = cgroups.Group(
            parents, processes=limits.processes, memory_bytes=limits.memory_mb * _MIB
        )
        self._memory = None if parents.memory else Memory(limits.memory_mb * _MIB)
        self._disk = None
        if folder is not None:
            size = limits.storage_mb * _MIB
            self._disk = Disk(folder, storage_bytes=size, files=limits.files)
        self._own_limits = {
            resource.RLIMIT_FSIZE: limits.storage_mb * _MIB,
            resource.RLIMIT_NOFILE: limits.open_files,
            resource.RLIMIT_CORE: 0,
        }
        if parents.processes is None:
            self._own_limits[resource.RLIMIT_NPROC] = limits.processes
        if parents.memory is None:
            self._own_limits[resource.RLIMIT_DATA] = limits.memory_mb * _MIB
        self._killed = 0

    def start(self, launch: Start) -> Popen[bytes]:
        """Start a launcher, already held to its number of processes and its memory if that can be.

        Args:
            launch: Starts it.

        Raises:
            FullError: there are as many processes as may be.
            SandboxError: its limits cannot be set.
        """
        return self._group.start(launch)

    def admit(self, pid: int) -> None:
        """Set the limits of a process that waits to become the command.

        Raises:
            SandboxError: they cannot be set.
        """
        self._group.admit(pid)
        try:
            # Its launcher is in the group as well, and without it nobody could say what happened.
            with suppress(OSError):
                own = int(Path("/proc/self/oom_score_adj").read_text())
                wanted = min(_HIGHEST, own + _KILLED_BEFORE)
                Path(f"/proc/{pid}/oom_score_adj").write_text(str(wanted))
            for kind, value in self._own_limits.items():
                _, hard = resource.prlimit(pid, kind)
                allowed = value if hard == resource.RLIM_INFINITY else min(value, hard)
                resource.prlimit(pid, kind, (allowed, allowed))
            if self._memory is not None:
                self._memory.admit(pid)
        except OSError as error:
            raise SandboxError(f"its limits cannot be set: {error}") from error

    def trouble(self) -> str | None:
        """Why everything has to be killed now, if it has."""
        for part in (self._disk, self._memory):
            if part is not None and (reason := part.trouble()) is not None:
                return reason
        return None

    def note(self) -> str | None:
        """What the kernel has killed one of them for since this was last asked."""
        before, self._killed = self._killed, self._group.killed_for_memory()
        return "out of memory" if self._killed > before else None

    def is_full(self) -> bool:
        """Whether they leave no room for a launcher, if the keeper knows."""
        return self._group.is_full()

    def close(self) -> None:
        """Forget them; none may be left."""
        self._group.close()


def are_counted() -> bool:
    """Whether a control group counts processes: whoever they are, it holds them."""
    return cgroups.parents().processes is not None


def problem(run: Callable[[Sequence[str], LimitKeeper], ProcessResult]) -> str | None:
    """Why a hostile process could not be held on this host, or None if it could.

    Args:
        run: Runs a command, held by a keeper.
    """
    if are_counted():
        return None
    with closing(LimitKeeper(replace(DEFAULT_LIMITS, processes=_FEW))) as keeper:
        tried = run(["sh", "-c", _TRY_TOO_MANY], keeper)
    if _NOT_HELD not in tried.output:
        return None
    return (
        "processes are held to no number here: no control group can be made, and limits of"
        " processes do not bind root; run as another user, or mount the cgroup file system writable"
    )

"""Watching one sandboxed process: its output, its deadline, and the death of all it started.

A launcher (bubblewrap, or `enter.py`) reports on a pipe, one JSON object a line:
`{"child-pid": n}` is the first process of the new pid namespace, as the host counts;
`{"exit-code": n}` comes only when the command was really started. Inside, a line is written to a
socket when all is ready, and the command starts when one comes back: so nothing starts whose
harness was killed before the launcher could take care to die with it.

A program of a container may load whatever an agent has put there before its first own step, so it
is held to its limits before any is started: its keeper starts the launcher, `enter.py` asks itself,
and bubblewrap's first process waits until it is told to go on.
"""

from __future__ import annotations

import json
import os
import select
import selectors
import signal
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Protocol

from harness.errors import FullError, NoWorkdirError, SandboxError
from harness.sandbox.excerpt import Excerpt
from harness.values import ProcessResult

_CHUNK = 1 << 16
_KILLED = 137
"""Exit code of a process that was killed, as a shell has it."""
_LAUNCHER_ENV = {"LANG": "C.UTF-8"}
"""All of it: a launcher is a process of the host, and obeys no variable of a task."""
_MOST_REPORTED = 4096
"""Bytes that a launcher reports at most."""
_MOST_NUMBER = 1 << 31
LOOK_EVERY_S = 0.25
"""How often limits that nothing else holds are looked at."""


class Keeper(Protocol):
    """Holds the processes of one container within limits."""

    def start(self, launch: Callable[[], subprocess.Popen[bytes]]) -> subprocess.Popen[bytes]:
        """Start a launcher, held to as many limits as it can be from its first step on.

        Raises:
            FullError: there are as many processes as may be.
            SandboxError: the limits cannot be set.
        """
        ...

    def admit(self, pid: int) -> None:
        """Set the limits of a process that waits to become the command.

        Raises:
            SandboxError: they cannot be set.
        """
        ...

    def trouble(self) -> str | None:
        """Why everything has to be killed now, if it has: asked several times a second."""
        ...

    def note(self) -> str | None:
        """What one of them was killed for since this was last asked, if the keeper is sure."""
        ...

    def is_full(self) -> bool:
        """Whether they leave no room for a launcher, if the keeper knows."""
        ...


@dataclass(frozen=True, slots=True)
class Launch:
    """How a launcher is started."""

    arguments: Callable[[int], Sequence[str]]
    """Its command line, for the number of the status pipe."""
    pass_fds: tuple[int, ...]
    """Further open files that it needs."""
    no_folder: str
    """What it writes where it cannot enter the working directory."""
    go_fd: int | None = None
    """Where to tell the first process of the new namespace that it may go on, if it waits."""


def supervise(
    launch: Launch, timeout_s: float, output_limit: int, keeper: Keeper | None = None
) -> ProcessResult:
    """Run a launcher to its end or its timeout; when this returns, all it started is dead.

    Args:
        launch: How it is started.
        timeout_s: Seconds until everything is killed.
        output_limit: Bytes of output to keep.
        keeper: Holds what it starts within limits.

    Raises:
        SandboxError: the launcher could not start the command.
    """
    with ExitStack() as opened:
        return Watch(launch, keeper, opened, output_limit=output_limit).result(timeout_s)


def _launched(
    launch: Launch, status: socket.socket, start: socket.socket, output: int, terminal: int | None
) -> subprocess.Popen[bytes]:
    command = launch.arguments(status.fileno())
    try:
        return subprocess.Popen(
            command,
            stdin=start.fileno(),
            stdout=output if terminal is None else terminal,
            stderr=output,
            env=_LAUNCHER_ENV,
            cwd="/",
            umask=0o022,
            pass_fds=(status.fileno(), *launch.pass_fds),
        )
    except FileNotFoundError as error:
        raise SandboxError(f"{command[0]} is not installed") from error


class Watch:
    """One running launcher."""

    def __init__(
        self,
        launch: Launch,
        keeper: Keeper | None,
        opened: ExitStack,
        *,
        output_limit: int,
        terminal: int | None = None,
    ) -> None:
        """Start it.

        Args:
            launch: How it is started.
            keeper: Holds what it starts within limits.
            opened: Closes what is opened here.
            output_limit: Bytes to keep of what it writes.
            terminal: What its command writes to instead.

        Raises:
            SandboxError: it is not there.
        """
        self._launch = launch
        self._keeper = keeper
        self._started_at = time.monotonic()
        self._output = Excerpt(output_limit)
        self._status = b""
        self._first_seen = False
        self._init_fd: int | None = None
        self._lock = threading.Lock()
        """Held by who uses or closes it, since threads may kill."""
        self._stopped_for: str | None = None
        self._ending = False
        self._looked_at = self._started_at
        self.started = False
        """Whether the command was let start."""
        ends = [end for _ in range(2) for end in socket.socketpair()]
        for end in ends:
            opened.enter_context(end)
        self._status_end, status_inside, self._start_end, start_inside = ends
        # To be told who asks to start.
        self._start_end.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        written, output = os.pipe2(os.O_CLOEXEC)
        self._read_end = opened.enter_context(os.fdopen(written, "rb", buffering=0))

        def launched() -> subprocess.Popen[bytes]:
            return _launched(launch, status_inside, start_inside, output, terminal)

        try:
            self._process = launched() if keeper is None else keeper.start(launched)
        finally:
            os.close(output)
        status_inside.close()
        start_inside.close()

    def result(self, timeout_s: float) -> ProcessResult:
        """Wait for the end or the timeout, and kill what is left."""
        try:
            timed_out = not self.follow(self._started_at + timeout_s)
        finally:
            self.end()
        exit_code = self._reported("exit-code")
        output = self._output.text()
        killed_for = self._stopped_for or (None if self._keeper is None else self._keeper.note())
        # The launcher may be what was killed.
        was_killed = self._stopped_for is not None or (
            killed_for is not None and self._process.returncode == -signal.SIGKILL
        )
        if was_killed:
            exit_code = _KILLED
        elif exit_code is None and not timed_out:
            raise self.failure()
        if killed_for is not None:
            newline = "" if not output or output.endswith("\n") else "\n"
            output += f"{newline}[killed: {killed_for}]\n"
        return ProcessResult(
            exit_code=None if timed_out else exit_code,
            output=output,
            timed_out=timed_out,
            duration_s=time.monotonic() - self._started_at,
        )

    def failure(self) -> SandboxError:
        """Why the launcher did not start the command: the last line that it wrote."""
        written = self._output.text().strip()
        kind = SandboxError
        if not self.started and self._launch.no_folder in written:
            kind = NoWorkdirError
        elif not self.started and self._keeper is not None and self._keeper.is_full():
            kind = FullError
        return kind(f"the sandbox could not start: {(written.splitlines() or ['no message'])[-1]}")

    def follow(self, deadline: float | None, until: Callable[[], bool] = lambda: False) -> bool:
        """Read until everything is closed and the launcher has ended; False at the deadline.

        Args:
            deadline: By the monotonic clock.
            until: Stop before, once this holds.
        """
        with selectors.DefaultSelector() as selector:
            selector.register(self._read_end, selectors.EVENT_READ, self._add_output)
            selector.register(self._status_end, selectors.EVENT_READ, self._add_status)
            selector.register(self._start_end, selectors.EVENT_READ, self._let_start)
            while selector.get_map():
                remaining = None if deadline is None else deadline - time.monotonic()
                if remaining is not None and remaining <= 0:
                    return False
                for key, _ in selector.select(_waiting(remaining)):
                    if not key.data():
                        selector.unregister(key.fileobj)
                self._look()
                if until():
                    return True
        try:
            self._process.wait(None if deadline is None else max(0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            return False
        return True

    def _look(self) -> None:
        """Ask the keeper, if it is time to."""
        now = time.monotonic()
        if self._keeper is None or self._ending or now < self._looked_at + LOOK_EVERY_S:
            return
        self._looked_at = now
        if self._stopped_for is None:
            self._stopped_for = self._keeper.trouble()
            if self._stopped_for is not None:
                self.kill()

    def _add_output(self) -> bool:
        data = self._read_end.read(_CHUNK)
        self._output.add(data)
        return bool(data)

    def _add_status(self) -> bool:
        data = self._status_end.recv(_CHUNK)
        # Once it is too much, it stays so, and what else comes is dropped.
        was_too_much = len(self._status) > _MOST_REPORTED
        self._status += data[: _MOST_REPORTED + 1 - len(self._status)]
        if len(self._status) > _MOST_REPORTED and not was_too_much:
            raise SandboxError("the sandbox's launcher reports too much")
        if not self._first_seen and b"\n" in data:
            self._first_seen = True
            self._see_first()
        return bool(data)

    def _see_first(self) -> None:
        """Take care of the first process inside, and let it go on if it waits."""
        pid = self._reported("child-pid")
        if pid is None:
            raise SandboxError("the sandbox's launcher does not say what it started")
        with suppress(ProcessLookupError):
            self._init_fd = os.pidfd_open(pid)
        if self._launch.go_fd is None or self._init_fd is None:
            return
        if self._keeper is not None:
            try:
                self._keeper.admit(pid)
            except SandboxError:
                # Of one that is dead already the launcher tells why.
                if not select.select([self._init_fd], [], [], 0)[0]:
                    raise
        os.write(self._launch.go_fd, b".")

    def _let_start(self) -> bool:
        data, pid = _receive(self._start_end)
        if not data:
            return False
        if self._keeper is not None and self._launch.go_fd is None:
            self._keeper.admit(pid)
        self.started = True
        with suppress(BrokenPipeError, ConnectionResetError):
            self._start_end.sendall(b"\n")
            self._start_end.shutdown(socket.SHUT_RDWR)
        return True

    def end(self) -> None:
        """Kill what is left, and wait for it: a namespace is empty once its first process is."""
        self.kill()
        self._ending = True
        if self._init_fd is not None:
            dead = select.poll()
            dead.register(self._init_fd, select.POLLIN)
            dead.poll()
            with self._lock:
                os.close(self._init_fd)
                self._init_fd = None
        if self._process.poll() is None:
            self.follow(None)

    def kill(self) -> None:
        """Kill all that was started; another thread may follow meanwhile."""
        with self._lock, suppress(ProcessLookupError):
            if self._init_fd is None:
                self._process.kill()
            else:
                signal.pidfd_send_signal(self._init_fd, signal.SIGKILL)

    def _reported(self, name: str) -> int | None:
        """A number that the launcher has reported."""
        # The last part is no whole line yet, or empty.
        for line in self._status.split(b"\n")[:-1]:
            try:
                number = json.loads(line).get(name)
            except (ValueError, AttributeError, RecursionError):
                raise SandboxError("the sandbox's launcher reports no JSON object") from None
            if number is not None:
                if not isinstance(number, int) or not 0 <= number < _MOST_NUMBER:
                    raise SandboxError(f"the sandbox's launcher reports no number as {name}")
                return number
        return None


def _waiting(remaining: float | None) -> float:
    return LOOK_EVERY_S if remaining is None else min(remaining, LOOK_EVERY_S)


def _receive(end: socket.socket) -> tuple[bytes, int]:
    """What came, and the process that sent it, as this one would name it."""
    size = struct.calcsize("3i")
    data, ancillary, _, _ = end.recvmsg(_CHUNK, socket.CMSG_SPACE(size))
    for level, kind, content in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_CREDENTIALS):
            return data, int(struct.unpack("3i", content[:size])[0])
    if not data:
        return data, 0
    raise SandboxError("the kernel does not say who asks to start")

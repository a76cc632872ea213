"""Watching one sandboxed process: its output, its deadline, and the death of all it started.

A launcher (bubblewrap, or `enter.py`) reports on a pipe, one JSON object a line:
`{"child-pid": n}` is the first process of the new pid namespace, as the host counts;
`{"exit-code": n}` comes only when the command was really started. Inside, a line is written to a
socket when all is ready, and the command starts when one comes back: so nothing starts whose
harness was killed before the launcher could take care to die with it.
"""

from __future__ import annotations

import json
import os
import select
import selectors
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress

from harness.errors import SandboxError
from harness.values import ProcessResult

OUTPUT_LIMIT = 10_000
"""Bytes of a process's output that are kept, half from its beginning and half from its end."""

_CHUNK = 1 << 16


class Excerpt:
    """The beginning and the end of a stream of any length, in bounded memory."""

    def __init__(self, limit: int) -> None:
        self._half = limit // 2
        self._head = bytearray()
        self._tail = bytearray()
        self._cut = 0

    def add(self, data: bytes) -> None:
        """Take the next bytes."""
        room = self._half - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        surplus = len(self._tail) - self._half
        if surplus > 0:
            del self._tail[:surplus]
            self._cut += surplus

    def text(self) -> str:
        """What was kept, with a note where something was cut."""
        if not self._cut:
            return (self._head + self._tail).decode(errors="replace")
        head, tail = self._head.decode(errors="replace"), self._tail.decode(errors="replace")
        # A character that the cut goes through is dropped whole.
        broken = "\ufffd"
        return f"{head.rstrip(broken)}\n[{self._cut} bytes cut]\n{tail.lstrip(broken)}"


def supervise(
    launcher: Callable[[int], Sequence[str]],
    *,
    env: Mapping[str, str],
    timeout_s: float,
    output_limit: int,
    pass_fds: Sequence[int] = (),
) -> ProcessResult:
    """Run a launcher to its end or its timeout; when this returns, all it started is dead.

    Args:
        launcher: Gives the command line for the number of the status pipe.
        env: The whole environment.
        timeout_s: Seconds until everything is killed.
        output_limit: Bytes of output to keep.
        pass_fds: Further open files that the launcher needs.

    Raises:
        SandboxError: the launcher could not start the command.
    """
    with ExitStack() as opened:
        ends = [end for _ in range(2) for end in socket.socketpair()]
        for end in ends:
            opened.enter_context(end)
        status, status_inside, start, start_inside = ends
        command = launcher(status_inside.fileno())
        try:
            process = subprocess.Popen(
                command,
                stdin=start_inside.fileno(),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=dict(env),
                cwd="/",
                umask=0o022,
                pass_fds=(status_inside.fileno(), *pass_fds),
            )
        except FileNotFoundError as error:
            raise SandboxError(f"{command[0]} is not installed") from error
        status_inside.close()
        start_inside.close()
        return _Watch(process, status, start, timeout_s, output_limit).result()


class _Watch:
    """One running launcher."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        status: socket.socket,
        start: socket.socket,
        timeout_s: float,
        output_limit: int,
    ) -> None:
        self._process = process
        self._status_end = status
        self._start_end = start
        self._started = time.monotonic()
        self._deadline = self._started + timeout_s
        self._output = Excerpt(output_limit)
        self._status = b""
        self._init_fd: int | None = None

    def result(self) -> ProcessResult:
        try:
            timed_out = not self._follow(self._deadline)
        finally:
            self._end()
        exit_code = self._exit_code()
        if exit_code is None and not timed_out:
            lines = self._output.text().strip().splitlines() or ["no message"]
            raise SandboxError(f"the sandbox could not start: {lines[-1]}")
        return ProcessResult(
            exit_code=None if timed_out else exit_code,
            output=self._output.text(),
            timed_out=timed_out,
            duration_s=time.monotonic() - self._started,
        )

    def _follow(self, deadline: float | None) -> bool:
        """Read until everything is closed and the launcher has ended; False at the deadline."""
        output = self._process.stdout
        assert output is not None
        with selectors.DefaultSelector() as selector:
            selector.register(output, selectors.EVENT_READ, self._output.add)
            selector.register(self._status_end, selectors.EVENT_READ, self._add_status)
            selector.register(self._start_end, selectors.EVENT_READ, self._let_start)
            while selector.get_map():
                remaining = None if deadline is None else deadline - time.monotonic()
                if remaining is not None and remaining <= 0:
                    return False
                for key, _ in selector.select(remaining):
                    data = os.read(key.fd, _CHUNK)
                    if data:
                        key.data(data)
                    else:
                        selector.unregister(key.fileobj)
        try:
            self._process.wait(None if deadline is None else max(0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            return False
        return True

    def _add_status(self, data: bytes) -> None:
        self._status += data
        if self._init_fd is None and b"\n" in self._status:
            pid = json.loads(self._status.partition(b"\n")[0])["child-pid"]
            with suppress(ProcessLookupError):
                self._init_fd = os.pidfd_open(pid)

    def _let_start(self, _: bytes) -> None:
        with suppress(BrokenPipeError, ConnectionResetError):
            self._start_end.sendall(b"\n")
            self._start_end.shutdown(socket.SHUT_RDWR)

    def _end(self) -> None:
        """Kill what is left, and wait for it: a namespace is empty once its first process is."""
        if self._init_fd is not None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._init_fd, signal.SIGKILL)
            dead = select.poll()
            dead.register(self._init_fd, select.POLLIN)
            dead.poll()
            os.close(self._init_fd)
        else:
            self._process.kill()
        if self._process.poll() is None:
            self._follow(None)
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _exit_code(self) -> int | None:
        for line in self._status.splitlines():
            code = json.loads(line).get("exit-code")
            if code is not None:
                return int(code)
        return None

"""Commands in a container that an engine runs."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from harness.errors import SandboxError
from harness.sandbox.engine.answers import ExecState, Made, Processes
from harness.sandbox.engine.api import Engine, told
from harness.schema.record import JsonObject

IDLE = ("sleep", "86400")
"""What a container runs for itself. It ends after a day: so does one whose harness was killed."""

_IDLE_PROCESSES = 2
"""The engine's init, which reaps what others leave, and `IDLE`."""
_CHUNK = 1 << 16
_FRAME_HEAD = 8
_KINDS = (0, 1, 2)
_ASK_AGAIN_S = (0.01, 0.25)
"""At first, and at last."""

# The working directory may have been removed, and without it nothing could be started.
_ENTER = (
    'mkdir -p -- "$0" 2> /dev/null; '
    'cd -- "$0" 2> /dev/null || { echo "$0: Not a directory"; exit 126; }; exec "$@" 2>&1'
)


@dataclass(frozen=True, slots=True)
class Start:
    """A command and what it is started in."""

    command: Sequence[str]
    cwd: str
    env: Mapping[str, str]
    terminal: bool = False

    def settings(self) -> JsonObject:
        """As the engine wants them."""
        return {
            "AttachStdin": self.terminal,
            "AttachStdout": True,
            "AttachStderr": True,
            "Tty": self.terminal,
            "User": "0:0",
            "Env": [f"{name}={value}" for name, value in self.env.items()],
            "Cmd": ["/bin/sh", "-c", _ENTER, self.cwd, *self.command],
        }


class ContainerProcesses:
    """The processes of one running container."""

    def __init__(self, engine: Engine, container: str) -> None:
        self._engine = engine
        self._path = f"/containers/{container}"

    def start(self, start: Start) -> tuple[str, socket.socket]:
        """Start a command; gives its name, and what it writes (and reads, on a terminal).

        Raises:
            SandboxError: it cannot be started.
        """
        settings = start.settings()
        path = f"{self._path}/exec"
        answer = self._engine.call("POST", path, content=settings, expect=(201, 409))
        if answer.status == 409:
            # A command before this one has ended what keeps the container alive.
            self.restart()
            answer = self._engine.call("POST", path, content=settings)
        name = told(Made, answer.body, f"POST {path}").id
        content: JsonObject = {"Detach": False, "Tty": start.terminal}
        return name, self._engine.connected(f"/exec/{name}/start", content)

    def run(self, start: Start, timeout_s: float, add: Callable[[bytes], None]) -> int | None:
        """Run a command; gives its exit code, or None if it still runs after the timeout.

        Args:
            start: What is run.
            timeout_s: How long it may.
            add: Is given what it writes.

        Raises:
            SandboxError: it cannot be started, or followed.
        """
        deadline = time.monotonic() + timeout_s
        name, connection = self.start(start)
        with connection:
            frames = _Frames(add)
            while (data := _received(connection, deadline)) is not None:
                if not data:
                    frames.end()
                    return self._exit_code(name, deadline)
                frames.feed(data)
        # A process that it has left behind may keep its output open.
        return self._exit_code(name, deadline)

    def resize(self, name: str, columns: int, rows: int) -> None:
        """Say how large the terminal of a command is.

        Raises:
            SandboxError: the command has no terminal, or no engine holds it.
        """
        size = {"w": str(columns), "h": str(rows)}
        self._engine.call("POST", f"/exec/{name}/resize", size)

    def end_all(self, *, whatever: bool) -> None:
        """Kill all processes but the container's own, if there are any.

        The engine does, and no program inside has a part in it: all files stay as they are.

        Args:
            whatever: Do not look whether there are any.
        """
        if not whatever:
            query = {"ps_args": "-eo pid,stat"}
            path = f"{self._path}/top"
            answer = self._engine.call("GET", path, query, expect=(200, 409, 500))
            found = None if answer.status != 200 else told(Processes, answer.body, f"GET {path}")
            if found is not None and found.alive <= _IDLE_PROCESSES:
                return
        self.restart()

    def restart(self) -> None:
        """Kill all processes, and start the container's own again."""
        self._engine.call("POST", f"{self._path}/restart", {"t": "0"})

    def _exit_code(self, name: str, deadline: float) -> int | None:
        pause, longest = _ASK_AGAIN_S
        while True:
            state = self._engine.ask(ExecState, "GET", f"/exec/{name}/json")
            if not state.running:
                return state.exit_code
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            time.sleep(min(pause, left))
            pause = min(2 * pause, longest)


@dataclass(slots=True)
class _Frames:
    """Takes standard output and error out of the one stream that both come in."""

    add: Callable[[bytes], None]
    _head: bytearray = field(default_factory=bytearray)
    _left: int = 0
    """Bytes that are still to come of a frame."""

    def feed(self, data: bytes) -> None:
        while data:
            if self._left:
                self.add(data[: self._left])
                taken = min(self._left, len(data))
                self._left -= taken
            else:
                taken = _FRAME_HEAD - len(self._head)
                self._head += data[:taken]
                self._begin()
            data = data[taken:]

    def end(self) -> None:
        """Nothing more comes.

        Raises:
            SandboxError: something is missing.
        """
        if self._left or self._head:
            raise SandboxError("the engine's connection to a command was cut")

    def _begin(self) -> None:
        if len(self._head) < _FRAME_HEAD:
            return
        if self._head[0] not in _KINDS or any(self._head[1:4]):
            raise SandboxError(f"the engine sends {bytes(self._head)!r} for a command's output")
        self._left = int.from_bytes(self._head[4:], "big")
        self._head.clear()


def _received(connection: socket.socket, deadline: float) -> bytes | None:
    """The next bytes; None at the deadline, nothing at the end."""
    left = deadline - time.monotonic()
    if left <= 0:
        return None
    connection.settimeout(left)
    try:
        return connection.recv(_CHUNK)
    except TimeoutError:
        return None
    except OSError as error:
        raise SandboxError(f"the engine's connection to a command was cut: {error}") from error

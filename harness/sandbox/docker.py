"""Containers that a container engine makes, through Docker's API.

They are whole machines with systems of their own, for hosts that have an engine. What the
processes of a task may do is as in the other sandboxes, and what holds them is the engine. There is
one difference: the system's folders are the task's own here, so an agent may replace even the
programs that it is judged with, unless the verifier has a machine of its own.
"""

from __future__ import annotations

import errno
import os
import posixpath
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from harness.errors import InfrastructureError, SandboxError
from harness.sandbox.container import Progress, SandboxSettings, silent
from harness.sandbox.engine.answers import Image, Made
from harness.sandbox.engine.api import Engine
from harness.sandbox.engine.files import Files
from harness.sandbox.engine.images import Images
from harness.sandbox.engine.orphans import OWNER, own_name, remove_orphans
from harness.sandbox.engine.processes import IDLE, ContainerProcesses, Start
from harness.sandbox.engine.relay import Relay, size
from harness.sandbox.excerpt import OUTPUT_LIMIT, Excerpt
from harness.sandbox.limits.keeper import Limits
from harness.sandbox.tty.terminal import COMMAND, ENV, Terminal
from harness.sandbox.view import SHARED_MEMORY_BYTES
from harness.schema.environment import CopyFiles, Environment, Equipment
from harness.schema.record import JsonObject
from harness.values import FileContent, ProcessResult

KIND = "docker"

_MIB = 1 << 20
_LOGS = ("/logs/agent", "/logs/verifier", "/logs/artifacts")
_RESIZE_TRIES = 40
_RESIZE_PAUSE_S = 0.05
_PERIOD_US = 100_000
_NAMES_BYTES = 4 << 20
_NAMES_S = 60.0

# What package managers, and servers that change their user, cannot do without.
_CAPABILITIES = (
    *("CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "NET_BIND_SERVICE"),
    *("SETGID", "SETUID", "SYS_CHROOT"),
)

# One name a line would not do: a name may hold an end of line.
_LIST = (
    'cd -- "$0" && for name in * .[!.]* ..?*; do '
    'if [ -d "$name" ] && [ ! -L "$name" ]; then printf "%s/\\0" "$name"; '
    'elif [ -e "$name" ] || [ -L "$name" ]; then printf "%s\\0" "$name"; fi; done'
)


class DockerSandbox:
    """Makes containers that an engine runs."""

    kind = KIND

    def __init__(
        self, settings: SandboxSettings | None = None, progress: Progress = silent
    ) -> None:
        self._settings = settings or SandboxSettings()
        self._progress = progress

    def problem(self) -> str | None:
        """Why it does not work on this host, or None if it does: found out by asking."""
        try:
            version = Engine(self._settings.engine).version()
        except SandboxError as error:
            return str(error)
        if version.os != "linux":
            return f"the engine's containers are of {version.os}; switch it to Linux containers"
        return None

    def lacks(self, environment: Environment) -> tuple[str, ...]:
        """What an environment cannot do without and this sandbox does not give."""
        if environment.docker_image is not None or _has_dockerfile(environment):
            return environment.engine.needs
        return (*environment.engine.needs, "a Dockerfile, or environment.docker_image")

    def open(self, environment: Environment, env: Mapping[str, str]) -> DockerContainer:
        """A new container.

        Raises:
            SandboxError: it cannot be made.
        """
        address = self._settings.engine
        remove_orphans(address, os.getpid())
        engine = Engine(address)
        image = Images(engine, self._settings.cache, self._progress).of(environment)
        # Others are in the image; there they may be other than they can be known to be here.
        own = {name: env[name] for name in environment.engine.variables if name in env}
        limits = self._settings.limits.for_task(environment.memory_mb, environment.storage_mb)
        content = _settings(environment, image, own, limits)
        made = engine.ask(Made, "POST", "/containers/create", content=content)
        container = DockerContainer(engine, made.id, environment, image)
        try:
            container.begin()
        except BaseException:
            container.close()
            raise
        return container


class DockerContainer:
    """One trial's machine."""

    kind = KIND

    def __init__(self, engine: Engine, name: str, environment: Environment, image: Image) -> None:
        self._engine = engine
        self._name = name
        self._environment = environment
        is_unknown = environment.workdir == "/" and image.settings is not None
        found = image.settings.workdir if is_unknown and image.settings is not None else ""
        self.workdir = found or environment.workdir
        self.notes = _notes(environment, image)
        self._files = Files(engine, name, self.workdir)
        self._processes = ContainerProcesses(engine, name)
        self._terminals: list[Terminal] = []
        self._one_at_a_time = threading.Lock()
        self._closed = False

    def begin(self) -> None:
        """Start it, and put in what no image has.

        Raises:
            SandboxError: the engine cannot.
        """
        environment = self._environment
        self._engine.call("POST", f"/containers/{self._name}/start")
        try:
            self._files.make_folders(self.workdir, *_LOGS)
            if environment.docker_image is not None and not _has_dockerfile(environment):
                for step in environment.build:
                    if isinstance(step, CopyFiles):
                        place = self.workdir if step.target == "/" else step.target
                        without = [posixpath.normpath(path) for path in step.exclude]
                        self._files.upload(environment.context, place, merge=True, without=without)
        except OSError as error:
            raise SandboxError(f"the container's files cannot be made: {error}") from error

    def run(
        self,
        command: Sequence[str],
        *,
        timeout_s: float,
        cwd: str | None = None,
        env: Mapping[str, str] = {},
    ) -> ProcessResult:
        """Run a command to its end or its timeout, then kill all it started.

        What it leaves behind while a terminal is open lives as long as the terminal: nobody could
        tell their processes apart. At a timeout all are killed.

        Raises:
            SandboxError: the sandbox itself failed.
        """
        place = self.workdir if cwd is None else posixpath.join(self.workdir, cwd)
        # What one of several leaves behind could not be told from another that still runs.
        with self._one_at_a_time:
            self._hold_open()
            output = Excerpt(OUTPUT_LIMIT)
            began = time.monotonic()
            start = Start(command, place, env)
            exit_code = self._processes.run(start, timeout_s, output.add)
            duration_s = time.monotonic() - began
            timed_out = exit_code is None
            if timed_out or not self._has_terminal():
                self._processes.end_all(whatever=timed_out)
        return ProcessResult(
            exit_code=exit_code,
            output=output.text(),
            timed_out=timed_out,
            duration_s=duration_s,
        )

    def terminal(self, *, columns: int = 160, rows: int = 40) -> Terminal:
        """Open a terminal with a shell in the working directory."""
        self._hold_open()

        def start(terminal: int) -> Callable[[], None]:
            name, connection = self._processes.start(
                Start(COMMAND, self.workdir, ENV, terminal=True)
            )
            relay = Relay(terminal, connection)
            try:
                self._resize(name, *size(terminal))
            except BaseException:
                relay.end()
                raise

            def end() -> None:
                relay.end()
                with self._one_at_a_time:
                    if not self._closed and not self._has_terminal():
                        self._processes.end_all(whatever=False)

            return end

        opened = Terminal(start, columns=columns, rows=rows)
        self._terminals.append(opened)
        return opened

    def equip(self, equipment: Equipment) -> None:
        """Nothing: an image has what its Dockerfile installs, and scripts install the rest.

        Terminals are closed, as where equipment takes the place of another.
        """
        self._hold_open()
        self._close_terminals()

    def read(self, path: str, limit: int) -> FileContent:
        """The beginning of a plain file."""
        self._hold_open()
        return self._files.read(path, limit)

    def write(self, path: str, content: bytes) -> None:
        """Make or replace a plain file, and the folders on its way."""
        self._hold_open()
        self._files.write(path, content)

    def names(self, path: str) -> tuple[str, ...]:
        """What is in a folder, sorted, folders with a slash."""
        self._hold_open()
        return self._names(path)

    def upload(self, source: Path, target: str, *, merge: bool = False) -> None:
        """Copy a file or folder of the host to a place inside, with its modes."""
        self._hold_open()
        self._files.upload(source, target, merge=merge)

    def clear(self, path: str) -> None:
        """Have an empty folder in a place, whatever stands there."""
        with tempfile.TemporaryDirectory(prefix="harness-empty-") as nothing:
            Path(nothing).chmod(0o755)
            self.upload(Path(nothing), path)

    def download(self, source: str, target: Path, *, limit: int) -> None:
        """Copy a file or folder from inside to a new place on the host; links are left out."""
        self._hold_open()
        self._files.download(source, target, limit=limit)

    def close(self) -> None:
        """Kill what runs, and remove the container."""
        if self._closed:
            return
        self._closed = True
        self._close_terminals()
        # What is left of it now is removed when a harness next opens a container.
        with suppress(SandboxError):
            query = {"force": "1", "v": "1"}
            self._engine.call("DELETE", f"/containers/{self._name}", query)

    def _names(self, path: str) -> tuple[str, ...]:
        """The one thing about files that is asked inside: an archive would hold all of them."""
        place, state = self._files.found(path)
        if not state.is_folder:
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        written = bytearray()

        def add(data: bytes) -> None:
            written.extend(data[: _NAMES_BYTES + 1 - len(written)])

        with self._one_at_a_time:
            command = ("/bin/sh", "-c", _LIST, place)
            exit_code = self._processes.run(Start(command, "/", {}), _NAMES_S, add)
        if len(written) > _NAMES_BYTES:
            raise OSError(errno.EFBIG, "very many names")
        if exit_code != 0:
            raise OSError(errno.EIO, "it cannot be listed")
        names = bytes(written).decode(errors="surrogateescape").split("\0")
        return tuple(sorted(name for name in names if name))

    def _resize(self, terminal: str, columns: int, rows: int) -> None:
        """Say how large a terminal is; its shell may be about to start only."""
        for tries in range(_RESIZE_TRIES):
            try:
                self._processes.resize(terminal, columns, rows)
                return
            except SandboxError:
                if tries + 1 == _RESIZE_TRIES:
                    raise
                time.sleep(_RESIZE_PAUSE_S)

    def _has_terminal(self) -> bool:
        return any(not terminal.closed for terminal in self._terminals)

    def _close_terminals(self) -> None:
        while self._terminals:
            self._terminals.pop().close()

    def _hold_open(self) -> None:
        if self._closed:
            raise InfrastructureError("the container is closed")


def _settings(
    environment: Environment, image: Image, env: Mapping[str, str], limits: Limits
) -> JsonObject:
    """What a container is made of, as the engine wants it."""
    command, *arguments = IDLE
    host: JsonObject = {
        "Init": True,
        "NetworkMode": "bridge" if environment.engine.network else "none",
        "Memory": limits.memory_mb * _MIB,
        "MemorySwap": limits.memory_mb * _MIB,
        "PidsLimit": limits.processes,
        "ShmSize": SHARED_MEMORY_BYTES,
        "Ulimits": [
            _ulimit("nofile", limits.open_files),
            _ulimit("fsize", limits.storage_mb * _MIB),
            _ulimit("core", 0),
        ],
        "CapDrop": ["ALL"],
        "CapAdd": list(_CAPABILITIES),
        "SecurityOpt": ["no-new-privileges"],
        "LogConfig": {"Type": "none"},
    }
    if environment.engine.cpus is not None:
        host |= {"CpuPeriod": _PERIOD_US, "CpuQuota": int(environment.engine.cpus * _PERIOD_US)}
    return {
        "Image": image.id,
        "Entrypoint": [command],
        "Cmd": list(arguments),
        "User": "0:0",
        "WorkingDir": "/",
        "Env": [f"{name}={value}" for name, value in env.items()],
        "Labels": {OWNER: own_name()},
        "Healthcheck": {"Test": ["NONE"]},
        "HostConfig": host,
    }


def _ulimit(name: str, value: int) -> JsonObject:
    return {"Name": name, "Soft": value, "Hard": value}


def _notes(environment: Environment, image: Image) -> tuple[str, ...]:
    notes = []
    if environment.storage_mb is not None:
        notes.append(f"storage_mb = {environment.storage_mb}: holds for each file alone")
    settings = image.settings
    if settings is not None and settings.user not in ("", "0", "root", "0:0"):
        notes.append(f"USER {settings.user} of the image: all processes run as root")
    if settings is not None and settings.entrypoint:
        notes.append(f"ENTRYPOINT {' '.join(settings.entrypoint)} of the image: not run")
    return tuple(notes)


def _has_dockerfile(environment: Environment) -> bool:
    return (environment.context / "Dockerfile").is_file()

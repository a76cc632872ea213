"""The sandbox that is none: processes of this host, in a folder. For trusted tasks alone."""

from __future__ import annotations

import itertools
import os
import re
import selectors
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from harness.errors import SandboxError
from harness.sandbox import view
from harness.sandbox.container import (
    FolderContainer,
    SandboxSettings,
    built,
    files_in_system_folders,
)
from harness.sandbox.excerpt import OUTPUT_LIMIT, Excerpt
from harness.sandbox.files.root_folder import HOME
from harness.sandbox.namespaces.process import LOOK_EVERY_S, Keeper
from harness.sandbox.namespaces.runner import Inside
from harness.sandbox.packages.equipping import Equipped
from harness.schema.environment import Environment, Equipment
from harness.values import ProcessResult

NOTE = "commands run on this host as this user and nothing holds them back: for trusted tasks only"

_CHUNK = 1 << 16
_MARK = "HARNESS_DIRECTORY"
"""Variable that all processes of a call have, and by which they are found and killed."""
_TRANSLATED_BYTES = 1_000_000
"""A text file that is longer is data."""

_KILL_AGAIN_S = 0.01

# What a host has of its own, and a task means when it names it.
_OF_THE_HOST = frozenset(
    ("/bin", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/proc", "/sbin", "/usr")
)


class Paths:
    """Translates the absolute paths of a task to the places where they are here, and back.

    Only a mount would do that for whatever way a path is made in.
    """

    def __init__(self, root: Path) -> None:
        self._root = str(root)

    def there(self, text: str) -> str:
        """A text of the task, as this host needs it."""
        names = {f"/{name}" for name in os.listdir(self._root)} - _OF_THE_HOST
        names |= {f"/etc/{name}" for name in os.listdir(f"{self._root}/etc")}
        known = sorted(names - set(view.ETC_FILES), key=len, reverse=True)
        pattern = rf"(?<![\w./~-])({'|'.join(map(re.escape, known))})(?![\w.-])"
        return re.sub(pattern, lambda found: self._root + found[0], text)

    def back(self, text: str) -> str:
        """A text of this host, as the task would have it."""
        return text.replace(self._root, "")

    def translate_files(self, folder: Path) -> None:
        """Translate what is in text files."""
        for path in (folder, *folder.rglob("*")):
            if path.is_symlink() or not path.is_file() or path.stat().st_size > _TRANSLATED_BYTES:
                continue
            with suppress(UnicodeDecodeError):
                text = path.read_bytes().decode()
                path.write_bytes(self.there(text).encode())


class DirectorySandbox:
    """Makes containers that are a folder and nothing more."""

    kind = "directory"

    def __init__(self, settings: SandboxSettings | None = None) -> None:
        self._settings = settings or SandboxSettings()

    def problem(self) -> str | None:
        """It works wherever there is a shell."""
        return None if shutil.which("bash") else "bash is not installed"

    def lacks(self, environment: Environment) -> tuple[str, ...]:
        """Packages, since they cannot be mounted, and files of its own in system folders."""
        equipment = environment.equipment
        names = sorted({*equipment.packages, *itertools.chain(*equipment.tools)})
        asked = f"packages ({', '.join(names)}): a directory cannot show them to its processes"
        missing = (asked,) if names else ()
        return (*environment.needs, *files_in_system_folders(environment), *missing)

    def open(self, environment: Environment, env: Mapping[str, str]) -> FolderContainer:
        """A new container.

        Raises:
            SandboxError: it cannot be made.
        """
        return built(
            lambda: _DirectoryContainer(Directory(), environment, env, self._settings, _equip)
        )


def _equip(equipment: Equipment, _: float) -> Equipped:
    if equipment.packages or equipment.tools:
        raise SandboxError("the sandbox 'directory' has no packages: use bubblewrap or unshare")
    return Equipped(notes=(NOTE,))


class _DirectoryContainer(FolderContainer):
    """A container whose scripts are changed to name the places where its files are."""

    def upload(self, source: Path, target: str, *, merge: bool = False) -> None:
        """Copy a file or folder of the host to a place inside, with its modes."""
        super().upload(source, target, merge=merge)
        Paths(self.folder).translate_files(self.folder / target.lstrip("/"))


class Directory:
    """Runs processes of this host's user in a folder."""

    kind = "directory"

    def __init__(self, output_limit: int = OUTPUT_LIMIT) -> None:
        self._output_limit = output_limit

    def new_owner(self) -> int | None:
        """Whose files a new container has: always this user's."""
        return None

    def run_inside(self, command: Sequence[str], inside: Inside, timeout_s: float) -> ProcessResult:
        """Run a command to its end or its timeout, then kill what is left of it."""
        # Nothing can be mounted, and so nothing is offered that would have to be.
        assert not inside.mounts
        place = _Place(inside.root.path)
        started = time.monotonic()
        # By a shell, so that a command that is not there is a result as in a sandbox.
        words = ["/bin/sh", "-c", 'exec "$@"', "sh", *map(place.there, command)]
        cwd, env = place.folder(inside.cwd), place.environment(inside.cwd, inside.env)
        process = inside.keeper.start(
            lambda: subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                cwd=cwd,
                env=env,
                umask=0o022,
            )
        )
        inside.keeper.admit(process.pid)
        output = Excerpt(self._output_limit)
        stopped_for = _follow(process, output, started + timeout_s, inside.keeper)
        timed_out = process.poll() is None and stopped_for is None
        place.kill()
        process.wait()
        text = place.back(output.text())
        if stopped_for is not None:
            text += f"[killed: {stopped_for}]\n"
        code = process.returncode if process.returncode >= 0 else 128 - process.returncode
        return ProcessResult(
            exit_code=None if timed_out else code,
            output=text,
            timed_out=timed_out,
            duration_s=time.monotonic() - started,
        )

    def start_inside(
        self, command: Sequence[str], inside: Inside, terminal: int
    ) -> Callable[[], None]:
        """Start a command that owns a terminal, and runs until what this gives is called."""
        assert not inside.mounts
        place = _Place(inside.root.path)
        words = view.owning_terminal(command, sys.executable)
        cwd, env = place.folder(inside.cwd), place.environment(inside.cwd, inside.env)
        process = inside.keeper.start(
            lambda: subprocess.Popen(
                words,
                stdin=terminal,
                stdout=terminal,
                stderr=terminal,
                cwd=cwd,
                env=env,
                umask=0o022,
            )
        )
        inside.keeper.admit(process.pid)

        def end() -> None:
            place.kill()
            process.wait()

        return end


class _Place:
    """A folder of this host as the place where one call's processes are."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._paths = Paths(root)
        self._mark = uuid.uuid4().hex
        self.there = self._paths.there
        self.back = self._paths.back

    def folder(self, path: str) -> Path:
        return self._root / path.lstrip("/")

    def environment(self, cwd: str, env: Mapping[str, str]) -> dict[str, str]:
        variables = view.environment(cwd, env, home=HOME)
        # The harness's own Python is last, for hosts that have no other.
        variables["PATH"] += f":{Path(sys.executable).parent}"
        own = {name: self.there(value) for name, value in variables.items()}
        return {**own, "TMPDIR": str(self._root / "tmp"), _MARK: self._mark}

    def kill(self) -> None:
        """Kill all that have the mark, until there are none: meanwhile one may start another."""
        wanted = f"{_MARK}={self._mark}".encode()
        while found := [pid for pid in _own_processes() if wanted in _environment(pid)]:
            for pid in found:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(_KILL_AGAIN_S)


def _own_processes() -> Iterator[int]:
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            yield int(name)


def _environment(pid: int) -> list[bytes]:
    # Of others it cannot be read; of one that has ended it is empty.
    with suppress(OSError):
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    return []


def _follow(
    process: subprocess.Popen[bytes], output: Excerpt, deadline: float, keeper: Keeper
) -> str | None:
    """Read until the process has ended or the deadline has come; why it has to be killed."""
    assert process.stdout is not None
    with selectors.DefaultSelector() as selector, process.stdout as read_end:
        ended = os.pidfd_open(process.pid)
        try:
            selector.register(read_end, selectors.EVENT_READ)
            selector.register(ended, selectors.EVENT_READ)
            while (left := deadline - time.monotonic()) > 0:
                ready = {key.fileobj for key, _ in selector.select(min(left, LOOK_EVERY_S))}
                data = os.read(read_end.fileno(), _CHUNK) if read_end in ready else b""
                output.add(data)
                # What it has written comes first; others may hold the other end open.
                if ended in ready and not data:
                    return None
                if read_end in ready and not data:
                    selector.unregister(read_end)
                reason = keeper.trouble()
                if reason is not None:
                    return reason
        finally:
            os.close(ended)
    return None

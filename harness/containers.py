"""The seams of the machines that tasks run on.

Implementations do not inherit from these; they only have the same methods.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from harness.schema.environment import Environment, Equipment
from harness.values import FileContent, ProcessResult


class TerminalScreen(Protocol):
    """A terminal with one shell in it, on a container's files."""

    @property
    def closed(self) -> bool:
        """Whether it was closed; that the shell has ended by itself is another matter."""
        ...

    def send(self, keystrokes: str) -> None:
        """Type: text as it is, or the name of one key as tmux writes it, for instance `C-c`."""
        ...

    def wait(self, seconds: float) -> bool:
        """Wait so long, but no longer than the shell lives; says whether it has ended."""
        ...

    def screen(self) -> str:
        """What stands on the screen now."""
        ...

    def new_output(self) -> str | None:
        """What came since this was last asked; None when the screen was cleared or redrawn."""
        ...

    def close(self) -> None:
        """Kill the shell and all it started."""
        ...


class Container(Protocol):
    """One trial's machine: a file tree, and processes that see nothing else.

    Paths are absolute as those processes name them, or relative to the working directory. However
    hostile they are, and whatever links lie on the way, nothing outside of the tree is reached.
    """

    kind: str
    """Of its sandbox."""
    workdir: str
    notes: tuple[str, ...]
    """What is otherwise than the environment asks for."""

    def run(
        self,
        command: Sequence[str],
        *,
        timeout_s: float,
        cwd: str | None = None,
        env: Mapping[str, str] = {},
    ) -> ProcessResult:
        """Run a command to its end or its timeout, then kill all it started.

        Raises:
            SandboxError: the sandbox itself failed.
        """
        ...

    def terminal(self, *, columns: int = 160, rows: int = 40) -> TerminalScreen:
        """Open a terminal with a shell in the working directory."""
        ...

    def equip(self, equipment: Equipment) -> None:
        """Let later processes find this equipment in place of the environment's.

        Raises:
            SandboxError: it cannot be had; the text says what failed.
        """
        ...

    def read(self, path: str, limit: int) -> FileContent:
        """The beginning of a plain file.

        Raises:
            OSError: as `open` does; for anything but a plain file as well.
        """
        ...

    def write(self, path: str, content: bytes) -> None:
        """Make or replace a plain file, and the folders on its way.

        Raises:
            OSError: as `open` does.
        """
        ...

    def names(self, path: str) -> tuple[str, ...]:
        """What is in a folder, sorted, folders with a slash.

        Raises:
            OSError: as `scandir` does.
        """
        ...

    def upload(self, source: Path, target: str, *, merge: bool = False) -> None:
        """Copy a file or folder of the host to a place inside, with its modes.

        Args:
            source: on the host; links in it are copied as links.
            target: where it is then; what is there is removed first, unless it is merged.
            merge: lay a folder's content over what is there.
        """
        ...

    def clear(self, path: str) -> None:
        """Have an empty folder, of mode 0755, in a place, whatever stands there.

        Raises:
            OSError: as `mkdir` does.
        """
        ...

    def download(self, source: str, target: Path, *, limit: int) -> None:
        """Copy a file or folder from inside to a new place on the host; links are left out.

        Args:
            source: a path inside.
            target: on the host; must not exist.
            limit: bytes of all files together.

        Raises:
            OSError: there is nothing, or it is longer.
        """
        ...

    def close(self) -> None:
        """Kill what runs, and remove the files."""
        ...


class Sandbox(Protocol):
    """Makes containers."""

    kind: str
    """Recorded with each result, for instance `unshare`."""

    def problem(self) -> str | None:
        """Why it does not work on this host, or None if it does: found out by trying."""
        ...

    def lacks(self, environment: Environment) -> tuple[str, ...]:
        """What an environment cannot do without and this sandbox does not give."""
        ...

    def open(self, environment: Environment, env: Mapping[str, str]) -> Container:
        """A new container.

        Args:
            environment: what it is made of.
            env: the environment's variables with their values.

        Raises:
            SandboxError: it cannot be made.
        """
        ...

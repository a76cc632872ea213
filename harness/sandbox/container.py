"""Containers that are a folder on the host, mounted as / for each process."""

from __future__ import annotations

import posixpath
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Protocol, TypeVar

from harness.errors import FullError, InfrastructureError, NoWorkdirError, SandboxError
from harness.sandbox import view
from harness.sandbox.engine.api import DEFAULT_ADDRESS
from harness.sandbox.files.root_folder import RootFolder
from harness.sandbox.files.tree import Tree
from harness.sandbox.limits.keeper import DEFAULT_LIMITS, LimitKeeper, Limits
from harness.sandbox.limits.keeper import problem as limit_problem
from harness.sandbox.namespaces.runner import Inside, Runner
from harness.sandbox.packages.equipping import Equipped, equip
from harness.sandbox.packages.index_settings import IndexSettings
from harness.sandbox.tty.terminal import COMMAND, ENV, Terminal
from harness.schema.environment import CopyFiles, Environment, Equipment
from harness.values import FileContent, ProcessResult

_PROBE_TIMEOUT_S = 20.0
_ERROR_LINES = 5
_FULL = "cannot be started: there are as many processes as there may be"


@dataclass(frozen=True, slots=True)
class SandboxSettings:
    """What containers of this host are made with; picklable."""

    cache: Path | None = None
    """Keeps environments of packages from one run to the next; without one, none can be built."""
    index: IndexSettings = field(default_factory=IndexSettings)
    """Where packages come from."""
    limits: Limits = DEFAULT_LIMITS
    """What a container may use, where its task does not ask for more or less."""
    engine: str = DEFAULT_ADDRESS
    """Where a container engine listens, for the kind that has one."""


Progress = Callable[[str], None]
"""Told what is being built."""


def silent(_: str) -> None:
    """Tell nobody."""


class FolderSandbox:
    """Makes containers whose processes a runner of this host runs."""

    def __init__(
        self,
        runner: Runner,
        settings: SandboxSettings | None = None,
        progress: Progress = silent,
    ) -> None:
        self.kind = runner.kind
        self._runner = runner
        self._settings = settings or SandboxSettings()
        self._progress = progress

    def problem(self) -> str | None:
        """Why it does not work on this host, or None if it does: found out by trying."""
        try:
            result = self._try(["true"])
            if result.exit_code == 0:
                return limit_problem(self._try)
        except SandboxError as error:
            return str(error)
        return f"`true` failed in it: {result.output.strip()}"

    def lacks(self, environment: Environment) -> tuple[str, ...]:
        """What an environment cannot do without and this sandbox does not give."""
        return (*environment.needs, *files_in_system_folders(environment))

    def open(self, environment: Environment, env: Mapping[str, str]) -> FolderContainer:
        """A new container.

        Raises:
            SandboxError: it cannot be made.
        """
        return built(
            lambda: FolderContainer(self._runner, environment, env, self._settings, self._equip)
        )

    def _try(self, command: Sequence[str], keeper: LimitKeeper | None = None) -> ProcessResult:
        return self._runner.run(
            command, mounts=(), timeout_s=_PROBE_TIMEOUT_S, cwd="/tmp", keeper=keeper
        )

    def _equip(self, equipment: Equipment, timeout_s: float) -> Equipped:
        return equip(
            equipment,
            self._settings.cache,
            self._runner,
            settings=self._settings.index,
            progress=self._progress,
            timeout_s=timeout_s,
            limits=self._settings.limits,
        )


def files_in_system_folders(environment: Environment) -> tuple[str, ...]:
    """What an environment has in folders that are the host's."""
    read_only = [PurePosixPath(mount.target) for mount in view.system_mounts()]
    read_only += [PurePosixPath(place) for place in ("/dev", "/proc", "/sys")]
    read_only += [PurePosixPath(place) for place in view.system_links() if place.count("/") == 1]
    places = {step.target for step in environment.build if isinstance(step, CopyFiles)}
    return tuple(
        f"files of its own in {place}: the system's folders are the host's and read-only"
        for place in sorted({environment.workdir, *places})
        if any(PurePosixPath(place).is_relative_to(folder) for folder in read_only)
    )


class ContainerRunner(Protocol):
    """Runs the processes of containers."""

    kind: str

    def new_owner(self) -> int | None:
        """Whose files a new container has, and who its processes are, if it is not this user."""
        ...

    def run_inside(self, command: Sequence[str], inside: Inside, timeout_s: float) -> ProcessResult:
        """Run a command to its end or its timeout, then kill all it started."""
        ...

    def start_inside(
        self, command: Sequence[str], inside: Inside, terminal: int
    ) -> Callable[[], None]:
        """Start a command that owns a terminal; what this gives kills it and all it started."""
        ...


class FolderContainer:
    """One trial's machine."""

    def __init__(
        self,
        runner: ContainerRunner,
        environment: Environment,
        env: Mapping[str, str],
        settings: SandboxSettings,
        equipper: Callable[[Equipment, float], Equipped],
    ) -> None:
        """Make the folder; `build` fills it.

        Args:
            runner: Runs its processes.
            environment: What it is made of.
            env: The environment's variables with their values.
            settings: What it is made with.
            equipper: Has an equipment at hand; the number is of seconds that building may take.
        """
        self.kind = runner.kind
        self.workdir = environment.workdir
        self.notes: tuple[str, ...] = ()
        self._runner = runner
        self._environment = environment
        self._env = dict(env)
        self._settings = settings
        self._equipper = equipper
        self._terminals: list[Terminal] = []
        self._closed = False
        self._equipped = Equipped()
        self._root = RootFolder(runner.new_owner())
        limits = settings.limits.for_task(environment.memory_mb, environment.storage_mb)
        self._keeper = LimitKeeper(limits, self._root.everything)
        self._tree = Tree(self._root, self.workdir)

    @property
    def folder(self) -> Path:
        """The host's folder that is its root."""
        return self._root.path

    def build(self) -> None:
        """Put in what the environment says it begins with.

        Raises:
            SandboxError: a step of it failed.
        """
        deadline = time.monotonic() + self._environment.build_timeout_s
        self.equip(self._environment.equipment)
        for step in self._environment.build:
            if isinstance(step, CopyFiles):
                self._tree.copy(step, self._environment.context)
                continue
            self._tree.make_folder(step.cwd)
            left = max(1.0, deadline - time.monotonic())
            result = self.run(["sh", "-c", step.command], timeout_s=left, cwd=step.cwd)
            if result.exit_code != 0:
                where = f"{step.place}: " if step.place else ""
                problem = f"{where}{step.command!r} of the Dockerfile {_failure(result)}"
                if step.needed:
                    raise SandboxError(problem)
                self.notes = (*self.notes, problem)

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
        self._hold_open()
        place = self.workdir if cwd is None else posixpath.join(self.workdir, cwd)
        try:
            # It may have been removed, and without it nothing could be started.
            self._tree.make_folder(place)
        except OSError as error:
            return ProcessResult(exit_code=126, output=f"{place}: {error.strerror}\n")
        try:
            return self._runner.run_inside(command, self._inside(place, env), timeout_s)
        except NoWorkdirError:
            # Made here, and not seen inside: an agent has put a link there, or closed it.
            return ProcessResult(exit_code=126, output=f"{place}: cannot be entered\n")
        except FullError:
            return ProcessResult(exit_code=126, output=f"{command[0]}: {_FULL}\n")

    def terminal(self, *, columns: int = 160, rows: int = 40) -> Terminal:
        """Open a terminal with a shell in the working directory, or in / if that is no folder."""
        self._hold_open()
        try:
            self._tree.make_folder(self.workdir)
            opened = self._terminal(self.workdir, columns, rows)
        except (OSError, NoWorkdirError):
            opened = self._terminal("/", columns, rows)
        self._terminals.append(opened)
        return opened

    def _terminal(self, cwd: str, columns: int, rows: int) -> Terminal:
        def start(terminal: int) -> Callable[[], None]:
            return self._runner.start_inside(COMMAND, self._inside(cwd, ENV), terminal)

        return Terminal(start, columns=columns, rows=rows)

    def _inside(self, cwd: str, env: Mapping[str, str]) -> Inside:
        return Inside(self._equipped.mounts, cwd, self._variables(env), self._root, self._keeper)

    def equip(self, equipment: Equipment) -> None:
        """Let later processes find this equipment in place of the environment's.

        Terminals are closed: what runs in them could turn aside mounts that are new.

        Raises:
            SandboxError: it cannot be had; the text says what failed.
        """
        self._hold_open()
        self._close_terminals()
        self._equipped = self._equipper(equipment, self._environment.build_timeout_s)
        self.notes = tuple(dict.fromkeys((*self.notes, *self._equipped.notes)))
        mounts = (*view.system_mounts(), *self._equipped.mounts)
        self._tree.mounts = {mount.target: mount.source for mount in mounts}

    def read(self, path: str, limit: int) -> FileContent:
        """The beginning of a plain file."""
        self._hold_open()
        return self._tree.read(path, limit)

    def write(self, path: str, content: bytes) -> None:
        """Make or replace a plain file, and the folders on its way."""
        self._hold_open()
        self._tree.write(path, content)

    def names(self, path: str) -> tuple[str, ...]:
        """What is in a folder, sorted, folders with a slash."""
        self._hold_open()
        return self._tree.names(path)

    def upload(self, source: Path, target: str, *, merge: bool = False) -> None:
        """Copy a file or folder of the host to a place inside, with its modes."""
        self._hold_open()
        self._tree.upload(source, target, merge=merge)

    def clear(self, path: str) -> None:
        """Have an empty folder in a place, whatever stands there."""
        self._hold_open()
        self._tree.clear(path)

    def download(self, source: str, target: Path, *, limit: int) -> None:
        """Copy a file or folder from inside to a new place on the host; links are left out."""
        self._hold_open()
        self._tree.download(source, target, limit=limit)

    def close(self) -> None:
        """Kill what runs, and remove the files."""
        if not self._closed:
            self._closed = True
            self._close_terminals()
            self._keeper.close()
            self._root.close()

    def _close_terminals(self) -> None:
        while self._terminals:
            self._terminals.pop().close()

    def _variables(self, env: Mapping[str, str]) -> dict[str, str]:
        """The environment's, the equipment's and the process's own, the last ones winning."""
        variables = {**self._env, **self._equipped.env, **env}
        path = variables.get("PATH", view.PATH)
        # The host's Python may be in a place that no image knows.
        fallback = () if view.PYTHON_FOLDER in path.split(":") else (view.PYTHON_FOLDER,)
        variables["PATH"] = ":".join((*self._equipped.path, path, *fallback))
        return variables

    def _hold_open(self) -> None:
        if self._closed:
            raise InfrastructureError("the container is closed")


ContainerT = TypeVar("ContainerT", bound=FolderContainer)


def built(make: Callable[[], ContainerT]) -> ContainerT:
    """A new container with all that its environment says it begins with.

    Raises:
        SandboxError: it cannot be made.
    """
    try:
        container = make()
    except OSError as error:
        raise SandboxError(f"cannot make a container's folder: {error}") from error
    try:
        container.build()
    except BaseException:
        container.close()
        raise
    return container


def _failure(result: ProcessResult) -> str:
    lines = "\n".join(result.output.strip().splitlines()[-_ERROR_LINES:])
    if result.timed_out:
        return f"did not end in time: {lines}"
    return f"failed with exit code {result.exit_code}: {lines}"

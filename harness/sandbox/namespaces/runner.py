"""Running processes in a view of their own: what every kind of namespaces shares."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path

from harness.sandbox import view
from harness.sandbox.excerpt import OUTPUT_LIMIT
from harness.sandbox.files.root_folder import HOME, RootFolder
from harness.sandbox.limits.keeper import DEFAULT_LIMITS, LimitKeeper, Limits
from harness.sandbox.namespaces.long_process import LongProcess
from harness.sandbox.namespaces.process import Keeper, Launch, supervise
from harness.values import Mount, ProcessResult


@dataclass(frozen=True, slots=True)
class Scene:
    """What one process is started in."""

    mounts: tuple[Mount, ...]
    """All of them, in the order to be made."""
    cwd: str
    env: Mapping[str, str]
    root: Path | None = None
    """Folder that is mounted at /; without one, / is read-only and empty."""
    owner: int | None = None
    """Of that folder, if it is not this user."""
    links: Mapping[str, str] = field(default_factory=dict)
    """Made where there is no root folder: place -> target."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Made where there is no root folder: place -> text."""
    network: bool = False
    """Whether it is the host's."""


@dataclass(frozen=True, slots=True)
class Inside:
    """Where a process of a container runs."""

    mounts: Sequence[Mount]
    """What it sees besides the system."""
    cwd: str
    env: Mapping[str, str]
    """Variables besides the few that are always there."""
    root: RootFolder
    """What it has as /."""
    keeper: Keeper
    """Holds it within the limits of its container."""


class Runner(ABC):
    """Runs processes that see only what they are given; nothing outlives a call."""

    kind: str
    asks_inside = False
    """Whether the command has to ask by itself whether it may start."""

    def __init__(self, output_limit: int = OUTPUT_LIMIT, limits: Limits = DEFAULT_LIMITS) -> None:
        """Run nothing yet.

        Args:
            output_limit: Bytes that are kept of what a process writes.
            limits: What is held to where there is no keeper.
        """
        self._output_limit = output_limit
        self._limits = limits

    def new_owner(self) -> int | None:
        """Whose files a new container has, and who its processes are, if it is not this user."""
        return None

    @abstractmethod
    def launch(self, scene: Scene, command: Sequence[str], opened: ExitStack) -> Launch:
        """How a command is started; `opened` closes what that needs."""

    def run(
        self,
        command: Sequence[str],
        *,
        mounts: Sequence[Mount],
        timeout_s: float,
        cwd: str = "/workspace",
        env: Mapping[str, str] = {},
        network: bool = False,
        root: RootFolder | None = None,
        keeper: Keeper | None = None,
    ) -> ProcessResult:
        """Run a command to its end or its timeout, then kill all it started.

        Args:
            command: Program and arguments.
            mounts: What it sees besides the system.
            timeout_s: Seconds until everything is killed.
            cwd: Where it starts.
            env: Variables besides the few that are always there.
            network: Let it use the host's.
            root: What it has as /; without one, / is read-only and empty.
            keeper: Holds it within the limits of its container; by itself it has its own.

        Raises:
            SandboxError: the sandbox itself failed.
        """
        scene = _scene(mounts, cwd, env, network, root)
        with ExitStack() as opened:
            if keeper is None:
                keeper = opened.enter_context(closing(LimitKeeper(self._limits)))
            launch = self.launch(scene, view.start(command, asks=self.asks_inside), opened)
            return supervise(launch, timeout_s, self._output_limit, keeper)

    def run_inside(self, command: Sequence[str], inside: Inside, timeout_s: float) -> ProcessResult:
        """Run a command of a container, as `run` does."""
        return self.run(
            command,
            mounts=inside.mounts,
            timeout_s=timeout_s,
            cwd=inside.cwd,
            env=inside.env,
            root=inside.root,
            keeper=inside.keeper,
        )

    def start_inside(
        self, command: Sequence[str], inside: Inside, terminal: int
    ) -> Callable[[], None]:
        """Start a command that owns a terminal, and runs until what this gives is called.

        Args:
            command: Program and arguments.
            inside: Where it runs.
            terminal: The open end that programs use.

        Raises:
            SandboxError: the sandbox itself failed.
        """
        scene = _scene(inside.mounts, inside.cwd, inside.env, False, inside.root)
        started = view.start(command, asks=self.asks_inside, terminal=True)
        process = LongProcess(
            lambda opened: self.launch(scene, started, opened), terminal, inside.keeper
        )
        return process.end


def _scene(
    mounts: Sequence[Mount],
    cwd: str,
    env: Mapping[str, str],
    network: bool,
    root: RootFolder | None,
) -> Scene:
    checked = (*view.system_mounts(network=network), *view.check_mounts(mounts))
    if root is not None:
        return Scene(
            mounts=root.mounted(checked),
            cwd=cwd,
            env=view.environment(cwd, env, home=HOME),
            root=root.path,
            owner=root.owner,
            network=network,
        )
    return Scene(
        mounts=checked,
        cwd=cwd,
        env=view.environment(cwd, env, home="/tmp"),
        links=view.system_links(),
        files=view.etc_files(network=network),
        network=network,
    )

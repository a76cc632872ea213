"""What a task's machine is made of, and how one pass over the task is made and judged."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import ConfigDict, Field

from harness.schema.record import Record


class CopyFiles(Record):
    """`COPY` or `ADD`: files of the build context that the machine begins with."""

    kind: Literal["copy"] = "copy"
    sources: tuple[str, ...]
    """Relative to the build context; globs as Docker knows them."""
    target: str
    """Absolute; a folder if it ends with a slash."""
    exclude: tuple[str, ...] = ()
    """Files and whole folders of the context that are left out: relative paths, no globs."""


class FileCommand(Record):
    """A part of a `RUN` line that only makes, moves or marks files."""

    kind: Literal["command"] = "command"
    command: str
    """For a shell."""
    cwd: str
    needed: bool = True
    """Whether it must succeed; not behind a line that is ignored and was to make files."""
    place: str = ""
    """The line that it comes from, as in `environment/Dockerfile:4`, where there is one."""


class Equipment(Record):
    """What processes find besides the system and the task's files."""

    packages: tuple[str, ...] = ()
    """What `pip install` was told, in order: requirements and options."""
    tools: tuple[tuple[str, ...], ...] = ()
    """For each `uvx` line, the requirements of its environment, sorted; of them `--python=3.12` is
    the version that it asks for."""
    python: str | None = None
    """Version that is asked for, for instance `3.12`."""
    stand_ins: bool = False
    """Whether `apt-get`, `curl`, `wget`, `pip` and `uvx` are stood in for, without a network."""


class Healthcheck(Record):
    """A command that must succeed before the agent begins."""

    model_config = ConfigDict(allow_inf_nan=False)

    command: str
    interval_sec: float = Field(default=5.0, ge=0)
    timeout_sec: float = Field(default=30.0, gt=0)
    start_period_sec: float = Field(default=0.0, ge=0)
    start_interval_sec: float = Field(default=5.0, ge=0)
    retries: int = Field(default=3, ge=1)


class EngineSettings(Record):
    """What counts only where a container engine makes the machine."""

    variables: tuple[str, ...] = ()
    """Those of `Environment.env` that no image has: the task's settings name them."""
    left_empty: tuple[str, ...] = ()
    """Folders of the build context that an image gets without what is in them."""
    network: bool = False
    """Whether processes have one."""
    cpus: float | None = None
    ignored: tuple[str, ...] = ()
    """What the files ask for and is not done with an engine either."""
    needs: tuple[str, ...] = ()
    """What the task cannot do without and no engine gives here."""


class Environment(Record):
    """A machine as a Dockerfile and `[environment]` describe it."""

    context: Path
    """Build context on this host."""
    base: str | None = None
    """Image it begins from, as written; None where only files are needed."""
    docker_image: str | None = None
    """Ready image that a container engine takes instead of building."""
    workdir: str = "/workspace"
    """Absolute."""
    env: dict[str, str] = Field(default_factory=dict)
    """Variables of all processes.

    In those of `engine.variables`, `${VAR}` and `${VAR:-default}` stand for the host's.
    """
    build: tuple[CopyFiles | FileCommand, ...] = ()
    """In the order written."""
    equipment: Equipment = Equipment()
    healthcheck: Healthcheck | None = None
    memory_mb: int | None = None
    storage_mb: int | None = None
    build_timeout_s: float = 600
    skills_dir: str | None = None
    """Where the machine has the task's skills."""
    skills: Path | None = None
    """Folder of this host that the machine has at `skills_dir`, besides what is copied: it is
    uploaded when the container has been made."""
    ignored: tuple[str, ...] = ()
    """What the files ask for and only a container engine does: listed in each trial."""
    needs: tuple[str, ...] = ()
    """What the task cannot do without and only a container engine gives; empty when it can run."""
    engine: EngineSettings = EngineSettings()


class Artifact(Record):
    """What an agent leaves for a verifier with a machine of its own, and for the log."""

    source: str
    """A path on the agent's machine."""
    exclude: tuple[str, ...] = ()


class Collect(Record):
    """A command on the agent's machine, after the agent and before artifacts are taken from it."""

    command: str
    """For a shell; that it fails is no error."""
    timeout_s: float = 60


class Solution(Record):
    """The reference solution of a step."""

    folder: Path
    """Holds solve.sh."""
    place: str = "/solution"
    """Where the machine has it."""
    env: dict[str, str] = Field(default_factory=dict)
    equipment: Equipment = Equipment()


class Verifier(Record):
    """What says whether a step was done."""

    tests: tuple[Path, ...]
    """Folders laid over one another; one holds test.sh. None if a machine of its own has it, and
    where there is no such machine either, nothing judges the step."""
    place: str = "/tests"
    """Where the machine has them."""
    timeout_s: float = 600
    env: dict[str, str] = Field(default_factory=dict)
    equipment: Equipment = Equipment()
    environment: Environment | None = None
    """A machine of its own, which gets the artifacts alone; None is the agent's."""
    collect: tuple[Collect, ...] = ()


class Step(Record):
    """One pass over a task: what the agent is asked to do, and what says whether it did."""

    name: str = ""
    """Empty in a task of one step."""
    instruction: str
    """The user message, without canary lines."""
    files: Path | None = None
    """Laid into the working directory before the step; its setup.sh, if there is one, is run."""
    agent_timeout_s: float | None = None
    healthcheck: Healthcheck | None = None
    solution: Solution | None = None
    verifier: Verifier
    artifacts: tuple[Artifact, ...] = ()
    min_reward: dict[str, float] = Field(default_factory=dict)
    """Rewards without which the next steps are not begun."""


def folder_environment(folder: Path) -> Environment:
    """A machine that has one folder's files as /workspace, and nothing else."""
    files = CopyFiles(sources=(".",), target="/workspace/")
    return Environment(context=folder, build=(files,))

"""task.toml: Harbor's task configuration, and what we add under `[metadata.harness]`.

Keys of Harbor's that would change a trial in a way this package does not honour (steps, environment
variables, users, health checks) are left out on purpose: such a file is refused, not half obeyed.
"""

from __future__ import annotations

from typing import Literal

from pydantic import AliasChoices, ConfigDict, Field

from harness.schema.loop_config import TerminationReason
from harness.schema.record import JsonObject, Record
from harness.schema.suite import OutputConfig

ToolName = Literal["shell", "read_file", "write_file", "list_dir"]
NetworkMode = Literal["no-network", "public", "allowlist"]


class Author(Record):
    """One author of a task."""

    name: str
    email: str | None = None


class PackageInfo(Record):
    """`[task]`: what identifies the task in a registry."""

    name: str
    """`organisation/task`."""
    version: str | None = Field(default=None, min_length=1)
    description: str = ""
    authors: tuple[Author, ...] = ()
    keywords: tuple[str, ...] = ()


class AgentSection(Record):
    """`[agent]`."""

    timeout_sec: float | None = Field(default=None, gt=0)
    """Seconds the agent may take; None is no limit."""
    network_mode: NetworkMode | None = None
    allowed_hosts: tuple[str, ...] | None = None


class VerifierSection(Record):
    """`[verifier]`."""

    timeout_sec: float = Field(default=600, gt=0)
    """Seconds the verifier may take."""
    network_mode: NetworkMode | None = None
    allowed_hosts: tuple[str, ...] | None = None
    environment_mode: Literal["shared"] | None = None


class EnvironmentSection(Record):
    """`[environment]`: for those who run the task in a container."""

    network_mode: NetworkMode = "public"
    allowed_hosts: tuple[str, ...] | None = None
    allow_internet: bool | None = None
    """Harbor's older spelling of `network_mode`."""
    build_timeout_sec: float = Field(default=600, gt=0)
    docker_image: str | None = None
    os: Literal["linux"] = "linux"
    cpus: int | float | None = Field(default=None, gt=0)
    memory_mb: int | None = Field(default=None, gt=0)
    storage_mb: int | None = Field(default=None, gt=0)
    memory: str | None = None
    """Harbor's older spelling of `memory_mb`, for instance `2G`."""
    storage: str | None = None
    gpus: int | None = Field(default=None, ge=0, le=0)
    skills_dir: str | None = None
    """Where the container has the task's skills."""
    workdir: Literal["/workspace"] | None = None


class SolutionSection(Record):
    """`[solution]`: nothing in it is honoured yet."""


class HarnessSection(Record):
    """`[metadata.harness]`: what our tasks add to Harbor's."""

    output: OutputConfig | None = None
    """The structured result the task asks for; None for a task that ends with text."""
    tools: tuple[ToolName, ...] = ("shell", "read_file", "write_file", "list_dir")
    """Tools offered to the agent, in this order."""
    skills: tuple[str, ...] | None = None
    """Which folders of environment/skills are curated; None means all of them."""
    expected_endings: tuple[TerminationReason, ...] = Field(
        default=(TerminationReason.COMPLETED,), min_length=1
    )
    model: JsonObject = Field(default_factory=dict)
    """Keys of the suite's `[model]` that this task overrides."""
    tags: tuple[str, ...] = ()


class MetadataSection(Record):
    """`[metadata]`: free, but for our own table."""

    model_config = ConfigDict(extra="allow")

    harness: HarnessSection = HarnessSection()


class TaskFile(Record):
    """The whole file."""

    schema_version: str = Field(
        default="1.4",
        pattern=r"^1\.\d+$",
        validation_alias=AliasChoices("schema_version", "version"),
    )
    source: str | None = None
    task: PackageInfo | None = None
    metadata: MetadataSection = MetadataSection()
    agent: AgentSection = AgentSection()
    verifier: VerifierSection = VerifierSection()
    environment: EnvironmentSection = EnvironmentSection()
    solution: SolutionSection = SolutionSection()

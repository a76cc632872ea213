"""task.toml: Harbor's task configuration, and what we add under `[metadata.harness]`.

Keys of Harbor's that would change a trial in a way this package does not honour (steps, environment
variables, users, health checks) are left out on purpose: such a file is refused, not half obeyed.
So is any network but none, which is what every trial gets. What sizes or builds a container (image,
build timeout, processors, memory, storage, place of the skills) is read for the sake of other
runners and changes nothing here.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, AliasChoices, ConfigDict, Field
from pydantic_core import PydanticCustomError

from harness.schema.loop_config import TerminationReason
from harness.schema.record import JsonObject, Record
from harness.schema.suite import OutputConfig

ToolName = Literal["shell", "read_file", "write_file", "list_dir"]


def _without_network(value: object) -> object:
    if value not in (None, "no-network", (), False):
        raise PydanticCustomError("network", "trials have no network; leave the key out")
    return value


NetworkMode = Annotated[
    Literal["no-network", "public", "allowlist"] | None, AfterValidator(_without_network)
]
AllowedHosts = Annotated[tuple[str, ...] | None, AfterValidator(_without_network)]
AllowInternet = Annotated[bool | None, AfterValidator(_without_network)]


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

    model_config = ConfigDict(allow_inf_nan=False)

    timeout_sec: float | None = Field(default=None, gt=0)
    """Seconds the agent may take; None is no limit."""
    network_mode: NetworkMode = None
    allowed_hosts: AllowedHosts = None


class VerifierSection(Record):
    """`[verifier]`."""

    model_config = ConfigDict(allow_inf_nan=False)

    timeout_sec: float = Field(default=600, gt=0)
    """Seconds the verifier may take."""
    network_mode: NetworkMode = None
    allowed_hosts: AllowedHosts = None
    environment_mode: Literal["shared"] | None = None


class EnvironmentSection(Record):
    """`[environment]`: for those who run the task in a container."""

    model_config = ConfigDict(allow_inf_nan=False)

    network_mode: NetworkMode = None
    allowed_hosts: AllowedHosts = None
    allow_internet: AllowInternet = None
    """Harbor's older spelling of `network_mode`."""
    build_timeout_sec: float = Field(default=600, gt=0)
    docker_image: str | None = None
    os: Literal["linux"] = "linux"
    cpus: float | None = Field(default=None, gt=0)
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

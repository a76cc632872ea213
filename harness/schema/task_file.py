"""task.toml: Harbor's task configuration, and what we add under `[metadata.harness]`.

Every key of Harbor 0.25 is here, older spellings included. As with Harbor, a key that is not known
is no error, but for our own table; the loader lists it.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, AliasChoices, BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

from harness.schema.loop_config import LoopConfig, TerminationReason
from harness.schema.messages import ToolSpec
from harness.schema.record import JsonObject, Record
from harness.schema.suite import OutputConfig

ToolName = Literal["shell", "read_file", "write_file", "list_dir", "keystrokes"]

MOST_MB = 2**30
"""A size beyond this is a slip, and too large for the system's numbers."""

_DAY = 86_400
_LONGEST_S = 1_000_000
"""Seconds; with any multiplier the system's clocks can still wait for them."""

_SIZES = {"K": 1 / 1024, "M": 1, "G": 1024}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)([KMG])", re.IGNORECASE)
_VERSION = re.compile(r"1\.[0-9]+")
_NOT_PORTABLE = re.compile(r'[<>:"/\\|?*\x00-\x1f\x7f]')


def _as_size(value: Any) -> Any:
    """A bare number is one of megabytes, as in the newer key."""
    return f"{value}M" if type(value) is int and value > 0 else value


def _size(text: str) -> str:
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise PydanticCustomError("size", "write it like 512M or 2G")
    if not 1 <= _megabytes(match) <= MOST_MB:
        raise PydanticCustomError("size", "must be from 1M to 1048576G")
    return text


def megabytes(size: str) -> int:
    """What a text like `2G` means."""
    match = _SIZE.fullmatch(size.strip())
    assert match is not None
    return int(_megabytes(match))


def _megabytes(match: re.Match[str]) -> float:
    return float(match[1]) * _SIZES[match[2].upper()]


def _step_name(name: str) -> str:
    if not name.strip(". ") or name.endswith((".", " ")) or _NOT_PORTABLE.search(name):
        raise PydanticCustomError("step_name", "must be the name of a folder under steps/")
    return name


def _different_names(steps: tuple[StepSection, ...]) -> tuple[StepSection, ...]:
    names = [unicodedata.normalize("NFC", step.name).casefold() for step in steps]
    for name in names:
        if names.count(name) > 1:
            raise PydanticCustomError("step_names", "two steps have the same name; rename one")
    return steps


def _known_version(version: str) -> str:
    if _VERSION.fullmatch(version) is None:
        raise PydanticCustomError(
            "schema_version", 'only versions 1.x can be read; write "1.4" and what belongs to it'
        )
    return version


def _inside(path: str) -> str:
    if ".." in path.split("/"):
        raise PydanticCustomError("artifact", "must not have '..' in it")
    return path


def _destination(path: str) -> str:
    if path.startswith("/") or "\\" in path or path.rstrip("/") == "manifest.json":
        raise PydanticCustomError("artifact", "must be a path within the folder of artifacts")
    return _inside(path)


def _number_as_text(value: Any) -> Any:
    return str(value) if type(value) is int else value


def _as_threshold(value: Any) -> Any:
    """A bare number is for the reward called `reward`."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return {"reward": value}
    if value is not None and not isinstance(value, dict):
        raise PydanticCustomError("threshold", "give a number, or a table of rewards and numbers")
    return value


def _variables(env: dict[str, str]) -> dict[str, str]:
    for name in env:
        if not name or "=" in name:
            raise PydanticCustomError(
                "variable", "{name} cannot be the name of a variable", {"name": repr(name)}
            )
    return env


def _lower(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value


def _streamable(value: Any) -> Any:
    return "streamable-http" if value == "http" else value


def _network(value: Any) -> Any:
    """`none` is BenchFlow's word."""
    return "no-network" if value == "none" else value


NetworkMode = Annotated[Literal["no-network", "public", "allowlist"], BeforeValidator(_network)]
Size = Annotated[str, BeforeValidator(_as_size), AfterValidator(_size)]
User = Annotated[str, BeforeValidator(_number_as_text)]
"""A name or a number."""


Variables = Annotated[dict[str, str], AfterValidator(_variables)]
"""Of processes, by name."""


class Section(Record):
    """A table of Harbor's: keys beyond these are kept, to be told of."""

    model_config = ConfigDict(extra="allow", allow_inf_nan=False)


class Author(Section):
    """One author of a task."""

    name: str
    email: str | None = None


class PackageInfo(Section):
    """`[task]`: what identifies the task in a registry."""

    name: str
    """`organisation/task`."""
    version: str | None = Field(default=None, min_length=1)
    description: str = ""
    authors: tuple[Author, ...] = ()
    keywords: tuple[str, ...] = ()


class AgentSection(Section):
    """`[agent]`."""

    timeout_sec: float | None = Field(default=None, gt=0, le=_LONGEST_S)
    """Seconds the agent may take; None is no limit."""
    user: User | None = None
    network_mode: NetworkMode | None = None
    allowed_hosts: tuple[str, ...] | None = None


class HealthcheckSection(Section):
    """`[environment.healthcheck]`: a command that must succeed before the agent begins."""

    command: str
    interval_sec: float = Field(default=5.0, ge=0, le=_DAY)
    timeout_sec: float = Field(default=30.0, gt=0, le=_DAY)
    start_period_sec: float = Field(default=0.0, ge=0, le=_DAY)
    start_interval_sec: float = Field(default=5.0, ge=0, le=_DAY)
    retries: int = Field(default=3, ge=1)


class TpuSection(Section):
    """`[environment.tpu]`."""

    type: str = Field(min_length=1)
    topology: str


class McpServer(Section):
    """One of `[[environment.mcp_servers]]`."""

    name: str
    transport: Annotated[
        Literal["stdio", "sse", "streamable-http"], BeforeValidator(_streamable)
    ] = "sse"
    url: str | None = None
    command: str | None = None
    args: tuple[str, ...] = ()
    headers: dict[str, str] = Field(default_factory=dict)


class EnvironmentSection(Section):
    """`[environment]`: the machine; `[verifier.environment]` is one for the verifier."""

    network_mode: NetworkMode | None = None
    allowed_hosts: tuple[str, ...] | None = None
    allow_internet: bool | None = None
    """Harbor's older spelling of `network_mode`."""
    build_timeout_sec: float = Field(default=600, gt=0, le=_DAY)
    docker_image: str | None = None
    """A ready image, in place of a Dockerfile."""
    os: Annotated[Literal["linux", "windows"], BeforeValidator(_lower)] = "linux"
    cpus: float | None = Field(default=None, gt=0, le=1_000_000)
    memory_mb: int | None = Field(default=None, gt=0, le=MOST_MB)
    storage_mb: int | None = Field(default=None, gt=0, le=MOST_MB)
    memory: Size | None = None
    """Harbor's older spelling of `memory_mb`, for instance `2G`; a number means megabytes."""
    storage: Size | None = None
    """Harbor's older spelling of `storage_mb`."""
    gpus: int | None = Field(default=None, ge=0)
    gpu_types: tuple[str, ...] | None = None
    tpu: TpuSection | None = None
    mcp_servers: tuple[McpServer, ...] = ()
    env: Variables = Field(default_factory=dict)
    """Variables; `${VAR}` and `${VAR:-default}` stand for the host's."""
    skills_dir: str | None = None
    """Where the machine has the task's skills."""
    healthcheck: HealthcheckSection | None = None
    workdir: str | None = None
    """Wins over the Dockerfile's."""


class CollectSection(Section):
    """One of `[[verifier.collect]]`: run before artifacts are taken."""

    command: str
    service: str = "main"
    timeout_sec: float = Field(default=60, gt=0, le=_DAY)
    user: User | None = None


class VerifierSection(Section):
    """`[verifier]`."""

    timeout_sec: float = Field(default=600, gt=0, le=_LONGEST_S)
    """Seconds the verifier may take."""
    env: Variables = Field(default_factory=dict)
    user: User | None = None
    network_mode: NetworkMode | None = None
    allowed_hosts: tuple[str, ...] | None = None
    environment_mode: Literal["shared", "separate"] | None = None
    """Whether the verifier has a machine of its own; None follows from `environment`."""
    environment: EnvironmentSection | None = None
    collect: tuple[CollectSection, ...] = ()


class SolutionSection(Section):
    """`[solution]`."""

    env: Variables = Field(default_factory=dict)


class ArtifactSection(Section):
    """An artifact with more than its path."""

    source: Annotated[str, AfterValidator(_inside)]
    destination: Annotated[str, AfterValidator(_destination)] | None = None
    exclude: tuple[str, ...] = ()
    service: str | None = None


class StepSection(Section):
    """One of `[[steps]]`."""

    name: Annotated[str, AfterValidator(_step_name)]
    agent: AgentSection = AgentSection()
    verifier: VerifierSection = VerifierSection()
    min_reward: Annotated[dict[str, float], BeforeValidator(_as_threshold)] | None = None
    """Rewards below which the next steps are not begun; a number is for `reward`."""
    healthcheck: HealthcheckSection | None = None
    artifacts: tuple[str | ArtifactSection, ...] = ()


class HarnessSection(Record):
    """`[metadata.harness]`: what our tasks add to Harbor's."""

    output: OutputConfig | None = None
    """The structured result the task asks for; None for a task that ends with text."""
    tools: tuple[ToolName, ...] = ("shell", "read_file", "write_file", "list_dir")
    """Tools offered to the agent, in this order."""
    recorded_tools: tuple[ToolSpec, ...] = ()
    """Tools of others: offered after those above, and only their recorded calls are answered."""
    skills: tuple[str, ...] | None = None
    """Which folders of environment/skills are curated; None means all of them."""
    verifier: bool = True
    """False for a task that nothing judges: its trials have no outcome."""
    expected_endings: tuple[TerminationReason, ...] = Field(
        default=(TerminationReason.COMPLETED,), min_length=1
    )
    model: JsonObject = Field(default_factory=dict)
    """Keys of the suite's `[model]` that this task overrides."""
    loop: LoopConfig = LoopConfig()
    """Keys of `[loop]`, of the preset and of the variant that this task overrides."""
    system: str | None = None
    """System prompt of this task; None is the suite's."""
    tags: tuple[str, ...] = ()


class MetadataSection(Record):
    """`[metadata]`: free, but for our own table."""

    model_config = ConfigDict(extra="allow")

    harness: HarnessSection = HarnessSection()


class TaskFile(Section):
    """The whole file."""

    schema_version: Annotated[str, AfterValidator(_known_version)] = Field(
        default="1.4", validation_alias=AliasChoices("schema_version", "version")
    )
    source: str | None = None
    task: PackageInfo | None = None
    metadata: MetadataSection = MetadataSection()
    agent: AgentSection = AgentSection()
    verifier: VerifierSection = VerifierSection()
    environment: EnvironmentSection = EnvironmentSection()
    solution: SolutionSection = SolutionSection()
    multi_step_reward_strategy: Literal["mean", "final"] | None = None
    steps: Annotated[tuple[StepSection, ...], AfterValidator(_different_names)] | None = None
    artifacts: tuple[str | ArtifactSection, ...] = ()

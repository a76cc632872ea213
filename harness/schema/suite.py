"""Suites, tasks and variants, as their files say and as the runner uses them."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import ConfigDict, Field

from harness.schema.environment import Environment, Step
from harness.schema.loop_config import LoopConfig, TerminationReason
from harness.schema.messages import ToolSpec
from harness.schema.presets import Disclosure, PresetName
from harness.schema.record import JsonObject, Record
from harness.schema.recording import RecordingRules
from harness.schema.scenario import Scenario
from harness.schema.trajectory import UsageTotal


class Price(Record):
    """US dollars per million tokens, by bucket."""

    model_config = ConfigDict(allow_inf_nan=False)

    input: float = Field(ge=0)
    output: float = Field(ge=0)
    cache_write: float = Field(default=0, ge=0)
    cache_read: float = Field(default=0, ge=0)

    def cost_usd(self, usage: UsageTotal) -> float:
        """US dollars for the tokens that were reported."""
        millionths = (
            (usage.input or 0) * self.input
            + (usage.output or 0) * self.output
            + (usage.cache_write or 0) * self.cache_write
            + (usage.cache_read or 0) * self.cache_read
        )
        return millionths / 1_000_000


class ModelConfig(Record):
    """Which model answers, and how it samples."""

    model_config = ConfigDict(allow_inf_nan=False)

    provider: Literal["anthropic", "openai", "ollama", "google", "scripted"]
    """`scripted` is the model of scenarios alone."""
    name: str
    api: Literal["chat", "responses"] = "chat"
    """Which of OpenAI's interfaces; the other providers have one."""
    system_role: Literal["system", "developer"] = "system"
    """Role of the system prompt in OpenAI's formats; local servers know `system` only."""
    base_url: str | None = None
    """Endpoint; None is the vendor's own."""
    temperature: float | None = Field(default=None, ge=0)
    price: Price | None = None
    """None leaves the cost of a trial unknown."""


class OutputConfig(Record):
    """The structured result a task asks for."""

    name: str = "output"
    """Name of the output tool."""
    description: str = "Hand in the result of the task."
    schema_: JsonObject = Field(alias="schema")
    """JSON Schema of the result."""
    validators: tuple[str | JsonObject, ...] = ()
    """Run in order after the schema: `module:function`, or one of the built-in checks."""
    reflection_handler: str | JsonObject | None = None
    """What shows the agent its draft: `module:function`, or `{returns: "Preview: {field}"}`."""


class Skill(Record):
    """A SKILL.md: advice an agent may be given."""

    name: str
    description: str
    instructions: str
    allowed_tools: tuple[str, ...] | None = None
    """Tools that may be used while it is active; None is no restriction."""
    disallowed_tools: tuple[str, ...] = ()
    place: str = ""
    """Of its folder, within the folder of all skills."""
    files: tuple[str, ...] = ()
    """What lies beside its SKILL.md, relative to it; the first fifty."""


class ChosenSkills(Record):
    """Skills that a variant gives instead of a task's own."""

    folder: Path
    skills: tuple[Skill, ...]


class Task(Record):
    """One problem with its verifier, loaded from a folder in Harbor's layout; or a scenario."""

    name: str
    folder: Path
    instruction: str
    """The first user message, without canary lines."""
    tests: Path
    """What the verdict comes from: a folder, or a scenario's file."""
    environment: Environment | None = None
    """The machine a trial gets; None for a scenario."""
    steps: tuple[Step, ...] = ()
    """At least one, but for a scenario."""
    reward_strategy: Literal["mean", "final"] = "mean"
    """How the rewards of several steps become the trial's."""
    tools: tuple[str, ...] = ("shell", "read_file", "write_file", "list_dir")
    """Names of built-in tools the task offers, in this order."""
    recorded_tools: tuple[ToolSpec, ...] = ()
    """Tools of others, of which only recorded calls are answered."""
    output: OutputConfig | None = None
    skills: tuple[Skill, ...] = ()
    expected_endings: tuple[TerminationReason, ...] = (TerminationReason.COMPLETED,)
    model: JsonObject = Field(default_factory=dict)
    """Keys of the suite's model that this task overrides."""
    loop: JsonObject = Field(default_factory=dict)
    """Keys of a variant's loop that this task overrides."""
    system: str | None = None
    """System prompt; None is the suite's."""
    tags: tuple[str, ...] = ()
    typos: tuple[str, ...] = ()
    """Keys of its settings that mean nothing and are close to one that does."""
    digest: str
    """Of everything in the folder that a trial can depend on."""
    tests_digest: str
    """Of the verifier's files."""
    scenario: Scenario | None = None
    """What the model answers and what must come of it; None for a task that asks a model."""


class Variant(Record):
    """A named model and loop configuration: what is compared."""

    name: str
    description: str = ""
    model: ModelConfig
    preset: PresetName = "default"
    loop: LoopConfig
    """All settings, those of the preset included."""
    skills: str = "none"
    """`curated` gives the agent the task's own; else the folder of those chosen, as written."""
    chosen: ChosenSkills | None = Field(default=None, exclude=True)
    """What is in that folder; written to no file."""
    disclosure: Disclosure | None = None
    """How skills are given; None is as the preset has it."""
    tasks: tuple[str, ...] = ("*",)
    """Globs of task names the variant is limited to."""


class Suite(Record):
    """A folder of tasks with the variants to compare on it."""

    name: str
    version: int
    description: str = ""
    folder: Path
    file: Path
    """What holds its settings: suite.toml, or for scenarios the folder or file itself."""
    repeats: int
    system: str
    """System prompt of every trial."""
    tasks: tuple[Task, ...]
    variants: tuple[Variant, ...]
    recording: RecordingRules = RecordingRules()

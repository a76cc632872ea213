"""suite.toml: what a suite's author writes."""

from __future__ import annotations

from pydantic import Field

from harness.schema.loop_config import LoopConfig
from harness.schema.names import Name as Name
from harness.schema.presets import Disclosure, PresetName
from harness.schema.record import JsonObject, Record
from harness.schema.recording import RecordingRules
from harness.schema.suite import ModelConfig


class VariantFile(Record):
    """One `[[variants]]` table: a name, and what differs from the suite's defaults."""

    name: str = Field(pattern=Name)
    description: str = ""
    model: JsonObject = Field(default_factory=dict)
    """Keys of `[model]` that this variant overrides."""
    preset: PresetName = "default"
    """Settings that win over the suite's `[loop]`."""
    loop: LoopConfig = LoopConfig()
    """Keys of `[loop]` and of the preset that this variant overrides."""
    skills: str = Field(default="none", min_length=1)
    """`none`, `curated` for each task's own, or a folder of skills, relative to this file."""
    disclosure: Disclosure | None = None
    """`full`: all of their text in the system prompt; `on_demand`: name and description, and the
    tool `load_skill` for the rest. None is `full`, and `on_demand` with terminus2-skills."""
    tasks: tuple[str, ...] = Field(default=("*",), min_length=1)
    """Globs of task names the variant is limited to."""


class SuiteFile(Record):
    """The whole file; every subfolder with a task.toml is a task of the suite."""

    name: str = Field(pattern=Name)
    version: int = Field(ge=1)
    """Raised by hand when results before and after cannot be compared."""
    description: str = ""
    repeats: int = Field(default=1, ge=1)
    """Independent samples of each task and variant."""
    system: str
    """System prompt of every trial."""
    model: ModelConfig
    loop: LoopConfig = LoopConfig()
    recording: RecordingRules = RecordingRules()
    variants: tuple[VariantFile, ...] = Field(min_length=1)

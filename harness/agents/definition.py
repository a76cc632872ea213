"""Agents as TOML files define them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field

from harness.agents.agent import Agent, loop_config
from harness.errors import BadInputError, ConfigurationError, HarnessError
from harness.loader.output import declared_output, load_function
from harness.loader.overrides import merge
from harness.loader.reading import known, read_toml, validated
from harness.loader.task.skills import load_skill
from harness.protocols import Check, OutputSpec, Provider, Tool
from harness.providers.scripted import Scripted
from harness.sandbox.choose import sandbox
from harness.schema.environment import folder_environment
from harness.schema.loop_config import LoopConfig
from harness.schema.names import Name
from harness.schema.presets import PresetName
from harness.schema.record import Record
from harness.schema.suite import ModelConfig, OutputConfig, Skill
from harness.tools.as_tool import as_tool
from harness.tools.builtin import BUILTIN_NAMES, builtin_tools
from harness.tools.machine import Machine


class Input(Record):
    """A value that an agent is called with."""

    description: str = ""
    required: bool = True


class AgentFile(Record):
    """One agent, as its author writes it: `<anything>.toml` in a folder of agents."""

    name: str = Field(pattern=Name)
    """What callers call it."""
    description: str = ""
    model: ModelConfig
    system: str
    """The system prompt."""
    preset: PresetName = "default"
    loop: LoopConfig = LoopConfig()
    """Settings of the loop, on top of the preset."""
    tools: tuple[str, ...] = ()
    """Built-in tools, which need a workspace, and functions as `module:function`."""
    workspace: str | None = None
    """Folder that the built-in tools act on a fresh copy of, relative to the file."""
    output: OutputConfig | None = None
    """The structured result; without one the answer's text is the result."""
    skills: tuple[str, ...] = ()
    """Folders with a SKILL.md, relative to the file."""
    active_skills: tuple[str, ...] = ()
    """Names of the skills whose full text is given."""
    inputs: dict[str, Input] = Field(default_factory=dict)
    """What a caller gives, by name."""
    models: tuple[str, ...] = ()
    """Other models of the same provider that a caller over HTTP may ask for."""
    scopes: tuple[str, ...] = ()
    """What a caller over HTTP must be allowed besides `agents:invoke`."""


@dataclass(frozen=True, slots=True)
class AgentDefinition:
    """An agent that was loaded and found usable."""

    file: AgentFile
    path: Path
    output: OutputSpec | None
    functions: Mapping[str, Tool]
    """Tools that are no built-in ones, by what the file calls them."""
    skills: tuple[Skill, ...]

    @property
    def name(self) -> str:
        """What callers call it."""
        return self.file.name

    @property
    def config(self) -> LoopConfig:
        """The settings of its loop, those of the preset included."""
        return loop_config(self.file.preset, self.file.loop, self.output)

    @property
    def tool_names(self) -> tuple[str, ...]:
        """What the model calls its tools."""
        return tuple(
            self.functions[name].spec.name if name in self.functions else name
            for name in self.file.tools
        )

    @contextmanager
    def opened(
        self,
        provider: Provider,
        *,
        model: ModelConfig | None = None,
        config: Mapping[str, Any] | None = None,
        checks: Sequence[Check] = (),
    ) -> Iterator[Agent[Any]]:
        """An agent for one call, with a workspace of its own.

        Args:
            provider: Answers its model calls.
            model: In place of the file's.
            config: Settings of the loop that win over the file's.
            checks: Rules for its tool calls.

        Raises:
            ConfigurationError: something contradicts itself.
        """
        with ExitStack() as stack:
            own = self.file.loop.model_dump(mode="json", exclude_unset=True)
            yield Agent(
                model or self.file.model,
                provider=provider,
                system=self.file.system,
                tools=self._tools(stack),
                output=self.output,
                preset=self.file.preset,
                config=merge(own, config or {}),
                skills=self.skills,
                active_skills=self.file.active_skills,
                checks=checks,
            )

    def _tools(self, stack: ExitStack) -> list[Tool]:
        builtin = [name for name in self.file.tools if name not in self.functions]
        made: dict[str, Tool] = dict(self.functions)
        if builtin:
            assert self.file.workspace is not None
            folder = self.path.parent / self.file.workspace
            machine = Machine(folder_environment(folder), sandbox)
            stack.callback(machine.close)
            made |= zip(builtin, builtin_tools(builtin, machine), strict=True)
        return [made[name] for name in self.file.tools]


def load_agents(folder: str | Path) -> dict[str, AgentDefinition]:
    """The agents of a folder by name: one in each of its TOML files.

    Raises:
        BadInputError: the first thing that cannot be used, with file and key.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise BadInputError(f"{folder}: no such folder; it holds one TOML file per agent")
    agents: dict[str, AgentDefinition] = {}
    for path in sorted(folder.glob("*.toml")):
        agent = load_agent(path)
        if agent.name in agents:
            other = agents[agent.name].path
            raise ConfigurationError(
                f"{path}: name = {agent.name!r}: {other} has it too; rename one of them"
            )
        agents[agent.name] = agent
    if not agents:
        raise BadInputError(f"{folder}: no agent in it; an agent is a file like researcher.toml")
    return agents


def load_agent(path: str | Path) -> AgentDefinition:
    """The agent that a TOML file defines, checked as far as it can be without a call.

    Raises:
        BadInputError: the first thing that cannot be used, with file and key.
    """
    path = Path(path)
    file = validated(AgentFile, read_toml(path, purpose="an agent's definition"), where=str(path))
    _check_workspace(file, path)
    if file.loop.raise_on_failure:
        raise ConfigurationError(
            f"{path}: loop.raise_on_failure = true: a call must end with a result; leave it out"
        )
    output = None
    if file.output is not None:
        output = declared_output(file.output, path.parent, f"{path}: output")
    agent = AgentDefinition(
        file=file,
        path=path,
        output=output,
        functions={
            name: _function(name, path, f"{path}: tools[{place}]")
            for place, name in enumerate(file.tools)
            if name not in BUILTIN_NAMES
        },
        skills=tuple(load_skill(path.parent / skill / "SKILL.md") for skill in file.skills),
    )
    try:
        with agent.opened(Scripted([])):
            return agent
    except HarnessError as error:
        raise ConfigurationError(f"{path}: {error}") from error


def _check_workspace(file: AgentFile, path: Path) -> None:
    builtin = [name for name in file.tools if name in BUILTIN_NAMES]
    if file.workspace is None:
        if builtin:
            raise ConfigurationError(
                f'{path}: tools: {builtin[0]!r} needs a folder to work on; add workspace = "..."'
            )
        return
    if not builtin:
        raise ConfigurationError(
            f"{path}: workspace = {file.workspace!r}: no tool uses it; leave it out, or add one of"
            f" {', '.join(BUILTIN_NAMES)} to tools"
        )
    if not (path.parent / file.workspace).is_dir():
        raise ConfigurationError(
            f"{path}: workspace = {file.workspace!r}: no such folder beside the file; make it"
        )


def _function(name: str, path: Path, where: str) -> Tool:
    if ":" not in name:
        raise ConfigurationError(
            f"{where} = {name!r}: no built-in tool; {known(BUILTIN_NAMES, name)};"
            " a function of yours is written 'module:function'"
        )
    return as_tool(load_function(name, path.parent, where), where=where)

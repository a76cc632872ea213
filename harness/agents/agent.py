"""An agent in three lines: a model, some functions, and what they are to bring."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Generic, cast

from typing_extensions import TypeVar

from harness.agents.connection import connect, model_config
from harness.agents.output import asked_output, read_output
from harness.errors import ConfigurationError, RunFailedError
from harness.loader.overrides import merge
from harness.loader.reading import known, validated
from harness.loop.engine import Loop
from harness.protocols import OutputSpec, Provider, Tool, ToolProvider
from harness.schema.loop_config import LoopConfig, TerminationReason
from harness.schema.messages import Message
from harness.schema.presets import PRESETS, PresetName
from harness.schema.suite import ModelConfig
from harness.schema.trajectory import Event, Trajectory
from harness.tools.function import function_tool
from harness.tools.registry import Registry

OutputT = TypeVar("OutputT", default=Any)
"""What the agent hands in: a pydantic model, or JSON."""

Tools = ToolProvider | Sequence[Tool | Callable[..., object]]
"""Tools as an agent takes them; plain and async functions become tools."""


class Agent(Generic[OutputT]):
    """A loop with its model, its tools and its output, ready to be run.

        agent = Agent("openai:gpt-4.1", tools=[query, calculate], output=Report)
        trajectory = agent.run("How many boats?")
        report = agent.output(trajectory)

    Args:
        model: `provider:name`, or the settings of a model; with `provider`, only the name.
        provider: Answers in place of a live client of the vendor.
        base_url: Endpoint of the live client; None is the vendor's own.
        api_key: Key of the live client. None leaves it to the vendor's SDK to find one for its own
            endpoint; to any other endpoint no key is sent then.
        system: The system prompt.
        tools: Plain functions, async functions and tools, or a provider of tools.
        output: What the agent must hand in: a pydantic model, a JSON schema, or a whole
            specification. Without one a run ends with text.
        validators: Say what is wrong with an output, or None; run in order after the schema.
        reflection_handler: Shows the agent its draft; the run then ends with `submit`.
        preset: Named settings of the loop.
        config: Settings of the loop, on top of the preset.
        loop: Whatever else `Loop` takes: hooks, skills, terminal tools, observers and so on.

    Raises:
        ConfigurationError: something contradicts itself; the text says what to change.
    """

    def __init__(
        self,
        model: str | ModelConfig,
        *,
        provider: Provider | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
        system: str | None = None,
        tools: Tools = (),
        output: type[OutputT] | Mapping[str, Any] | OutputSpec | None = None,
        validators: Sequence[Callable[[OutputT], str | None]] = (),
        reflection_handler: Callable[[OutputT], str] | None = None,
        preset: PresetName = "default",
        config: LoopConfig | Mapping[str, Any] | None = None,
        **loop: Any,
    ) -> None:
        self.system = system
        self._output_class = output if isinstance(output, type) else None
        asked = asked_output(output, validators, reflection_handler)
        if isinstance(model, ModelConfig):
            loop = {"temperature": model.temperature, "price": model.price, **loop}
        if provider is None:
            if isinstance(model, str):
                model = model_config(model, base_url)
            elif base_url is not None:
                model = model.model_copy(update={"base_url": base_url})
            provider = connect(model, api_key)
        self.loop = Loop(
            provider,
            model=model if isinstance(model, str) else model.name,
            tools=_tool_provider(tools),
            output=asked,
            config=_loop_config(preset, config, asked),
            **loop,
        )
        """What runs: pause, resume, cancel, inject and resume_suspended are there."""

    def run(self, messages: str | Sequence[Message], *, run_id: str | None = None) -> Trajectory:
        """Run one conversation to its end.

        Args:
            messages: The conversation so far, or the text of its one user message.
            run_id: Names the run in events, logs and traces; a random one if not given.

        Raises:
            RunFailedError: only with `raise_on_failure`, when the run failed.
        """
        return self.loop.run(messages, system=self.system, run_id=run_id)

    def stream(
        self, messages: str | Sequence[Message], *, run_id: str | None = None
    ) -> Iterator[Event]:
        """Run one conversation and show its events as they happen.

        The last event is `run_completed`; its payload is the trajectory.

        Raises:
            RunFailedError: only with `raise_on_failure`, when the run failed.
        """
        return self.loop.stream(messages, system=self.system, run_id=run_id)

    def output(self, trajectory: Trajectory) -> OutputT:
        """What a run handed in, as the class that was given for it, else as JSON.

        Raises:
            RunFailedError: the run did not complete with a valid output.
        """
        reason = trajectory.termination_reason
        if reason is not TerminationReason.COMPLETED or not trajectory.output_seen:
            why = trajectory.error or "it handed in no output"
            raise RunFailedError(f"the run ended {reason}: {why}", trajectory)
        value: OutputT = read_output(self._output_class, trajectory.output)
        return value


def as_tool(tool: Tool | Callable[..., object]) -> Tool:
    """The tool itself, or the one that a function makes."""
    # A tool may be callable too, but only a tool says what it is.
    return cast(Tool, tool) if hasattr(tool, "spec") else function_tool(cast(Any, tool))


def _tool_provider(tools: Tools) -> ToolProvider | None:
    if not isinstance(tools, Sequence):
        return tools
    return Registry([as_tool(tool) for tool in tools]) if tools else None


def _loop_config(
    preset: PresetName, config: LoopConfig | Mapping[str, Any] | None, output: OutputSpec | None
) -> LoopConfig:
    given: Mapping[str, Any] = config if isinstance(config, Mapping) else {}
    if isinstance(config, LoopConfig):
        given = config.model_dump(mode="json", exclude_unset=True)
    if preset not in PRESETS:
        raise ConfigurationError(f"preset = {preset!r}: unknown value; {known(PRESETS, preset)}")
    settings = merge(PRESETS[preset], given)
    if output is not None and output.reflection_handler is not None:
        # Who gives a handler wants it called.
        settings = {"reflection": True, **settings}
    return validated(LoopConfig, settings, where="config")

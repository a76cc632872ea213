"""An agent in three lines: a model, some functions, and what they are to bring."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Generic, cast

from typing_extensions import TypeVar, Unpack

from harness.agents.arguments import LoopArguments, check_names
from harness.agents.connection import connect, model_config
from harness.agents.output import asked_output, read_output
from harness.errors import ConfigurationError, RunFailedError
from harness.loader.overrides import merge
from harness.loader.reading import known, validated
from harness.loop.engine import Loop
from harness.loop.given import is_tool_provider
from harness.protocols import OutputSpec, Provider, Tool, ToolProvider
from harness.schema.loop_config import LoopConfig, TerminationReason
from harness.schema.messages import Message
from harness.schema.presets import PRESETS, PresetName
from harness.schema.suite import ModelConfig
from harness.schema.trajectory import Event, Trajectory
from harness.tools.as_tool import as_tool, is_tool
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
        provider: Answers in place of a live client of the vendor; takes no base_url and no
            api_key.
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
        ConfigurationError: something cannot be meant, or contradicts itself; the text says what to
            change.
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
        preset: PresetName | str = "default",
        config: LoopConfig | Mapping[str, Any] | None = None,
        **loop: Unpack[LoopArguments],
    ) -> None:
        check_names(loop)
        self.system = system
        self._output_class = output if isinstance(output, type) else None
        asked = asked_output(output, validators, reflection_handler)
        if isinstance(model, ModelConfig):
            loop = {"temperature": model.temperature, "price": model.price, **loop}
        if provider is not None:
            _refuse_connection({"base_url": base_url, "api_key": api_key})
        else:
            if not isinstance(model, ModelConfig):
                model = model_config(model, base_url)
            elif base_url is not None:
                model = model.model_copy(update={"base_url": base_url})
            provider = connect(model, api_key)
        self.loop = Loop(
            provider,
            model=model.name if isinstance(model, ModelConfig) else model,
            tools=_tool_provider(tools),
            output=asked,
            config=loop_config(preset, config, asked),
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


def _refuse_connection(given: Mapping[str, str | None]) -> None:
    for name, value in given.items():
        if value is not None:
            raise ConfigurationError(
                f"provider and {name} are both given, but {name} is for the live client that"
                " provider replaces: leave one of them out"
            )


def _tool_provider(tools: object) -> ToolProvider | None:
    if isinstance(tools, Sequence) and not isinstance(tools, str):
        made = [as_tool(tool, where=f"tools[{place}]") for place, tool in enumerate(tools)]
        return Registry(made) if made else None
    if tools is None or is_tool_provider(tools):
        return tools
    if isinstance(tools, str):
        as_tool(tools, where="tools")
    if is_tool(tools) or callable(tools):
        name = getattr(tools, "__name__", type(tools).__name__)
        raise ConfigurationError(f"tools = {name}: give a list: tools=[{name}]")
    raise ConfigurationError(
        f"tools is a {type(tools).__name__}: give a list of functions and tools: tools=[count]"
    )


def loop_config(preset: str, config: object, output: OutputSpec | None) -> LoopConfig:
    """The settings of a preset with others on top.

    Raises:
        ConfigurationError: there is no such preset or setting.
    """
    if not isinstance(preset, str) or preset not in PRESETS:
        raise ConfigurationError(
            f"preset = {preset!r}: unknown value; {known(PRESETS, str(preset))}"
        )
    settings = merge(PRESETS[cast(PresetName, preset)], _settings(config))
    if output is not None and output.reflection_handler is not None:
        # Who gives a handler wants it called.
        settings = {"reflection": True, **settings}
    return validated(LoopConfig, settings, where="config")


def _settings(config: object) -> Mapping[str, Any]:
    if isinstance(config, LoopConfig):
        return config.model_dump(mode="json", exclude_unset=True)
    if config is None or isinstance(config, Mapping):
        return config or {}
    preset = f"; a preset is given as preset={config!r}" if config in list(PRESETS) else ""
    raise ConfigurationError(
        f"config = {config!r}: give settings by name, as in config={{'max_iterations': 5}}{preset}"
    )

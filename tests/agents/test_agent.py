"""An agent in three lines."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
from dataclasses import fields
from enum import Enum
from pathlib import Path
from typing import Any, assert_type, get_type_hints

import pytest
from pydantic import BaseModel, field_validator

from harness.agents import Agent
from harness.agents.arguments import OWN, LoopArguments
from harness.errors import ConfigurationError, RunFailedError
from harness.loop.engine import Loop
from harness.protocols import Hook
from harness.providers.scripted import Scripted, turn
from harness.schema.loop_config import LoopConfig, TerminationReason
from harness.schema.messages import ToolSpec
from harness.schema.record import JsonObject
from harness.schema.suite import ModelConfig, Price
from harness.tools.registry import Registry
from tests.loop.support import call, output, preview, returns
from tests.providers.lookalikes import openai_chat
from tests.providers.lookalikes.server import serving


class Size(Enum):
    SMALL = "small"
    LARGE = "large"


class Report(BaseModel):
    """What was found."""

    boats: int
    size: Size = Size.SMALL

    @field_validator("boats")
    @classmethod
    def _even(cls, boats: int) -> int:
        if boats % 2:
            raise ValueError("boats come in pairs")
        return boats


def query(harbour: str) -> int:
    """Counts the boats in a harbour."""
    return {"north": 4}[harbour]


async def calculate(a: int, b: int) -> int:
    """Adds two numbers."""
    await asyncio.sleep(0)
    return a + b


def fine(_: Any) -> None:
    return None


async def later(_: Any) -> None:
    return None


class Ready:
    """A tool, once there is one."""

    spec = ToolSpec(name="ready", description="Say so.", parameters={})

    def call(self, arguments: JsonObject, timeout_s: float) -> str:
        return "yes"


def handed_in(**fields: Any) -> Any:
    return turn(calls=[("o", "output", json.dumps(fields))])


def test_functions_are_tools_and_a_pydantic_model_is_the_output() -> None:
    model = Scripted(
        [
            turn(calls=[call("1", "query", harbour="north"), call("2", "calculate", a=4, b=2)]),
            handed_in(boats=6, size="large"),
        ]
    )
    agent = Agent("m-1", provider=model, tools=[query, calculate], output=Report)
    trajectory = agent.run("How many boats?")
    assert trajectory.output == {"boats": 6, "size": "large"}
    report = assert_type(agent.output(trajectory), Report)
    assert report == Report(boats=6, size=Size.LARGE)
    assert [result.content for result in trajectory.messages[2].tool_results] == ["4", "6"]
    offered = {tool.name: tool for tool in model.requests[0].tools}
    assert list(offered) == ["query", "calculate", "output"]
    assert "Counts the boats" in offered["query"].description
    assert model.requests[0].model == "m-1"


def test_tools_and_a_provider_of_tools_are_taken_as_they_are() -> None:
    mixed = Scripted([turn("done")])
    Agent("m", provider=mixed, tools=[returns("ready", 1), query]).run("Go.")
    assert [tool.name for tool in mixed.requests[0].tools] == ["ready", "query"]
    registry = Registry([returns("ready", 1)])
    agent = Agent("m", provider=Scripted([turn("done")]), tools=registry)
    assert agent.loop.tools is registry


def test_without_an_output_a_run_ends_with_text() -> None:
    agent = Agent("m", provider=Scripted([turn("Six.")]), system="Count.")
    trajectory = agent.run("How many boats?")
    assert (trajectory.final_text, trajectory.system) == ("Six.", "Count.")
    assert agent.output(trajectory) == {"response": "Six."}


def test_what_the_model_class_checks_is_checked_before_the_validators() -> None:
    def enough(report: Report) -> str | None:
        return None if report.boats > 2 else "more boats are needed"

    model = Scripted([handed_in(boats=3), handed_in(boats=2), handed_in(boats=4)])
    agent = Agent("m", provider=model, output=Report, validators=[enough])
    trajectory = agent.run("How many boats?")
    assert agent.output(trajectory).boats == 4
    assert trajectory.validation_failures == (
        "boats: Value error, boats come in pairs",
        "more boats are needed",
    )


def test_a_reflection_handler_brings_the_submit_tool() -> None:
    def shown(report: Report) -> str:
        return f"{report.boats} boats"

    model = Scripted([handed_in(boats=4), turn(calls=[call("s", "submit")])])
    agent = Agent("m", provider=model, output=Report, reflection_handler=shown)
    trajectory = agent.run("How many boats?")
    assert agent.output(trajectory).boats == 4
    assert trajectory.messages[2].tool_results[0].content == "4 boats"
    assert [tool.name for tool in model.requests[0].tools] == ["output", "submit"]


def test_a_schema_and_a_whole_specification_are_outputs_too() -> None:
    schema = {"type": "object", "properties": {"result": {"type": "string"}}}
    seen: list[Any] = []

    def never(value: Any) -> str | None:
        seen.append(value)
        return None

    model = Scripted([turn(calls=[call("o", "output", result="x")])])
    agent = Agent("m", provider=model, output=schema, validators=[never])
    assert agent.output(agent.run("Go.")) == {"result": "x"} == seen[0]
    spec = output(name="hand_in", handler=preview)
    model = Scripted(
        [turn(calls=[call("o", "hand_in", result="x")]), turn(calls=[call("s", "submit")])]
    )
    agent = Agent("m", provider=model, output=spec)
    assert agent.output(agent.run("Go.")) == {"result": "x"}


def test_the_output_of_a_run_that_failed_is_refused() -> None:
    agent = Agent("m", provider=Scripted([]), output=Report)
    trajectory = agent.run("How many boats?")
    with pytest.raises(RunFailedError, match="the run ended model_error: the script has no") as e:
        agent.output(trajectory)
    assert e.value.trajectory is trajectory


def test_settings_lie_on_top_of_a_preset() -> None:
    def config(**settings: Any) -> LoopConfig:
        return Agent("m", provider=Scripted([]), **settings).loop.config

    assert config() == LoopConfig()
    assert config(preset="agent33").confirm.enabled
    mixed = config(preset="agent33", config={"confirm": {"max_prompts": 1}, "max_iterations": 3})
    assert (mixed.confirm.enabled, mixed.confirm.max_prompts, mixed.max_iterations) == (True, 1, 3)
    assert config(preset="agent33", config=LoopConfig(max_iterations=3)).confirm.enabled


def test_whatever_else_the_loop_takes_is_passed_on() -> None:
    seen: list[str] = []
    agent = Agent(
        "m",
        provider=Scripted([turn(calls=[call("1", "stop")])]),
        tools=[returns("stop", "bye")],
        terminal_tools=["stop"],
        hooks=[Hook(after_model=lambda answer: seen.append(answer.stop))],
        observers=[lambda event: seen.append(event.kind)],
        temperature=0.5,
    )
    trajectory = agent.run("Go.", run_id="r-1")
    assert trajectory.termination_reason is TerminationReason.SIGNAL
    assert (trajectory.run_id, agent.loop.temperature) == ("r-1", 0.5)
    assert {"tool_use", "run_completed"} <= set(seen)
    with pytest.raises(TypeError, match="no_such"):
        Agent("m", provider=Scripted([]), no_such=1)  # type: ignore[call-arg]
    with pytest.raises(
        TypeError, match=r"Agent\(\) has no argument 'tols'; did you mean 'tools'\?"
    ):
        Agent("m", provider=Scripted([]), tols=[])  # type: ignore[call-arg]


def test_the_types_of_what_is_handed_on_are_those_of_the_loop() -> None:
    loop = {field.name for field in fields(Loop) if field.init}
    agent = set(inspect.signature(Agent.__init__).parameters) - {"self", "loop"}
    assert set(OWN) == agent
    assert set(LoopArguments.__annotations__) == loop - agent
    types, names = get_type_hints(Loop), get_type_hints(LoopArguments)
    assert {name: types[name] for name in names} == names


def test_a_run_is_streamed_as_events() -> None:
    agent = Agent("m", provider=Scripted([turn("Six boats.")]), system="Count.")
    events = list(agent.stream("How many boats?"))
    pieces = [str(event.data["text"]) for event in events if event.kind == "model_delta"]
    assert "".join(pieces) == "Six boats."
    assert events[-1].kind == "run_completed"
    assert events[-1].payload.final_text == "Six boats."


def test_a_model_is_called_by_provider_and_name() -> None:
    with serving(openai_chat.CHAT) as server:
        agent = Agent("openai:some:model", base_url=f"{server.url}/v1", system="Count.")
        trajectory = agent.run("How many boats?")
        assert trajectory.termination_reason is TerminationReason.COMPLETED
        assert server.bodies[0]["model"] == "some:model"
        assert server.headers[0]["authorization"] == "Bearer no-key", "none is looked for"
        Agent("openai:m", base_url=f"{server.url}/v1", api_key="k-1").run("How many boats?")
        assert server.headers[1]["authorization"] == "Bearer k-1"


def test_the_settings_of_a_model_reach_the_loop() -> None:
    settings = ModelConfig(
        provider="openai", name="m", temperature=0.1, price=Price(input=1, output=2)
    )
    loop = Agent(
        settings, base_url="http://127.0.0.1:9", config={"budget": {"max_cost_usd": 1}}
    ).loop
    assert (loop.model, loop.temperature, loop.price) == ("m", 0.1, settings.price)
    assert Agent(settings, provider=Scripted([]), temperature=0.2).loop.temperature == 0.2


@pytest.mark.parametrize("name", ["base_url", "api_key"])
def test_a_provider_and_a_setting_of_the_live_client_contradict_each_other(name: str) -> None:
    settings: dict[str, Any] = {name: "k-secret"}
    with pytest.raises(ConfigurationError, match=f"provider and {name} are both given") as error:
        Agent("m", provider=Scripted([]), **settings)
    assert "k-secret" not in str(error.value)


def test_the_vendors_sdk_looks_for_a_key_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ConfigurationError, match=r"model openai:m: .*give api_key=\.\.\., or set"):
        Agent("openai:m")
    monkeypatch.setenv("OPENAI_API_KEY", "k-1")
    Agent("openai:m")


def test_an_anthropic_model_without_a_key_is_refused_before_it_is_called(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in [name for name in os.environ if name.startswith("ANTHROPIC_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(ConfigurationError) as error:
        Agent("anthropic:m")
    assert str(error.value) == (
        "model anthropic:m: no API key was given or found; "
        "give api_key=..., or set ANTHROPIC_API_KEY"
    )
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "t-1")
    Agent("anthropic:m")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"model": "gpt-4.1"}, ["'gpt-4.1'", "provider:name", "openai"]),
        ({"model": "opnai:gpt-4.1"}, ["'opnai:gpt-4.1'", "did you mean 'openai'?"]),
        ({"model": "openai:"}, ["provider:name"]),
        ({"model": ModelConfig(provider="scripted", name="m")}, ["'scripted'", "known:"]),
        ({"output": int}, ["output = int", "pydantic model"]),
        ({"output": {"type": "array"}}, ["'array'", "must be an object"]),
        ({"validators": [lambda _: None]}, ["need output=..."]),
        ({"reflection_handler": str}, ["need output=..."]),
        ({"config": {"reflection": True}}, ["reflection handler"]),
        ({"config": {"max_iteration": 3}}, ["config: max_iteration", "did you mean"]),
        ({"model": 5}, ["model = 5: must be written provider:name"]),
        ({"config": "fast"}, ["config = 'fast': give settings by name", "max_iterations"]),
        ({"config": "sigil"}, ["a preset is given as preset='sigil'"]),
        ({"config": [1]}, ["config = [1]: give settings by name"]),
        ({"preset": None}, ["preset = None: unknown value; known: agent33"]),
        ({"preset": ["sigil"]}, ["preset = ['sigil']: unknown value"]),
        ({"tools": query}, ["tools = query: give a list: tools=[query]"]),
        ({"tools": returns("ready", 1)}, ["give a list: tools=["]),
        ({"tools": {"query": query}}, ["tools is a dict: give a list"]),
        ({"tools": {query}}, ["tools is a set: give a list"]),
        ({"tools": (tool for tool in [query])}, ["tools is a generator: give a list"]),
        ({"tools": Registry}, ["give a list"]),
        ({"tools": "read_file"}, ["tools = 'read_file': a name is no tool", "builtin_tools"]),
        ({"tools": [query, "read_file"]}, ["tools[1] = 'read_file'", "builtin_tools"]),
        ({"tools": [Report]}, ["tools[0] = Report: a class is no tool: give a function"]),
        ({"tools": [Ready]}, ["tools[0] = Ready: a class is no tool: give Ready(...)"]),
        ({"tools": [None]}, ["tools[0] = None: neither a function nor a tool with spec"]),
        ({"output": "Report"}, ["output = 'Report': must be a pydantic model"]),
        ({"output": Report(boats=4)}, ["give the class: output=Report"]),
        ({"output": Report, "validators": fine}, ["validators = fine: give a list of functions"]),
        ({"output": Report, "validators": "fine"}, ["validators = 'fine': give a list"]),
        ({"output": Report, "validators": ["fine"]}, ["validators[0] = 'fine': must be a"]),
        ({"output": Report, "validators": [later]}, ["validators[0] = later: is async"]),
        ({"output": Report, "reflection_handler": 5}, ["reflection_handler = 5: must be a"]),
        ({"output": Report, "reflection_handler": later}, ["reflection_handler = later: is"]),
        ({"preset": "maestr"}, ["preset = 'maestr'", "did you mean 'maestro'?"]),
        ({"terminal_tools": ["stop"]}, ["terminal tool 'stop' is not declared"]),
    ],
)
def test_what_cannot_work_is_refused_in_words(settings: dict[str, Any], words: list[str]) -> None:
    if "model" not in settings:
        settings = {"model": "m", "provider": Scripted([]), **settings}
    with pytest.raises(ConfigurationError) as error:
        Agent(**settings)
    for word in words:
        assert word in str(error.value)

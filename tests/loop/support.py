"""Real loops on scripted models, with real tools in real threads."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from harness.loop.engine import Loop
from harness.protocols import Observer, OutputSpec, ReflectionHandler, Tool, ToolProvider, Validator
from harness.providers.scripted import Scripted
from harness.schema.loop_config import LoopConfig
from harness.schema.messages import Message, ModelTurn, ToolResult, ToolSpec
from harness.schema.record import Json, JsonObject
from harness.schema.trajectory import EventKind, Trajectory
from harness.tools.registry import Registry
from harness.values import Effect, ToolOutcome

RESULT_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {"result": {"type": "string"}},
    "required": ["result"],
}


class FunctionTool:
    """A plain function of the arguments as a tool."""

    def __init__(
        self,
        name: str,
        function: Callable[[JsonObject], Json | ToolOutcome],
        parameters: JsonObject | None = None,
        *,
        sequential: bool = False,
        effects: Sequence[Effect] | None = (),
    ) -> None:
        self.sequential = sequential
        self.declared = effects
        self.spec = ToolSpec(name=name, description="", parameters=parameters or {})
        self.settings: JsonObject = {}
        self.function = function

    def effects(self, arguments: JsonObject) -> Sequence[Effect] | None:
        return self.declared

    def call(self, arguments: JsonObject, timeout_s: float) -> Json | ToolOutcome:
        return self.function(arguments)


def returns(name: str, value: Json) -> FunctionTool:
    return FunctionTool(name, lambda _: value)


def raises(name: str, text: str = "boom") -> FunctionTool:
    def function(_: JsonObject) -> Json:
        raise RuntimeError(text)

    return FunctionTool(name, function)


def fails(name: str, text: str = "bad input") -> FunctionTool:
    return FunctionTool(name, lambda _: ToolOutcome(text, "failed"))


def call(id_: str, name: str, **arguments: Json) -> tuple[str, str, str]:
    return id_, name, json.dumps(arguments)


def output(
    *validators: Validator,
    handler: ReflectionHandler | None = None,
    schema: JsonObject = RESULT_SCHEMA,
    name: str = "output",
) -> OutputSpec:
    return OutputSpec(
        ToolSpec(name=name, description="Hand in the result.", parameters=schema),
        validators,
        handler,
    )


def long_enough(value: Json) -> str | None:
    assert isinstance(value, dict)
    return None if len(str(value["result"])) > 5 else "result is too short"


def preview(value: Json) -> str:
    assert isinstance(value, dict)
    return f"Preview: {value.get('result')}"


def make(
    turns: Iterable[ModelTurn | Exception],
    *,
    tools: Sequence[Tool] | ToolProvider = (),
    setup: Mapping[str, Any] = {},
    output: OutputSpec | None = None,
    observers: Sequence[Observer] = (),
    **settings: Any,
) -> tuple[Loop, Scripted]:
    """A loop on a script.

    `setup` is what else a loop takes, and settings are the keys of a loop configuration.
    """
    provider = Scripted(turns)
    loop = Loop(
        provider,
        model="scripted-1",
        tools=Registry(tools) if isinstance(tools, Sequence) else tools,
        output=output,
        config=LoopConfig.model_validate(settings),
        observers=observers,
        **setup,
    )
    return loop, provider


def run(
    turns: Iterable[ModelTurn | Exception],
    *,
    messages: str | Sequence[Message] = "Do the task.",
    system: str | None = None,
    **how: Any,
) -> tuple[Trajectory, Scripted]:
    loop, provider = make(turns, **how)
    return loop.run(messages, system=system), provider


def kinds(trajectory: Trajectory) -> list[EventKind]:
    return [event.kind for event in trajectory.events]


def last_results(messages: Sequence[Message]) -> list[ToolResult]:
    """The results of the last user turn."""
    return list(messages[-1].tool_results)


def roles(messages: Sequence[Message]) -> list[str]:
    return [message.role for message in messages]


def answered(trajectory: Trajectory) -> None:
    """Hold that every call has one result, in order, first in the next turn."""
    messages = trajectory.messages
    for place, message in enumerate(messages):
        ids = [block.id for block in message.tool_calls]
        if ids:
            following = messages[place + 1]
            assert following.role == "user"
            assert [block.call_id for block in following.tool_results] == ids
        if message.tool_results:
            before = messages[place - 1].tool_calls
            assert len(message.tool_results) == len(before)
            assert message.content[: len(before)] == message.tool_results

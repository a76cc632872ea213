"""Refusing what a loop is given that is not what it takes: no hook, no tool, no provider."""

from __future__ import annotations

import inspect
import reprlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields
from types import NoneType
from typing import Any, TypeGuard, TypeVar

from harness.errors import ConfigurationError
from harness.loop.setup import Setup
from harness.protocols import Hook, OutputSpec, ToolProvider
from harness.schema.loop_config import LoopConfig
from harness.schema.messages import Message
from harness.schema.suite import Price, Skill
from harness.schema.trajectory import SuspendedRun

Thing = TypeVar("Thing")

_TYPES: Sequence[tuple[str, tuple[type, ...], str]] = (
    ("model", (str,), "the model's name, as text"),
    ("config", (LoopConfig,), "a LoopConfig: LoopConfig(**settings)"),
    (
        "output",
        (OutputSpec, NoneType),
        "an OutputSpec, or use harness.agents.Agent, which takes a pydantic model or a schema",
    ),
    ("temperature", (float, int, NoneType), "a number, or None"),
    ("price", (Price, NoneType), "a Price: Price(input=…, output=…)"),
    ("stop_conditions", (Mapping,), "a mapping of names to functions"),
)
_LISTS: Sequence[tuple[str, type, str]] = (
    ("hooks", Hook, "a list of Hook objects: [Hook(before_run=…)]"),
    ("skills", Skill, "a list of Skill objects"),
)
_TOOL_METHODS = ("specs", "is_sequential", "effects", "invoke")


def is_tool_provider(given: object) -> TypeGuard[ToolProvider]:
    """Whether something has what a loop asks of its tools."""
    return _has(given, *_TOOL_METHODS)


def check_given(setup: Setup) -> None:
    """Hold each argument of a loop against its type.

    Raises:
        ConfigurationError: names the argument and what to give.
    """
    for name, kinds, give in _TYPES:
        value = getattr(setup, name)
        if not isinstance(value, kinds) or isinstance(value, bool):
            raise _wrong(name, value, give)
    for name, kind, give in _LISTS:
        if not is_list_of(getattr(setup, name), kind):
            raise _wrong(name, getattr(setup, name), give)
    for name in ("terminal_tools", "active_skills"):
        if not _is_names(getattr(setup, name)):
            raise _wrong(name, getattr(setup, name), "a list of names: ['…']")
    _check_objects(setup)
    _check_functions(setup)


def check_messages(messages: object) -> None:
    """Hold the conversation that a run is to begin with against what a model may be sent.

    Raises:
        ConfigurationError: it is none, or a call and its result are not both there.
    """
    if isinstance(messages, str):
        return
    if not is_list_of(messages, Message):
        example = "Message(role='user', content=(Text(text='…'),))"
        raise _wrong("messages", messages, f"a text, or a list of Message objects: {example}")
    if not messages:
        raise ConfigurationError("messages is empty: give the task, as text or as messages")
    _check_answered(messages)


def check_text(name: str, value: object, *, optional: bool = False) -> None:
    """Refuse what is no text.

    Raises:
        ConfigurationError: names the argument.
    """
    if not isinstance(value, str) and not (optional and value is None):
        raise _wrong(name, value, "a text")


def check_suspended(setup: Setup, state: object) -> None:
    """Refuse to resume what is no suspended run, or one whose tools are all missing.

    Raises:
        ConfigurationError: says what to give.
    """
    if not isinstance(state, SuspendedRun):
        give = "Trajectory.suspended, or SuspendedRun.model_validate_json(text)"
        raise _wrong("state", state, give)
    if state.tools_executed and setup.tools is None:
        names = ", ".join(dict.fromkeys(state.tools_executed))
        raise ConfigurationError(
            f"the suspended run has called {names}, and this loop has no tools: "
            "make it with the tools of the run"
        )


def is_list_of(value: object, kind: type[Thing]) -> TypeGuard[Sequence[Thing]]:
    """Whether it is a sequence of such things."""
    return _is_list(value) and all(isinstance(item, kind) for item in value)


def _is_list(value: object) -> TypeGuard[Sequence[object]]:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _is_names(value: object) -> bool:
    is_several = isinstance(value, Collection) and not isinstance(value, str | bytes)
    return is_several and all(isinstance(name, str) for name in value)  # type: ignore[attr-defined]


def _check_objects(setup: Setup) -> None:
    has_methods = "an object with the plain method"
    if not _has(setup.provider, "complete"):
        raise _wrong("provider", setup.provider, f"{has_methods} complete(request, on_delta)")
    if setup.tools is not None and not is_tool_provider(setup.tools):
        give = "Registry([…]), or use harness.agents.Agent, which takes functions"
        raise _wrong("tools", setup.tools, give)
    if setup.recall is not None and not _has(setup.recall, "search"):
        raise _wrong("recall", setup.recall, f"{has_methods} search(query, limit)")


def _check_functions(setup: Setup) -> None:
    given: list[tuple[str, Any]] = [
        ("terminal_check", setup.terminal_check),
        ("on_iteration_limit", setup.on_iteration_limit),
    ]
    given += _each("checks", setup.checks) + _each("observers", setup.observers)
    for number, hook in enumerate(setup.hooks):
        check_text(f"hooks[{number}].name", hook.name)
        points = [field.name for field in fields(Hook) if field.name != "name"]
        given += [(f"hook {hook.name!r}: {point}", getattr(hook, point)) for point in points]
    if setup.output is not None:
        given.append(("output.reflection_handler", setup.output.reflection_handler))
        given += _each("output.validators", setup.output.validators)
    given = [(name, value) for name, value in given if value is not None]
    given += [("redact", setup.redact), ("clock", setup.clock)]
    given += [(f"stop_conditions[{key!r}]", test) for key, test in setup.stop_conditions.items()]
    for name, value in given:
        if not _is_function(value):
            raise _wrong(name, value, "a plain function, not a coroutine function")


def _each(name: str, values: object) -> list[tuple[str, Any]]:
    if not _is_list(values):
        raise _wrong(name, values, "a list of functions: […]")
    # An item that is None is no function either, while an argument may be left out.
    return [
        (f"{name}[{number}]", "None" if value is None else value)
        for number, value in enumerate(values)
    ]


def _has(value: object, *methods: str) -> bool:
    """Whether it is an object with these methods; a class only makes such objects."""
    there = all(_is_function(getattr(value, name, None)) for name in methods)
    return there and not isinstance(value, type)


def _is_function(value: object) -> bool:
    call = inspect.getattr_static(type(value), "__call__", None)
    return callable(value) and not any(
        inspect.iscoroutinefunction(one) or inspect.isasyncgenfunction(one) for one in (value, call)
    )


def _check_answered(messages: Sequence[Message]) -> None:
    """Refuse a call without its result, and a result without its call: no vendor takes them."""
    called: set[str] = set()
    waiting: set[str] = set()
    for message in messages:
        if message.role == "assistant":
            _check_none_waits(waiting)
            called = {call.id for call in message.tool_calls}
            waiting = set(called)
        for result in message.tool_results:
            if result.call_id not in called:
                raise ConfigurationError(
                    f"messages: the result {result.call_id!r} answers no call of the turn before: "
                    "add the assistant's turn with the call, or leave the result out"
                )
            waiting.discard(result.call_id)
    _check_none_waits(waiting)


def _check_none_waits(waiting: Collection[str]) -> None:
    if waiting:
        raise ConfigurationError(
            f"messages: the tool call {min(waiting)!r} has no result in the next turn: "
            "add a ToolResult for it, or leave the call out"
        )


def _wrong(name: str, value: object, give: str) -> ConfigurationError:
    shown = " ".join(reprlib.repr(value).split())
    return ConfigurationError(f"{name} = {shown}: give {give}")

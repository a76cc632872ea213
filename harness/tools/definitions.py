"""Tools that a YAML file describes: a function by its name, or a command for the sandbox."""

from __future__ import annotations

import difflib
import importlib
import json
import re
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

import yaml
from pydantic import Field, ValidationError, model_validator
from pydantic_core import ErrorDetails, PydanticCustomError

from harness.errors import ConfigurationError, error_line
from harness.protocols import Tool
from harness.schema.json_schema import schema_problem
from harness.schema.messages import ToolSpec
from harness.schema.record import Json, JsonObject, Record
from harness.tools.machine import Machine
from harness.tools.shell import OUTPUT_LIMIT, run_on
from harness.values import Effect, ToolOutcome

_PLACEHOLDER = re.compile(r"\{(\w+)\}")


class Definition(Record):
    """What a file says of one tool; exactly one of `function` and `command` is given."""

    name: str = Field(min_length=1)
    description: str
    parameters: JsonObject = Field(default={"type": "object", "properties": {}})
    """JSON Schema of the arguments object; without one it takes none."""
    function: str | None = None
    """`module:name` of a function that takes the arguments by name."""
    command: tuple[str, ...] | None = Field(default=None, min_length=1)
    """Program and arguments, run without a shell; `{name}` stands for an argument of the call."""

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        if (self.function is None) == (self.command is None):
            raise PydanticCustomError("definition", "give either function or command")
        return self


class DefinedFunction:
    """A function under the schema of a file."""

    sequential = False

    def __init__(self, definition: Definition, function: Callable[..., Any]) -> None:
        self.spec = _spec(definition)
        self.settings: JsonObject = {"function": definition.function}
        self._function = function

    def effects(self, arguments: JsonObject) -> None:
        """It cannot say."""
        return

    def call(self, arguments: JsonObject, timeout_s: float) -> Any:
        """Call the function with the arguments by name."""
        return self._function(**arguments)


class DefinedCommand:
    """A command that runs on the task's machine."""

    sequential = True
    stops_itself = True

    def __init__(
        self,
        definition: Definition,
        command: tuple[str, ...],
        machine: Machine,
    ) -> None:
        self.spec = _spec(definition)
        self.settings: JsonObject = {"command": list(command), "limit": OUTPUT_LIMIT}
        self._command = command
        self._defaults = _defaults(definition)
        self._machine = machine

    def effects(self, arguments: JsonObject) -> Sequence[Effect]:
        """It runs the command."""
        return (Effect("command", shlex.join(self._filled(arguments))),)

    def call(self, arguments: JsonObject, timeout_s: float) -> ToolOutcome:
        """The command's output; a command that fails is a result like any other."""
        command = self._filled(arguments)
        return run_on(self._machine, command, timeout_s)

    def _filled(self, arguments: JsonObject) -> list[str]:
        values = {**self._defaults, **arguments}
        return [
            _PLACEHOLDER.sub(lambda found: _text(values[found[1]]), part) for part in self._command
        ]


def defined_tool(path: Path, machine: Machine) -> Tool:
    """The tool that a YAML file describes.

    Args:
        path: The file.
        machine: Where a command runs; not made before one does.

    Raises:
        ConfigurationError: the file cannot be used; the text names file and key.
    """
    definition = _read(path)
    problem = schema_problem(definition.parameters)
    if problem is not None:
        raise ConfigurationError(f"{path}: parameters: not a JSON Schema: {problem}")
    kind = definition.parameters.get("type", "object")
    if kind != "object":
        raise ConfigurationError(f"{path}: parameters.type = {kind!r}: must be 'object'")
    if definition.function is not None:
        return DefinedFunction(definition, _function(definition.function, path))
    assert definition.command is not None
    _check_placeholders(definition, definition.command, path)
    return DefinedCommand(definition, definition.command, machine)


def _spec(definition: Definition) -> ToolSpec:
    return ToolSpec(
        name=definition.name,
        description=definition.description,
        parameters=definition.parameters,
    )


class _OnceEach(yaml.SafeLoader):
    """Plain values only, and no key twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        names = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        for name in names:
            if names.count(name) > 1:
                raise yaml.YAMLError(f"key {name!r} is there twice")
        return super().construct_mapping(node, deep)


def _read(path: Path) -> Definition:
    try:
        value = yaml.load(path.read_text(encoding="utf-8"), Loader=_OnceEach)
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        reason = " ".join(str(error).split())
        raise ConfigurationError(f"{path}: not valid YAML: {reason}") from error
    try:
        return Definition.model_validate(value)
    except ValidationError as error:
        found = error.errors(include_url=False)
        # A mistyped key explains the missing one.
        first = min(found, key=lambda detail: detail["type"] != "extra_forbidden")
        raise ConfigurationError(f"{path}: {_complaint(first)}") from error


def _complaint(error: ErrorDetails) -> str:
    key = ".".join(map(str, error["loc"]))
    if error["type"] == "missing":
        return f"{key}: missing; add it"
    if error["type"] == "extra_forbidden":
        close = difflib.get_close_matches(key, Definition.model_fields, n=1)
        guess = f"did you mean {close[0]!r}? " if close else ""
        return f"{key}: unknown key; {guess}known: {', '.join(Definition.model_fields)}"
    message = error["msg"][0].lower() + error["msg"][1:]
    if not error["loc"]:
        # What a whole file gets wrong, the message says; its text would only bury that.
        return message if isinstance(error["input"], dict) else "write one tool as keys and values"
    return f"{key} = {error['input']!r}: {message}"


def _function(name: str, path: Path) -> Callable[..., Any]:
    module, _, attribute = name.partition(":")
    where = f"{path}: function = {name!r}"
    if not module or not attribute:
        raise ConfigurationError(f"{where}: write it as module:name")
    try:
        found: object = getattr(importlib.import_module(module), attribute, None)
    except Exception as error:
        raise ConfigurationError(
            f"{where}: the module cannot be imported: {error_line(error)}"
        ) from error
    if not callable(found):
        raise ConfigurationError(f"{where}: the module has no such function")
    return found


def _check_placeholders(definition: Definition, command: Sequence[str], path: Path) -> None:
    if _PLACEHOLDER.search(command[0]):
        raise ConfigurationError(f"{path}: command[0] = {command[0]!r}: the program must be fixed")
    required = definition.parameters.get("required")
    always = {*_defaults(definition), *(required if isinstance(required, list) else ())}
    for position, part in enumerate(command):
        for name in _PLACEHOLDER.findall(part):
            if name not in always:
                raise ConfigurationError(
                    f"{path}: command[{position}] = {part!r}: {name!r} must be a parameter that is "
                    "required or has a default"
                )


def _defaults(definition: Definition) -> JsonObject:
    properties = definition.parameters.get("properties")
    found = properties if isinstance(properties, dict) else {}
    return {
        name: schema["default"]
        for name, schema in found.items()
        if isinstance(schema, dict) and "default" in schema
    }


def _text(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

"""Plain functions as tools: the schema comes from signature and docstring."""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic.errors import PydanticUserError
from pydantic.json_schema import GenerateJsonSchema

from harness.errors import ConfigurationError
from harness.schema.messages import ToolSpec
from harness.schema.record import JsonObject
from harness.tools.docstring import take_apart
from harness.tools.results import are_effects
from harness.values import Effect, ToolOutcome

Function = Callable[..., Any]
EffectsOf = Callable[[JsonObject], Sequence[Effect] | None]

_TAKEN_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class FunctionTool:
    """A function, plain or async, that the model may call; made by `function_tool`."""

    def __init__(
        self,
        spec: ToolSpec,
        function: Function,
        arguments: type[BaseModel],
        *,
        sequential: bool,
        effects: EffectsOf | Sequence[Effect] | None,
    ) -> None:
        self.spec = spec
        self.settings: JsonObject = {}
        self.sequential = sequential
        self._function = function
        self._arguments = arguments
        self._effects = effects

    def effects(self, arguments: JsonObject) -> Sequence[Effect] | None:
        """What was said of it when it was made."""
        return self._effects(arguments) if callable(self._effects) else self._effects

    def call(self, arguments: JsonObject, timeout_s: float) -> Any:
        """Call the function with its arguments in the types it declares."""
        try:
            # The function may change what it is given.
            given = self._arguments.model_validate(copy.deepcopy(arguments))
        except ValidationError as error:
            return ToolOutcome(content=_complaints(error), status="failed")
        names = {name: field.alias or name for name, field in self._arguments.model_fields.items()}
        values = {names[name]: getattr(given, name) for name in given.model_fields_set}
        return self._function(**values)


def function_tool(
    function: Function,
    *,
    name: str | None = None,
    description: str | None = None,
    sequential: bool = False,
    effects: EffectsOf | Sequence[Effect] | None = None,
) -> FunctionTool:
    """Make a tool of a function, a method or another callable; async ones too.

    The type of each parameter gives its schema; a Google-style docstring describes the tool and,
    under `Args:`, the parameters. What the function returns is the result: a text as it is,
    anything else as JSON; a Signal, a Suspend or a Blocked asks something of the run.

    Args:
        function: What to call.
        name: What the model calls it; the function's own name if not given.
        description: What the model is told; the docstring if not given.
        sequential: Never run it at the same time as another call.
        effects: What a call does outside the loop, or a function of the arguments that says it;
            `()` is nothing. None leaves it open, so that `read_only` autonomy denies it.

    Raises:
        ConfigurationError: it cannot be called with named JSON arguments, or `effects` are none.
    """
    if isinstance(function, type) or not callable(function):
        raise ConfigurationError(f"a tool is made of a function, not of {_named(function)}")
    written = _written(function)
    name = name or getattr(written, "__name__", type(written).__name__)
    if not name or name == "<lambda>":
        raise ConfigurationError(f"the function {function!r} has no name of its own: give name=...")
    _check_effects(name, effects)
    described = take_apart(inspect.getdoc(written) or "")
    arguments = _arguments_model(name, function)
    spec = ToolSpec(
        name=name,
        description=described.text if description is None else description,
        parameters=_schema(name, arguments, described.parameters),
    )
    return FunctionTool(spec, function, arguments, sequential=sequential, effects=effects)


def _named(given: object) -> str:
    return f"the class {given.__name__}" if isinstance(given, type) else repr(given)


def _check_effects(name: str, effects: object) -> None:
    if effects is None or are_effects(effects):
        return
    if not callable(effects) or isinstance(effects, type):
        raise ConfigurationError(
            f"tool {name!r}: effects = {effects!r}: give a list of Effect, as in "
            "[Effect('read', 'log.txt')], or a function of the arguments that gives one"
        )
    if inspect.iscoroutinefunction(effects):
        raise ConfigurationError(f"tool {name!r}: effects is async: give a plain function")


def _written(function: Function) -> Function:
    """What holds the name and the docstring."""
    while isinstance(function, functools.partial):
        function = function.func
    return function


def _arguments_model(name: str, function: Function) -> type[BaseModel]:
    fields: dict[str, Any] = {}
    for number, parameter in enumerate(_parameters(name, function)):
        untyped = parameter.annotation is inspect.Parameter.empty
        required = parameter.default is inspect.Parameter.empty
        # Under a name of ours: a parameter may be called like a method of pydantic's.
        fields[f"p{number}"] = (
            Any if untyped else parameter.annotation,
            Field(... if required else parameter.default, alias=parameter.name),
        )
    try:
        return create_model("Arguments", __config__=ConfigDict(extra="forbid"), **fields)
    except (PydanticUserError, TypeError) as error:
        raise _undescribable(name, error) from error


def _parameters(name: str, function: Function) -> list[inspect.Parameter]:
    try:
        parameters = list(inspect.signature(function, eval_str=True).parameters.values())
    except (TypeError, ValueError) as error:
        raise ConfigurationError(
            f"tool {name!r}: {function!r} has no readable signature; wrap it in a function"
        ) from error
    except NameError as error:
        raise ConfigurationError(
            f"tool {name!r}: the type {error.name!r} in its signature is not known where the "
            "function's module can see it; define it at the top level of that module"
        ) from error
    for parameter in parameters:
        if parameter.kind not in _TAKEN_BY_NAME:
            raise ConfigurationError(
                f"tool {name!r}: the parameter {str(parameter)!r} is {parameter.kind.description}; "
                "a model calls by name, so use plain parameters"
            )
    return parameters


class _PlainSchema(GenerateJsonSchema):
    """Without titles made up from names; a default that is no JSON is left out."""

    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012 - pydantic's

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def _schema(name: str, arguments: type[BaseModel], descriptions: dict[str, str]) -> JsonObject:
    try:
        schema: JsonObject = arguments.model_json_schema(schema_generator=_PlainSchema)
    except PydanticUserError as error:
        raise _undescribable(name, error) from error
    del schema["title"]
    properties = schema.setdefault("properties", {})
    assert isinstance(properties, dict)
    for parameter, text in descriptions.items():
        found = properties.get(parameter)
        if isinstance(found, dict):
            found.setdefault("description", text)
    return schema


def _undescribable(name: str, error: Exception) -> ConfigurationError:
    reason = str(error).partition("\n")[0]
    return ConfigurationError(f"tool {name!r}: its parameters have no JSON schema: {reason}")


def _complaints(error: ValidationError) -> str:
    found = [
        f"{'.'.join(map(str, detail['loc'])) or 'arguments'}: {detail['msg']}"
        for detail in error.errors(include_url=False, include_input=False, include_context=False)
    ]
    return f"the arguments do not fit: {'; '.join(found)}"

"""An output as a Python user asks for it: as a pydantic model, or as a JSON schema."""

from __future__ import annotations

import dataclasses
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ValidationError

from harness.errors import ConfigurationError
from harness.protocols import OutputSpec, ReflectionHandler, Validator
from harness.schema.messages import ToolSpec
from harness.schema.record import Json, JsonObject
from harness.schema.suite import OutputConfig


def asked_output(
    asked: type[Any] | Mapping[str, Any] | OutputSpec | None,
    validators: Sequence[Callable[[Any], str | None]],
    reflection_handler: Callable[[Any], str] | None,
) -> OutputSpec | None:
    """The specification of an output.

    Raises:
        ConfigurationError: it is no pydantic model, not an object, or missing where it is needed.
    """
    _check_functions(validators, reflection_handler)
    if asked is None:
        if validators or reflection_handler is not None:
            raise ConfigurationError(
                "validators and reflection_handler need output=...: declare it"
            )
        return None
    if isinstance(asked, OutputSpec):
        return dataclasses.replace(
            asked,
            validators=(*asked.validators, *validators),
            reflection_handler=reflection_handler or asked.reflection_handler,
        )
    if isinstance(asked, BaseModel):
        name = type(asked).__name__
        raise ConfigurationError(f"output = {asked!r}: give the class: output={name}")
    if isinstance(asked, Mapping):
        return _spec(dict(asked), tuple(validators), reflection_handler)
    if not isinstance(asked, type) or not issubclass(asked, BaseModel):
        shown = asked.__name__ if isinstance(asked, type) else repr(asked)
        raise ConfigurationError(
            f"output = {shown}: must be a pydantic model, a JSON schema or an OutputSpec"
        )
    return _spec(
        asked.model_json_schema(),
        (_fits(asked), *(_on_model(asked, validator) for validator in validators)),
        None if reflection_handler is None else _on_model(asked, reflection_handler),
    )


def _check_functions(validators: object, handler: object) -> None:
    if isinstance(validators, str) or not isinstance(validators, Sequence):
        name = getattr(validators, "__name__", repr(validators))
        raise ConfigurationError(
            f"validators = {name}: give a list of functions: validators=[check]"
        )
    for place, validator in enumerate(validators):
        _check_function(f"validators[{place}]", validator)
    if handler is not None:
        _check_function("reflection_handler", handler)


def _check_function(where: str, given: object) -> None:
    if not callable(given):
        raise ConfigurationError(f"{where} = {given!r}: must be a function of the output")
    if inspect.iscoroutinefunction(given) or inspect.iscoroutinefunction(type(given).__call__):
        name = getattr(given, "__name__", repr(given))
        raise ConfigurationError(f"{where} = {name}: is async: give a plain function")


def read_output(asked: type[Any] | None, value: Json) -> Any:
    """A valid output as the model that was asked for, else as it is."""
    if asked is None or not issubclass(asked, BaseModel):
        return value
    return asked.model_validate_json(json.dumps(value))


def _spec(
    schema: JsonObject, validators: tuple[Validator, ...], handler: ReflectionHandler | None
) -> OutputSpec:
    if schema.get("type", "object") != "object":
        raise ConfigurationError(
            f"output: its schema has the type {schema['type']!r}: it must be an object; "
            "put the value into a field"
        )
    defaults = OutputConfig(schema=schema)
    tool = ToolSpec(name=defaults.name, description=defaults.description, parameters=schema)
    return OutputSpec(tool, validators, handler)


def _fits(asked: type[BaseModel]) -> Validator:
    """What the model checks beyond its schema."""

    def check(value: Json) -> str | None:
        try:
            read_output(asked, value)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            place = ".".join(str(part) for part in first["loc"])
            return f"{place}: {first['msg']}" if place else first["msg"]
        return None

    return check


def _on_model(asked: type[BaseModel], function: Callable[[Any], Any]) -> Callable[[Json], Any]:
    """The function of a model as a function of its JSON."""

    def on_json(value: Json) -> Any:
        return function(read_output(asked, value))

    return on_json

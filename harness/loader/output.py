"""A task's output declaration, with its checks and its preview as functions."""

from __future__ import annotations

import hashlib
import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from string import Formatter
from types import ModuleType
from typing import Any, cast

from harness.errors import ConfigurationError, error_line
from harness.loader.reading import known, validated
from harness.protocols import OutputSpec, ReflectionHandler, Validator
from harness.schema.json_schema import schema_problem
from harness.schema.messages import ToolSpec
from harness.schema.record import Json, JsonObject, Record
from harness.schema.suite import OutputConfig, Task


class _MinLength(Record):
    field: str
    n: int


class _Equals(Record):
    field: str
    value: Json


def output_spec(task: Task) -> OutputSpec | None:
    """What the task asks for, ready to be checked; None for a task that ends with text.

    Raises:
        ConfigurationError: a schema, validator or handler that cannot be used.
    """
    if task.output is None:
        return None
    where = f"{task.folder / 'task.toml'}: metadata.harness.output"
    if task.scenario is not None:
        where = f"{task.tests}: scenario {task.name!r}: output"
    return declared_output(task.output, task.folder, where)


def declared_output(output: OutputConfig, folder: Path, where: str) -> OutputSpec:
    """An output declaration, ready to be checked.

    Args:
        output: What a file says.
        folder: Holds the modules that it names, where they are not installed.
        where: File and key, for errors.

    Raises:
        ConfigurationError: a schema, validator or handler that cannot be used.
    """
    problem = schema_problem(output.schema_)
    if problem is not None:
        raise ConfigurationError(f"{where}.schema: not a JSON Schema: {problem}")
    validators = tuple(
        _validator(entry, folder, f"{where}.validators[{position}]")
        for position, entry in enumerate(output.validators)
    )
    handler = output.reflection_handler
    return OutputSpec(
        tool=ToolSpec(name=output.name, description=output.description, parameters=output.schema_),
        validators=validators,
        reflection_handler=(
            None if handler is None else _handler(handler, folder, f"{where}.reflection_handler")
        ),
    )


def _single(entry: JsonObject, kinds: Sequence[str], where: str) -> tuple[str, Json]:
    name = next(iter(entry), "")
    if len(entry) != 1 or name not in kinds:
        raise ConfigurationError(
            f"{where} = {entry!r}: must have exactly one key; {known(kinds, name)}"
        )
    return name, entry[name]


def _validator(entry: str | JsonObject, folder: Path, where: str) -> Validator:
    if isinstance(entry, str):
        return cast(Validator, load_function(entry, folder, where))
    name, settings = _single(entry, ("min_length", "equals"), where)
    table = settings if isinstance(settings, dict) else {}
    if name == "min_length":
        return _min_length(validated(_MinLength, table, where=f"{where}.min_length"))
    return _equals(validated(_Equals, table, where=f"{where}.equals"))


def _min_length(rule: _MinLength) -> Validator:
    def check(output: Json) -> str | None:
        value = output.get(rule.field) if isinstance(output, Mapping) else None
        length = len(value) if isinstance(value, str | Sequence | Mapping) else 0
        if length >= rule.n:
            return None
        return f"{rule.field!r} must have a length of at least {rule.n}, but has {length}"

    return check


def _equals(rule: _Equals) -> Validator:
    def check(output: Json) -> str | None:
        value = output.get(rule.field) if isinstance(output, Mapping) else None
        # True == 1 in Python, but not in JSON.
        if value == rule.value and isinstance(value, bool) == isinstance(rule.value, bool):
            return None
        return f"{rule.field!r} must be {rule.value!r}, but is {value!r}"

    return check


def _handler(entry: str | JsonObject, folder: Path, where: str) -> ReflectionHandler:
    if isinstance(entry, str):
        return cast(ReflectionHandler, load_function(entry, folder, where))
    name, text = _single(entry, ("returns", "raises", "rejects"), where)
    if not isinstance(text, str):
        raise ConfigurationError(f"{where}.{name} = {text!r}: must be text")
    if name == "returns":
        return _preview(text, f"{where}.{name}")
    return _raising(RuntimeError(text) if name == "raises" else ValueError(text))


class _Forgiving(Formatter):
    """str.format that says what is missing instead of raising: a draft may lack any field."""

    def get_field(
        self, field_name: str, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> tuple[Any, str]:
        try:
            return cast("tuple[Any, str]", super().get_field(field_name, args, kwargs))
        except (KeyError, IndexError, AttributeError, TypeError, ValueError):
            return f"<{field_name} is missing>", field_name

    def format_field(self, value: Any, format_spec: str) -> str:
        try:
            return cast(str, super().format_field(value, format_spec))
        except (TypeError, ValueError):
            return str(value)


def _preview(template: str, where: str) -> ReflectionHandler:
    try:
        list(Formatter().parse(template))
    except ValueError as error:
        raise ConfigurationError(f"{where} = {template!r}: {error}; write {{field}}") from None

    def show(output: Json) -> str:
        fields = output if isinstance(output, Mapping) else {}
        return _Forgiving().vformat(template, (), fields)

    return show


def _raising(error: Exception) -> ReflectionHandler:
    def fail(output: Json) -> str:
        raise type(error)(*error.args)

    return fail


def load_function(reference: str, folder: Path, where: str) -> Callable[..., Any]:
    """The function that `module:function` names, of a module in the folder or an installed one.

    Raises:
        ConfigurationError: there is none, or its module fails.
    """
    module_name, _, function_name = reference.partition(":")
    if not module_name or not function_name:
        raise ConfigurationError(f"{where} = {reference!r}: must be written 'module:function'")
    module = _module(module_name, folder, f"{where} = {reference!r}")
    function = getattr(module, function_name, None)
    if not callable(function):
        names = [
            name
            for name, value in vars(module).items()
            if callable(value)
            and not name.startswith("_")
            and getattr(value, "__module__", None) == module.__name__
        ]
        raise ConfigurationError(
            f"{where} = {reference!r}: no function {function_name!r} in {module_name};"
            f" {known(names, function_name)}"
        )
    return cast("Callable[..., Any]", function)


def _module(name: str, folder: Path, where: str) -> ModuleType:
    """A module file of the task's folder, else an installed module."""
    path = folder / f"{name}.py"
    try:
        return _module_from_file(path) if path.is_file() else importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"{where}: no module {error.name!r}: neither a file {path} nor installed"
        ) from None
    except Exception as error:  # noqa: BLE001 - the module is the user's, and may raise anything
        raise ConfigurationError(f"{where}: {path} fails with {error_line(error)}") from None


def _module_from_file(path: Path) -> ModuleType:
    """Run the file under a name of its own; compiling it here leaves no .pyc in the suite."""
    source = path.read_bytes()
    digest = hashlib.sha256(str(path.resolve()).encode() + b"\0" + source).hexdigest()[:16]
    name = f"harness_task_{digest}_{path.stem}"
    if name in sys.modules:
        return sys.modules[name]
    module = ModuleType(name)
    module.__file__ = str(path)
    code = compile(source, str(path), "exec")
    sys.modules[name] = module
    try:
        exec(code, module.__dict__)
    except BaseException:
        del sys.modules[name]
        raise
    return module

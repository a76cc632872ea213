"""What a plain function becomes as a tool."""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from harness.errors import ConfigurationError
from harness.schema.json_schema import schema_problem
from harness.schema.record import Json, JsonObject
from harness.schema.signals import Signal
from harness.tools.docstring import take_apart
from harness.tools.function import FunctionTool, function_tool
from harness.tools.registry import Registry
from harness.values import Effect, ToolInvocation, ToolOutcome


def called(tool: FunctionTool, **arguments: Json) -> ToolOutcome:
    invocation = ToolInvocation("call-1", tool.spec.name, arguments, 0, 60)
    return Registry([tool]).invoke(invocation)


def weather(city: str, days: int = 1, *, unit: Literal["C", "F"] = "C") -> dict[str, object]:
    """Tell the weather.

    For any city
    of the world.

    Args:
        city: Where.
        days (int): How many days;
            at most seven.
        unit: Of the temperature.

    Returns:
        The weather.
    """
    return {"unit": unit, "city": city, "days": days}


def test_the_schema_comes_from_signature_and_docstring():
    spec = function_tool(weather).spec
    assert spec.name == "weather"
    assert spec.description == "Tell the weather.\nFor any city of the world."
    assert spec.parameters == {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "Where."},
            "days": {
                "type": "integer",
                "default": 1,
                "description": "How many days; at most seven.",
            },
            "unit": {
                "type": "string",
                "enum": ["C", "F"],
                "default": "C",
                "description": "Of the temperature.",
            },
        },
        "required": ["city"],
        "additionalProperties": False,
    }


def test_a_call_gives_what_the_function_returns_as_json():
    assert called(function_tool(weather), city="Bern").content == (
        '{"city": "Bern", "days": 1, "unit": "C"}'
    )


def test_name_and_description_may_be_given():
    tool = function_tool(weather, name="forecast", description="", sequential=True)
    assert (tool.spec.name, tool.spec.description, tool.sequential) == ("forecast", "", True)
    assert function_tool(weather).sequential is False


class Colour(enum.Enum):
    RED = "red"


@dataclass
class Point:
    x: int
    y: int = 0


class Box(BaseModel):
    corner: Point
    colour: Colour | None = None


def test_arguments_come_in_the_types_that_are_declared():
    seen: list[Any] = []

    def take(
        box: Box,
        day: date,
        points: list[Point],
        pair: tuple[int, str],
        count: Annotated[int, Field(ge=1, description="How often.")],
        schema: float | None = None,
        anything=None,
        _json: str = "",
    ) -> None:
        """Args:
        count: Not this.
        """
        seen.extend([box, day, points, pair, count, schema, anything, _json])

    take.__annotations__ = {
        "box": Box, "day": date, "points": list[Point], "pair": tuple[int, str],
        "count": Annotated[int, Field(ge=1, description="How often.")],
        "schema": float | None, "_json": str,
    }  # fmt: skip
    tool = function_tool(take)
    assert schema_problem(tool.spec.parameters) is None
    properties = tool.spec.parameters["properties"]
    assert isinstance(properties, dict)
    assert properties["count"] == {"type": "integer", "minimum": 1, "description": "How often."}
    assert properties["box"] == {"$ref": "#/$defs/Box"}
    outcome = called(
        tool,
        box={"corner": {"x": 1}, "colour": "red"},
        day="2024-02-29",
        points=[{"x": 2, "y": 3}],
        pair=[1, "a"],
        count=1,
        schema=2.5,
        anything=[None],
        _json="j",
    )
    assert outcome.status == "ok"
    assert seen == [
        Box(corner=Point(1), colour=Colour.RED),
        date(2024, 2, 29),
        [Point(2, 3)],
        (1, "a"),
        1,
        2.5,
        [None],
        "j",
    ]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"city": 5}, "city: Input should be a valid string"),
        ({}, "city: Field required"),
        ({"city": "Bern", "day": 1}, "day: Extra inputs are not permitted"),
        ({"city": "Bern", "unit": "K"}, "unit: Input should be 'C' or 'F'"),
    ],
)
def test_arguments_that_do_not_fit_are_a_failed_call(arguments: JsonObject, complaint: str):
    outcome = called(function_tool(weather), **arguments)
    assert outcome.status == "failed"
    assert outcome.content == f"the arguments do not fit: {complaint}"


def test_a_default_of_the_functions_own_stays_its_own():
    missing = object()

    def take(value: Any = missing, rest: Any = ()) -> str:
        return f"{value is missing} {rest}"

    tool = function_tool(take)
    assert called(tool).content == "True ()"
    assert called(tool, value=None).content == "False ()"
    assert tool.spec.parameters["properties"] == {"value": {}, "rest": {"default": []}}


def test_what_the_function_does_to_its_arguments_stays_with_it():
    def empty(items: Any) -> int:
        items.clear()
        return 0

    items: list[Json] = [1]
    called(function_tool(empty), items=items)
    assert items == [1]


async def later(n: int) -> Signal:
    """Wait for it."""
    return Signal(name="LATER", data=n)


class Counter:
    """Counts."""

    def __init__(self) -> None:
        self.count = 0

    def add(self, n: int) -> int:
        """Add to it."""
        self.count += n
        return self.count

    def __call__(self, n: int = 1) -> int:
        return self.add(n)


def test_async_functions_methods_partials_and_callables_are_tools():
    counter = Counter()
    add_two = functools.partial(counter.add, n=2)
    seen = []
    for function, arguments in (
        (later, {"n": 5}),
        (counter.add, {"n": 3}),
        (counter, {}),
        (add_two, {}),
    ):
        tool = function_tool(function)
        outcome = called(tool, **arguments)
        seen.append((tool.spec.name, tool.spec.description, outcome.content))
    assert seen == [
        ("later", "Wait for it.", "5"),
        ("add", "Add to it.", "3"),
        ("Counter", "Counts.", "4"),
        ("add", "Add to it.", "6"),
    ]


def test_a_function_says_nothing_of_its_effects_unless_it_is_told_to():
    assert function_tool(weather).effects({}) is None
    assert function_tool(weather, effects=()).effects({}) == ()
    reaching = function_tool(weather, effects=lambda given: [Effect("network", str(given["city"]))])
    assert reaching.effects({"city": "bern.ch"}) == [Effect("network", "bern.ch")]


async def says_later(arguments: JsonObject) -> list[Effect]:
    return []


@pytest.mark.parametrize(
    ("effects", "words"),
    [
        (["read"], "effects = ['read']: give a list of Effect"),
        ("read", "effects = 'read': give a list of Effect"),
        (Effect("read", "a"), "give a list of Effect"),
        (Effect, "give a list of Effect"),
        (says_later, "effects is async: give a plain function"),
    ],
)
def test_effects_that_are_none_are_refused(effects: Any, words: str):
    with pytest.raises(ConfigurationError) as caught:
        function_tool(weather, effects=effects)
    assert "tool 'weather': " in str(caught.value)
    assert words in str(caught.value)


@pytest.mark.parametrize("given", ["weather", None, BaseModel])
def test_what_is_no_function_becomes_no_tool(given: Any):
    with pytest.raises(ConfigurationError, match="a tool is made of a function, not of "):
        function_tool(given)


def more(**rest: int) -> None: ...


def row(*rest: int) -> None: ...


def positional(a: int, /) -> None: ...


def unknown(a: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821


class Opaque: ...


def opaque(a: Opaque) -> None: ...


def callback(a: Callable[[], int]) -> None: ...


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (more, ["'more'", "'**rest: int'"]),
        (row, ["'row'", "'*rest: int'"]),
        (positional, ["'positional'", "'a: int'", "positional-only"]),
        (unknown, ["'unknown'", "'Nowhere'", "top level"]),
        (opaque, ["'opaque'", "no JSON schema", "Opaque"]),
        (callback, ["'callback'", "no JSON schema"]),
        (lambda x: x, ["give name="]),
        (dict, ["the class dict"]),
    ],
)
def test_what_a_model_cannot_call_is_refused(function: Any, words: list[str]):
    with pytest.raises(ConfigurationError) as caught:
        function_tool(function)
    assert all(word in str(caught.value) for word in words), str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_docstring_without_sections_is_all_description():
    assert take_apart("One.\n\nTwo\nlines.").text == "One.\nTwo lines."
    assert take_apart("").text == ""


def test_entries_may_span_lines_and_hold_colons():
    found = take_apart(
        "Do it.\n\nArgs:\n    a: One: two\n        three: four\n\n        five\n    b:\n      x"
    )
    assert found.parameters == {"a": "One: two three: four five", "b": "x"}

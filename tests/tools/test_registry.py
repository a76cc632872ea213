"""Whatever a tool does becomes one result."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextvars import ContextVar

import pytest

from harness.errors import ConfigurationError, SandboxError
from harness.protocols import ToolInvocation, ToolOutcome
from harness.schema.messages import ToolSpec
from harness.schema.record import Json, JsonObject
from harness.tools.registry import Registry

Function = Callable[[JsonObject, float], Json | ToolOutcome]


class FunctionTool:
    def __init__(
        self, function: Function, name: str = "tool", settings: JsonObject | None = None
    ) -> None:
        self.spec = ToolSpec(name=name, description="", parameters={"type": "object"})
        self.settings: JsonObject = settings or {}
        self.call = function


def invoke(function: Function, timeout_s: float = 60, **arguments: Json) -> ToolOutcome:
    registry = Registry([FunctionTool(function)])
    return registry.invoke(ToolInvocation("call-1", "tool", arguments, 0, timeout_s))


@pytest.mark.parametrize(
    ("value", "content"),
    [
        ("as it is\n", "as it is\n"),
        ("", ""),
        ({"b": [1, None], "a": "ä"}, '{"a": "ä", "b": [1, null]}'),
        (None, "null"),
        (True, "true"),
        (1.5, "1.5"),
        ([], "[]"),
    ],
)
def test_a_plain_value_becomes_text(value: Json, content: str):
    outcome = invoke(lambda arguments, timeout_s: value)
    assert (outcome.status, outcome.content) == ("ok", content)


def test_a_tool_gets_its_arguments_and_its_timeout():
    assert invoke(lambda arguments, timeout_s: [arguments, timeout_s], 7, x=1).content == (
        '[{"x": 1}, 7]'
    )


def test_a_tool_may_say_itself_that_it_failed():
    outcome = invoke(lambda arguments, timeout_s: ToolOutcome("not so", "failed"))
    assert (outcome.status, outcome.content) == ("failed", "not so")


def test_an_exception_is_a_result_with_its_type_and_message():
    def fail(arguments: JsonObject, timeout_s: float) -> Json:
        return 1 / 0

    outcome = invoke(fail)
    assert (outcome.status, outcome.content) == ("raised", "ZeroDivisionError: division by zero")


def test_a_tool_that_exits_does_not_end_the_harness():
    outcome = invoke(lambda arguments, timeout_s: sys.exit("bye"))
    assert (outcome.status, outcome.content) == ("raised", "SystemExit: bye")


def test_a_value_that_is_no_json_is_a_failure():
    outcome = invoke(lambda arguments, timeout_s: object())  # type: ignore[arg-type, return-value]
    assert outcome.status == "raised"
    assert outcome.content.startswith("TypeError: ")


def test_half_a_surrogate_pair_becomes_a_question_mark():
    def fail(arguments: JsonObject, timeout_s: float) -> Json:
        raise ValueError("\udfff")

    assert invoke(lambda arguments, timeout_s: "a\ud800☃").content == "a?☃"
    assert invoke(lambda arguments, timeout_s: {"\ud800": 1}).content == '{"?": 1}'
    assert invoke(lambda arguments, timeout_s: ToolOutcome("\ud800")).content == "?"
    assert invoke(fail).content == "ValueError: ?"


def test_a_machine_failure_is_no_result():
    def fail(arguments: JsonObject, timeout_s: float) -> Json:
        raise SandboxError("no sandbox")

    with pytest.raises(SandboxError, match="no sandbox"):
        invoke(fail)


def test_a_tool_that_times_out_is_abandoned_and_its_late_result_dropped():
    let_go, late = threading.Event(), threading.Event()

    def hang(arguments: JsonObject, timeout_s: float) -> Json:
        # Comes to its end by itself, but late, if the registry should wait for it.
        let_go.wait(timeout=8)
        late.set()
        return "late"

    registry = Registry([FunctionTool(hang, "hang"), FunctionTool(lambda *_: "next", "next")])
    outcome = registry.invoke(ToolInvocation("call-1", "hang", {}, 0, timeout_s=0.05))
    assert (outcome.status, outcome.content) == ("timed_out", "timed out after 0.05 s")
    let_go.set()
    late.wait()
    assert registry.invoke(ToolInvocation("call-2", "next", {}, 1, 60)).content == "next"


def test_a_tool_that_stops_itself_may_hand_in_what_it_has():
    class Patient(FunctionTool):
        stops_itself = True

    def partial(arguments: JsonObject, timeout_s: float) -> ToolOutcome:
        threading.Event().wait(timeout_s + 0.1)
        return ToolOutcome("partial", "timed_out")

    registry = Registry([Patient(partial)])
    outcome = registry.invoke(ToolInvocation("call-1", "tool", {}, 0, timeout_s=0.05))
    assert (outcome.status, outcome.content) == ("timed_out", "partial")


def test_a_tool_sees_the_callers_context_and_cannot_change_it():
    variable: ContextVar[str] = ContextVar("variable", default="unset")

    def change(arguments: JsonObject, timeout_s: float) -> Json:
        seen = variable.get()
        variable.set("changed")
        return seen

    variable.set("caller's")
    assert invoke(change).content == "caller's"
    assert variable.get() == "caller's"


def test_the_duration_is_recorded():
    outcome = invoke(lambda arguments, timeout_s: ToolOutcome("x", duration_s=-1))
    assert outcome.duration_s >= 0


def test_tools_are_offered_in_order():
    names = ("b", "a", "c")
    registry = Registry([FunctionTool(lambda *_: None, name) for name in names])
    assert tuple(spec.name for spec in registry.specs()) == names


def test_two_tools_of_one_name_are_refused():
    tools = [FunctionTool(lambda *_: None, name) for name in ("a", "twice", "twice")]
    with pytest.raises(ConfigurationError, match="'twice'"):
        Registry(tools)


def test_the_identity_is_of_schema_and_settings():
    def identity(name: str = "tool", settings: JsonObject | None = None) -> str:
        return Registry([FunctionTool(lambda *_: None, name, settings)]).identity(name)

    assert identity() == identity()
    assert identity(settings={"a": 1, "b": 2}) == identity(settings={"b": 2, "a": 1})
    assert len({identity(), identity("other"), identity(settings={"limit": 1})}) == 3
    # Recorded in cassettes: must never change.
    assert identity(settings={"limit": 1, "ä": None}) == (
        "858e224c86097649cb518d5912415a6bc3d3b2960701174be5baf2c63d4127d3"
    )

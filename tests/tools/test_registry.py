"""Whatever a tool does becomes one result."""

from __future__ import annotations

import asyncio
import gc
import queue
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import date
from typing import Any
from unittest.mock import ANY

import pytest
from pydantic import BaseModel

from harness.errors import ConfigurationError, SandboxError
from harness.schema.messages import ToolSpec
from harness.schema.record import Json, JsonObject
from harness.schema.signals import Blocked, RunRequest, Signal, Suspend
from harness.tools.registry import Registry
from harness.values import Effect, ToolInvocation, ToolOutcome

Function = Callable[[JsonObject, float], Any]


class FunctionTool:
    sequential = False

    def __init__(
        self, function: Function, name: str = "tool", settings: JsonObject | None = None
    ) -> None:
        self.spec = ToolSpec(name=name, description="", parameters={"type": "object"})
        self.settings: JsonObject = settings or {}
        self.call = function

    def effects(self, arguments: JsonObject) -> Sequence[Effect] | None:
        return [Effect("read", str(arguments["path"]))]


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


@dataclass
class Point:
    y: int
    x: Any


class Box(BaseModel):
    when: date
    corner: Point


def circle() -> object:
    value: list[object] = []
    value.append(value)
    return value


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (object(), "a value of type object has no JSON form"),
        ([b"x"], "a value of type bytes has no JSON form"),
        ({"x": float("nan")}, "Out of range float values"),
        (circle(), "Circular reference"),
        (Point, "a value of type type has no JSON form"),
    ],
)
def test_a_value_that_is_no_json_is_a_failure(value: Any, why: str):
    outcome = invoke(lambda arguments, timeout_s: value)
    assert outcome.status == "failed"
    assert outcome.content.startswith(f"the result is no JSON: {why}")


def test_a_dataclass_and_a_pydantic_model_become_json_with_sorted_keys():
    box = Box(when=date(2024, 2, 29), corner=Point(1, None))
    box_text = '{"corner": {"x": null, "y": 1}, "when": "2024-02-29"}'
    values: list[tuple[Any, str]] = [
        (box, box_text),
        (Point(2, (box,)), f'{{"x": [{box_text}], "y": 2}}'),
    ]
    for value, content in values:
        assert invoke(lambda *_, value=value: value) == ToolOutcome(content, duration_s=ANY)


@pytest.mark.parametrize(
    ("value", "status", "content"),
    [
        (Signal(name="DONE"), "ok", "DONE"),
        (Signal(name="DONE", data={"b": 1, "a": 2}), "ok", '{"a": 2, "b": 1}'),
        (Suspend(correlation_id="mail-7"), "ok", "mail-7"),
        (Suspend(correlation_id="mail-7", data="waiting"), "ok", "waiting"),
        (Blocked(reason="no licence"), "failed", "no licence"),
    ],
)
def test_what_a_tool_asks_of_the_run_is_kept_beside_its_text(
    value: RunRequest, status: str, content: str
):
    outcome = invoke(lambda arguments, timeout_s: value)
    assert (outcome.status, outcome.content, outcome.asks) == (status, content, value)


def test_what_a_tool_asks_is_fit_for_files():
    half = Signal(name="DONE", data={"\ud800": ["\ud800"]})
    whole = Signal(name="DONE", data={"?": ["?"]})
    outcome = invoke(lambda arguments, timeout_s: half)
    assert (outcome.content, outcome.asks) == ('{"?": ["?"]}', whole)
    outcome = invoke(lambda arguments, timeout_s: ToolOutcome("x", asks=half))
    assert (outcome.content, outcome.asks) == ("x", whole)
    outcome = invoke(lambda arguments, timeout_s: Signal(name="DONE", data=float("nan")))
    assert (outcome.status, outcome.asks) == ("failed", None)


async def sleep_or_say(arguments: JsonObject, timeout_s: float) -> Any:
    if "sleep" in arguments:
        await asyncio.sleep(60)
    return arguments


def test_an_async_tool_runs_also_inside_a_running_event_loop():
    async def inside() -> ToolOutcome:
        return invoke(sleep_or_say, x=1)

    for outcome in (invoke(sleep_or_say, x=1), asyncio.run(inside())):
        assert (outcome.status, outcome.content) == ("ok", '{"x": 1}')


def test_an_async_tool_is_cancelled_at_its_timeout():
    ended: queue.SimpleQueue[str] = queue.SimpleQueue()

    async def hang(arguments: JsonObject, timeout_s: float) -> Json:
        try:
            await asyncio.sleep(60)
        finally:
            ended.put("cancelled")
        return None

    outcome = invoke(hang, 0.05)
    assert (outcome.status, outcome.content) == ("timed_out", "timed out after 0.05 s")
    assert ended.get(timeout=30) == "cancelled"


@pytest.mark.parametrize(
    ("error", "content"),
    [
        (ValueError("no"), "ValueError: no"),
        (SystemExit("bye"), "SystemExit: bye"),
        (TimeoutError("slow"), "TimeoutError: slow"),
        (asyncio.CancelledError("mine"), "CancelledError: mine"),
    ],
)
def test_what_an_async_tool_raises_is_a_result_and_the_next_one_runs(
    error: BaseException, content: str
):
    async def fail(arguments: JsonObject, timeout_s: float) -> Json:
        raise error

    registry = Registry([FunctionTool(fail, "fail"), FunctionTool(sleep_or_say, "say")])
    outcome = registry.invoke(ToolInvocation("call-1", "fail", {}, 0, 60))
    assert (outcome.status, outcome.content) == ("raised", content)
    assert registry.invoke(ToolInvocation("call-2", "say", {}, 0, 60)).content == "{}"


def test_a_machine_failure_in_an_async_tool_is_no_result():
    async def fail(arguments: JsonObject, timeout_s: float) -> Json:
        raise SandboxError("no sandbox")

    with pytest.raises(SandboxError, match="no sandbox"):
        invoke(fail)


def test_async_tools_share_one_thread_and_wait_for_each_other():
    """A reader and a writer that meet: possible only where both run at the same time."""
    met = asyncio.Barrier(2)
    threads: set[str] = set()

    async def meet(arguments: JsonObject, timeout_s: float) -> Json:
        await met.wait()
        threads.add(str(threading.get_ident()))
        return "met"

    registry = Registry([FunctionTool(meet, "meet")])
    with ThreadPoolExecutor(2) as pool:
        calls = [
            pool.submit(registry.invoke, ToolInvocation(str(n), "meet", {}, n, 60))
            for n in range(2)
        ]
        assert [call.result().content for call in calls] == ["met", "met"]
    assert len(threads) == 1


def test_an_async_tool_sees_the_callers_context():
    variable: ContextVar[str] = ContextVar("variable", default="unset")

    async def look(arguments: JsonObject, timeout_s: float) -> Json:
        return variable.get()

    variable.set("caller's")
    assert invoke(look).content == "caller's"


def test_the_thread_of_the_async_tools_ends_with_their_registry():
    threads: list[threading.Thread] = []

    async def look(arguments: JsonObject, timeout_s: float) -> Json:
        threads.append(threading.current_thread())
        return None

    invoke(look)
    gc.collect()
    threads[0].join(timeout=30)
    assert not threads[0].is_alive()


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


def test_a_tool_that_is_registered_during_a_run_comes_after_the_others():
    def grow(arguments: JsonObject, timeout_s: float) -> Json:
        registry.register(FunctionTool(lambda *_: "new", "a"))
        return None

    registry = Registry([FunctionTool(grow, "grow"), FunctionTool(lambda *_: None, "z")])
    registry.invoke(ToolInvocation("call-1", "grow", {}, 0, 60))
    assert [spec.name for spec in registry.specs()] == ["grow", "z", "a"]
    assert registry.invoke(ToolInvocation("call-2", "a", {}, 0, 60)).content == "new"
    twice = registry.invoke(ToolInvocation("call-3", "grow", {}, 0, 60))
    assert twice.content.startswith("ConfigurationError: tool 'a' is there twice")


def test_a_registry_tells_what_its_tools_say_of_themselves():
    alone = FunctionTool(lambda *_: None, "alone")
    alone.sequential = True
    registry = Registry([alone, FunctionTool(lambda *_: None)])
    assert [registry.is_sequential(name) for name in ("alone", "tool")] == [True, False]
    assert registry.effects("tool", {"path": "a"}) == [Effect("read", "a")]


def test_a_tool_that_fails_to_say_what_it_does_counts_as_one_that_cannot_say(
    caplog: pytest.LogCaptureFixture,
):
    assert Registry([FunctionTool(lambda *_: None)]).effects("tool", {}) is None
    assert "KeyError: 'path'" in caplog.text


class Says(FunctionTool):
    def __init__(self, said: Callable[[], Any]) -> None:
        super().__init__(lambda *_: None)
        self._said = said

    def effects(self, arguments: JsonObject) -> Any:
        return self._said()


async def later() -> list[Effect]:
    return []


@pytest.mark.parametrize(
    "said", [later, *(lambda v=v: v for v in ("read", ["read"], Effect("read", "a"), "", 5))]
)
def test_what_is_no_effects_counts_as_not_said(
    said: Callable[[], Any], caplog: pytest.LogCaptureFixture
):
    assert Registry([Says(said)]).effects("tool", {}) is None
    assert "give Effects or None" in caplog.text


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

"""Whatever the model, the tools and the settings do, some things always hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import ContextExceededError, ModelCallError, ReplayMissError
from harness.loop.engine import Loop
from harness.protocols import ModelRequest, ToolOutcome
from harness.providers.scripted import turn
from harness.schema.loop_config import TerminationReason as Reason
from harness.schema.messages import Message, ModelTurn, StopReason, Text, Usage
from harness.schema.record import Json, JsonObject
from harness.schema.trajectory import Event, Trajectory
from tests.loop.support import FunctionTool, answered, kinds, long_enough, make, output, roles

BUCKETS = ("input", "output", "cache_write", "cache_read")
HELPERS = ("good", "raising", "failing", "late", "strict", "says")

names = st.sampled_from([*HELPERS, *HELPERS, *["output"] * 4, *["submit"] * 2, "unknown"])
arguments = st.sampled_from(
    ['{"result": "x"}', '{"result": "long enough"}', '{"path": "a"}', "{}", "", "{bad", "[]"]
)
texts = st.sampled_from(
    [
        "",
        "text",
        "COMPLETED: yes",
        "continue: no",
        '{"result": "long enough"}',
        '{"result": "x"}',
        'So {"name": "good", "arguments": {}}',
        '[{"name": "output", "arguments": {"result": "x"}}, {"name": "raising", "arguments": {}}]',
        '{"name": "good", "arguments": {',
    ]
)
stops = st.sampled_from([None] * 24 + list(StopReason))
tokens = st.none() | st.integers(0, 20)
usages = st.none() | st.builds(
    Usage, input=tokens, output=tokens, cache_write=tokens, cache_read=tokens
)
errors = st.sampled_from(
    [ModelCallError("down")] * 8 + [ReplayMissError("miss"), ContextExceededError("long")]
)
calls = st.lists(st.tuples(names, arguments), min_size=1, max_size=4)
silence: st.SearchStrategy[list[Any]] = st.just([])
speaking = st.tuples(texts, silence, stops, usages)
calling = st.tuples(texts, calls, stops, usages)
answers = st.integers(0, 19).flatmap(
    lambda pick: errors if pick == 19 else speaking if pick > 13 else calling
)
scripts = st.lists(answers, min_size=4, max_size=12)
limits = st.sampled_from([None] * 9 + [1, 2, 3, 5, 30])
configurations = st.fixed_dictionaries(
    {
        "max_iterations": st.sampled_from([8, 6, 4, 4, 3, 2, 1]),
        "max_attempts": st.sampled_from([3, 3, 3, 2, 2, 1]),
        "llm_error_threshold": st.sampled_from([3, 2, 1]),
        "error_threshold": st.sampled_from([0, 0, 4, 3, 2]),
        "tool_error": st.sampled_from(["continue"] * 7 + ["fail"]),
        "text_only": st.sampled_from([None, None, "accept", "accept", "nudge", "error"]),
        "nudge_max": st.integers(0, 2),
        "confirm": st.fixed_dictionaries(
            {
                "enabled": st.booleans(),
                "mode": st.sampled_from(["structured", "second_text"]),
                "max_prompts": st.integers(1, 2),
            }
        ),
        "reflection": st.booleans(),
        "submit_before_output": st.sampled_from(["feedback", "fatal"]),
        "max_tool_calls_per_turn": st.sampled_from([None, None, None, 3, 2, 1]),
        "overflow": st.sampled_from(["error", "drop"]),
        "multi_output": st.sampled_from(["last", "first"]),
        "on_truncation": st.sampled_from(["reprompt", "fail", "execute"]),
        "semantic_failures": st.booleans(),
        "text_protocol": st.sampled_from([None, None, "json"]),
        "budget": st.fixed_dictionaries(
            {"max_iterations": limits, "max_tool_calls": limits, "max_tokens": limits}
        ),
    }
)


def script(drawn: Sequence[Any]) -> list[ModelTurn | Exception]:
    turns: list[ModelTurn | Exception] = []
    for place, answer in enumerate(drawn):
        if isinstance(answer, Exception):
            turns.append(answer)
            continue
        text, calls, stop, usage = answer
        named = [(f"{place}.{number}", *rest) for number, rest in enumerate(calls)]
        turns.append(turn(text, calls=named, stop=stop, usage=usage))
    return turns


@dataclass
class Ran:
    """One run with all that could be seen from outside."""

    trajectory: Trajectory
    requests: list[ModelRequest]
    invoked: list[str] = field(default_factory=list)
    cancelled_at: int | None = None
    """How many events there were when the cancel came."""


def preview(value: Json) -> str:
    assert isinstance(value, dict)
    if value.get("result") == "x":
        raise ValueError("too short to be shown")
    return "Preview."


def go(turns: list[ModelTurn | Exception], mine: Sequence[Message], how: Any) -> Ran:
    invoked: list[str] = []
    cancels: list[int] = []
    loops: list[Loop] = []
    seen: list[Event] = []
    cancel_at = how["cancel_at"]

    def observe(event: Event) -> None:
        seen.append(event)
        if len(seen) == cancel_at and event.kind != "run_completed":
            cancels.append(len(seen))
            loops[0].cancel("enough")

    def tool(name: str, answer: Json | ToolOutcome | Exception, **schema: Any) -> FunctionTool:
        def function(_: JsonObject) -> Json | ToolOutcome:
            invoked.append(name)
            if isinstance(answer, Exception):
                raise answer
            return answer

        return FunctionTool(name, function, schema)

    tools = [
        tool("good", "fine"),
        tool("raising", RuntimeError("boom")),
        tool("failing", ToolOutcome("no", "failed")),
        tool("late", ToolOutcome("too late", "timed_out")),
        tool("strict", "fine", type="object", required=["path"]),
        tool("says", {"success": False}),
    ]
    configuration = dict(how["configuration"])
    declared = output(long_enough, handler=preview) if how["declared"] else None
    if declared is None:
        configuration["reflection"] = False
    loop, provider = make(turns, tools=tools, output=declared, observers=[observe], **configuration)
    loops.append(loop)
    trajectory = loop.run(mine, run_id="random")
    return Ran(trajectory, provider.requests, invoked, cancels[0] if cancels else None)


def holds_the_pairs_and_the_order(ran: Ran, mine: Sequence[Message]) -> None:
    trajectory = ran.trajectory
    answered(trajectory)
    assert kinds(trajectory).count("run_completed") == 1
    assert trajectory.events[-1].kind == "run_completed"
    assert trajectory.messages[: len(mine) - 1] == tuple(mine[:-1])
    assert trajectory.messages[0].content[:1] == mine[0].content
    found = roles(trajectory.messages)
    assert ("user", "user") not in list(pairwise(found))
    for earlier, later in pairwise(ran.requests):
        place = len(earlier.messages) - 1
        assert later.messages[:place] == earlier.messages[:place]
        last, grown = earlier.messages[place], later.messages[place]
        assert grown.tool_results == last.tool_results
        assert grown.text.startswith(last.text)


def holds_the_sums(ran: Ran, turns: list[ModelTurn | Exception]) -> None:
    trajectory, made = ran.trajectory, len(ran.requests)
    got = [answer for answer in turns[:made] if isinstance(answer, ModelTurn)]
    assert trajectory.model_calls == trajectory.iterations == made
    assert trajectory.failed_calls == made - len(got)
    for bucket in BUCKETS:
        reported = [getattr(answer.usage, bucket, None) for answer in got]
        numbers = [number for number in reported if number is not None]
        assert getattr(trajectory.usage, bucket) == (sum(numbers) if numbers else None)
        tagged = [getattr(total, bucket) or 0 for total in trajectory.usage_by_tag.values()]
        assert sum(tagged) == (getattr(trajectory.usage, bucket) or 0)
    silent = [answer for answer in got if answer.usage in (None, Usage())]
    assert trajectory.usage.missing_calls == len(silent)
    assert list(trajectory.tools_executed) == ran.invoked
    assert trajectory.tool_calls_made == len(ran.invoked)
    assert trajectory.tools_used == tuple(dict.fromkeys(ran.invoked))


def holds_the_limits(ran: Ran, turns: list[ModelTurn | Exception], configuration: Any) -> None:
    trajectory, budget = ran.trajectory, configuration["budget"]
    assert trajectory.attempts <= configuration["max_attempts"]
    attempts = "".join(
        {"attempt_started": "|", "model_request": "."}.get(kind, "") for kind in kinds(trajectory)
    ).split("|")
    assert max(map(len, attempts)) <= configuration["max_iterations"]
    if budget["max_iterations"] is not None:
        assert trajectory.iterations <= budget["max_iterations"]
    if budget["max_tool_calls"] is not None:
        assert trajectory.tool_calls_made <= budget["max_tool_calls"]
    if budget["max_tokens"] is not None and ran.requests:
        before = [getattr(answer, "usage", None) for answer in turns[: len(ran.requests) - 1]]
        spent = sum(getattr(usage, name) or 0 for usage in before if usage for name in BUCKETS)
        assert spent < budget["max_tokens"]


def holds_the_cancel(ran: Ran) -> None:
    if ran.cancelled_at is None:
        assert ran.trajectory.termination_reason is not Reason.CANCELLED
        return
    assert ran.trajectory.termination_reason is Reason.CANCELLED
    later = kinds(ran.trajectory)[ran.cancelled_at :]
    assert "model_request" not in later
    assert "tool_started" not in later


def without_times(trajectory: Trajectory) -> Any:
    plain = trajectory.model_dump(mode="json")
    plain["duration_s"] = 0
    for event in plain["events"]:
        event["at_s"] = 0
    return plain


@settings(max_examples=400)
@given(
    drawn=scripts,
    how=st.fixed_dictionaries(
        {
            "configuration": configurations,
            "declared": st.sampled_from([True, True, False]),
            "cancel_at": st.sampled_from([None] * 60 + list(range(1, 41))),
        }
    ),
)
def test_every_run_keeps_the_rules_and_can_be_repeated(drawn: list[Any], how: Any) -> None:
    mine = [
        Message(role="user", content=(Text(text="Hello."),)),
        Message(role="assistant", content=(Text(text="Hello. What is the task?"),)),
        Message(role="user", content=(Text(text="Do it."),)),
    ]
    before = [message.model_copy(deep=True) for message in mine]
    turns = script(drawn)
    ran = go(turns, mine, how)
    assert mine == before
    holds_the_pairs_and_the_order(ran, mine)
    holds_the_sums(ran, turns)
    holds_the_limits(ran, turns, how["configuration"])
    holds_the_cancel(ran)
    again = go(turns, mine, how)
    assert without_times(again.trajectory) == without_times(ran.trajectory)
    assert Trajectory.model_validate_json(ran.trajectory.model_dump_json()) == ran.trajectory

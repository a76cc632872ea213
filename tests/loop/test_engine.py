"""Runs of one loop: streamed or not, fresh or going on with the conversation."""

from __future__ import annotations

import asyncio
import threading
from contextvars import ContextVar
from typing import Any

import pytest

from harness.errors import ConfigurationError, ModelCallError, RunFailedError
from harness.loop.engine import Loop
from harness.protocols import Hook
from harness.providers.scripted import turn
from harness.schema.loop_config import TerminationReason as Reason
from harness.schema.messages import StopReason, Usage
from harness.schema.record import Json, JsonObject
from harness.schema.trajectory import Event, Trajectory
from harness.values import ModelDelta
from tests.loop.support import FunctionTool, answered, call, kinds, make, output, returns, run

PATIENCE_S = 30
USED = Usage(input=10, output=5)
LOOK = turn("Let me look around.", calls=[call("l1", "look", at="a")], usage=USED)
DONE = turn("All is well now.", usage=USED)
SEEN = [returns("look", "seen")]


def facts(trajectory: Trajectory) -> dict[str, Any]:
    """A trajectory without times, names and deltas."""
    told = trajectory.model_dump(exclude={"events", "duration_s", "run_id", "suspended"})
    shown = [
        (event.kind, event.iteration, event.data)
        for event in trajectory.events
        if event.kind != "model_delta"
    ]
    return {**told, "events": shown}


SCRIPTS: list[tuple[list[Any], dict[str, Any]]] = [
    ([LOOK, DONE], {"tools": SEEN}),
    ([turn(calls=[call("o", "output", result="r")])], {"output": output()}),
    ([LOOK, LOOK, DONE], {"tools": SEEN, "max_iterations": 2, "on_limit": "wrap_up"}),
    ([ModelCallError("down"), DONE], {"llm_error_threshold": 2}),
    ([turn(""), DONE], {"empty_retries": 1}),
    ([turn("half", calls=[call("l", "look")], stop=StopReason.MAX_TOKENS), DONE], {"tools": SEEN}),
]


@pytest.mark.parametrize(("turns", "how"), SCRIPTS)
def test_streaming_gives_the_same_result(turns: list[Any], how: dict[str, Any]) -> None:
    plain, _ = run(turns, **how)
    set_so, _ = run(turns, stream=True, **how)
    loop, _ = make(turns, **how)
    *_, last = loop.stream("Do the task.")
    assert facts(last.payload) == facts(set_so) == facts(plain)
    answered(plain)


def test_events_come_as_they_happen() -> None:
    go_on = threading.Event()

    def look(_: JsonObject) -> Json:
        assert go_on.wait(PATIENCE_S)
        return "seen"

    loop, _ = make([LOOK, DONE], tools=[FunctionTool("look", look)])
    events = loop.stream("Do the task.", run_id="r1")
    for event in events:
        if event.kind == "tool_started":
            break
    go_on.set()
    rest = list(events)
    assert rest[0].kind == "tool_completed"
    assert {event.run_id for event in rest} == {"r1"}


def test_the_last_event_is_the_run_as_a_whole() -> None:
    loop, _ = make([LOOK, DONE], tools=SEEN)
    events = list(loop.stream("Do the task.", system="Be brief."))
    assert [event.kind for event in events].count("run_completed") == 1
    trajectory = events[-1].payload
    assert isinstance(trajectory, Trajectory)
    assert (trajectory.final_text, trajectory.system) == ("All is well now.", "Be brief.")
    assert trajectory.events[-1].kind == "run_completed"
    seen = [event.kind for event in events if event.kind != "model_delta"]
    assert seen == [kind for kind in kinds(trajectory) if kind != "model_delta"]


def test_answers_come_in_pieces() -> None:
    loop, _ = make([LOOK, DONE], tools=SEEN)
    deltas = [event for event in loop.stream("Do the task.") if event.kind == "model_delta"]
    first = [event.payload for event in deltas if event.iteration == 1]
    assert all(isinstance(delta, ModelDelta) for delta in first)
    text = [delta.text for delta in first if delta.kind == "text"]
    assert len(text) > 1
    assert "".join(text) == "Let me look around."
    pieces = [delta.kind for delta in first if delta.kind != "text"]
    assert (pieces[0], pieces[-1]) == ("call_start", "call_done")
    raw = "".join(delta.text for delta in first if delta.kind == "call_arguments")
    assert raw == LOOK.content[1].arguments  # type: ignore[union-attr]
    assert deltas[0].data == {"kind": "text", "text": first[0].text}


def test_without_streaming_there_are_no_pieces() -> None:
    trajectory, _ = run([LOOK, DONE], tools=SEEN)
    assert "model_delta" not in kinds(trajectory)


def test_whoever_stops_reading_cancels_the_run() -> None:
    ended: list[Trajectory] = []

    def observe(event: Event) -> None:
        if event.kind == "run_completed":
            ended.append(event.payload)

    reading = threading.Event()

    def look(_: JsonObject) -> Json:
        assert reading.wait(PATIENCE_S)
        return "seen"

    loop, provider = make(
        [LOOK] * 50, tools=[FunctionTool("look", look)], observers=[observe], max_iterations=50
    )
    events = loop.stream("Do the task.")
    while next(events).kind != "tool_started":
        pass
    threading.Timer(0.01, reading.set).start()
    events.close()  # type: ignore[attr-defined]
    assert ended[0].termination_reason is Reason.CANCELLED
    assert ended[0].error == "nobody reads its events any more"
    assert len(provider.requests) == 1


@pytest.mark.parametrize("at", ["run_completed", "model_response"])
def test_a_stream_that_is_closed_leaves_the_next_run_alone(at: str) -> None:
    loop, _ = make([DONE] * 100)
    for _ in range(20):
        events = loop.stream("Do the task.")
        while next(events).kind != at:
            pass
        events.close()  # type: ignore[attr-defined]
        assert loop.run("Again.").termination_reason is Reason.COMPLETED


def test_a_stream_that_is_read_to_its_end_leaves_the_next_run_alone() -> None:
    loop, _ = make([DONE] * 100)
    for _ in range(30):
        assert [*loop.stream("Do the task.")][-1].data["reason"] == "completed"


def test_a_failed_run_raises_where_its_events_are_read() -> None:
    loop, _ = make([ModelCallError("down")], raise_on_failure=True)
    seen: list[Event] = []
    with pytest.raises(RunFailedError, match="the run ended model_error: down") as error:
        seen.extend(loop.stream("Do the task."))
    assert seen[-1].kind == "run_completed"
    assert error.value.trajectory == seen[-1].payload


def test_a_loop_works_inside_a_running_event_loop() -> None:
    async def look(at: str) -> str:
        await asyncio.sleep(0)
        return f"seen {at}"

    def awaits(arguments: JsonObject) -> Any:
        return look(str(arguments["at"]))

    async def main() -> tuple[Trajectory, Trajectory]:
        loop, _ = make([LOOK, DONE] * 2, tools=[FunctionTool("look", awaits)])
        *_, last = loop.stream("Do the task.")
        return loop.run("Do the task."), last.payload

    for trajectory in asyncio.run(main()):
        assert trajectory.termination_reason is Reason.COMPLETED
        assert trajectory.messages[2].tool_results[0].content == "seen a"


WHO: ContextVar[str] = ContextVar("WHO", default="nobody")


def test_a_streamed_run_sees_the_context_of_its_reader() -> None:
    loop, _ = make([LOOK, DONE], tools=[FunctionTool("look", lambda _: WHO.get())])
    token = WHO.set("me")
    try:
        *_, last = loop.stream("Do the task.")
    finally:
        WHO.reset(token)
    assert last.payload.messages[2].tool_results[0].content == "me"


def test_a_stream_that_nobody_reads_does_not_begin() -> None:
    loop, provider = make([DONE])
    loop.stream("Do the task.")
    assert provider.requests == []


def test_runs_are_conversations_of_their_own_unless_history_goes_on() -> None:
    fresh, asked = make([DONE, DONE])
    kept, told = make([DONE, DONE], history="continue")
    for loop in (fresh, kept):
        for text in ("one", "two"):
            loop.run(text)
    assert [len(request.messages) for request in asked.requests] == [1, 1]
    assert [message.text for message in told.requests[1].messages] == [
        "one",
        "All is well now.",
        "two",
    ]


def test_history_goes_on_over_streamed_and_failed_runs() -> None:
    loop, provider = make([LOOK, ModelCallError("down"), DONE], tools=SEEN, history="continue")
    list(loop.stream("one"))
    trajectory = loop.run("two")
    last = provider.requests[2].messages[-1]
    assert [block.type for block in last.content] == ["tool_result", "text"]
    answered(trajectory)


def test_a_loops_run_id_is_the_one_asked_for_or_one_of_its_own() -> None:
    loop, _ = make([DONE] * 3)
    assert loop.run("x", run_id="mine").run_id == "mine"
    assert loop.run("x").run_id != loop.run("x").run_id


def test_what_the_caller_hands_in_is_never_changed() -> None:
    kept = run([DONE])[0].messages
    given = list(kept[:1])
    loop: Loop
    loop, _ = make([LOOK, DONE], tools=SEEN)
    loop.run(given)
    assert given == list(kept[:1])


def test_a_run_needs_something_to_begin_with() -> None:
    loop, provider = make([turn("done")])
    with pytest.raises(ConfigurationError, match="messages is empty: give the task"):
        loop.run([])
    assert provider.requests == []
    assert loop.run("Do it.").termination_reason is Reason.COMPLETED


def test_a_stream_ends_whatever_breaks_the_run() -> None:
    def leave(_: object) -> None:
        raise SystemExit(3)

    loop, _ = make([turn("done")], setup={"hooks": [Hook(before_model=leave)]})
    with pytest.raises(SystemExit):
        list(loop.stream("Do it."))
    assert not loop._state.running.locked()


def test_an_exception_thrown_into_the_reader_cancels_a_paused_run() -> None:
    loop, provider = make([LOOK, DONE], tools=SEEN)
    loop.pause("look first")
    events = loop.stream("Do it.")
    while next(events).kind != "paused":
        pass
    with pytest.raises(TimeoutError):
        events.throw(TimeoutError("too long"))  # type: ignore[attr-defined]
    assert provider.requests == []

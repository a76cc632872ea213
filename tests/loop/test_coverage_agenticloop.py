"""What AgenticLoop's stream of events promises, in a whole run."""

from __future__ import annotations

from harness.providers.scripted import turn
from harness.schema.messages import ModelTurn, Usage
from harness.schema.trajectory import Event, Trajectory
from tests.loop.support import call, make, returns

USED = Usage(input=10, output=5)


def streamed() -> list[Event]:
    turns: list[ModelTurn | Exception] = [
        turn("I look first.", calls=[call("a", "look", n=1)], usage=USED),
        turn("There are four boats.", usage=USED),
    ]
    loop, _ = make(turns, tools=[returns("look", "four")])
    return list(loop.stream("Go.", run_id="r-1"))


def test_a_streamed_answer_comes_in_pieces_of_every_kind() -> None:
    pieces = [event.data for event in streamed() if event.kind == "model_delta"]
    text = [str(piece["text"]) for piece in pieces if piece["kind"] == "text"]
    assert "".join(text) == "I look first.There are four boats."
    assert len(text) > 2
    others = [piece["kind"] for piece in pieces if piece["kind"] != "text"]
    assert others[0] == "call_start"
    assert set(others[1:-1]) == {"call_arguments"}
    assert others[-1] == "call_done"
    arguments = [str(piece["text"]) for piece in pieces if piece["kind"] == "call_arguments"]
    assert "".join(arguments) == '{"n": 1}'


def test_a_stream_tells_what_the_tools_do_and_ends_with_the_result() -> None:
    events = streamed()
    told = [event.kind for event in events if event.kind != "model_delta"]
    assert told == [
        *("run_started", "attempt_started"),
        *("iteration_started", "model_request", "model_response"),
        *("tool_detected", "tool_started", "tool_completed", "iteration_completed"),
        *("iteration_started", "model_request", "model_response", "iteration_completed"),
        *("attempt_completed", "run_completed"),
    ]
    last = events[-1].payload
    assert isinstance(last, Trajectory)
    assert (last.final_text, last.usage.input) == ("There are four boats.", 20)


def test_every_event_carries_run_iteration_and_time() -> None:
    events = streamed()
    assert {event.run_id for event in events} == {"r-1"}
    assert [event.iteration for event in events if event.kind == "iteration_started"] == [1, 2]
    times = [event.at_s for event in events]
    assert times == sorted(times)
    assert times[0] >= 0

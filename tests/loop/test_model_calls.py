"""Model calls: what `debug_llm` writes of them, and what counts as one."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from harness.errors import ModelCallError
from harness.loop.engine import Loop
from harness.protocols import OnDelta
from harness.providers.anthropic_messages import AnthropicMessages
from harness.providers.scripted import Scripted, turn
from harness.providers.sdk_client import SdkClient
from harness.schema.loop_config import LoopConfig
from harness.schema.messages import ModelTurn
from harness.schema.record import Json, JsonObject
from harness.values import ModelRequest
from tests.loop.support import call, make, returns, run

DONE = turn("done")
LOOK = turn(calls=[call("l1", "look")])
KEY = "sk-ant-api03-" + "a1B2" * 24


def vendor(sent: list[JsonObject]) -> SdkClient:
    """A client of a vendor whose SDK is a script."""

    def send(body: JsonObject) -> Json:
        sent.append(body)
        return {
            "id": "m",
            "type": "message",
            "role": "assistant",
            "model": "m-1",
            "content": [{"type": "text", "text": "done"}],
            "stop_reason": "end_turn",
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }

    def no_stream(_: JsonObject) -> Any:
        raise AssertionError("nothing is streamed here")

    return SdkClient(
        url="http://localhost",
        dialect=AnthropicMessages(),
        send=send,
        stream=no_stream,
        errors=(OSError,),
        failure=lambda error: ModelCallError(str(error)),
    )


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "harness.llm"]


def debugged(provider: Any, text: str, caplog: pytest.LogCaptureFixture, **how: Any) -> list[str]:
    with caplog.at_level(logging.INFO, logger="harness.llm"):
        Loop(provider, model="m-1", config=LoopConfig(debug_llm=True), **how).run(text)
    return lines(caplog)


def test_the_log_holds_messages_and_vendor_request_of_each_call(
    caplog: pytest.LogCaptureFixture,
) -> None:
    sent: list[JsonObject] = []
    neutral, wire = debugged(vendor(sent), "Do the task.", caplog)
    head, body = neutral.split(": ", 1)
    assert head == "model call 1 (main) messages"
    assert json.loads(body)["messages"][0]["content"][0]["text"] == "Do the task."
    head, body = wire.split(": ", 1)
    assert head == "model call 1 (main) vendor request"
    assert json.loads(body) == sent[0]


def test_the_log_holds_no_secrets_but_the_vendor_gets_what_was_said(
    caplog: pytest.LogCaptureFixture,
) -> None:
    sent: list[JsonObject] = []
    written = debugged(vendor(sent), f"My key is {KEY}.", caplog)
    assert KEY in json.dumps(sent)
    assert len(written) == 2
    assert not [line for line in written if KEY in line]


def test_what_is_left_out_of_the_log_is_the_callers_choice(
    caplog: pytest.LogCaptureFixture,
) -> None:
    written = debugged(vendor([]), "Do the task.", caplog, redact=lambda _: {"nothing": "to see"})
    assert {line.split(": ", 1)[1] for line in written} == {'{"nothing": "to see"}'}


def test_calls_are_numbered_over_the_run(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="harness.llm"):
        run(
            [LOOK, ModelCallError("down"), turn("bye")],
            tools=[returns("look", "seen")],
            max_iterations=2,
            llm_error_threshold=2,
            on_limit="wrap_up",
            debug_llm=True,
        )
    heads = [line.split(" messages")[0] for line in lines(caplog)]
    assert heads == ["model call 1 (main)", "model call 2 (main)", "model call 3 (wrap_up)"]


def test_nothing_is_written_unless_it_is_asked_for(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        run([DONE])
    assert lines(caplog) == []


def test_names_under_which_models_answered_are_kept_once() -> None:
    names = ["m-1", "m-2", "m-1", None]
    turns = [turn("x", calls=[call(str(n), "look")], model=name) for n, name in enumerate(names)]
    trajectory, _ = run([*turns, DONE], tools=[returns("look", "seen")])
    assert trajectory.models == ("m-1", "m-2")


def test_a_provider_that_raises_anything_is_a_failed_call() -> None:
    class Broken:
        def complete(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelTurn:
            raise ZeroDivisionError

    trajectory = Loop(Broken(), model="m").run("x")
    assert (trajectory.error, trajectory.failed_calls) == ("ZeroDivisionError", 1)


def test_requests_are_told_with_the_tools_that_are_offered() -> None:
    loop, _ = make(
        [LOOK, turn("bye")], tools=[returns("look", "")], max_iterations=1, on_limit="wrap_up"
    )
    told = [event.data for event in loop.run("x").events if event.kind == "model_request"]
    assert told == [{"tag": "main", "tools": ["look"]}, {"tag": "wrap_up", "tools": []}]


def test_a_script_is_asked_whole_unless_streaming_is_wanted() -> None:
    streamed: list[bool] = []

    class Noting(Scripted):
        def complete(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelTurn:
            streamed.append(on_delta is not None)
            return super().complete(request, on_delta)

    for stream in (False, True):
        Loop(Noting([DONE]), model="m", config=LoopConfig(stream=stream)).run("x")
    assert streamed == [False, True]

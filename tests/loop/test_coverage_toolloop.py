"""What toolloop promises and no other test shows: its debug logging."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from harness.loop.engine import Loop
from harness.protocols import OnDelta
from harness.providers.anthropic_messages import AnthropicMessages
from harness.providers.scripted import Scripted, turn
from harness.redaction import PLACEHOLDER
from harness.schema.loop_config import LoopConfig
from harness.schema.messages import ModelTurn
from harness.tools.registry import Registry
from harness.values import ModelRequest
from tests.loop.support import call, make, returns

KEY = "sk-proj-0123456789abcdefghijkl"


class OnTheWire(Scripted):
    """Shows the vendor's form of each request, as a client does before it sends it."""

    def complete(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelTurn:
        assert request.on_wire is not None
        request.on_wire(AnthropicMessages().to_request(request))
        return super().complete(request, on_delta)


def logged(caplog: pytest.LogCaptureFixture, what: str) -> list[Any]:
    """The JSON of the lines about this, in order."""
    lines = [record.getMessage() for record in caplog.records if record.name == "harness.llm"]
    return [json.loads(line.split(": ", 1)[1]) for line in lines if f") {what}: " in line]


def test_each_model_call_is_logged_as_the_loop_and_as_the_vendor_sees_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "harness.llm")
    provider = OnTheWire([turn(calls=[call("a", "look", path=KEY)]), turn("done")])
    tools = Registry([returns("look", "seen")])
    loop = Loop(provider, model="m", tools=tools, config=LoopConfig(debug_llm=True))
    loop.run("Go.", system="Be brief.")
    first, second = logged(caplog, "messages")
    assert first["system"] == "Be brief."
    assert [said["role"] for said in first["messages"]] == ["user"]
    assert [said["role"] for said in second["messages"]] == ["user", "assistant", "user"]
    _, request = logged(caplog, "vendor request")
    assert request["messages"][2]["content"][0]["type"] == "tool_result"
    assert KEY not in caplog.text
    assert PLACEHOLDER in caplog.text


def test_nothing_is_logged_unless_it_is_asked_for(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "harness.llm")
    loop, _ = make([turn("done")])
    loop.run("Go.")
    assert [record for record in caplog.records if record.name == "harness.llm"] == []

"""Text protocols under the whole loop."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness.loop.text_protocols import PROTOCOLS
from harness.providers.scripted import turn
from harness.schema.loop_config import TerminationReason
from harness.schema.messages import ToolCall
from harness.schema.presets import PRESETS
from harness.schema.record import Json, JsonObject
from tests.loop.support import FunctionTool, answered, make, output, returns, run


def written(name: str, tool: str, **arguments: Json) -> str:
    call = ToolCall(id="x", name=tool, arguments=json.dumps(arguments))
    return PROTOCOLS[name].render_call(call)


def terminal(arguments: JsonObject) -> Json:
    return f"$ {arguments['keystrokes']}"


def terminus(*answers: dict[str, Any] | str) -> Any:
    texts = (
        answer if isinstance(answer, str) else json.dumps({"analysis": "", "plan": "", **answer})
        for answer in answers
    )
    settings = dict(PRESETS["terminus2"])
    return run(map(turn, texts), tools=[FunctionTool("keystrokes", terminal)], **settings)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", PROTOCOLS)
def test_output_and_submit_work_as_tools_do(name: str, stream: bool) -> None:
    schema: JsonObject = {
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "required": ["n"],
    }
    trajectory, model = run(
        [
            turn(written(name, "shell")),
            turn(written(name, "output", n=4)),
            turn(written(name, "submit")),
        ],
        tools=[returns("shell", "ok")],
        output=output(schema=schema, handler=lambda value: f"Draft: {value}"),
        reflection=True,
        text_protocol=name,
        stream=stream,
    )
    assert trajectory.termination_reason is TerminationReason.COMPLETED
    assert trajectory.output == {"n": 4}
    assert trajectory.tools_executed == ("shell",)
    answered(trajectory)
    assert [request.tools for request in model.requests] == [()] * 3
    assert "Draft: {'n': 4}" in model.requests[2].messages[-1].text


@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_malformed_call_is_answered_and_not_run(name: str) -> None:
    broken = {
        "json": '{"name": "shell", "arguments": {',
        "hermes": '<tool_call>{"name": "shell", "arguments": {</tool_call>',
        "xml": '<tool name="shell"><arg',
        "react": "Action: shell\nAction Input: {",
        "terminus2": '{"commands": [{"keystrokes": ',
    }[name]
    trajectory, model = run(
        [turn(broken), turn(broken), turn("done")],
        tools=[returns("shell", "ok"), returns("keystrokes", "ok")],
        text_protocol=name,
        error_threshold=2,
    )
    assert trajectory.termination_reason is TerminationReason.ERROR
    assert trajectory.tools_executed == ()
    said = "had parsing errors:" if name == "terminus2" else "Malformed arguments: "
    assert said in model.requests[1].messages[-1].text


def test_a_terminus_run_ends_with_the_second_task_complete_in_a_row() -> None:
    ls = {"commands": [{"keystrokes": "ls\n", "duration": 0.1}]}
    done = {"commands": [], "task_complete": True}
    trajectory, model = terminus(ls, done, ls, done, {**done, "analysis": "All is well."})
    assert trajectory.termination_reason is TerminationReason.COMPLETED
    assert trajectory.tools_executed == ("keystrokes",) * 5, "the screen is looked at as well"
    assert len(model.requests) == 5
    assert trajectory.final_text == "All is well."
    assert model.requests[1].messages[-1].text == "$ ls\n"
    assert model.requests[2].messages[-1].text.startswith("Current terminal state:\n$ \n\nAre you ")


def test_a_terminus_answer_that_does_not_parse_runs_nothing_and_is_complained_of() -> None:
    done = {"commands": [], "task_complete": True}
    trajectory, model = terminus("I am sure.", done, done)
    assert trajectory.termination_reason is TerminationReason.COMPLETED
    assert trajectory.tools_executed == ("keystrokes",) * 2
    shown = model.requests[1].messages[-1].text
    assert shown.startswith("Previous response had parsing errors:\n- ")


def test_ids_stay_unique_when_a_conversation_is_taken_up_again() -> None:
    text = written("json", "shell")
    first, _ = run([turn(text), turn("done")], tools=[returns("shell", "ok")], text_protocol="json")
    loop, _ = make([turn(text), turn("done")], tools=[returns("shell", "ok")], text_protocol="json")
    second = loop.run([*first.messages, *first.messages[:1]])
    ids = [call.id for message in second.messages for call in message.tool_calls]
    assert ids == ["call_1", "call_2"]


def test_the_last_call_without_tools_is_text_whatever_it_looks_like() -> None:
    text = written("json", "shell")
    loop, model = make(
        [turn(text), turn(text)],
        tools=[returns("shell", "ok")],
        text_protocol="json",
        max_iterations=1,
        on_limit="wrap_up",
    )
    trajectory = loop.run("Go.")
    assert trajectory.final_text == text
    assert trajectory.tools_executed == ("shell",)
    assert model.requests[1].system is None

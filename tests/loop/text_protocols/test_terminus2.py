"""The whole answer as one JSON object."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness.loop.text_protocols.terminus2 import Terminus2Protocol
from harness.loop.written_json import read_json
from harness.schema.messages import ToolCall, ToolSpec
from harness.values import ParsedText

PROTOCOL = Terminus2Protocol()


def answer(*commands: Any, **keys: Any) -> str:
    return json.dumps({"analysis": "A.", "plan": "P.", "commands": commands, **keys})


def calls_of(parsed: ParsedText) -> list[tuple[str, Any]]:
    return [(name, json.loads(raw)) for name, raw in parsed.calls]


def test_each_command_is_a_call_and_the_thoughts_are_the_text() -> None:
    text = answer({"keystrokes": "ls\n", "duration": 0.1}, {"keystrokes": "C-c", "duration": 600})
    parsed = PROTOCOL.parse(text)
    assert calls_of(parsed) == [
        ("keystrokes", {"keystrokes": "ls\n", "duration": 0.1}),
        ("keystrokes", {"keystrokes": "C-c", "duration": 60}),
    ]
    assert (parsed.text, parsed.notes) == ("A.\n\nP.", "")


def test_task_complete_is_a_last_call() -> None:
    done = PROTOCOL.parse(answer({"keystrokes": "ls\n", "duration": 1}, task_complete=True))
    assert [name for name, _ in done.calls] == ["keystrokes", "task_complete"]
    assert done.calls[1] == ("task_complete", "{}")
    assert PROTOCOL.parse(answer(task_complete=True)).calls == (("task_complete", "{}"),)
    bare = PROTOCOL.parse('{"analysis": "", "plan": "", "task_complete": true}')
    assert (bare.calls, bare.notes) == ((("task_complete", "{}"),), "")


def test_an_answer_without_a_command_looks_at_the_screen_again() -> None:
    parsed = PROTOCOL.parse(answer(task_complete=False))
    assert calls_of(parsed) == [("keystrokes", {"keystrokes": "", "duration": 1.0})]


def test_a_command_may_call_any_other_tool() -> None:
    output = {"name": "output", "arguments": {"result": "x"}}
    parsed = PROTOCOL.parse(answer({"keystrokes": "ls\n", "duration": 1}, output))
    assert calls_of(parsed)[1] == ("output", {"result": "x"})
    spec = ToolSpec(name="output", description="Hand in.", parameters={})
    assert '{"name": "output"' in PROTOCOL.instructions([spec])
    assert "keystrokes" not in PROTOCOL.instructions([spec])


def test_a_fence_around_the_object_is_nothing_to_speak_of() -> None:
    parsed = PROTOCOL.parse(f"```json\n{answer(task_complete=True)}\n```\n")
    assert (parsed.text, parsed.notes) == ("A.\n\nP.", "")


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        (f"I see. {answer(task_complete=True)}", "There is text before or after the JSON object."),
        (f"{answer(task_complete=True)} Good.", "There is text before or after the JSON object."),
        (answer(mood="good"), "Unknown keys: mood."),
        (answer(task_complete="yes"), "task_complete must be true or false; taken as false."),
        (answer(analysis=None), "The key 'analysis' is missing or no text."),
        ('{"analysis": "", "commands": []}', "The key 'plan' is missing or no text."),
        (
            answer({"keystrokes": "ls\n"}),
            "Command 1: duration is missing or no number of seconds; taken as 1.0.",
        ),
        (
            answer({"keystrokes": "ls\n", "duration": -1}),
            "Command 1: duration is missing or no number of seconds; taken as 1.0.",
        ),
        (
            answer({"keystrokes": "ls\n", "duration": 1, "wait": 2}),
            "Command 1: unknown keys: wait.",
        ),
    ],
)
def test_what_is_odd_is_warned_about_and_run(text: str, warning: str) -> None:
    parsed = PROTOCOL.parse(text)
    assert parsed.calls
    assert parsed.notes == f"Previous response had warnings:\n- {warning}"


@pytest.mark.parametrize(
    "text",
    [
        "Done.",
        '{"analysis": "A.", "plan": "P.", "commands": [',
        '{"analysis": "A.", "plan": "P."}',
        '{"keystrokes": "ls\\n", "duration": 1}',
        answer(commands="ls"),
        answer("ls"),
        answer({"duration": 1}),
        answer({"keystrokes": 5}),
        answer({"keystrokes": "ls\n", "duration": 1}, {"keystrokes": None}, task_complete=True),
    ],
)
def test_what_does_not_parse_is_one_malformed_call(text: str) -> None:
    parsed = PROTOCOL.parse(text)
    ((name, raw),) = parsed.calls
    assert name == "keystrokes"
    assert text in (raw, json.loads(raw) if raw.startswith('"') else raw)
    assert parsed.notes.startswith("Previous response had parsing errors:\n- ")
    try:
        value = read_json(raw)
    except ValueError:
        return
    assert isinstance(value, str), "it must never pass for arguments"


def test_an_empty_answer_holds_no_call() -> None:
    assert PROTOCOL.parse(" \n") == ParsedText(" \n")


def test_a_call_is_written_as_the_model_would_have() -> None:
    call = ToolCall(id="1", name="keystrokes", arguments='{"keystrokes": "a", "duration": 1}')
    written = json.loads(PROTOCOL.render_call(call))
    assert written["commands"] == [{"keystrokes": "a", "duration": 1}]
    malformed = call.model_copy(update={"arguments": "Done."})
    assert PROTOCOL.render_call(malformed) == "Done."

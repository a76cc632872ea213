"""The whole answer as one JSON object."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness.loop.text_protocols.terminus2 import Terminus2Protocol
from harness.loop.written_json import read_json
from harness.schema.messages import ToolCall, ToolResult, ToolSpec
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
        ("keystrokes", {"keystrokes": "ls\n", "duration": 0.1, "look": False}),
        ("keystrokes", {"keystrokes": "C-c", "duration": 60}),
    ]
    assert (parsed.text, parsed.notes) == ("A.\n\nP.", "")


def test_task_complete_is_a_last_call() -> None:
    done = PROTOCOL.parse(answer({"keystrokes": "ls\n", "duration": 1}, task_complete=True))
    assert [name for name, _ in done.calls] == ["keystrokes", "task_complete"]
    assert done.calls[1] == ("task_complete", "{}")
    assert PROTOCOL.parse(answer(task_complete=True)).calls == (("task_complete", "{}"),)
    assert PROTOCOL.parse(answer(task_complete="True")).calls == (("task_complete", "{}"),)


def test_an_agent_that_is_done_is_shown_the_terminal_as_it_is() -> None:
    terminal = ToolSpec(name="keystrokes", description="Types.", parameters={})
    parsed = PROTOCOL.parse(answer(task_complete=True), [terminal])
    assert calls_of(parsed) == [
        ("keystrokes", {"keystrokes": "", "duration": 0}),
        ("task_complete", {}),
    ]


def test_of_an_agent_that_is_done_faulty_commands_are_left_out() -> None:
    done = answer({"keystrokes": "ls\n", "duration": 1}, {"keystrokes": None}, task_complete=True)
    parsed = PROTOCOL.parse(done)
    assert parsed.calls == (("task_complete", "{}"),)
    assert parsed.notes.startswith("Previous response had warnings:\n- Command 2: the key ")


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
        (answer(task_complete="soon"), "task_complete must be true or false; taken as false."),
        (answer(analysis=None), "The key 'analysis' is no text."),
        (
            '{"plan": "", "analysis": "", "commands": []}',
            "The order of keys is to be analysis, plan, commands.",
        ),
        (
            answer(*[{"keystrokes": keys, "duration": 1} for keys in ("", "a", "b\n")]),
            "Command 2: it does not end with a line feed, so the next one goes on in its line.",
        ),
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
        answer({"keystrokes": "ls\n", "duration": 1}, {"keystrokes": None}),
        '{"analysis": "", "plan": "", "task_complete": true}',
        '{"analysis": "", "commands": []}',
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


LOAD = '{"load_skill": "mesh"}'


@pytest.mark.parametrize(
    ("text", "before"),
    [
        (LOAD, ""),
        (f"I'll load it.\n\n```json\n{LOAD}\n```", "I'll load it."),
        (f"First:\n{LOAD}\nThen:\n{answer({'keystrokes': 'ls', 'duration': 1})}", "First:"),
    ],
)
def test_a_skill_is_asked_for_before_all_else(text: str, before: str) -> None:
    parsed = PROTOCOL.parse(text)
    assert calls_of(parsed) == [("load_skill", {"name": "mesh"})]
    assert (parsed.text, parsed.notes) == (before, "")
    written = PROTOCOL.render_call(ToolCall(id="1", name="load_skill", arguments='{"name": "x"}'))
    assert written == '{"load_skill": "x"}'


def test_an_answer_with_commands_asks_for_no_skill() -> None:
    parsed = PROTOCOL.parse(answer({"keystrokes": "ls", "duration": 1}, load_skill="mesh"))
    assert [name for name, _ in parsed.calls] == ["keystrokes"]


def test_skills_are_described_and_how_to_load_one() -> None:
    skills = ToolSpec(name="load_skill", description="Skills: mesh.", parameters={})
    terminal = ToolSpec(name="keystrokes", description="Types.", parameters={})
    told = PROTOCOL.instructions([terminal, skills])
    assert "\nSkills: mesh.\n" in told
    assert told.endswith(' nothing else: {"load_skill": "its name"}')
    assert "Commands that call a tool" not in told


def results(*contents: tuple[str, str], is_error: bool = False) -> list[ToolResult]:
    return [
        ToolResult(call_id=f"call_{place}", name=name, content=content, is_error=is_error)
        for place, (name, content) in enumerate(contents, 1)
    ]


SEEN = "New Terminal Output:\n$ ls"


def test_a_turn_is_shown_as_the_terminal_alone() -> None:
    turn = results(("keystrokes", ""), ("keystrokes", SEEN))
    assert PROTOCOL.render_results(turn, "") == SEEN
    warnings = "Previous response had warnings:\n- Odd."
    assert PROTOCOL.render_results(turn, warnings) == f"{warnings}\n\n{SEEN}"


def test_of_an_answer_that_was_not_read_its_faults_are_told_and_nothing_else() -> None:
    parsed = PROTOCOL.parse("Done.")
    turn = results(("keystrokes", "Malformed arguments: no JSON"), is_error=True)
    assert PROTOCOL.render_results(turn, parsed.notes) == (
        "Previous response had parsing errors:\n"
        "- No valid JSON object with these keys was found.\n\n"
        "Nothing was run. Answer again, with one correct JSON object."
    )


def test_whether_it_is_sure_is_asked_of_an_agent_that_sees_the_terminal() -> None:
    turn = results(("keystrokes", ""), ("keystrokes", SEEN), ("task_complete", "Sure?"))
    assert PROTOCOL.render_results(turn, "Previous response had warnings:\n- Odd.") == (
        f"Current terminal state:\n{SEEN}\n\nSure?"
    )
    assert PROTOCOL.render_results(results(("task_complete", "Sure?")), "") == "Sure?"


def test_failures_and_other_tools_are_introduced() -> None:
    failed = results(("keystrokes", "the container is gone"), is_error=True)
    assert PROTOCOL.render_results(failed, "") == (
        "Error from call_1 (keystrokes):\nthe container is gone"
    )
    assert PROTOCOL.render_results(results(("keystrokes", "")), "").endswith("(keystrokes):\n")

"""Calls as `Action:` lines."""

from __future__ import annotations

import pytest

from harness.loop.text_protocols.react import ReactProtocol
from harness.loop.written_json import read_json
from harness.values import ParsedText

PROTOCOL = ReactProtocol()
LS = 'Action: shell\nAction Input: {"command": "ls"}'
RAW_LS = '{"command": "ls"}'


@pytest.mark.parametrize(
    ("text", "around", "calls"),
    [
        (LS, "", [RAW_LS]),
        (f"Thought: I look.\n{LS}\n", "Thought: I look.", [RAW_LS]),
        (f"{LS}\n{LS}", "", [RAW_LS, RAW_LS]),
        ('Action: shell\nAction Input: {\n  "command": "ls"\n}\n', "", [RAW_LS]),
        ("Action: shell\nAction Input:\n```json\n{}\n```\n", "", ["{}"]),
        ("Action: shell\n\n  Action Input : {}", "", ["{}"]),
        ("Action: shell\nAction Input:\n", "", ["{}"]),
        (
            'Action: shell\nAction Input: {"command": "a\nObservation: b"}',
            "",
            ['{"command": "a\\nObservation: b"}'],
        ),
        (f"{LS}\nObservation: a.txt\nThought: Good.\n{LS}", "", [RAW_LS]),
        (f"I look.\n{LS}\nObservation: a.txt\nFinal Answer: 1", "I look.", [RAW_LS]),
        (f"{LS}\nThought: I wait.", "Thought: I wait.", [RAW_LS]),
    ],
)
def test_actions_are_found_and_invented_observations_cut_off(
    text: str, around: str, calls: list[str]
) -> None:
    assert PROTOCOL.parse(text) == ParsedText(around, tuple(("shell", raw) for raw in calls))


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("Final Answer: 42", "42"),
        ("Thought: I know.\nFinal Answer: It is\n42.\n", "It is\n42."),
        ("Final Answer: Do this.\nAction: press the button", "Do this.\nAction: press the button"),
    ],
)
def test_what_follows_final_answer_is_the_text(text: str, answer: str) -> None:
    assert PROTOCOL.parse(text) == ParsedText(answer)


@pytest.mark.parametrize(
    "text",
    ["", "There is one file. ", "No Action: needed", "Observation: the folder is empty\nSo it is."],
)
def test_what_has_no_such_line_is_text(text: str) -> None:
    assert PROTOCOL.parse(text) == ParsedText(text)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Action: shell", "shell"),
        ("Action: shell\nI wait.", "shell"),
        ("Action: shell\nAction Input: ls", "shell"),
        ('Action: shell\nAction Input: {"command": "ls"', "shell"),
        ('Action: shell\nAction Input: {"command": "ls"} and so on', "shell"),
        ('Action Input: {"command": "ls"} or', "malformed_call"),
    ],
)
def test_a_line_that_does_not_read_is_a_malformed_call(text: str, name: str) -> None:
    parsed = PROTOCOL.parse(f"Thought: I look.\n{text}")
    assert parsed.text.startswith("Thought: I look.")
    ((found, raw),) = parsed.calls
    assert found == name
    with pytest.raises(ValueError, match="Expecting"):
        read_json(raw)

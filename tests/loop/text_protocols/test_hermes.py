"""Calls in `<tool_call>` tags."""

from __future__ import annotations

import pytest

from harness.loop.text_protocols.hermes import HermesProtocol
from harness.loop.written_json import read_json
from harness.schema.messages import ToolCall
from harness.values import ParsedText

PROTOCOL = HermesProtocol()
LS = '{"name": "shell", "arguments": {"command": "ls"}}'
RAW_LS = '{"command": "ls"}'


@pytest.mark.parametrize(
    ("text", "around", "calls"),
    [
        (f"<tool_call>{LS}</tool_call>", "", [RAW_LS]),
        (f"I look.\n<tool_call>\n{LS}\n</tool_call>\nSo.", "I look.\n\nSo.", [RAW_LS]),
        (f"<tool_call>{LS}</tool_call>\n<tool_call>{LS}</tool_call>", "", [RAW_LS, RAW_LS]),
        (f"<tool_call>[{LS}, {LS}]</tool_call>", "", [RAW_LS, RAW_LS]),
        (f"<tool_call>{LS}", "", [RAW_LS]),
        (f"<tool_call>{LS}\n<tool_call>{LS}\n", "", [RAW_LS, RAW_LS]),
        ('<tool_call>{"name": "shell"}</tool_call>', "", ["{}"]),
        (
            '<tool_call>{"name": "shell", "arguments": {"command": "</tool_call>"}}</tool_call>',
            "",
            ['{"command": "</tool_call>"}'],
        ),
        (
            '<tool_call>{"name": "shell", "arguments": {"command": "a\nb"}}</tool_call>',
            "",
            ['{"command": "a\\nb"}'],
        ),
    ],
)
def test_calls_are_found_in_their_tags(text: str, around: str, calls: list[str]) -> None:
    assert PROTOCOL.parse(text) == ParsedText(around, tuple(("shell", raw) for raw in calls))


@pytest.mark.parametrize("text", ["", "Done.", LS, "</tool_call>", "I write <tool_calls> now. "])
def test_what_is_in_no_tag_is_text(text: str) -> None:
    assert PROTOCOL.parse(text) == ParsedText(text)


@pytest.mark.parametrize(
    "inside",
    [
        '{"name": "shell", "arguments": {"command": "ls"}',
        '{"name": "shell", "arguments": {"command": "ls"}}}',
        '{"name": "shell", "arguments": {"command": "ls"}, "id": 7}',
        '{"name": "shell", "arguments": {"command": "ls"}} and so on',
        '{"name": "shell", "arguments": {\'command\': \'ls\'}}',
    ],
)
def test_what_is_no_call_in_a_tag_is_a_malformed_one_of_the_name_it_has(inside: str) -> None:
    good = f"<tool_call>{LS}</tool_call>"
    parsed = PROTOCOL.parse(f"I look. <tool_call>{inside}</tool_call> Then {good}")
    (name, raw), last = parsed.calls
    assert parsed.text == "I look.  Then"
    assert (name, last) == ("shell", ("shell", RAW_LS))
    with pytest.raises(ValueError, match="Expecting"):
        read_json(raw)
    assert PROTOCOL.render_call(ToolCall(id="1", name=name, arguments=raw)) == raw


def test_a_tag_without_a_name_is_a_call_of_no_tool() -> None:
    for inside in ("", "ls", RAW_LS):
        ((name, _),) = PROTOCOL.parse(f"<tool_call>{inside}</tool_call>").calls
        assert name == "malformed_call"

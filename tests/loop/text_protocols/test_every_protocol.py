"""What holds for every text protocol."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.loop.text_protocols import PROTOCOLS
from harness.protocols import TextProtocol
from harness.schema.messages import ToolCall, ToolResult, ToolSpec
from harness.schema.record import Json, JsonObject

JSON_VALUES: Any = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)
ARGUMENTS = st.dictionaries(st.text(), JSON_VALUES, max_size=4)

SHELL = ToolSpec(
    name="shell",
    description="Runs a command.",
    parameters={"type": "object", "properties": {"command": {"type": "string"}}},
)
PIECES = [
    *'{}[]<>",:/&;\n` a1',
    '{"name": "shell", "arguments": ',
    "<tool_call>",
    "</tool_call>",
    '<tool name="shell">',
    '<arg name="a">',
    "</arg>",
    "</tool>",
    "<![CDATA[",
    "]]>",
    "&lt;",
    "&#0;",
    "&#xD800;",
    "\nAction: shell",
    "\nAction Input: {",
    "\nObservation: x",
    "\nFinal Answer: y",
    '"commands": [',
    '{"keystrokes": "',
    '"task_complete": true',
    '"duration": 1',
    "```json",
    "\\",
    "\ud800",
]

every_protocol = pytest.mark.parametrize("name", PROTOCOLS)


def typed(arguments: dict[str, Any]) -> JsonObject:
    """A schema that gives each argument the type it has."""
    names = {str: "string", bool: "boolean", int: "integer", float: "number", list: "array"}
    names |= {dict: "object", type(None): "null"}
    return {
        "type": "object",
        "properties": {key: {"type": names[type(value)]} for key, value in arguments.items()},
    }


def nested(depth: int, opening: str, closing: str) -> str:
    return opening * depth + "1" + closing * depth


@every_protocol
@given(tool=st.text(), arguments=ARGUMENTS)
def test_every_call_that_is_written_is_read_back(
    name: str, tool: str, arguments: dict[str, Any]
) -> None:
    protocol = PROTOCOLS[name]
    spec = ToolSpec(name=tool, description="", parameters=typed(arguments))
    written = protocol.render_call(ToolCall(id="1", name=tool, arguments=json.dumps(arguments)))
    parsed = protocol.parse(written, [spec])
    assert [(found, json.loads(raw)) for found, raw in parsed.calls] == [(tool, arguments)]


@every_protocol
@given(
    keystrokes=st.text(), duration=st.integers(-5, 100) | st.floats(-5, 100) | st.text(max_size=2)
)
def test_calls_of_the_terminal_tool_are_no_exception(
    name: str, keystrokes: str, duration: Json
) -> None:
    arguments: dict[str, Any] = {"keystrokes": keystrokes, "duration": duration}
    spec = ToolSpec(name="keystrokes", description="", parameters=typed(arguments))
    call = ToolCall(id="1", name="keystrokes", arguments=json.dumps(arguments))
    parsed = PROTOCOLS[name].parse(PROTOCOLS[name].render_call(call), [spec])
    assert [(found, json.loads(raw)) for found, raw in parsed.calls] == [("keystrokes", arguments)]


@every_protocol
@given(pieces=st.lists(st.sampled_from(PIECES), max_size=25))
def test_no_text_breaks_the_reader(name: str, pieces: list[str]) -> None:
    text = "".join(pieces)
    parsed = PROTOCOLS[name].parse(text, [SHELL])
    for tool, raw in parsed.calls:
        f"{tool}{raw}{parsed.notes}".encode()
    if not parsed.calls and "Final Answer" not in text:
        assert parsed.text == text


HOSTILE = [
    "[" * 10_000,
    "{" * 10_000,
    '{"a":' * 10_000,
    '{"commands":[' * 10_000,
    "<tool_call>" * 10_000,
    '<tool_call>{"name": "shell", "arguments": {"command": "' * 5_000,
    '<tool name="' * 10_000,
    '<tool name="shell">' * 10_000,
    '<tool name="shell"><arg name="a">' * 10_000,
    '<tool name="shell"><arg name="a"><![CDATA[' * 10_000,
    '<tool name="shell"' + " " * 100_000,
    "<arg name='" * 10_000,
    "Action: " * 10_000,
    "Action: shell\n" * 10_000,
    'Action: shell\nAction Input: {"command": "' * 5_000,
    "Action: shell\n" + "\n" * 100_000,
    "Action Input: [\n" * 10_000,
    "Observation: x\n" * 10_000,
    nested(400, "[", "]") * 20,
    nested(950, "[", "]"),
    "[" * 600 + '{"name": "shell", "arguments": {}}' + "]" * 600,
    f'{{"name": "shell", "arguments": {nested(480, "[", "]")}}}',
    f'{{"name": "shell", "arguments": {nested(940, "[", "]")}}}',
    f'<tool_call>{{"name": "shell", "arguments": {nested(940, "[", "]")}}}</tool_call>',
    f"Action: shell\nAction Input: {nested(940, '[', ']')}",
    f'{{"commands": [{{"keystrokes": {nested(930, "[", "]")}}}]}}',
    f'<tool name="shell"><arg name="command">{nested(940, "[", "]")}</arg></tool>',
]


@every_protocol
def test_hostile_text_is_read_at_once(name: str) -> None:
    """In a process of its own with a limit of processor time: a slow reader is killed."""
    code = (
        "import json, resource, sys\n"
        "from harness.loop.text_protocols import PROTOCOLS\n"
        "from harness.schema.messages import ToolSpec\n"
        "resource.setrlimit(resource.RLIMIT_CPU, (20, 20))\n"
        "schema = {'properties': {'command': {'type': 'array'}}}\n"
        "spec = ToolSpec(name='shell', description='', parameters=schema)\n"
        "for text in json.load(sys.stdin):\n"
        f"    PROTOCOLS[{name!r}].parse(text, [spec])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=json.dumps(HOSTILE),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]


@every_protocol
def test_the_instructions_name_each_tool_and_are_empty_without_one(name: str) -> None:
    protocol: TextProtocol = PROTOCOLS[name]
    assert protocol.instructions([]) == ""
    instructions = protocol.instructions([SHELL])
    for word in ("shell", "Runs a command.", "command"):
        assert word in instructions


@pytest.mark.parametrize("name", ["json", "hermes", "xml"])
def test_the_call_that_the_instructions_show_is_a_call(name: str) -> None:
    parsed = PROTOCOLS[name].parse(PROTOCOLS[name].instructions([SHELL]))
    assert parsed.calls[-1] == ("shell", '{"command": "..."}')


@every_protocol
def test_a_result_is_introduced_by_the_id_and_the_name_of_its_call(name: str) -> None:
    result = ToolResult(call_id="call_7", name="shell", content="a.txt")
    rendered = PROTOCOLS[name].render_results([result], "")
    assert "call_7 (shell)" in rendered
    assert rendered.endswith("a.txt")
    failed = PROTOCOLS[name].render_results([result.model_copy(update={"is_error": True})], "")
    assert failed != rendered
    both = PROTOCOLS[name].render_results([result, result], "Mind this.")
    assert both == f"Mind this.\n\n{rendered}\n\n{rendered}"

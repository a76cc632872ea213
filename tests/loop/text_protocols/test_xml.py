"""Calls in `<tool>` tags."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness.loop.text_protocols.xml import XmlProtocol
from harness.loop.written_json import read_json
from harness.schema.messages import ToolCall, ToolSpec
from harness.schema.record import Json, JsonObject
from harness.values import ParsedText

PROTOCOL = XmlProtocol()
LS = '<tool name="shell"><arg name="command">ls</arg></tool>'
RAW_LS = '{"command": "ls"}'


def arguments_of(value: str, schema: Json, **root: Json) -> Any:
    """What `<arg name="v">value</arg>` is read as under a schema."""
    parameters: JsonObject = {"type": "object", "properties": {"v": schema}, **root}
    spec = ToolSpec(name="t", description="", parameters=parameters)
    parsed = PROTOCOL.parse(f'<tool name="t"><arg name="v">{value}</arg></tool>', [spec])
    ((_, raw),) = parsed.calls
    return json.loads(raw)["v"]


@pytest.mark.parametrize(
    ("text", "around", "calls"),
    [
        (LS, "", [RAW_LS]),
        (f"I look.\n{LS}\nThen I wait.\n{LS}", "I look.\n\nThen I wait.", [RAW_LS, RAW_LS]),
        ("<tool name='shell'>\n  <arg name='command'>ls</arg>\n</tool>", "", [RAW_LS]),
        ('<tool name="shell"></tool>', "", ["{}"]),
        ('<tool name="shell"/>', "", ["{}"]),
        ('<tool name="shell"><arg name="command"/></tool>', "", ['{"command": ""}']),
    ],
)
def test_calls_are_found_in_their_tags(text: str, around: str, calls: list[str]) -> None:
    assert PROTOCOL.parse(text) == ParsedText(around, tuple(("shell", raw) for raw in calls))


@pytest.mark.parametrize(
    ("value", "read"),
    [
        (" ls\n", " ls\n"),
        ("a &lt; b &amp;&amp; c &gt; d &quot;&apos;", "a < b && c > d \"'"),
        ("&#65;&#x42;", "AB"),
        ("a < b && c", "a < b && c"),
        ("x=1&copy=2&nbsp;&#1114112;", "x=1&copy=2&nbsp;&#1114112;"),
        ("&amp;lt;", "&lt;"),
        ("<![CDATA[a &lt; </arg> b]]>", "a &lt; </arg> b"),
        ("\n<![CDATA[a]]]]>\n", "a]]"),
        ("say <![CDATA[x]]>", "say <![CDATA[x]]>"),
        ("5", "5"),
    ],
)
def test_a_value_is_text_with_its_entities_read(value: str, read: str) -> None:
    assert arguments_of(value, {"type": "string"}) == read
    assert arguments_of(value, {}) == read


@pytest.mark.parametrize(
    ("value", "schema", "read"),
    [
        ("5", {"type": "integer"}, 5),
        (" -5\n", {"type": "integer"}, -5),
        ("5.5", {"type": "number"}, 5.5),
        ("true", {"type": "boolean"}, True),
        ('{"a": [1]}', {"type": "object"}, {"a": [1]}),
        ('["a", "b"]', {"type": "array"}, ["a", "b"]),
        ("null", {"type": ["integer", "null"]}, None),
        ("7", {"anyOf": [{"type": "integer"}, {"type": "null"}]}, 7),
        ("7", {"anyOf": [{"type": "integer"}, {"type": "string"}]}, "7"),
        ('{"a": 1}', {"$ref": "#/$defs/Point"}, {"a": 1}),
        ("five", {"type": "integer"}, "five"),
        ("true", {"type": "integer"}, "true"),
        ("5 apples", {"type": "integer"}, "5 apples"),
        ("[", {"type": "array"}, "["),
    ],
)
def test_a_value_is_of_the_type_that_the_schema_wants_where_it_can_be(
    value: str, schema: JsonObject, read: Json
) -> None:
    definitions: JsonObject = {"$defs": {"Point": {"type": "object"}}}
    found = arguments_of(value, schema, **definitions)
    assert (found, type(found)) == (read, type(read))


@pytest.mark.parametrize("text", ["", "Done.", "<tools>", "a <tool> b", '<a name="shell"/> '])
def test_what_is_no_such_tag_is_text(text: str) -> None:
    assert PROTOCOL.parse(text) == ParsedText(text)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('<tool name="shell">{"command": "ls"}</tool>', "shell"),
        ('<tool name="shell"><arg name="command">ls</tool>', "shell"),
        ('<tool name="shell"><arg name="command">ls</arg>', "shell"),
        ('<tool name="shell"><arg name="command">ls</arg> or so</tool>', "shell"),
        ('<tool name="shell"><arg>ls</arg></tool>', "shell"),
        ('<tool name="shell"><arg name="a">1</arg><arg name="a">2</arg></tool>', "shell"),
        ('<tool name="shell"><arg name="a"><![CDATA[1</arg></tool>', "shell"),
        ("<tool name=shell></tool>", "malformed_call"),
        ('<tool name="shell', "malformed_call"),
    ],
)
def test_a_tag_that_does_not_read_is_a_malformed_call(text: str, name: str) -> None:
    parsed = PROTOCOL.parse(f"I look. {text}")
    assert parsed.text == "I look."
    assert parsed.calls == ((name, text),)
    with pytest.raises(ValueError, match="Expecting"):
        read_json(parsed.calls[0][1])
    assert PROTOCOL.render_call(ToolCall(id="1", name=name, arguments=text)) == text


def test_a_call_after_a_malformed_one_is_read() -> None:
    parsed = PROTOCOL.parse(f'<tool name="shell">ls</tool>{LS}<tool name="shell">{LS}')
    assert [raw == RAW_LS for _, raw in parsed.calls] == [False, True, False, True]

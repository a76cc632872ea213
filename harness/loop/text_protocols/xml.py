"""Calls as tags in the manner of XML; read leniently, since models do not write XML."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harness.loop.text_protocols.json_values import dumped, json_value_at
from harness.loop.text_protocols.tool_texts import MALFORMED, example, in_order, introduced
from harness.schema.messages import ToolCall, ToolResult, ToolSpec
from harness.schema.record import Json, JsonObject, storable
from harness.values import ParsedText

_QUOTED = r"""\s+name\s*=\s*(?:"([^"]*)"|'([^']*)')\s*"""
_LOOKS_LIKE_CALL = re.compile(r"<tool\s+name\s*=")
_TOOL = re.compile(rf"<tool{_QUOTED}(/?)>")
_ARGUMENT = re.compile(rf"\s*<arg{_QUOTED}(/?)>")
_END = re.compile(r"\s*</tool\s*>")
_NEXT = re.compile(r"</tool\s*>|(?=<tool\s+name\s*=)|\Z")
_CDATA = re.compile(r"\s*<!\[CDATA\[")
_CDATA_END = re.compile(r"\]\]>\s*</arg>")
_ENTITY = re.compile(r"&(?:lt|gt|amp|quot|apos|#[0-9]{1,7}|#x[0-9A-Fa-f]{1,6});")
_NAMED = {"&lt;": "<", "&gt;": ">", "&amp;": "&", "&quot;": '"', "&apos;": "'"}
_TYPES: Mapping[str, tuple[type, ...]] = {
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "object": (dict,),
    "array": (list,),
    "null": (type(None),),
}


class XmlProtocol:
    """`<tool name="…"><arg name="…">…</arg></tool>`, once per call.

    A value is the text between its tags, with the entities of XML read; one in
    `<![CDATA[…]]>` is taken as it stands. Where the tool's schema wants a number, a truth value,
    an object or a list, the text is read as JSON.
    """

    name = "xml"

    def instructions(self, tools: Sequence[ToolSpec]) -> str:
        """A call to copy for each tool, and the rule at the end."""
        if not tools:
            return ""
        lines = ["Tools, and how to call them:"]
        for tool in tools:
            shape = example(tool.parameters)
            arguments = shape if isinstance(shape, dict) else {}
            call = _written(tool.name, {key: _shown(value) for key, value in arguments.items()})
            lines += [f"- {tool.description}", f"  {call}"]
        lines.append(
            "Write each call in these tags. Write numbers, true, false, lists and objects as JSON "
            "and all else as plain text, with &lt; &gt; and &amp; for < > and &. You may call "
            "several tools in one answer. Their results come in the next message."
        )
        return "\n".join(lines)

    def parse(self, text: str, tools: Sequence[ToolSpec] = ()) -> ParsedText:
        """Find the tags; one that is not closed, or holds anything else, is a malformed call."""
        schemas = {tool.name: tool.parameters for tool in tools}
        calls: list[tuple[str, str]] = []
        around: list[str] = []
        position = 0
        while match := _LOOKS_LIKE_CALL.search(text, position):
            around.append(text[position : match.start()])
            name, arguments, position = _call_at(text, match.start())
            if isinstance(arguments, dict):
                raw = dumped(_typed(arguments, schemas.get(name, {})))
            else:
                raw = arguments
            calls.append((storable(name), storable(raw or "")))
        around.append(text[position:])
        return ParsedText("".join(around).strip(), tuple(calls)) if calls else ParsedText(text)

    def render_call(self, call: ToolCall) -> str:
        """The tags the model would have written."""
        try:
            arguments = json.loads(call.arguments or "{}")
        except (ValueError, RecursionError):
            return call.arguments
        if not isinstance(arguments, dict):
            return call.arguments
        return _written(call.name, arguments)

    def render_results(self, results: Sequence[ToolResult], notes: str) -> str:
        """Each introduced by its call's id and name."""
        return in_order([introduced(result) for result in results], notes)


def _shown(value: Json) -> Json:
    """A placeholder without the signs that would have to be escaped."""
    return value.strip("<>") if isinstance(value, str) else value


def _written(name: str, arguments: Mapping[str, Json]) -> str:
    inner = "".join(
        f'<arg name="{_escaped(key)}">'
        f"{_escaped(value if isinstance(value, str) else dumped(value) or '')}"
        "</arg>"
        for key, value in arguments.items()
    )
    return f'<tool name="{_escaped(name)}">{inner}</tool>'


def _escaped(text: str) -> str:
    for entity, sign in (("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"')):
        text = text.replace(sign, entity)
    return text


def _unescaped(text: str) -> str:
    return _ENTITY.sub(_sign, text)


def _sign(entity: re.Match[str]) -> str:
    written = entity[0]
    if written in _NAMED:
        return _NAMED[written]
    digits = written[2:-1]
    number = int(digits[1:], 16) if digits.startswith("x") else int(digits)
    return chr(number) if number <= 0x10FFFF else written


def _call_at(text: str, start: int) -> tuple[str, dict[str, str] | str, int]:
    """Name, arguments and end of the call that starts here; raw text for a malformed one."""
    opening = _TOOL.match(text, start)
    if opening is None:
        return MALFORMED, *_malformed(text, start, start + 1)
    name = _attribute(opening)
    arguments: dict[str, str] = {}
    position = opening.end()
    if opening[3]:
        return name, arguments, position
    while argument := _ARGUMENT.match(text, position):
        key = _attribute(argument)
        value, position = _value_at(text, argument)
        if value is None or key in arguments:
            return name, *_malformed(text, start, position)
        arguments[key] = value
    end = _END.match(text, position)
    if end is None:
        return name, *_malformed(text, start, position)
    return name, arguments, end.end()


def _value_at(text: str, argument: re.Match[str]) -> tuple[str | None, int]:
    """The value after an opening tag and where the closing one ends; None if there is none."""
    position = argument.end()
    if argument[3]:
        return "", position
    literal = _CDATA.match(text, position)
    if literal is not None:
        close = _CDATA_END.search(text, literal.end())
        if close is not None:
            return text[literal.end() : close.start()], close.end()
        return None, len(text)
    end = text.find("</arg>", position)
    if end < 0:
        return None, len(text)
    return _unescaped(text[position:end]), end + len("</arg>")


def _malformed(text: str, start: int, position: int) -> tuple[str, int]:
    """The raw text of a malformed call, which goes on to its closing tag or to the next call."""
    following = _NEXT.search(text, position)
    end = following.end() if following else len(text)
    return text[start:end], end


def _attribute(tag: re.Match[str]) -> str:
    return _unescaped(tag[1] if tag[1] is not None else tag[2])


def _typed(arguments: Mapping[str, str], schema: JsonObject) -> JsonObject:
    properties = schema.get("properties")
    known = properties if isinstance(properties, dict) else {}
    return {
        key: _typed_value(value, set(_types(known.get(key), schema)))
        for key, value in arguments.items()
    }


def _typed_value(text: str, types: set[str]) -> Json:
    """The text as the schema wants it; where it does not fit, the schema's check says so."""
    if not types or "string" in types:
        return text
    stripped = text.strip()
    found = json_value_at(stripped, 0)
    if found is None or found.end != len(stripped):
        return text
    value: Any = found.value
    kinds = tuple(kind for name in types for kind in _TYPES.get(name, ()))
    fits = isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool))
    return value if fits else text


def _types(schema: Json, root: JsonObject, depth: int = 0) -> Iterator[str]:
    """The types that a schema names, its alternatives and its references included."""
    if not isinstance(schema, dict) or depth > 5:
        return
    named = schema.get("type")
    for name in named if isinstance(named, list) else [named]:
        if isinstance(name, str):
            yield name
    for keyword in ("anyOf", "oneOf", "allOf"):
        choices = schema.get(keyword)
        for choice in choices if isinstance(choices, list) else ():
            yield from _types(choice, root, depth + 1)
    reference = schema.get("$ref")
    definitions = root.get("$defs")
    if isinstance(reference, str) and isinstance(definitions, dict):
        yield from _types(definitions.get(reference.removeprefix("#/$defs/")), root, depth + 1)

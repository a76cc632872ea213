"""Calls as JSON objects in the text."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from harness.loop.text_protocols.json_values import Found, calls_in, json_values
from harness.loop.text_protocols.tool_texts import example, in_order, introduced
from harness.schema.messages import ToolCall, ToolResult, ToolSpec
from harness.values import ParsedText

_LOOKS_LIKE_CALL = re.compile(
    r'\{\s*"name"\s*:\s*"(?P<name>[^"\n]+)"\s*,\s*"arguments"\s*:(?P<rest>.*)', re.DOTALL
)
_EMPTY_FENCE = re.compile(r"```[a-zA-Z]*\s*```")
_QUOTED_PLACEHOLDER = re.compile(r'"(<(?:integer|number|boolean)>)"')
_OPEN_FENCE = re.compile(r"```[a-zA-Z]*\s*\Z")


class JsonProtocol:
    """One JSON object per call, bare or fenced: `{"name": …, "arguments": {…}}`, or a list."""

    name = "json"

    def instructions(self, tools: Sequence[ToolSpec]) -> str:
        """A call to copy for each tool, and the rule at the end, where small models heed it."""
        if not tools:
            return ""
        lines = ["Tools, and how to call them:"]
        for tool in tools:
            lines += [f"- {tool.description}", f"  {call_to_copy(tool)}"]
        lines.append(
            "Call one tool at a time: answer with one such JSON object and nothing else. "
            "Its result comes in the next message."
        )
        return "\n".join(lines)

    def parse(self, text: str, tools: Sequence[ToolSpec] = ()) -> ParsedText:
        """Find the calls; a text that looks like a call but does not parse is a malformed one."""
        calls: list[tuple[str, str]] = []
        around: list[str] = []
        position = 0
        for found in [*json_values(text), Found(None, len(text), len(text))]:
            inside = calls_in(found.value)
            if inside or found.start == len(text):
                before, malformed = _without_malformed_call(text[position : found.start])
                around.append(before)
                calls.extend([*malformed, *inside])
                position = found.end
        if not calls:
            return ParsedText(text)
        return ParsedText(_EMPTY_FENCE.sub("", "".join(around)).strip(), tuple(calls))

    def render_call(self, call: ToolCall) -> str:
        """The object the model would have written."""
        return f'{{"name": {json.dumps(call.name)}, "arguments": {call.arguments or "{}"}}}'

    def render_results(self, results: Sequence[ToolResult], notes: str) -> str:
        """Each introduced by its call's id and name."""
        return in_order([introduced(result) for result in results], notes)


def call_to_copy(tool: ToolSpec) -> str:
    """A call of the tool, with placeholders."""
    call = {"name": tool.name, "arguments": example(tool.parameters)}
    return _QUOTED_PLACEHOLDER.sub(r"\1", json.dumps(call, ensure_ascii=False))


def _without_malformed_call(text: str) -> tuple[str, list[tuple[str, str]]]:
    """The text before what looks like a call but is none, and that call."""
    match = _LOOKS_LIKE_CALL.search(text)
    if match is None:
        return text, []
    before = _OPEN_FENCE.sub("", text[: match.start()])
    try:
        json.loads(match[0])
    except (ValueError, RecursionError):
        return before, [(match["name"], match[0])]
    # An object with more keys than a call has: its tail can never pass for arguments.
    return before, [(match["name"], match["rest"])]

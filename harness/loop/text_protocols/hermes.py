"""Calls as JSON in tags, the way Hermes and Qwen models were trained."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from harness.loop.text_protocols.json_protocol import call_to_copy
from harness.loop.text_protocols.json_values import calls_in, json_value_at
from harness.loop.text_protocols.tool_texts import MALFORMED, in_order, introduced
from harness.schema.messages import ToolCall, ToolResult, ToolSpec
from harness.values import ParsedText

OPEN, CLOSE = "<tool_call>", "</tool_call>"

_TAG = re.compile(rf"{OPEN}|{CLOSE}")
_AFTER = re.compile(rf"\s*(?:{CLOSE}|(?={OPEN})|\Z)")
"""What may follow a call; servers that stop at the closing tag leave it out."""
_SPACE = re.compile(r"\s*")
_NAME = re.compile(r'"name"\s*:\s*"([^"\\\n]+)"')


class HermesProtocol:
    """`<tool_call>{"name": …, "arguments": {…}}</tool_call>`, once per call."""

    name = "hermes"

    def instructions(self, tools: Sequence[ToolSpec]) -> str:
        """A call to copy for each tool, and the rule at the end."""
        if not tools:
            return ""
        lines = ["Tools, and how to call them:"]
        for tool in tools:
            lines += [f"- {tool.description}", f"  {OPEN}{call_to_copy(tool)}{CLOSE}"]
        lines.append(
            "Write each call as one JSON object between the two tags. You may call several tools "
            "in one answer. Their results come in the next message."
        )
        return "\n".join(lines)

    def parse(self, text: str, tools: Sequence[ToolSpec] = ()) -> ParsedText:
        """Find the tags; what stands in one and is no call is a malformed call."""
        calls: list[tuple[str, str]] = []
        around: list[str] = []
        position = 0
        while (start := text.find(OPEN, position)) >= 0:
            around.append(text[position:start])
            inside, position = _call_at(text, start)
            calls += inside
        around.append(text[position:])
        return ParsedText("".join(around).strip(), tuple(calls)) if calls else ParsedText(text)

    def render_call(self, call: ToolCall) -> str:
        """The tags with the object the model would have written."""
        if call.arguments.startswith(OPEN):  # malformed, and kept with its tag
            return call.arguments
        arguments = call.arguments or "{}"
        return f'{OPEN}{{"name": {json.dumps(call.name)}, "arguments": {arguments}}}{CLOSE}'

    def render_results(self, results: Sequence[ToolResult], notes: str) -> str:
        """Each introduced by its call's id and name."""
        return in_order([introduced(result) for result in results], notes)


def _call_at(text: str, start: int) -> tuple[list[tuple[str, str]], int]:
    """The calls in the tag that starts here, or a malformed one, and where the tag ends."""
    body = start + len(OPEN)
    space = _SPACE.match(text, body)
    found = json_value_at(text, space.end() if space else body)
    after = _AFTER.match(text, found.end) if found else None
    if found and after:
        value = found.value
        if isinstance(value, dict) and set(value) == {"name"}:  # a tool without parameters
            value = {**value, "arguments": {}}
        calls = calls_in(value)
        if calls:
            return calls, after.end()
    tag = _TAG.search(text, found.end if found and after else body)
    end = len(text) if tag is None else tag.start() if tag[0] == OPEN else tag.end()
    name = _NAME.search(text, body, end)
    # With its tag it can never pass for arguments.
    return [(name[1] if name else MALFORMED, text[start:end])], end

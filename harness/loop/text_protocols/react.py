"""Calls as lines of a ReAct protocol: thought, action, observation, final answer."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from harness.loop.text_protocols.json_protocol import call_to_copy
from harness.loop.text_protocols.json_values import dumped, json_value_at
from harness.loop.text_protocols.tool_texts import MALFORMED, in_order, introduced
from harness.schema.messages import ToolCall, ToolResult, ToolSpec
from harness.schema.record import storable
from harness.values import ParsedText

_MARK = re.compile(
    r"^[ \t]*(Action Input|Action|Observation|Final Answer)[ \t]*:[ \t]*", re.MULTILINE
)
_NEXT_LINE = re.compile(
    r"^[ \t]*(?:Action|Action Input|Observation|Final Answer|Thought)[ \t]*:", re.MULTILINE
)
_NAME = re.compile(r"([^\n]*)(?:\n|\Z)")
_INPUT = re.compile(r"\s*^[ \t]*Action Input[ \t]*:[ \t]*", re.MULTILINE)
_BEFORE_VALUE = re.compile(r"\s*(?:```[a-zA-Z]*\s*)?")
_AFTER_VALUE = re.compile(r"(?:\s*```)?[ \t]*(?:\r?\n|\Z)")


class ReactProtocol:
    """Lines `Action: name` and `Action Input: {json}`; `Final Answer:` is followed by the text."""

    name = "react"

    def instructions(self, tools: Sequence[ToolSpec]) -> str:
        """The form of an answer, and each tool with an input to copy."""
        if not tools:
            return ""
        lines = [
            "To use a tool, answer in this form:",
            "Thought: what you do next, and why",
            "Action: the tool's name",
            "Action Input: its arguments, as one JSON object",
            "Then stop: the result comes in the next message. When you are done, answer:",
            "Final Answer: the answer",
            "Tools:",
        ]
        for tool in tools:
            arguments = call_to_copy(tool).partition('"arguments": ')[2].removesuffix("}")
            lines += [f"- {tool.description}", f"  Action: {tool.name}"]
            lines.append(f"  Action Input: {arguments}")
        return "\n".join(lines)

    def parse(self, text: str, tools: Sequence[ToolSpec] = ()) -> ParsedText:
        """Find the actions; what the model invents as their observation is cut off."""
        calls: list[tuple[str, str]] = []
        around: list[str] = []
        position = 0
        while mark := _MARK.search(text, position):
            if mark[1] == "Observation" and not calls:  # a word like any other
                around.append(text[position : mark.end()])
                position = mark.end()
                continue
            around.append(text[position : mark.start()])
            if mark[1] == "Observation":
                position = len(text)
            elif mark[1] == "Final Answer":
                around = [text[mark.end() :]]
                position = len(text)
            else:
                call, position = _call_at(text, mark)
                calls.append(call)
        around.append(text[position:])
        changed = bool(calls) or "".join(around) != text
        return ParsedText("".join(around).strip() if changed else text, tuple(calls))

    def render_call(self, call: ToolCall) -> str:
        """The two lines the model would have written."""
        return f"Action: {_name_line(call.name)}\nAction Input: {call.arguments or '{}'}"

    def render_results(self, results: Sequence[ToolResult], notes: str) -> str:
        """Observations, each introduced by its call's id and name."""
        return in_order([f"Observation: {introduced(result)}" for result in results], notes)


def _name_line(name: str) -> str:
    plain = name == name.strip() and "\n" not in name and name and not name.startswith('"')
    return name if plain else json.dumps(name)


def _call_at(text: str, mark: re.Match[str]) -> tuple[tuple[str, str], int]:
    """The call that starts with this line, and where it ends."""
    name = MALFORMED
    start = mark.start()
    position = mark.end()
    if mark[1] == "Action":
        line = _NAME.match(text, position)
        assert line is not None
        name, position = _read_name(line[1].strip()), line.end()
        entry = _INPUT.match(text, position)
        if entry is None:
            return (name, storable(text[start:position])), position
        position = entry.end()
    following = _NEXT_LINE.search(text, position)
    end = following.start() if following else len(text)
    if not text[position:end].strip():
        return (name, "{}"), end
    before = _BEFORE_VALUE.match(text, position)
    found = json_value_at(text, before.end() if before else position)
    after = _AFTER_VALUE.match(text, found.end) if found else None
    raw = dumped(found.value) if found and after else None
    if after is None or raw is None:
        # With its lines it can never pass for arguments.
        return (name, storable(text[start:end])), end
    return (name, storable(raw)), after.end()


def _read_name(line: str) -> str:
    quoted = json_value_at(line, 0) if line.startswith('"') else None
    if quoted and quoted.end == len(line) and isinstance(quoted.value, str):
        return storable(quoted.value)
    return storable(line)

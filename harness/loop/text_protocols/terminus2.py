"""The protocol of the Terminus 2 agent: the whole answer is one JSON object."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from harness.loop.text_protocols.json_protocol import call_to_copy
from harness.loop.text_protocols.json_values import Found, calls_in, dumped, json_values
from harness.loop.text_protocols.tool_texts import introduced
from harness.schema.messages import ToolCall, ToolResult, ToolSpec
from harness.schema.record import Json, storable
from harness.values import ParsedText

KEYSTROKES, TASK_COMPLETE = "keystrokes", "task_complete"
MAX_WAIT_S = 60
DEFAULT_WAIT_S = 1.0

_KEYS = ("analysis", "plan", "commands", "task_complete")
_FENCE = re.compile(r"```[a-zA-Z]*")
_FORM = """\
Answer with one JSON object and nothing else:
{"analysis": "what you see, and what is still to do", "plan": "what you do next, and why", \
"commands": [...], "task_complete": false}
Set "task_complete" to true when the task is done and checked. The results of the commands come \
in the next message."""
_KEYSTROKES = """\
Commands for the terminal: {"keystrokes": "ls -la\\n", "duration": 0.1}
  Keystrokes are sent as they are: end a command with \\n to run it; C-c and C-d are control keys. \
Duration is the seconds to wait for the output, 60 at most. With no command you see the screen \
again."""
_TOOLS = "Commands that call a tool:"


class Terminus2Protocol:
    """`{"analysis", "plan", "commands": [{"keystrokes", "duration"}], "task_complete"}`.

    A command is a call of the tool `keystrokes`; `task_complete` is a last call of its own. A
    command of the form `{"name": …, "arguments": {…}}` calls any other tool.
    """

    name = "terminus2"

    def instructions(self, tools: Sequence[ToolSpec]) -> str:
        """The form of an answer, and what may stand among its commands."""
        if not tools:
            return ""
        lines = [_FORM]
        if any(tool.name == KEYSTROKES for tool in tools):
            lines.append(_KEYSTROKES)
        others = [tool for tool in tools if tool.name not in (KEYSTROKES, TASK_COMPLETE)]
        if others:
            lines.append(_TOOLS)
        for tool in others:
            lines += [f"- {tool.description}", f"  {call_to_copy(tool)}"]
        return "\n".join(lines)

    def parse(self, text: str, tools: Sequence[ToolSpec] = ()) -> ParsedText:
        """Read the object; a text without one is a malformed call, and the notes say why."""
        if not text.strip():
            return ParsedText(text)
        found = next((value for value in json_values(text) if _is_answer(value)), None)
        if found is None or not isinstance(found.value, dict):
            return _unusable(text, ["No valid JSON object with these keys was found."])
        answer = _Answer()
        answer.read(found.value)
        if answer.errors:
            return _unusable(text, answer.errors)
        around = [_FENCE.sub("", part).strip() for part in _around(text, found)]
        if any(around):
            answer.warnings.append("There is text before or after the JSON object.")
        thoughts = [found.value.get("analysis"), found.value.get("plan")]
        said = [part for part in (around[0], *thoughts, around[1]) if isinstance(part, str)]
        notes = _notes("Previous response had warnings:", answer.warnings)
        return ParsedText(
            storable("\n\n".join(part for part in said if part)), tuple(answer.calls), notes
        )

    def render_call(self, call: ToolCall) -> str:
        """An answer with this one call in it."""
        try:
            arguments: Json = json.loads(call.arguments or "{}")
        except (ValueError, RecursionError):
            return call.arguments
        complete = call.name == TASK_COMPLETE and arguments == {}
        command: Json = {"name": call.name, "arguments": arguments}
        if call.name == KEYSTROKES and _is_plain(arguments):
            command = arguments
        answer: Json = {
            "analysis": "",
            "plan": "",
            "commands": [] if complete else [command],
            "task_complete": complete,
        }
        return json.dumps(answer, ensure_ascii=False)

    def render_result(self, result: ToolResult) -> str:
        """Introduced by the call's id and name."""
        return introduced(result)


@dataclass(slots=True)
class _Answer:
    """What is read from the object."""

    calls: list[tuple[str, str]] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def read(self, value: dict[str, object]) -> None:
        unknown = [key for key in value if key not in _KEYS]
        if unknown:
            self.warnings.append(f"Unknown keys: {', '.join(unknown)}.")
        for key in ("analysis", "plan"):
            if not isinstance(value.get(key), str):
                self.warnings.append(f"The key {key!r} is missing or no text.")
        complete = value.get("task_complete", False)
        if not isinstance(complete, bool):
            self.warnings.append("task_complete must be true or false; taken as false.")
        commands = value.get("commands", [] if complete is True else None)
        if isinstance(commands, list):
            for number, command in enumerate(commands, 1):
                self._read_command(command, f"Command {number}")
        else:
            self.errors.append("The key 'commands' is missing or no list.")
        if complete is True:
            self.calls.append((TASK_COMPLETE, "{}"))
        elif not self.calls and not self.errors:
            self._add_keystrokes("", DEFAULT_WAIT_S)

    def _read_command(self, command: object, where: str) -> None:
        inside = calls_in(command) if isinstance(command, dict) else []
        if inside:
            self.calls += inside
        elif not isinstance(command, dict) or not isinstance(command.get(KEYSTROKES), str):
            self.errors.append(f"{where}: the key 'keystrokes' is missing or no text.")
        else:
            unknown = [key for key in command if key not in (KEYSTROKES, "duration")]
            if unknown:
                self.warnings.append(f"{where}: unknown keys: {', '.join(unknown)}.")
            wait_s = _wait_s(command.get("duration"))
            if wait_s is None:
                self.warnings.append(
                    f"{where}: duration is missing or no number of seconds; taken as 1.0."
                )
            self._add_keystrokes(
                command[KEYSTROKES], DEFAULT_WAIT_S if wait_s is None else min(wait_s, MAX_WAIT_S)
            )

    def _add_keystrokes(self, keystrokes: str, duration: float) -> None:
        raw = dumped({KEYSTROKES: keystrokes, "duration": duration})
        self.calls.append((KEYSTROKES, storable(raw or "")))


def _is_answer(found: Found) -> bool:
    return isinstance(found.value, dict) and any(key in found.value for key in _KEYS)


def _wait_s(value: object) -> float | None:
    """A number of seconds, or None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if 0 <= value < math.inf else None


def _is_plain(arguments: Json) -> bool:
    """Whether a command says all that a call of the terminal tool does."""
    if not isinstance(arguments, dict) or set(arguments) != {KEYSTROKES, "duration"}:
        return False
    wait_s = _wait_s(arguments["duration"])
    return isinstance(arguments[KEYSTROKES], str) and wait_s is not None and wait_s <= MAX_WAIT_S


def _around(text: str, found: Found) -> tuple[str, str]:
    return text[: found.start], text[found.end :]


def _unusable(text: str, errors: Sequence[str]) -> ParsedText:
    raw = text
    if text.lstrip().startswith("{") and text.rstrip().endswith("}"):
        # Well-formed, perhaps, but no answer: as a JSON text it can never pass for arguments.
        raw = json.dumps(text, ensure_ascii=False)
    notes = _notes("Previous response had parsing errors:", errors)
    return ParsedText("", ((KEYSTROKES, storable(raw)),), notes)


def _notes(title: str, lines: Sequence[str]) -> str:
    return storable("\n".join([title, *(f"- {line}" for line in lines)])) if lines else ""

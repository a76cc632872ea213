"""The protocol of the Terminus 2 agent: the whole answer is one JSON object."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeGuard

from harness.loop.text_protocols.json_protocol import call_to_copy
from harness.loop.text_protocols.json_values import Found, calls_in, dumped, json_values
from harness.loop.text_protocols.tool_texts import in_order, introduced
from harness.schema.messages import ToolCall, ToolResult, ToolSpec
from harness.schema.record import Json, storable
from harness.values import ParsedText

KEYSTROKES, LOAD_SKILL, TASK_COMPLETE = "keystrokes", "load_skill", "task_complete"
MAX_WAIT_S = 60
DEFAULT_WAIT_S = 1.0

_NEEDED = ("analysis", "plan", "commands")
_KEYS = (*_NEEDED, TASK_COMPLETE)
_YES = ("true", "1", "yes")
ERRORS = "Previous response had parsing errors:"
WARNINGS = "Previous response had warnings:"
STATE = "Current terminal state:"
"""What Terminus 2 begins its messages with; recordings of others have these words too."""
_AGAIN = "Nothing was run. Answer again, with one correct JSON object."
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
_SKILLS = (
    'To load one, answer with this object instead and nothing else: {"load_skill": "its name"}'
)


class Terminus2Protocol:
    """`{"analysis", "plan", "commands": [{"keystrokes", "duration"}], "task_complete"}`.

    A command is a call of the tool `keystrokes`, of which the last of a turn looks at the screen;
    `task_complete` is a last call of its own. A command of the form `{"name": …, "arguments": {…}}`
    calls any other tool. `{"load_skill": name}` in place of all that is a call of `load_skill`.
    """

    name = "terminus2"

    def instructions(self, tools: Sequence[ToolSpec]) -> str:
        """The form of an answer, and what may stand among its commands."""
        if not tools:
            return ""
        lines = [_FORM]
        own = {tool.name: tool for tool in tools}
        if own.pop(KEYSTROKES, None):
            lines.append(_KEYSTROKES)
        own.pop(TASK_COMPLETE, None)
        skills = own.pop(LOAD_SKILL, None)
        if own:
            lines.append(_TOOLS)
        for tool in own.values():
            lines += [f"- {tool.description}", f"  {call_to_copy(tool)}"]
        if skills is not None:
            lines += [skills.description, _SKILLS]
        return "\n".join(lines)

    def parse(self, text: str, tools: Sequence[ToolSpec] = ()) -> ParsedText:
        """Read the object; a text without one is a malformed call, and the notes say why."""
        if not text.strip():
            return ParsedText(text)
        values = list(json_values(text))
        skill = next((value for value in values if _is_skill(value)), None)
        if skill is not None and isinstance(skill.value, dict):
            raw = dumped({"name": skill.value[LOAD_SKILL]}) or ""
            before, _ = _around(text, skill)
            return ParsedText(storable(before), ((LOAD_SKILL, storable(raw)),))
        found = next((value for value in values if _is_answer(value)), None)
        if found is None or not isinstance(found.value, dict):
            return _unusable(text, ["No valid JSON object with these keys was found."])
        answer = _Answer(has_terminal=any(tool.name == KEYSTROKES for tool in tools))
        answer.read(found.value)
        if answer.errors:
            return _unusable(text, answer.errors)
        around = _around(text, found)
        if any(around):
            answer.warnings.append("There is text before or after the JSON object.")
        thoughts = [found.value.get("analysis"), found.value.get("plan")]
        said = [part for part in (around[0], *thoughts, around[1]) if isinstance(part, str)]
        return ParsedText(
            storable("\n\n".join(part for part in said if part)),
            tuple(answer.calls),
            _notes(WARNINGS, answer.warnings),
        )

    def render_call(self, call: ToolCall) -> str:
        """An answer with this one call in it."""
        try:
            arguments: Json = json.loads(call.arguments or "{}")
        except (ValueError, RecursionError):
            return call.arguments
        if call.name == LOAD_SKILL and _is_named_only(arguments):
            return json.dumps({LOAD_SKILL: arguments["name"]}, ensure_ascii=False)
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

    def render_results(self, results: Sequence[ToolResult], notes: str) -> str:
        """What the terminal shows, as Terminus 2 has it; other tools' results are introduced."""
        if notes.startswith(ERRORS):
            return notes
        completion = next((result for result in results if _asks_back(result)), None)
        shown = [_shown(result) for result in results if result is not completion]
        if completion is None:
            return in_order(shown, notes) or introduced(results[-1])
        state = in_order(shown, "")
        return in_order([state and f"{STATE}\n{state}", completion.content], "")


@dataclass(slots=True)
class _Answer:
    """What is read from the object."""

    has_terminal: bool
    calls: list[tuple[str, str]] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def read(self, value: dict[str, object]) -> None:
        missing = [key for key in _NEEDED if key not in value]
        commands = value.get("commands")
        if missing:
            self.errors.append(f"These keys are missing: {', '.join(missing)}.")
        elif not isinstance(commands, list):
            self.errors.append("The key 'commands' is no list.")
        else:
            self._warn_of_keys(value)
            self._read_commands(commands, self._is_complete(value.get(TASK_COMPLETE, False)))

    def _warn_of_keys(self, value: dict[str, object]) -> None:
        unknown = [key for key in value if key not in _KEYS]
        if unknown:
            self.warnings.append(f"Unknown keys: {', '.join(unknown)}.")
        for key in ("analysis", "plan"):
            if not isinstance(value[key], str):
                self.warnings.append(f"The key {key!r} is no text.")
        order = [key for key in value if key in _NEEDED]
        if order != list(_NEEDED):
            self.warnings.append(f"The order of keys is to be {', '.join(_NEEDED)}.")

    def _is_complete(self, value: object) -> bool:
        if isinstance(value, bool):
            return value
        if isinstance(value, str) and value.lower() in _YES:
            return True
        self.warnings.append("task_complete must be true or false; taken as false.")
        return False

    def _read_commands(self, commands: list[object], complete: bool) -> None:
        for number, command in enumerate(commands, 1):
            is_last = number == len(commands)
            self._read_command(command, f"Command {number}", is_last=is_last)
        if complete and self.errors:
            # What was to be run besides matters less than that it is all done.
            self.warnings += self.errors
            self.errors, self.calls = [], []
        if not self.calls and not self.errors and (not complete or self.has_terminal):
            self._add_keystrokes("", 0 if complete else DEFAULT_WAIT_S, look=True)
        if complete:
            self.calls.append((TASK_COMPLETE, "{}"))

    def _read_command(self, command: object, where: str, *, is_last: bool) -> None:
        inside = calls_in(command) if isinstance(command, dict) else []
        if inside:
            self.calls += inside
            return
        keystrokes = command.get(KEYSTROKES) if isinstance(command, dict) else None
        if not isinstance(command, dict) or not isinstance(keystrokes, str):
            self.errors.append(f"{where}: the key 'keystrokes' is missing or no text.")
            return
        unknown = [key for key in command if key not in (KEYSTROKES, "duration")]
        if unknown:
            self.warnings.append(f"{where}: unknown keys: {', '.join(unknown)}.")
        wait_s = _wait_s(command.get("duration"))
        if wait_s is None:
            self.warnings.append(
                f"{where}: duration is missing or no number of seconds; taken as 1.0."
            )
        if keystrokes and not keystrokes.endswith("\n") and not is_last:
            self.warnings.append(
                f"{where}: it does not end with a line feed, so the next one goes on in its line."
            )
        wait_s = DEFAULT_WAIT_S if wait_s is None else min(wait_s, MAX_WAIT_S)
        self._add_keystrokes(keystrokes, wait_s, look=is_last)

    def _add_keystrokes(self, keystrokes: str, duration: float, *, look: bool) -> None:
        call = {KEYSTROKES: keystrokes, "duration": duration} | ({} if look else {"look": False})
        self.calls.append((KEYSTROKES, storable(dumped(call) or "")))


def _is_answer(found: Found) -> bool:
    return isinstance(found.value, dict) and any(key in found.value for key in _KEYS)


def _is_skill(found: Found) -> bool:
    value = found.value
    return (
        isinstance(value, dict)
        and isinstance(value.get(LOAD_SKILL), str)
        and not any(key in value for key in _KEYS)
    )


def _is_named_only(arguments: Json) -> TypeGuard[dict[str, str]]:
    return (
        isinstance(arguments, dict)
        and set(arguments) == {"name"}
        and isinstance(arguments["name"], str)
    )


def _asks_back(result: ToolResult) -> bool:
    return result.name == TASK_COMPLETE and not result.is_error


def _shown(result: ToolResult) -> str:
    is_plain = result.name in (KEYSTROKES, LOAD_SKILL) and not result.is_error
    return result.content if is_plain else introduced(result)


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
    """What stands before and after the object, without the fence around it."""
    before, after = text[: found.start], text[found.end :]
    return _FENCE.sub("", before).strip(), _FENCE.sub("", after).strip()


def _unusable(text: str, errors: Sequence[str]) -> ParsedText:
    raw = text
    if text.lstrip().startswith("{") and text.rstrip().endswith("}"):
        # Well-formed, perhaps, but no answer: as a JSON text it can never pass for arguments.
        raw = json.dumps(text, ensure_ascii=False)
    notes = f"{_notes(ERRORS, errors)}\n\n{_AGAIN}"
    return ParsedText("", ((KEYSTROKES, storable(raw)),), notes)


def _notes(title: str, lines: Sequence[str]) -> str:
    return storable("\n".join([title, *(f"- {line}" for line in lines)])) if lines else ""

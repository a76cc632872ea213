"""The built-in tool that types into a terminal."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from harness.containers import TerminalScreen
from harness.schema.messages import ToolSpec
from harness.schema.record import JsonObject
from harness.schema.signals import Blocked
from harness.tools.machine import Machine
from harness.values import Effect, ToolOutcome

OUTPUT_LIMIT = 10_000
"""Bytes of output that are shown, half from its beginning and half from its end."""
MAX_WAIT_S = 60
DEFAULT_WAIT_S = 1.0

_NEW, _SCREEN = "New Terminal Output:", "Current Terminal Screen:"
_ENDED = "[the shell has ended]"


class Keystrokes:
    """Types into the trial's one terminal, waits, and shows what came of it."""

    spec = ToolSpec(
        name="keystrokes",
        description=(
            "Type into the terminal, wait, and see its new output; a program that has the whole "
            "screen shows all of it."
        ),
        parameters={
            "type": "object",
            "properties": {
                "keystrokes": {
                    "type": "string",
                    "description": (
                        "Sent as it is: end a command with a line feed to run it. The name of one "
                        "key alone, as C-c, C-d, Escape or Up, is that key. Empty to wait only."
                    ),
                },
                "duration": {
                    "type": "number",
                    "minimum": 0,
                    "description": f"Seconds to wait, {MAX_WAIT_S} at most.",
                },
                "look": {
                    "type": "boolean",
                    "description": "false to see the output with that of the next call.",
                },
            },
            "required": ["keystrokes"],
        },
    )
    sequential = True
    stops_itself = True

    def __init__(self, machine: Machine) -> None:
        self.settings: JsonObject = {"limit": OUTPUT_LIMIT}
        self._machine = machine
        self._lock = threading.Lock()
        self._terminal: TerminalScreen | None = None

    def effects(self, arguments: JsonObject) -> Sequence[Effect] | None:
        """Looking does nothing; what keys do depends on what is on the screen."""
        return None if arguments["keystrokes"] else ()

    def call(self, arguments: JsonObject, timeout_s: float) -> ToolOutcome:
        """Type and wait; without a look at it the output is left for the next call."""
        keystrokes = arguments["keystrokes"]
        duration = arguments.get("duration", DEFAULT_WAIT_S)
        if not isinstance(keystrokes, str):
            raise TypeError(f"must be text, not {keystrokes!r}")
        if isinstance(duration, bool) or not isinstance(duration, int | float):
            raise TypeError(f"must be a number of seconds, not {duration!r}")
        terminal = self._opened()
        if keystrokes:
            terminal.send(keystrokes)
        if terminal.wait(min(duration, MAX_WAIT_S, timeout_s)):
            # As Terminus 2 has it, nothing can be done any more; what was done is judged.
            shown = f"{_look(terminal)}\n{_ENDED}"
            return ToolOutcome(shown, asks=Blocked(reason="the shell of the terminal has ended"))
        return ToolOutcome(_look(terminal) if arguments.get("look", True) else "")

    def _opened(self) -> TerminalScreen:
        with self._lock:
            # Between two steps of a task all that runs is ended.
            if self._terminal is None or self._terminal.closed:
                self._terminal = self._machine.container.terminal()
            return self._terminal


def _look(terminal: TerminalScreen) -> str:
    output = terminal.new_output()
    title, text = (_SCREEN, terminal.screen()) if output is None else (_NEW, output)
    return f"{title}\n{_cut(text)}"


def _cut(text: str) -> str:
    data = text.encode(errors="replace")
    if len(data) <= OUTPUT_LIMIT:
        return text
    half = OUTPUT_LIMIT // 2
    head, tail = (part.decode(errors="ignore") for part in (data[:half], data[-half:]))
    return f"{head}\n[{len(data) - 2 * half} bytes in between are left out]\n{tail}"

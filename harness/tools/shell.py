"""The built-in tool that runs commands."""

from __future__ import annotations

from collections.abc import Sequence

from harness.schema.messages import ToolSpec
from harness.schema.record import JsonObject
from harness.tools.machine import Machine
from harness.tools.results import timed_out
from harness.values import Effect, ToolOutcome

OUTPUT_LIMIT = 8_000
"""Characters of output that are shown."""

_COMMAND_LIMIT = 120_000
"""Bytes; the kernel takes no argument of 128 KiB or more."""


class Shell:
    """Runs a command in the task's working directory."""

    sequential = True
    stops_itself = True

    def __init__(self, machine: Machine) -> None:
        self.spec = ToolSpec(
            name="shell",
            description=f"Run a bash command in {machine.workdir}.",
            parameters={
                "type": "object",
                "properties": {"command": {"type": "string"}},
                "required": ["command"],
            },
        )
        self.settings: JsonObject = {"limit": OUTPUT_LIMIT}
        self._machine = machine

    def effects(self, arguments: JsonObject) -> Sequence[Effect]:
        """It runs the command."""
        return (Effect("command", _command(arguments)),)

    def call(self, arguments: JsonObject, timeout_s: float) -> ToolOutcome:
        """The command's output; a command that fails is a result like any other."""
        command = _command(arguments)
        if len(command.encode()) > _COMMAND_LIMIT:
            return ToolOutcome(content="the command is too long", status="failed")
        return run_on(self._machine, ["bash", "-c", command], timeout_s)


def run_on(machine: Machine, command: Sequence[str], timeout_s: float) -> ToolOutcome:
    """Run a command in the working directory, and show what it wrote."""
    result = machine.container.run(command, timeout_s=timeout_s)
    lines = [_cut(result.output.rstrip("\n"))]
    if result.timed_out:
        lines.append(f"[{timed_out(timeout_s)}]")
    elif result.exit_code != 0:
        lines.append(f"[exit code {result.exit_code}]")
    text = "\n".join(line for line in lines if line) or "[no output]"
    return ToolOutcome(content=text, status="timed_out" if result.timed_out else "ok")


def _command(arguments: JsonObject) -> str:
    command = arguments["command"]
    if not isinstance(command, str):
        raise TypeError(f"must be text, not {command!r}")
    return command


def _cut(text: str) -> str:
    if len(text) <= OUTPUT_LIMIT:
        return text
    half = OUTPUT_LIMIT // 2
    note = f"[cut: only the first and last {half} characters are shown]"
    return f"{text[:half]}\n{note}\n{text[-half:]}"

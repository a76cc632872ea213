"""What the types allow and refuse, in the words of a type checker."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

REFUSED = re.compile(r"# refused: (.+)$")
ERROR = re.compile(r"^[^:]+:(\d+): error: .* \[([a-z-]+)\]$")

SNIPPETS = """\
from pydantic import BaseModel

from harness.agents import Agent
from harness.loop.callbacks import Callbacks
from harness.loop.engine import Loop
from harness.protocols import Hook, OutputSpec
from harness.providers.scripted import Scripted
from harness.schema.loop_config import LoopConfig
from harness.schema.messages import ToolSpec
from harness.schema.record import JsonObject
from harness.schema.trajectory import Trajectory
from harness.tools.registry import Registry


class Report(BaseModel):
    boats: int


class Other(BaseModel):
    cars: int


class Look:
    sequential = False
    settings: JsonObject = {}
    spec = ToolSpec(name="look", description="Look.", parameters={})

    def effects(self, arguments: JsonObject) -> None:
        return None

    def call(self, arguments: JsonObject, timeout_s: float) -> str:
        return "seen"


class NoHandler:
    sequential = False
    settings: JsonObject = {}
    spec = ToolSpec(name="look", description="Look.", parameters={})

    def effects(self, arguments: JsonObject) -> None:
        return None


class NoDefinition:
    sequential = False
    settings: JsonObject = {}

    def effects(self, arguments: JsonObject) -> None:
        return None

    def call(self, arguments: JsonObject, timeout_s: float) -> str:
        return "seen"


def count(harbour: str) -> int:
    return 4


def show(report: Report) -> str:
    return f"{report.boats} boats"


def show_other(other: Other) -> str:
    return f"{other.cars} cars"


def judge(report: Report) -> str | None:
    return None


def told(name: str, arguments: JsonObject) -> None: ...


def told_result(name: str, text: str) -> None: ...


def told_end(trajectory: Trajectory) -> None: ...


MODEL = Scripted([])

# A helper tool has a definition and a handler.
Registry([Look()])
Agent("m", provider=MODEL, tools=[count, Look()])
Registry([NoHandler()])  # refused: list-item
Registry([NoDefinition()])  # refused: list-item
Agent("m", provider=MODEL, tools=["count"])  # refused: list-item

# A handler implies submit; there is nothing else to declare.
Agent("m", provider=MODEL, output=Report, reflection_handler=show)
OutputSpec(ToolSpec(name="output", description="", parameters={}), submit=True)  # refused: call-arg
LoopConfig(submit=True)  # refused: call-arg

# The type of the output flows through handler, validators and result.
agent = Agent("m", provider=MODEL, output=Report, validators=[judge], reflection_handler=show)
number: int = agent.output(agent.run("Go.")).boats
agent.output(agent.run("Go.")).cars  # refused: attr-defined
word: str = agent.output(agent.run("Go.")).boats  # refused: assignment
Agent[Report]("m", output=Report, reflection_handler=show_other)  # refused: arg-type
Agent[Report]("m", output=Report, validators=[show_other])  # refused: list-item

# What is handed on to the loop is named and typed; settings and presets may come from outside.
Agent("m", provider=MODEL, terminal_tools=["count"], temperature=0.5)
Agent("m", provider=MODEL, terminal_toolz=["count"])  # refused: call-arg
Agent("m", provider=MODEL, hooks=Hook(name="h"))  # refused: arg-type
Agent("m", provider=MODEL, observers=print)  # refused: arg-type


def build(preset: str, settings: dict[str, object]) -> Agent:
    return Agent("m", provider=MODEL, preset=preset, config=settings)


# Callbacks and other functions of the user's have their signatures.
Callbacks(on_tool_call=told, on_tool_result=told_result, on_success=told_end, on_failure=told_end)
Callbacks(on_tool_call=told_end)  # refused: arg-type
Callbacks(on_tool_result=told)  # refused: arg-type
Callbacks(on_success=judge)  # refused: arg-type
Callbacks(on_tool=told)  # refused: call-arg
Loop(MODEL, model="m", on_iteration_limit=lambda: "MORE")
Loop(MODEL, model="m", on_iteration_limit=lambda: 3)  # refused: arg-type return-value
Loop(MODEL, model="m", hooks=[told])  # refused: list-item
"""
"""What is refused says so, with the kind of error; everything else is fine."""


def expected() -> dict[int, set[str]]:
    """Line -> kinds of errors."""
    found = {}
    for number, line in enumerate(SNIPPETS.splitlines(), start=1):
        if refused := REFUSED.search(line):
            found[number] = set(refused[1].split())
    return found


def test_the_right_use_passes_a_strict_type_check_and_the_wrong_one_does_not(tmp_path: Path):
    (tmp_path / "snippets.py").write_text(SNIPPETS)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "mypy", "--strict", "--no-error-summary"),
            *("--config-file", "pyproject.toml", "--cache-dir", str(tmp_path / "cache")),
            str(tmp_path / "snippets.py"),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.stderr == ""
    found: dict[int, set[str]] = {}
    for line in done.stdout.splitlines():
        if error := ERROR.match(line):
            found.setdefault(int(error[1]), set()).add(error[2])
        else:
            assert ": note: " in line
    assert found == expected()

"""The coverage page: every line of the four designs has a row, and what it names exists."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from harness.loader.scenarios import load_scenarios
from harness.schema.loop_config import LoopConfig

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "coverage.md"

CODE = re.compile(r"`([^`]+)`")
TEST = re.compile(r"(tests/[\w/]+\.py)::(\w+)")
SCENARIO = re.compile(r"[A-Z]{1,2}[0-9]{2}[a-z]?")

EVENTS = (
    *("execution:start", "execution:complete", "execution:error", "execution:paused"),
    *("execution:resumed", "execution:cancelled", "iteration:start", "iteration:complete"),
    *("llm:request", "llm:response", "llm:error", "tool:detected", "tool:start", "tool:complete"),
    *("tool:error", "tool:timeout", "hook:error"),
)
HOOKS = (
    *("before:execution", "after:execution", "before:llm", "after:llm"),
    *("before:tool", "after:tool", "approve:tool", "pause:check"),
)
STREAM_EVENTS = (
    *("response.created", "response.output_text.delta", "response.tool_call.start"),
    *("response.tool_call.arguments.delta", "response.tool_call.arguments.done"),
    *("response.tool_execution.start", "response.tool_execution.done"),
    *("response.iteration.complete", "response.complete", "error"),
)

LINES: dict[str, tuple[str, ...]] = {
    "executeAgent / Functional": tuple(f"f{n}" for n in range(1, 11)),
    "executeAgent / Callbacks": ("c1", "c2", "c3", "c4"),
    "executeAgent / Error handling": ("e1", "e2", "e3", "e4", "e5"),
    "executeAgent / Type safety": ("t1", "t2", "t3", "t4", "t5"),
    "toolloop / Execution flow": ("1", "2", "3", "4", "4a", "5", "6", "7", "7a", "7b"),
    "toolloop / Rules": tuple(f"r{n}" for n in range(1, 25)),
    "ToolLoop of AGENT-33 / The 33 tests": tuple(str(n) for n in range(1, 34)),
    "ToolLoop of AGENT-33 / Enforcement points": tuple(f"EF-{n:02}" for n in range(1, 9)),
    "ToolLoop of AGENT-33 / Governance checks, in order": tuple(f"g{n}" for n in range(1, 8)),
    "AgenticLoop / Events": EVENTS,
    "AgenticLoop / Hooks": HOOKS,
    "AgenticLoop / Stream events": STREAM_EVENTS,
    "AgenticLoop / Tool boundaries in the window": ("b1", "b2", "b3"),
    "AgenticLoop / Known issues": ("k1", "k2", "k3", "k4", "k5"),
    "AgenticLoop / Flow and formats": tuple(f"a{n}" for n in range(1, 12)),
}
"""First cell of every row, by system and table."""


def tables() -> dict[str, list[list[str]]]:
    """Cells by row, without the heads, by system and table."""
    found: dict[str, list[list[str]]] = {}
    system = table = ""
    for line in PAGE.read_text().splitlines():
        if line.startswith("## "):
            system = line[3:]
        elif line.startswith("### "):
            table = f"{system} / {line[4:]}"
        elif line.startswith("| ") and "| shown by |" not in line:
            found.setdefault(table, []).append([cell.strip() for cell in line.split("|")[1:-1]])
    return found


@cache
def names_in(path: str) -> frozenset[str]:
    """Names of the tests in a file."""
    file = ROOT / path
    if not file.exists():
        return frozenset()
    nodes = ast.walk(ast.parse(file.read_text()))
    names = (node.name for node in nodes if isinstance(node, ast.FunctionDef))
    return frozenset(name for name in names if name.startswith("test_"))


@cache
def scenarios() -> frozenset[str]:
    suite = load_scenarios(ROOT / "suites" / "scenarios")
    return frozenset(task.name for task in suite.tasks)


def is_shown(reference: str) -> bool:
    """Whether there is a test or scenario of this name."""
    test = TEST.fullmatch(reference)
    return test[2] in names_in(test[1]) if test else reference in scenarios()


@pytest.mark.parametrize("table", LINES)
def test_every_line_of_the_designs_has_its_row(table: str):
    assert [row[0].strip("`") for row in tables()[table]] == list(LINES[table])


def test_there_is_no_other_table():
    assert list(tables()) == list(LINES)


@pytest.mark.parametrize("table", LINES)
def test_every_row_is_shown_by_something_that_exists(table: str):
    for row in tables()[table]:
        references = CODE.findall(row[-1])
        assert references, row
        assert [each for each in references if not is_shown(each)] == [], row
        assert CODE.sub("", row[-1]).strip(", ") == "", row


def test_what_the_sentences_refer_to_exists():
    sentences = [
        line for line in PAGE.read_text().splitlines() if not line.startswith(("|", "#", "-"))
    ]
    codes = CODE.findall(" ".join(sentences))
    named = [code for code in codes if SCENARIO.fullmatch(code) or TEST.fullmatch(code)]
    assert len(named) > 10
    assert [each for each in named if not is_shown(each)] == []


def test_the_settings_that_are_named_exist():
    known = set(LoopConfig.model_fields)
    settings = re.findall(r"`(\w+)` at `\w+`", PAGE.read_text())
    assert "history" in settings
    assert [name for name in settings if name not in known] == []

"""What AGENT-33's ToolLoop lists and no other test shows in a whole run."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from harness.loop.engine import Loop
from harness.loop.observation import Observation, Observations
from harness.providers.scripted import Scripted, turn
from harness.schema.environment import folder_environment
from harness.schema.loop_config import TerminationReason
from harness.tools.builtin import builtin_tools
from harness.tools.machine import Machine
from harness.tools.registry import Registry
from harness.values import Effect
from tests.loop.support import FunctionTool, call, returns, run
from tests.sandbox.here import working_sandbox

DONE = turn("done")


def test_a_real_shell_does_a_task_of_several_steps(tmp_path: Path) -> None:
    source = tmp_path / "files"
    source.mkdir()
    (source / "boats.txt").write_text("north 4\nsouth 2\n")
    machine = Machine(folder_environment(source), working_sandbox)
    script = [
        turn(calls=[call("1", "shell", command="ls")]),
        turn(calls=[call("2", "shell", command="wc -l < boats.txt")]),
        turn("There are 2 lines."),
    ]
    tools = Registry(builtin_tools(["shell"], machine))
    try:
        trajectory = Loop(Scripted(script), model="m", tools=tools).run("Count the lines.")
    finally:
        machine.close()
    assert trajectory.termination_reason is TerminationReason.COMPLETED
    assert trajectory.tools_executed == ("shell", "shell")
    assert "boats.txt" in trajectory.messages[2].tool_results[0].content
    assert "2" in trajectory.messages[4].tool_results[0].content


def test_each_model_call_and_each_tool_call_of_a_run_is_observed() -> None:
    seen: list[Observation] = []
    two = turn(calls=[call("a", "look"), call("b", "look")])
    run([two, DONE], tools=[returns("look", "seen")], observers=[Observations(seen.append, "one")])
    assert [each.event_type for each in seen] == [
        *("llm_response", "tool_call", "tool_call", "llm_response"),
    ]


EFFECTS: list[tuple[Effect, dict[str, Any]]] = [
    (Effect("read", "/etc/passwd"), {"paths": ["/workspace"]}),
    (Effect("write", "/etc/hosts", lines=1), {"paths": ["/workspace"]}),
    (Effect("command", "curl x"), {"commands": ["ls"]}),
    (Effect("network", "evil.example"), {"domains": ["example.com"]}),
]


@pytest.mark.parametrize(("effect", "allowed"), EFFECTS, ids=["EF-01", "EF-02", "EF-03", "EF-04"])
def test_in_a_run_what_a_call_does_is_checked_before_it_runs(
    effect: Effect, allowed: dict[str, Any]
) -> None:
    ran: Counter[str] = Counter()
    tool = FunctionTool("work", lambda _: ran.update(["work"]) or "x", effects=[effect])
    turns = [turn(calls=[call("a", "work")]), DONE]
    trajectory, _ = run(turns, tools=[tool], governance=allowed)
    assert trajectory.messages[2].tool_results[0].is_error
    assert not ran
    trajectory, _ = run(turns, tools=[tool])
    assert not trajectory.messages[2].tool_results[0].is_error
    assert ran["work"] == 1


@pytest.mark.parametrize(
    "budget", [{"max_files_modified": 1}, {"max_lines_changed": 7}], ids=["EF-07", "EF-08"]
)
def test_in_a_run_the_write_that_would_pass_the_budget_ends_it(budget: dict[str, int]) -> None:
    tools = [
        FunctionTool(name, lambda _: "written", effects=[Effect("write", name, lines=5)])
        for name in ("one", "two")
    ]
    both = turn(calls=[call("a", "one"), call("b", "two")])
    trajectory, _ = run([both, DONE], tools=tools, budget=budget)
    assert trajectory.termination_reason is TerminationReason.BUDGET_EXCEEDED
    assert trajectory.tools_executed == ("one",)

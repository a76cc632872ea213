"""Settings that could never work are refused before anything runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from pydantic import ValidationError

from harness.errors import ConfigurationError
from harness.schema.loop_config import LoopConfig
from harness.schema.messages import ToolSpec
from harness.schema.record import JsonObject
from harness.schema.suite import Price, Skill
from harness.tools.registry import Registry
from harness.values import Effect, ToolInvocation, ToolOutcome
from tests.loop.support import FunctionTool, make, output, preview, returns


@pytest.mark.parametrize("declared", [None, output()])
def test_reflection_needs_an_output_with_a_handler(declared: Any) -> None:
    with pytest.raises(ConfigurationError, match="needs an output with a reflection handler"):
        make([], output=declared, reflection=True)


def test_no_tool_may_be_called_like_the_output_or_submit() -> None:
    with pytest.raises(ConfigurationError, match="two tools are called 'report'"):
        make([], tools=[returns("report", "")], output=output(name="report"))
    with pytest.raises(ConfigurationError, match="two tools are called 'submit'"):
        make([], tools=[returns("submit", "")], output=output(handler=preview), reflection=True)
    with pytest.raises(ConfigurationError, match="two tools are called 'submit'"):
        make([], output=output(handler=preview, name="submit"), reflection=True)
    make([], tools=[returns("submit", "")], output=output())


class Twins:
    """Two tools with one name."""

    def specs(self) -> tuple[ToolSpec, ...]:
        return Registry([returns("twin", "")]).specs() * 2

    def identity(self, name: str) -> str:
        return name

    def is_sequential(self, name: str) -> bool:
        return False

    def effects(self, name: str, arguments: JsonObject) -> Sequence[Effect] | None:
        return ()

    def invoke(self, invocation: ToolInvocation) -> ToolOutcome:
        return ToolOutcome(invocation.name)


def test_no_two_tools_may_have_one_name() -> None:
    with pytest.raises(ConfigurationError, match="two tools are called 'twin'"):
        make([], tools=Twins())


def test_a_schema_that_is_none_is_refused_with_the_tools_name() -> None:
    with pytest.raises(ConfigurationError, match="tool 'output': its parameters are no JSON"):
        make([], output=output(schema={"type": "objekt"}))
    with pytest.raises(ConfigurationError, match=r"tool 'output'.*\$ref '#/nope' leads nowhere"):
        make([], output=output(schema={"$ref": "#/nope"}))
    tool = FunctionTool("read", lambda _: "", {"properties": []})
    with pytest.raises(ConfigurationError, match="tool 'read': its parameters are no JSON Schema"):
        make([], tools=[tool])


SEEN = [returns("look", "seen")]
SKILL = Skill(name="careful", description="Take care.", instructions="Look twice.")
BLIND = Skill(name="blind", description="", instructions="", allowed_tools=())


def never() -> str:
    raise AssertionError("nothing may run")


REFUSED: list[tuple[dict[str, Any], list[str]]] = [
    (
        {"reflection": True},
        ["loop.reflection = true", "declare `output.reflection_handler`", "or set"],
    ),
    (
        {"tools": SEEN, "setup": {"terminal_tools": ["finish"]}},
        ["terminal tool 'finish' is not declared", "add it to the tools (look)"],
    ),
    (
        {"setup": {"terminal_tools": ["finish"]}},
        ["terminal tool 'finish'", "add it to the tools (there are none)"],
    ),
    (
        {"tools": [returns("output", "")], "output": output()},
        ["two tools are called 'output'", "rename one", "`output.name`"],
    ),
    (
        {"tools": [returns("task_complete", "")], "text_protocol": "terminus2"},
        ["two tools are called 'task_complete'", "rename one"],
    ),
    (
        {"setup": {"skills": [SKILL], "active_skills": ["brave"]}},
        ["active skill 'brave' is not declared", "add it to the skills (careful)"],
    ),
    (
        {"tools": SEEN, "tool_choice": "nope"},
        ["loop.tool_choice: 'nope'", "name a tool, `auto` or `required` (look)"],
    ),
    (
        {"tool_choice": "required"},
        ["loop.tool_choice = 'required' needs a tool", "add tools or an output"],
    ),
    (
        {"stop_when": ["enough"]},
        ["loop.stop_when: 'enough' is not declared", "give it in `stop_conditions`"],
    ),
    (
        {"tools": SEEN, "stop_when": [{"tool_called": "nope"}]},
        ["loop.stop_when.tool_called: 'nope'", "add it to the tools (look)"],
    ),
    (
        {"setup": {"stop_conditions": {"enough": lambda _: True}}},
        ["stop_conditions: 'enough' would never be asked", "name it in loop.stop_when"],
    ),
    (
        {"setup": {"skills": [SKILL, SKILL]}},
        ["two skills are called 'careful'", "rename one of them"],
    ),
    (
        {
            "tools": SEEN,
            "setup": {"terminal_tools": ["look"], "skills": [BLIND], "active_skills": ["blind"]},
        },
        ["terminal tool 'look' is hidden by the active skills", "`allowed_tools` of blind"],
    ),
    (
        {"budget": {"max_cost_usd": 1}},
        ["budget.max_cost_usd is 1.0", "the model has no price", "add model.price"],
    ),
    (
        {"setup": {"on_iteration_limit": never}},
        ["on_iteration_limit would never be called", "set loop.on_limit = 'callback'"],
    ),
    (
        {"governance": {"commands": ["rm -rf"]}},
        ["governance.commands: 'rm -rf' is not one program", "give its name alone"],
    ),
    (
        {"governance": {"domains": ["http://x/"]}},
        ["governance.domains: 'http://x/' is no host", "give its name"],
    ),
]


@pytest.mark.parametrize(("how", "says"), REFUSED)
def test_what_could_never_work_is_refused_with_what_to_do(
    how: dict[str, Any], says: list[str]
) -> None:
    with pytest.raises(ConfigurationError) as refused:
        make([], **how)
    text = str(refused.value)
    assert [words for words in says if words not in text] == []
    assert "\n" not in text


FITS: list[dict[str, Any]] = [
    {"output": output(handler=preview), "reflection": True},
    {"tools": SEEN, "setup": {"terminal_tools": ["look"]}},
    {"tools": [returns("task_complete", ""), returns("submit", "")], "output": output()},
    {"setup": {"skills": [SKILL], "active_skills": ["careful"]}},
    {"output": output(), "tool_choice": "output"},
    {"output": output(), "tool_choice": "required"},
    {"stop_when": ["enough"], "setup": {"stop_conditions": {"enough": lambda _: True}}},
    {"budget": {"max_cost_usd": 1}, "setup": {"price": Price(input=1, output=2)}},
    {"on_limit": "callback"},
    {"on_limit": "callback", "setup": {"on_iteration_limit": never}},
    {"hard_limit": 3, "soft_limit": 3, "setup": {"on_iteration_limit": never}},
]


@pytest.mark.parametrize("how", FITS)
def test_what_fits_together_is_taken(how: dict[str, Any]) -> None:
    make([], **how)


LIMITS: list[tuple[dict[str, Any], str]] = [
    ({"window": {}}, "give max_messages or max_tokens, or leave the window out"),
    (
        {"stop_when": [{}]},
        "give one of tool_called, text_contains and tokens_above",
    ),
    (
        {"stop_when": [{"tool_called": "look", "tokens_above": 3}]},
        "give one of tool_called, text_contains and tokens_above",
    ),
    (
        {"soft_limit": 5, "hard_limit": 4},
        "soft_limit 5 would never warn: lower it to hard_limit 4 or less, or leave it out",
    ),
]


@pytest.mark.parametrize(("settings", "says"), LIMITS)
def test_settings_that_say_nothing_or_cannot_take_effect_are_refused(
    settings: dict[str, Any], says: str
) -> None:
    with pytest.raises(ValidationError, match=says):
        LoopConfig.model_validate(settings)


@pytest.mark.parametrize(
    "settings",
    [
        {"max_iteration": 3},
        {"max_iterations": -1},
        {"max_iterations": "many"},
        {"text_only": "ignore"},
        {"confirm": {"mode": "twice"}},
        {"confirm": {"max_prompts": 0}},
        {"llm_error_threshold": 0},
        {"max_tool_calls_per_turn": 0},
        {"tool_timeout_s": 0},
        {"tool_timeout_s": float("inf")},
        {"budget": {"max_tokens": -1}},
        {"budget": {"max_duration_s": float("nan")}},
        {"text_protocol": "yaml"},
        {"parallel_tools": 0},
        {"tool_choice": ""},
        {"nudge_max": -1},
        {"breaker": -1},
        {"loop_detection": -1},
        {"soft_limit": 0},
        {"hard_limit": 0},
        {"end_strategy": "late"},
        {"multi_output": "all"},
        {"on_limit": "ask"},
        {"history": "keep"},
        {"compaction": {}},
        {"window": {"max_messages": 0}},
        {"governance": {"autonomy": "none"}},
        {"stop_when": "enough"},
    ],
)
def test_unknown_and_impossible_settings_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match=next(iter(settings))):
        LoopConfig.model_validate(settings)

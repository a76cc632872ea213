"""Settings that could never work are refused before anything runs."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from harness.errors import ConfigurationError
from harness.protocols import ToolInvocation, ToolOutcome
from harness.schema.loop_config import LoopConfig
from harness.schema.messages import ToolSpec
from harness.tools.registry import Registry
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
    ],
)
def test_unknown_and_impossible_settings_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match=next(iter(settings))):
        LoopConfig.model_validate(settings)

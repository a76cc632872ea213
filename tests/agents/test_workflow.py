"""An agent as a step of a workflow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.agents.definition import AgentDefinition, load_agents
from harness.agents.workflow import invoke_agent
from harness.errors import BadInputError
from harness.providers.scripted import Scripted, turn
from harness.schema.messages import Usage
from harness.schema.suite import ModelConfig
from tests.agents.support import write_agents
from tests.loop.support import call

USAGE = Usage(input=10, output=2, cache_read=5)
COUNTED = (
    turn(calls=[call("1", "query", harbour="north")], usage=USAGE, model="m-1-2026"),
    turn("I counted.", calls=[call("2", "output", boats=4)], usage=USAGE, model="m-1-2026"),
)


@pytest.fixture
def counter(tmp_path: Path) -> AgentDefinition:
    return load_agents(write_agents(tmp_path))["counter"]


def invoke(agent: AgentDefinition, inputs: dict[str, Any], **how: Any) -> tuple[Any, Scripted]:
    model = Scripted(COUNTED)
    return invoke_agent(agent, inputs, connect=lambda _: model, **how), model


def test_the_result_says_what_came_of_it(counter: AgentDefinition) -> None:
    result, model = invoke(counter, {"harbour": "north"})
    assert {key: result[key] for key in result if key not in ("duration_s", "run_id")} == {
        "agent": "counter",
        "output": {"boats": 4},
        "raw_response": "I counted.",
        "tokens_used": 34,
        "model": "m-1-2026",
        "iterations": 2,
        "attempts": 1,
        "model_calls": 2,
        "tool_calls_made": 1,
        "tools_used": ["query"],
        "termination_reason": "completed",
        "signal": None,
        "signal_data": None,
        "confirmed": None,
        "error": None,
    }
    assert model.requests[0].messages[0].text == '{"harbour": "north"}'


def test_inputs_are_given_in_one_order(counter: AgentDefinition) -> None:
    _, model = invoke(counter, {"harbour": "Ä\ud800", "day": [1, None]})
    assert model.requests[0].messages[0].text == '{"day": [1, null], "harbour": "Ä?"}'


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ({}, "agent 'counter': input 'harbour' is missing"),
        ({"day": 1}, "input 'harbour' is missing"),
        ({"harbour": 1, "habour": 2}, "unknown input 'habour'; did you mean 'harbour'?"),
        ({"harbour": {1, 2}}, "the inputs are no JSON"),
        ({"harbour": float("nan")}, "the inputs are no JSON"),
    ],
)
def test_inputs_that_do_not_fit_are_refused(
    counter: AgentDefinition, inputs: dict[str, Any], words: str
) -> None:
    with pytest.raises(BadInputError, match=words.replace("?", r"\?")):
        invoke(counter, inputs)


def test_a_caller_may_change_model_temperature_and_settings(counter: AgentDefinition) -> None:
    asked: list[ModelConfig] = []

    def connect(model: ModelConfig) -> Scripted:
        asked.append(model)
        return Scripted(COUNTED)

    config = {"max_iterations": 1}
    result = invoke_agent(
        counter, {"harbour": 1}, model="m-9", temperature=0.0, config=config, connect=connect
    )
    assert (asked[0].provider, asked[0].name, asked[0].temperature) == ("openai", "m-9", 0.0)
    assert result["termination_reason"] == "max_iterations"
    with pytest.raises(BadInputError, match="temperature = -1"):
        invoke(counter, {"harbour": 1}, temperature=-1)


@pytest.mark.parametrize(
    ("scopes", "ran"),
    [(None, True), (["tools:execute"], True), (["tools:query"], True), (["tools:list_dir"], False)],
)
def test_tools_run_within_the_scopes_of_the_caller(
    counter: AgentDefinition, scopes: list[str] | None, ran: bool
) -> None:
    result, model = invoke(counter, {"harbour": "north"}, scopes=scopes)
    assert result["tools_used"] == (["query"] if ran else [])
    (answer,) = model.requests[1].messages[-1].tool_results
    assert ("tools:execute nor tools:query" in answer.content) is not ran


def test_a_dry_run_gives_what_would_be_asked(counter: AgentDefinition) -> None:
    def connect(model: ModelConfig) -> Scripted:
        raise AssertionError("no client is made")

    would = invoke_agent(counter, {"harbour": "north"}, True, connect=connect, model="m-9")
    _, model = invoke(counter, {"harbour": "north"})
    (request,) = model.requests[:1]
    assert would == {
        "agent": "counter",
        "dry_run": True,
        "provider": "openai",
        "model": "m-9",
        "temperature": 0.5,
        "system": request.system,
        "messages": [message.model_dump(mode="json") for message in request.messages],
        "tools": [tool.model_dump(mode="json") for tool in request.tools],
    }
    with pytest.raises(BadInputError, match="is missing"):
        invoke_agent(counter, {}, True)


def test_a_run_that_fails_has_a_result(counter: AgentDefinition) -> None:
    result = invoke_agent(counter, {"harbour": "north"}, connect=lambda _: Scripted([]))
    assert (result["termination_reason"], result["output"]) == ("model_error", None)
    assert "the script has no answer" in str(result["error"])
    assert (result["model"], result["tokens_used"]) == ("m-1", 0)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            {"agent": "counter"},
            "agent = 'counter': give a definition, as load_agents(folder)[name]",
        ),
        ({"inputs": "north"}, "inputs = 'north': give values by name, as in {'harbour': ...}"),
        ({"model": "openai:m-1"}, "model = 'openai:m-1': the provider cannot be changed"),
    ],
)
def test_what_cannot_be_invoked_is_refused_in_words(
    counter: AgentDefinition, given: dict[str, Any], words: str
) -> None:
    call: dict[str, Any] = {"agent": counter, "inputs": {"harbour": "north"}, **given}
    with pytest.raises(BadInputError) as error:
        invoke_agent(**call, dry_run=True)
    assert words in str(error.value)


def test_a_name_with_a_colon_is_no_provider(counter: AgentDefinition) -> None:
    would = invoke_agent(counter, {"harbour": "north"}, True, model="qwen3:8b")
    assert would["model"] == "qwen3:8b"

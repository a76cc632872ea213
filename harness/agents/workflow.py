"""Calling an agent with named inputs, as a step of a workflow does."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Collection, Mapping
from typing import Any

from harness.agents.connection import connect
from harness.agents.definition import AgentDefinition
from harness.errors import BadInputError, ConfigurationError, ModelCallError
from harness.loader.reading import known, validated
from harness.loop.governance import lacking_scope
from harness.protocols import Check, OnDelta, Provider
from harness.providers.catalog import VENDORS
from harness.schema.messages import ModelTurn
from harness.schema.record import Json, JsonObject, storable
from harness.schema.suite import ModelConfig
from harness.schema.trajectory import Trajectory
from harness.values import Judgement, ModelRequest, PendingCall

Connect = Callable[[ModelConfig], Provider]
"""Makes what answers an agent's model calls."""


def invoke_agent(
    agent: AgentDefinition,
    inputs: Mapping[str, Any],
    dry_run: bool = False,
    *,
    model: str | None = None,
    temperature: float | None = None,
    config: Mapping[str, Any] | None = None,
    scopes: Collection[str] | None = None,
    connect: Connect = connect,
) -> JsonObject:
    """Run an agent once on inputs; the user message is their JSON.

    Args:
        agent: What to run.
        inputs: A value for each input that its definition requires, and for no other name.
        dry_run: Ask no model, and give what it would have been asked.
        model: Name of another model of the same provider.
        temperature: In place of the definition's.
        config: Settings of the loop that win over the definition's.
        scopes: What the caller is allowed; tools need `tools:execute` or `tools:NAME`. None is no
            restriction.
        connect: Makes what answers the model calls; the live client if not given.

    Returns:
        What came of it, as JSON: agent, output, raw_response, tokens_used, model, iterations,
        tool_calls_made, tools_used, termination_reason and more.

    Raises:
        BadInputError: inputs or settings that the agent cannot be called with.
    """
    if not isinstance(agent, AgentDefinition):
        raise ConfigurationError(
            f"agent = {agent!r}: give a definition, as load_agents(folder)[name] does"
        )
    text = user_message(agent, inputs)
    if model is not None:
        check_model_name(model)
    changes = {"name": model, "temperature": temperature}
    wanted = agent.file.model.model_dump(mode="json") | {
        key: value for key, value in changes.items() if value is not None
    }
    chosen = validated(ModelConfig, wanted, where=f"agent {agent.name!r}: model")
    provider = _Listener() if dry_run else connect(chosen)
    checks = () if scopes is None else (_scope_check(scopes),)
    with agent.opened(provider, model=chosen, config=config, checks=checks) as opened:
        trajectory = opened.run(text)
    if isinstance(provider, _Listener):
        return _asked(agent, chosen, provider.request)
    return _result(agent, chosen, trajectory)


def check_model_name(model: str) -> None:
    """Refuse a model that is named together with a provider.

    Raises:
        BadInputError: it is.
    """
    vendor, colon, name = model.partition(":")
    if colon and vendor in VENDORS:
        raise BadInputError(
            f"model = {model!r}: the provider cannot be changed: give the name only, {name!r}"
        )


def user_message(agent: AgentDefinition, inputs: Mapping[str, Any]) -> str:
    """The inputs as the message that the agent gets.

    Raises:
        BadInputError: the agent cannot be called with them.
    """
    declared = agent.file.inputs
    if not isinstance(inputs, Mapping):
        raise BadInputError(
            f"agent {agent.name!r}: inputs = {inputs!r}: give values by name, as in "
            f"{{{next(iter(declared), 'name')!r}: ...}}"
        )
    for name in inputs:
        if name not in declared:
            raise BadInputError(
                f"agent {agent.name!r}: unknown input {name!r}; {known(declared, str(name))}"
            )
    for name, entry in declared.items():
        if entry.required and name not in inputs:
            raise BadInputError(f"agent {agent.name!r}: input {name!r} is missing; give it")
    try:
        text = json.dumps(dict(inputs), ensure_ascii=False, sort_keys=True, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise BadInputError(f"agent {agent.name!r}: the inputs are no JSON: {error}") from None
    return storable(text)


def _scope_check(scopes: Collection[str]) -> Check:
    def check(call: PendingCall) -> Judgement:
        lacking = lacking_scope(scopes, call.name)
        return Judgement("allowed") if lacking is None else Judgement("denied", lacking)

    return check


class _Listener:
    """Takes the first request in a model's place, and gives no answer."""

    def __init__(self) -> None:
        self.request: ModelRequest | None = None

    def complete(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelTurn:
        # As it is now: the conversation goes on.
        asked = dataclasses.replace(request, messages=tuple(request.messages))
        self.request = self.request or asked
        raise ModelCallError("a dry run asks no model")


def _asked(agent: AgentDefinition, model: ModelConfig, request: ModelRequest | None) -> JsonObject:
    """What the model would have been asked; nothing where the settings allow no model call."""
    messages: list[Json] = []
    tools: list[Json] = []
    for message in request.messages if request else ():
        messages.append(message.model_dump(mode="json"))
    for tool in request.offered if request else ():
        tools.append(tool.model_dump(mode="json"))
    return {
        "agent": agent.name,
        "dry_run": True,
        "provider": model.provider,
        "model": model.name,
        "temperature": model.temperature,
        "system": request.system if request else None,
        "messages": messages,
        "tools": tools,
    }


def _result(agent: AgentDefinition, model: ModelConfig, trajectory: Trajectory) -> JsonObject:
    usage = trajectory.usage
    buckets = (usage.input, usage.output, usage.cache_write, usage.cache_read)
    return {
        "agent": agent.name,
        "output": trajectory.output,
        "raw_response": trajectory.final_text,
        "tokens_used": sum(bucket or 0 for bucket in buckets),
        "model": trajectory.models[-1] if trajectory.models else model.name,
        "iterations": trajectory.iterations,
        "attempts": trajectory.attempts,
        "model_calls": trajectory.model_calls,
        "tool_calls_made": trajectory.tool_calls_made,
        "tools_used": list(trajectory.tools_used),
        "termination_reason": trajectory.termination_reason.value,
        "signal": trajectory.signal,
        "signal_data": trajectory.signal_data,
        "confirmed": trajectory.confirmed,
        "error": trajectory.error,
        "duration_s": trajectory.duration_s,
        "run_id": trajectory.run_id,
    }

"""A scenario's model, tools and hooks, made from what its file says."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from harness.loop.callbacks import Callbacks
from harness.protocols import Check, Dialect, Hook, OnDelta, TerminalCheck
from harness.providers.anthropic_messages import AnthropicMessages
from harness.providers.openai_chat import OpenAIChat
from harness.providers.scripted import Scripted, turn
from harness.runner.scenario.stage import Stage
from harness.schema.messages import Message, ModelTurn, ToolSpec
from harness.schema.record import Json, JsonObject
from harness.schema.scenario import (
    Behaviour,
    Scenario,
    ScenarioGovernance,
    ScenarioTool,
    ScriptedTurn,
    exception_class,
)
from harness.schema.scenario_hook import ScenarioHook
from harness.schema.signals import Blocked, RunRequest, Signal, Suspend
from harness.scorers.scenario import SentRequest
from harness.tools.registry import Registry
from harness.values import (
    Approval,
    CallAndResult,
    Effect,
    IterationPlan,
    Judgement,
    ModelRequest,
    PendingCall,
    SkipModel,
    SkipTool,
    ToolOutcome,
)

_DIALECTS: Mapping[str, Callable[[], Dialect]] = {
    "anthropic": AnthropicMessages,
    "openai": OpenAIChat,
}


class ScenarioModel:
    """Answers as written, and lays each request out as a vendor's client would."""

    def __init__(self, scenario: Scenario, stage: Stage) -> None:
        self._script = Scripted(_script(scenario.turns))
        self._stage = stage
        self._dialect: Dialect = _DIALECTS[scenario.wire_format]()

    def complete(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelTurn:
        """Give the next turn."""
        body = self._dialect.to_request(request, stream=on_delta is not None)
        if request.on_wire is not None:
            request.on_wire(body)
        roles: Sequence[str] = [message.role for message in request.messages]
        if isinstance(self._dialect, OpenAIChat):
            roles = _chat_roles(body)
        self._stage.model_called(SentRequest(request, tuple(roles), unanswered(request.messages)))
        return self._script.complete(request, on_delta)


def _chat_roles(body: JsonObject) -> list[str]:
    messages = body["messages"]
    assert isinstance(messages, list)
    roles = [str(message["role"]) for message in messages if isinstance(message, dict)]
    return [role for role in roles if role not in ("system", "developer")]


def unanswered(messages: Sequence[Message]) -> str | None:
    """What every vendor refuses: a call without its one result in the next turn, or the reverse."""
    called: list[str] = []
    for position, message in enumerate(messages):
        results = [result.call_id for result in message.tool_results]
        if results != called:
            return f"message {position + 1} answers calls {results}, and {called} were made"
        called = [call.id for call in message.tool_calls]
    return f"calls {called} without results" if called else None


def _script(turns: Sequence[ScriptedTurn]) -> Iterator[ModelTurn | Exception]:
    answers = [_answer(written) for written in turns if not written.repeat]
    yield from answers
    if turns and turns[-1].repeat:
        yield from itertools.repeat(answers[-1])


def _answer(written: ScriptedTurn) -> ModelTurn | Exception:
    if written.raises is not None:
        failure = exception_class(written.exception)
        assert failure is not None
        return failure(written.raises)
    calls = [
        (call.id, call.name, call.args if isinstance(call.args, str) else json.dumps(call.args))
        for call in written.calls
    ]
    return turn(written.text, calls=calls, stop=written.stop, usage=written.usage)


class BehavingTool:
    """A tool that does what is written down."""

    def __init__(
        self, name: str, written: ScenarioTool, stage: Stage, register: Callable[[str], None]
    ) -> None:
        self.settings: JsonObject = {}
        self.spec = ToolSpec(name=name, description="", parameters=written.parameters)
        self.sequential = written.sequential
        self._written = written
        self._stage = stage
        self._register = register
        self._calls = itertools.count()

    def effects(self, arguments: JsonObject) -> Sequence[Effect] | None:
        """Nothing is said of them."""
        return None

    def call(self, arguments: JsonObject, timeout_s: float) -> Json | ToolOutcome:
        """Behave."""
        self._stage.cancel_if("in_tool")
        behaviour: Behaviour = self._written
        if self._written.sequence:
            number = min(next(self._calls), len(self._written.sequence) - 1)
            behaviour = self._written.sequence[number]
        time.sleep(behaviour.sleep_s)
        for name in behaviour.registers:
            self._register(name)
        return _outcome(behaviour, arguments)


def _outcome(behaviour: Behaviour, arguments: JsonObject) -> Json | ToolOutcome:
    if behaviour.raises is not None:
        raise RuntimeError(behaviour.raises)
    if behaviour.fails is not None:
        return ToolOutcome(behaviour.fails, status="failed")
    if behaviour.echo:
        return arguments
    if behaviour.signal is not None:
        return _asking(Signal(name=behaviour.signal, data=behaviour.data), behaviour.signal)
    if behaviour.suspend is not None:
        asked = behaviour.suspend
        return _asking(Suspend(correlation_id=asked.correlation_id, data=asked.data), asked.text)
    if behaviour.blocked is not None:
        return _asking(Blocked(reason=behaviour.blocked), behaviour.blocked)
    return behaviour.returns


def _asking(request: RunRequest, text: str) -> ToolOutcome:
    return ToolOutcome(text, asks=request)


def scenario_tools(scenario: Scenario, stage: Stage) -> Registry:
    """The scenario's tools; those that are hidden join once another one registers them."""
    registry = Registry()
    hidden = dict(scenario.hidden_tools)

    def register(name: str) -> None:
        written = hidden.pop(name, None)
        if written is not None:
            registry.register(BehavingTool(name, written, stage, register))

    for name, written in scenario.tools.items():
        registry.register(BehavingTool(name, written, stage, register))
    return registry


def terminal_check(signals: Mapping[str, str]) -> TerminalCheck | None:
    """Gives the signal of the last tool in a turn that has one and succeeded."""
    if not signals:
        return None

    def check(turn: Sequence[CallAndResult]) -> str | None:
        found = [signals.get(one.call.name) for one in turn if not one.result.is_error]
        return next((signal for signal in reversed(found) if signal is not None), None)

    return check


def scenario_checks(governance: ScenarioGovernance) -> list[Check]:
    """The denials."""

    def check(call: PendingCall) -> Judgement:
        reason = governance.deny.get(call.name)
        return Judgement("allowed") if reason is None else Judgement("denied", reason)

    return [check] if governance.deny else []


def scenario_hooks(scenario: Scenario, stage: Stage) -> list[Hook]:
    """The hooks of the file in their order, then the approver."""
    hooks = [_hook(written, stage, number) for number, written in enumerate(scenario.hooks)]
    if scenario.governance.approval:
        hooks.append(Hook(name="approver", approve_tool=_approver(scenario.governance)))
    return [Hook(name="stage", before_iteration=stage.before_iteration), *hooks]


def raising_callbacks(scenario: Scenario) -> Callbacks:
    """Observers that raise, by the names of the scenario."""

    def fail(*_: object) -> None:
        raise RuntimeError("the callback raises")

    return Callbacks(**dict.fromkeys(scenario.callbacks, fail))


def _approver(governance: ScenarioGovernance) -> Callable[[PendingCall], Approval | None]:
    def approve(call: PendingCall) -> Approval | None:
        match governance.approval.get(call.name):
            case "approve":
                return Approval(approved=True)
            case "reject":
                return Approval(approved=False, reason="the approver says no")
            case "raise":
                raise RuntimeError("the approver raises")
            case "modify":
                return Approval(approved=True, arguments=governance.modified_args[call.name])
            case _:
                return None

    return approve


def _hook(written: ScenarioHook, stage: Stage, number: int) -> Hook:
    """A hook that acts at its place, and where it is meant to."""

    def act(*arguments: Any) -> Any:
        if written.at not in (None, stage.iteration):
            return None
        first = arguments[0]
        if isinstance(first, PendingCall) and written.tool not in (None, first.name):
            return None
        return _acted(written, stage, first)

    functions: dict[str, Any] = {written.hook: act}
    return Hook(name=f"hooks[{number}]", **functions)


def _acted(written: ScenarioHook, stage: Stage, first: object) -> object:
    match written.action:
        case "skip" if written.hook == "before_model":
            return SkipModel(written.result or "")
        case "skip":
            return SkipTool(written.result or "")
        case "modify":
            return written.arguments
        case "replace":
            return written.result
        case "append_user":
            assert isinstance(first, IterationPlan)
            return replace(first, append_user=written.text or "")
        case "pause":
            stage.resume_after_s = written.resume_after_s or 0
            return "the scenario pauses the run"
        case "raise":
            raise RuntimeError("the hook raises")

"""What a tool call must pass before it is run, in this order.

Cap, known tool, arguments that parse; then, for calls that run a tool: schema, breaker, hooks,
governance, approval, budget. Each guard is a small function that lets a call pass or refuses it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from harness.loop.breaker import Breaker
from harness.loop.budget import BudgetMeter
from harness.loop.foreign import effects_of
from harness.loop.governance import Governor
from harness.loop.hooks import HookChain
from harness.loop.written_json import read_json
from harness.protocols import ToolProvider
from harness.schema.json_schema import schema_violation
from harness.schema.loop_config import LoopConfig
from harness.schema.messages import ToolCall, ToolSpec
from harness.schema.record import JsonObject
from harness.values import PendingCall, SkipTool

RefusalKind = Literal["surplus", "failed", "breaker_open", "denied", "blocked", "over_budget"]
"""`failed` counts as a failed call; `blocked` and `over_budget` end the run."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a call is not run."""

    kind: RefusalKind
    text: str


@dataclass(slots=True)
class CallInHand:
    """A call on its way through the guards."""

    call: ToolCall
    position: int
    """Index in its turn."""
    arguments: JsonObject = field(default_factory=dict)
    asked: JsonObject = field(default_factory=dict)
    """The arguments as the model gave them, whatever hooks and approvers make of them."""
    pending: PendingCall | None = None
    """The call as others see it, while its arguments stay the same."""
    verdict: str = "allowed"
    """`allowed`, `warned` or `approved`."""
    supplied: str | None = None
    """A result that a hook gave in place of running it."""


Guard = Callable[[CallInHand], Refusal | None]


class Guards:
    """The guards of one run."""

    def __init__(
        self,
        config: LoopConfig,
        tools: ToolProvider | None,
        hooks: HookChain,
        governor: Governor,
        budget: BudgetMeter,
        breaker: Breaker,
    ) -> None:
        self.config = config
        self.tools = tools
        self.hooks = hooks
        self.governor = governor
        self.budget = budget
        self.breaker = breaker
        self.offered: Mapping[str, ToolSpec] = {}
        """The tools of the turn at hand, by name."""
        self.before_taking: Sequence[Guard] = (self._cap, self._known, self._well_formed)
        self.before_running: Sequence[Guard] = (
            self._schema,
            self._breaker,
            self._hooks,
            self._governance_and_approval,
            self._budget,
        )

    def refusal_to_take(self, call: CallInHand) -> Refusal | None:
        """Why a call that hands in a result is not taken, or None."""
        return _first_refusal(self.before_taking, call)

    def refusal(self, call: CallInHand) -> Refusal | None:
        """Why a call is not run, or None; a hook may have supplied its result instead."""
        return _first_refusal((*self.before_taking, *self.before_running), call)

    def pending(self, call: CallInHand) -> PendingCall:
        """The call as hooks, checks and approvers see it."""
        assert self.tools is not None
        if call.pending is None or call.pending.arguments is not call.arguments:
            name = call.call.name
            effects = effects_of(self.tools, name, call.arguments)
            call.pending = PendingCall(call.call.id, name, call.arguments, effects)
        return call.pending

    def _cap(self, call: CallInHand) -> Refusal | None:
        cap = self.config.max_tool_calls_per_turn
        if cap is not None and call.position >= cap:
            return Refusal("surplus", f"at most {cap} tool calls per turn are allowed")
        return None

    def _known(self, call: CallInHand) -> Refusal | None:
        if call.call.name in self.offered:
            return None
        names = ", ".join(self.offered) or "none"
        return Refusal("failed", f"Unknown tool {call.call.name!r}. Tools: {names}.")

    def _well_formed(self, call: CallInHand) -> Refusal | None:
        arguments = read_arguments(call.call.arguments)
        if isinstance(arguments, str):
            return Refusal("failed", f"Malformed arguments: {arguments}")
        call.arguments = call.asked = arguments
        return None

    def _schema(self, call: CallInHand) -> Refusal | None:
        violation = schema_violation(call.arguments, self.offered[call.call.name].parameters)
        if violation is None:
            return None
        return Refusal("failed", f"Arguments do not fit the tool's schema: {violation}")

    def _breaker(self, call: CallInHand) -> Refusal | None:
        if not self.breaker.is_open(call.call.name, call.arguments):
            return None
        times = self.config.breaker
        return Refusal(
            "breaker_open",
            f"this call failed {times} times with the same error; try something else",
        )

    def _hooks(self, call: CallInHand) -> Refusal | None:
        answer = self.hooks.before_tool(self.pending(call))
        if isinstance(answer, SkipTool):
            call.supplied = answer.result
            return None
        if answer.arguments is call.arguments:
            return None
        call.arguments = answer.arguments
        return self._schema(call)

    def _governance_and_approval(self, call: CallInHand) -> Refusal | None:
        pending = self.pending(call)
        judgement = self.governor.judge(pending)
        if judgement.verdict in ("denied", "blocked"):
            return Refusal(judgement.verdict, judgement.reason)
        if judgement.verdict == "warned":
            call.verdict = "warned"
        approval = self.hooks.approve(pending)
        if approval is None:
            if judgement.verdict != "escalated":
                return None
            return Refusal("denied", f"{judgement.reason}, and there is nobody to approve it")
        if approval.approved is not True:
            return Refusal("denied", approval.reason or "the call was not approved")
        call.verdict = "approved"
        if approval.arguments is None or approval.arguments is pending.arguments:
            return None
        call.arguments = approval.arguments
        return self._schema(call) or self._changed_by_approver(call)

    def _changed_by_approver(self, call: CallInHand) -> Refusal | None:
        judgement = self.governor.judge(self.pending(call), again=True)
        if judgement.verdict in ("denied", "blocked"):
            return Refusal(judgement.verdict, judgement.reason)
        return None

    def _budget(self, call: CallInHand) -> Refusal | None:
        effects = self.pending(call).effects
        blocked = self.budget.blocks_tool_call(effects)
        if blocked is not None:
            return Refusal("over_budget", blocked)
        self.budget.charge_tool(effects)
        return None


def _first_refusal(guards: Sequence[Guard], call: CallInHand) -> Refusal | None:
    for guard in guards:
        refusal = guard(call)
        if refusal is not None or call.supplied is not None:
            return refusal
    return None


def read_arguments(arguments: str) -> JsonObject | str:
    """The arguments object, or what is wrong with the text."""
    try:
        parsed = read_json(arguments) if arguments.strip() else {}
    except ValueError as error:
        return f"not valid JSON, which takes plain values only ({error})"
    if not isinstance(parsed, dict):
        return f"an object is needed, not {type(parsed).__name__}"
    return parsed

"""Answering the tool calls of one turn: every call gets exactly one result, in order."""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from harness.errors import InfrastructureError, ReplayMissError
from harness.loop.answered_turn import AnsweredTurn
from harness.loop.audit import AuditLog
from harness.loop.control import Control
from harness.loop.endings import Ending
from harness.loop.events import EventLog
from harness.loop.foreign import BreakOff, broke_off, invoke, is_sequential
from harness.loop.guards import CallInHand, Guards, Refusal
from harness.loop.handed_in import HandedIn
from harness.loop.parallel import run_together
from harness.loop.tracing import trace_tool_call
from harness.loop.written_json import read_json
from harness.protocols import ToolProvider
from harness.schema.loop_config import LoopConfig, TerminationReason
from harness.schema.messages import ToolCall, ToolSpec
from harness.schema.record import storable
from harness.schema.signals import Blocked, Signal, Suspend
from harness.values import ToolInvocation, ToolOutcome

TERMINAL_COMPLETE = "TERMINAL_COMPLETE"
"""Signal of a terminal tool that gives none of its own."""


@dataclass(frozen=True, slots=True)
class Ran:
    """A call whose tool was invoked, and what came of it."""

    in_hand: CallInHand
    outcome: ToolOutcome | BreakOff


class ToolCallAnswerer:
    """Lets calls through the guards, runs them, and turns what came of them into results."""

    def __init__(
        self,
        *,
        config: LoopConfig,
        tools: ToolProvider | None,
        terminal_tools: Collection[str],
        handed_in: HandedIn,
        guards: Guards,
        control: Control,
        events: EventLog,
        audit: AuditLog,
    ) -> None:
        self.config = config
        self.tools = tools
        self.terminal_tools = terminal_tools
        self.handed_in = handed_in
        self.guards = guards
        self.control = control
        self.events = events
        self.audit = audit
        self.executed: list[str] = []
        self.failed_in_row = 0

    def answer(self, calls: Sequence[ToolCall], offered: Sequence[ToolSpec]) -> AnsweredTurn:
        """Answer all calls of a turn in order; a call that ends the run stops the later ones."""
        turn = AnsweredTurn(calls)
        self.guards.offered = {spec.name: spec for spec in offered}
        for call in calls:
            self.events.emit("tool_detected", id=call.id, name=call.name, arguments=call.arguments)
        for batch in self._batches(calls):
            if self._is_cancelled(turn) or turn.ending is not None:
                break
            self._answer_batch(batch, turn)
        ended = turn.ending and f"the run ended ({turn.ending.reason})"
        turn.fill(f"Not run: {ended or 'another call of this turn was to end the run'}.")
        return turn

    def _is_cancelled(self, turn: AnsweredTurn) -> bool:
        if self.control.cancelled is not None:
            turn.ending = Ending(TerminationReason.CANCELLED, self.control.cancelled or None)
        return self.control.cancelled is not None

    def _batches(self, calls: Sequence[ToolCall]) -> Iterator[list[CallInHand]]:
        """The calls that are to be answered, in order; those of a batch run at the same time."""
        batch: list[CallInHand] = []
        left_out = self._left_out(calls)
        for position, call in enumerate(calls):
            if position in left_out:
                continue
            alone = self._runs_alone(call)
            if batch and (alone or len(batch) == self.config.parallel_tools):
                yield batch
                batch = []
            batch.append(CallInHand(call, position))
            if alone:
                yield batch
                batch = []
        if batch:
            yield batch

    def _runs_alone(self, call: ToolCall) -> bool:
        if self.tools is None or call.name not in self.guards.offered:
            return True
        return self.handed_in.takes(call.name) or is_sequential(self.tools, call.name)

    def _left_out(self, calls: Sequence[ToolCall]) -> Collection[int]:
        """Positions of the calls that are not run because a sibling closes the run."""
        strategy = self.config.end_strategy
        cap = self.config.max_tool_calls_per_turn
        closing = [at for at, call in enumerate(calls[:cap]) if self._closes(call.name)]
        if strategy == "exhaustive" or not closing:
            return ()
        first = closing[0] if strategy == "graceful" else 0
        return {at for at in range(first, len(calls)) if not self._closes_or_hands_in(calls[at])}

    def _closes(self, name: str) -> bool:
        return name in self.terminal_tools or self.handed_in.closes(name)

    def _closes_or_hands_in(self, call: ToolCall) -> bool:
        return self._closes(call.name) or self.handed_in.takes(call.name)

    def _answer_batch(self, batch: Sequence[CallInHand], turn: AnsweredTurn) -> None:
        if len(batch) == 1 and self._take(batch[0], turn):
            return
        admitted, refused = self._past_the_guards(batch)
        if self._is_cancelled(turn):
            return
        ran = {one.in_hand.position: one for one in self._run(admitted, turn)}
        for in_hand in batch:
            if in_hand.position in ran:
                self._settle(ran[in_hand.position], turn)
            elif in_hand.position in refused and turn.ending is None:
                self._refuse(in_hand, refused[in_hand.position], turn)
            elif in_hand.supplied is not None and turn.ending is None:
                self._supply(in_hand, turn)
        if len(ran) < len(admitted):
            self._is_cancelled(turn)

    def _past_the_guards(
        self, batch: Sequence[CallInHand]
    ) -> tuple[list[CallInHand], dict[int, Refusal]]:
        """The calls that may run, and by position why others may not."""
        admitted: list[CallInHand] = []
        refused: dict[int, Refusal] = {}
        failed_in_row = self.failed_in_row
        for in_hand in batch:
            refusal = self.guards.refusal(in_hand)
            if refusal is not None:
                refused[in_hand.position] = refusal
                failed_in_row += refusal.kind == "failed" and not admitted
                if self._ends_the_run(refusal) or self._are_too_many(failed_in_row):
                    break
            elif in_hand.supplied is None:
                admitted.append(in_hand)
        return admitted, refused

    def _take(self, in_hand: CallInHand, turn: AnsweredTurn) -> bool:
        """Take an output, submit or completion call; says whether it was one."""
        if not self.handed_in.takes(in_hand.call.name):
            return False
        refusal = self.guards.refusal_to_take(in_hand)
        if refusal is not None:
            self._refuse(in_hand, refusal, turn)
        elif self.handed_in.take(in_hand, turn):
            self.failed_in_row = 0
        return True

    def _run(self, admitted: Sequence[CallInHand], turn: AnsweredTurn) -> list[Ran]:
        started: list[CallInHand] = []
        # The same for all of them: they run at the same time.
        limit_s = self.guards.budget.cuts_tool_call(
            self.config.tool_timeout_s, elapsed_s=self.events.elapsed_s
        )
        for in_hand in admitted:
            if self.control.is_cancelled:
                break
            started.append(in_hand)
            name = in_hand.call.name
            self.executed.append(name)
            turn.executed.append(name)
            invocation = self._invocation(in_hand, limit_s)
            self.events.emit("tool_started", payload=invocation, id=in_hand.call.id, name=name)
        return run_together(partial(self._invoke, limit_s=limit_s), started)

    def _invocation(self, in_hand: CallInHand, limit_s: float | None) -> ToolInvocation:
        return ToolInvocation(
            call_id=in_hand.call.id,
            name=in_hand.call.name,
            # A copy: a tool may change its own, and the audit log tells of what it was given.
            arguments=copy.deepcopy(in_hand.arguments),
            position=in_hand.position,
            timeout_s=self.config.tool_timeout_s,
            limit_s=limit_s,
        )

    def _invoke(self, in_hand: CallInHand, *, limit_s: float | None) -> Ran:
        assert self.tools is not None
        invocation = self._invocation(in_hand, limit_s)
        try:
            with trace_tool_call(invocation) as span:
                outcome = invoke(self.tools, invocation)
                span.set_outcome(outcome)
        except (ReplayMissError, InfrastructureError) as error:
            return Ran(in_hand, error)
        return Ran(in_hand, outcome)

    def _settle(self, ran: Ran, turn: AnsweredTurn) -> None:
        """Turn what came of an invocation into its result, in call order."""
        call, outcome = ran.in_hand.call, ran.outcome
        if isinstance(outcome, BreakOff):
            self._broke_off(ran.in_hand, outcome, turn)
            return
        error = outcome.content if self._has_failed(outcome) else None
        self.guards.breaker.record(call.name, ran.in_hand.asked, error)
        seen = self.guards.hooks.after_tool(self.guards.pending(ran.in_hand), outcome)
        failed = self._has_failed(seen)
        self._tell(ran.in_hand, seen, failed=failed)
        self._heed(call.name, seen, turn, failed=failed)
        if failed:
            self._failed(ran.in_hand, seen.content, turn)
        else:
            self.failed_in_row = 0
            turn.put(ran.in_hand.position, seen.content)

    def _tell(self, in_hand: CallInHand, outcome: ToolOutcome, *, failed: bool) -> None:
        call = in_hand.call
        if outcome.status == "timed_out":
            self.events.emit("tool_timed_out", payload=outcome, id=call.id, name=call.name)
        elif failed:
            self.events.emit(
                "tool_failed", payload=outcome, id=call.id, name=call.name, error=outcome.content
            )
        else:
            self.events.emit("tool_completed", payload=outcome, id=call.id, name=call.name)
        try:
            self.audit.executed(
                iteration=self.events.iteration,
                tool=call.name,
                arguments=in_hand.arguments,
                verdict=in_hand.verdict,
                error=outcome.content if failed else None,
                duration_s=outcome.duration_s,
            )
        except Exception as error:  # noqa: BLE001 - what cannot be redacted is not logged
            self.events.collect("audit", error)

    def _heed(self, name: str, outcome: ToolOutcome, turn: AnsweredTurn, *, failed: bool) -> None:
        """Note what the tool asks of the run besides its result."""
        match outcome.asks:
            case Suspend():
                turn.suspend = turn.suspend or outcome.asks
            case Blocked(reason=reason):
                turn.ending = turn.ending or Ending(TerminationReason.BLOCKED, reason)
            case Signal() if not failed:
                turn.signals.append(outcome.asks)
            case None if name in self.terminal_tools and not failed:
                turn.signals.append(Signal(name=TERMINAL_COMPLETE, data=storable(outcome.content)))

    def _supply(self, in_hand: CallInHand, turn: AnsweredTurn) -> None:
        assert in_hand.supplied is not None
        turn.put(in_hand.position, in_hand.supplied)
        if in_hand.call.name in self.terminal_tools:
            turn.signals.append(Signal(name=TERMINAL_COMPLETE, data=storable(in_hand.supplied)))

    def _broke_off(self, in_hand: CallInHand, error: BreakOff, turn: AnsweredTurn) -> None:
        call = in_hand.call
        self.events.emit("tool_failed", id=call.id, name=call.name, error=str(error))
        turn.ending = turn.ending or broke_off(error)
        turn.put(in_hand.position, "Not run: the run broke off.", is_error=True)

    def _has_failed(self, outcome: ToolOutcome) -> bool:
        if outcome.status != "ok" or not self.config.semantic_failures:
            return outcome.status != "ok"
        try:
            parsed = read_json(outcome.content)
        except ValueError:
            return False
        return isinstance(parsed, dict) and parsed.get("success") is False

    def _ends_the_run(self, refusal: Refusal) -> bool:
        if refusal.kind == "denied":
            return self.config.on_denied == "stop"
        if refusal.kind == "failed":
            return self.config.tool_error == "fail"
        return refusal.kind in ("over_budget", "blocked")

    def _are_too_many(self, failed_in_row: int) -> bool:
        threshold = self.config.error_threshold
        return bool(threshold) and failed_in_row >= threshold

    def _refuse(self, in_hand: CallInHand, refusal: Refusal, turn: AnsweredTurn) -> None:
        position, text = in_hand.position, refusal.text
        if refusal.kind == "failed":
            self._failed(in_hand, text, turn)
            return
        if refusal.kind in ("denied", "blocked"):
            call = in_hand.call
            self.events.emit("tool_denied", id=call.id, name=call.name, reason=text)
            turn.put(position, f"Denied: {text}.", is_error=True)
        else:
            turn.put(position, f"Not run: {text}.", is_error=True)
        if self._ends_the_run(refusal):
            turn.ending = Ending(_ENDINGS[refusal.kind], text)

    def _failed(self, in_hand: CallInHand, text: str, turn: AnsweredTurn) -> None:
        """A failed call: counted, and the run's end where the settings say so."""
        turn.put(in_hand.position, text, is_error=True)
        self.failed_in_row += 1
        name, threshold = in_hand.call.name, self.config.error_threshold
        if turn.ending is not None:
            return
        if self.config.tool_error == "fail":
            turn.ending = Ending(TerminationReason.TOOL_ERROR, f"{name}: {text}")
        elif threshold and self.failed_in_row >= threshold:
            why = f"{threshold} failed tool calls in a row; the last: {name}: {text}"
            turn.ending = Ending(TerminationReason.ERROR, why)


_ENDINGS = {
    "over_budget": TerminationReason.BUDGET_EXCEEDED,
    "denied": TerminationReason.DENIED,
    "blocked": TerminationReason.BLOCKED,
}

"""The model's side of a run: what it takes to come to its next turn."""

from __future__ import annotations

from dataclasses import replace

from harness.loop.answered_turn import AnsweredTurn
from harness.loop.endings import Ending
from harness.loop.parts import Parts
from harness.loop.progress import Progress
from harness.loop.transcript import Transcript
from harness.schema.loop_config import UNSCORED, TerminationReason
from harness.schema.messages import Message, ModelTurn, StopReason
from harness.schema.trajectory import CallTag
from harness.values import IterationPlan, ModelRequest, SkipModel


class ModelTurns:
    """Pauses, prepares, compacts and asks; every call is held against cancel and budget."""

    def __init__(self, parts: Parts, progress: Progress) -> None:
        self.parts = parts
        self.progress = progress
        self.next_tag: CallTag = "main"
        """What the next call is for."""

    def plan(self) -> IterationPlan | Ending:
        """What to run the iteration with, after any pause, or the ending instead."""
        control = self.parts.control
        reason = self.parts.hooks.pause_reason(self.parts.events.iteration)
        if reason is not None:
            control.pause(reason)
        self._wait_while_paused()
        if control.is_cancelled:
            return self.cancelled()
        self._deliver_injected()
        return self._prepared()

    def _deliver_injected(self) -> None:
        for text in self.parts.control.take_injected():
            self.parts.transcript.add_user(text)

    def _prepared(self) -> IterationPlan | Ending:
        """The plan that hooks made of the iteration; what they append stays in the conversation."""
        transcript = self.parts.transcript
        whole, tools = transcript.messages, self.parts.offered()
        if isinstance(tools, Ending):
            return tools
        plan = self.parts.hooks.before_iteration(
            IterationPlan(self.parts.events.iteration, self.parts.setup.model, whole, tools)
        )
        messages = plan.messages
        if plan.append_user:
            transcript.add_user(plan.append_user)
            changed = Transcript(plan.messages)
            changed.add_user(plan.append_user)
            messages = transcript.messages if plan.messages is whole else changed.messages
        known = {spec.name for spec in tools}
        offered = tuple(spec for spec in plan.tools if spec.name in known)
        return replace(plan, messages=messages, tools=offered)

    def ask(self, plan: IterationPlan) -> ModelTurn | SkipModel | Ending | None:
        """The model's turn; an empty one is asked again as often as the settings allow."""
        broke_off = self._compact()
        if broke_off is not None:
            return broke_off
        request = self.parts.hooks.before_model(self.parts.requests.request(plan))
        if isinstance(request, SkipModel):
            return request
        blocked = self.no_more_calls()
        if blocked is not None:
            return blocked
        self.progress.start_iteration()
        retries = self.parts.setup.config.empty_retries
        turn = self._call(request, self.next_tag)
        while retries and isinstance(turn, ModelTurn) and _is_empty(turn):
            blocked = self.no_more_calls()
            if blocked is not None:
                return blocked
            retries -= 1
            turn = self._call(request, self.next_tag)
        if isinstance(turn, ModelTurn):
            self.parts.hooks.after_model(turn)
            if turn.stop is not StopReason.PAUSE_TURN:
                self.next_tag = "main"
        return turn

    def _call(self, request: ModelRequest, tag: CallTag) -> ModelTurn | Ending | None:
        self.parts.control.phase = "model_call"
        left = self.parts.budget.left_s(elapsed_s=self.parts.events.elapsed_s)
        turn = self.parts.model.call(replace(request, limit_s=left), tag)
        self.parts.control.phase = "iteration"
        return turn

    def _aside(self, request: ModelRequest, tag: CallTag) -> ModelTurn | SkipModel | Ending | None:
        """A model call that is no iteration; hooks see it like any other."""
        hooked = self.parts.hooks.before_model(request)
        if isinstance(hooked, SkipModel):
            return hooked
        blocked = self.no_more_calls()
        if blocked is not None:
            return blocked
        turn = self._call(hooked, tag)
        if isinstance(turn, ModelTurn):
            self.parts.hooks.after_model(turn)
        return turn

    def _compact(self) -> Ending | None:
        """Have older turns summarised when the conversation has grown too long."""
        request = self.parts.requests.compaction()
        if request is None or self.no_more_calls() is not None:
            return None
        turn = self._aside(request, "compaction")
        if isinstance(turn, Ending):
            ends = turn.reason in UNSCORED or turn.reason is TerminationReason.DURATION_EXCEEDED
            return turn if ends else None
        if isinstance(turn, ModelTurn):
            summary = Message(role="assistant", content=turn.content).text
            self.parts.requests.take_summary(summary)
        return None

    def no_more_calls(self) -> Ending | None:
        """What keeps a model call from starting: a cancel, or the budget. A pause holds it."""
        self._wait_while_paused()
        if self.parts.control.is_cancelled:
            return self.cancelled()
        blocked = self.parts.budget.blocks_model_call(
            iterations=self.progress.iterations,
            usage=self.parts.model.usage.total,
            elapsed_s=self.parts.events.elapsed_s,
        )
        return None if blocked is None else Ending(*blocked)

    def _wait_while_paused(self) -> None:
        events = self.parts.events
        paused = self.parts.control.wait_while_paused(lambda why: events.emit("paused", reason=why))
        if paused and not self.parts.control.is_cancelled:
            events.emit("resumed")

    def last_call(self, prompt: str | None = None) -> Ending | None:
        """One model call without tools, which is no iteration; its text is the final one.

        A run that broke off there says so; any other failure leaves the run as it was.
        """
        if self.no_more_calls() is not None:
            return None
        self._deliver_injected()
        if prompt is not None:
            self.parts.transcript.add_user(prompt)
        tools = self.parts.offered()
        if isinstance(tools, Ending):
            return tools if tools.reason in UNSCORED else None
        model, messages = self.parts.setup.model, self.parts.transcript.messages
        plan = IterationPlan(self.parts.events.iteration, model, messages, tools)
        request = self.parts.requests.request(plan, tool_choice="none")
        turn = self._aside(request, "wrap_up")
        if turn is None or isinstance(turn, Ending):
            return turn if turn is not None and turn.reason in UNSCORED else None
        message = Message(role="assistant", content=turn.content)
        self.add_unrun(message, "no tools were offered")
        if message.text:
            self.progress.final_text = message.text
        self.progress.wrapped_up = prompt is not None
        return None

    def add_unrun(self, message: Message, why: str) -> None:
        """Add a turn whose calls are answered but not run."""
        turn = AnsweredTurn(message.tool_calls)
        turn.fill(f"Not run: {why}.")
        self.parts.transcript.add_assistant(message)
        self.parts.transcript.add_results(turn.results)

    def cancelled(self) -> Ending:
        """The ending of a cancelled run."""
        return Ending(TerminationReason.CANCELLED, self.parts.control.cancelled or None)


def _is_empty(turn: ModelTurn) -> bool:
    message = Message(role="assistant", content=turn.content)
    goes_on = turn.stop in (StopReason.PAUSE_TURN, StopReason.REFUSAL)
    return not message.tool_calls and not message.text.strip() and not goes_on

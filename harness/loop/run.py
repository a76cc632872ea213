"""The loop itself: attempts of iterations of one model call and the tools it asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.loop.answer import output_from_text
from harness.loop.answered_turn import AnsweredTurn
from harness.loop.completion import AskBack
from harness.loop.control import Phase
from harness.loop.endings import Draft, Ending
from harness.loop.guards import read_arguments
from harness.loop.model_turns import ModelTurns
from harness.loop.parts import Parts
from harness.loop.progress import Progress
from harness.loop.stopping import Iteration, ask_at_limit, signal_of, signalled
from harness.loop.story import trajectory_of
from harness.loop.tracing import trace_iteration, trace_run
from harness.loop.validation import first_failure
from harness.schema.loop_config import TerminationReason
from harness.schema.messages import Message, ModelTurn, StopReason, Text, ToolCall
from harness.schema.record import JsonObject
from harness.schema.signals import Signal, Suspend
from harness.schema.trajectory import Trajectory
from harness.values import IterationPlan, SkipModel

TRUNCATED = (
    "Your answer was cut at its length limit and none of its tool calls were run. "
    "Answer again, shorter."
)
REJECTED = "Validation failed: {complaint}\nCorrect it and call `{name}` again."
WRAP_UP = "You have reached the limit of this task. Give your final answer now, without tools."


@dataclass(frozen=True, slots=True)
class Candidate:
    """A result that is to be validated, and the turn that handed it in, if calls did."""

    draft: Draft
    turn: AnsweredTurn | None = None


class Run:
    """One run: its state, and the steps that move it on. Each step says how it ends, if it does."""

    def __init__(self, parts: Parts, progress: Progress) -> None:
        self.parts = parts
        self.setup = parts.setup
        self.config = parts.setup.config
        self.transcript = parts.transcript
        self.events = parts.events
        self.progress = progress
        self.model_turns = ModelTurns(parts, progress)
        self.warned = self._is_past_soft_limit()
        self.executed_before = 0
        self.text = ""

    def to_the_end(self) -> Trajectory:
        """Run attempts until one ending, and tell the whole story."""
        self.events.emit("run_started")
        if not self.progress.attempts:
            self.transcript.replace(self.parts.hooks.before_run(self.transcript.messages))
        with trace_run(self.events.run_id) as span:
            ending = self._attempts()
            if self.parts.control.is_cancelled:
                ending = self.model_turns.cancelled()
            trajectory = self.parts.hooks.after_run(self._so_far(ending))
            span.set_trajectory(trajectory)
        reason = trajectory.termination_reason.value
        data: JsonObject = {"reason": reason, "error": trajectory.error}
        if trajectory.termination_reason is TerminationReason.CANCELLED:
            data["phase"] = self.parts.control.cancelled_in
        return self.events.conclude(trajectory, **data)

    def _attempts(self) -> Ending:
        # A resumed run goes on within its attempt.
        resumed = self.progress.attempts > 0
        while resumed or self.progress.attempts < self.config.max_attempts:
            if not resumed:
                self.progress.start_attempt()
                self.parts.completion.start_over()
                self.events.emit("attempt_started", attempt=self.progress.attempts)
            resumed = False
            found = self._iterate()
            ending = found if isinstance(found, Ending) else self._validate(found)
            self.events.emit("attempt_completed", attempt=self.progress.attempts)
            if ending is not None:
                return ending
        why = f"no valid output in {self.config.max_attempts} attempts"
        return Ending(TerminationReason.MAX_ATTEMPTS, why)

    def _iterate(self) -> Ending | Candidate:
        while True:
            blocked = self._at_limit() or self.model_turns.no_more_calls()
            if blocked is not None:
                return blocked
            self._enter("iteration")
            self.events.iteration += 1
            self.events.emit("iteration_started")
            with trace_iteration(self.events.iteration):
                decided = self._iteration()
            self._warn_at_soft_limit()
            self.events.emit("iteration_completed")
            if decided is not None:
                return decided

    def _iteration(self) -> Ending | Candidate | None:
        """One model call and what follows from it; None to go on."""
        self.executed_before = len(self.parts.answerer.executed)
        self.text = ""
        plan = self.model_turns.plan()
        if isinstance(plan, Ending):
            return plan
        answer = self.model_turns.ask(plan)
        if isinstance(answer, SkipModel):
            return self._canned(answer)
        if isinstance(answer, Ending):
            return answer
        followed = self._follow(answer, plan) if answer is not None else None
        return followed or self._stopped()

    def _stopped(self) -> Ending | None:
        """The ending by a stop condition that holds after this iteration, or None."""
        return self.parts.stop_conditions.met(
            Iteration(
                executed=self.parts.answerer.executed[self.executed_before :],
                text=self.text,
                tokens=self.parts.model.usage.tokens,
                so_far=lambda: self._so_far(Ending(TerminationReason.COMPLETED)),
            )
        )

    def _canned(self, answer: SkipModel) -> Ending:
        """A hook's answer in the model's place is the final text."""
        self.transcript.add_assistant(Message(role="assistant", content=answer.content))
        self.progress.final_text = answer.text
        output = output_from_text(answer.text)
        if self.setup.output is None or first_failure(output, self.setup.output) is None:
            self.progress.draft = Draft(output)
        return Ending(TerminationReason.COMPLETED)

    def _follow(self, turn: ModelTurn, plan: IterationPlan) -> Ending | Candidate | None:
        """What a turn of the model leads to."""
        message = Message(role="assistant", content=turn.content)
        calls, self.text = message.tool_calls, message.text
        if self.text:
            self.progress.final_text = self.text
        self.progress.truncated = turn.stop is StopReason.MAX_TOKENS and not calls
        unrun = self._why_not_run(turn, calls)
        if unrun is not None:
            return self._end_unrun(message, unrun)
        if calls and turn.stop is StopReason.MAX_TOKENS and self.config.on_truncation == "reprompt":
            self._reprompt(message)
            return None
        if calls:
            return self._run_calls(message, plan)
        self.transcript.add_assistant(message)
        if turn.stop is StopReason.PAUSE_TURN:
            return None
        return self._text_only(message.text)

    def _why_not_run(self, turn: ModelTurn, calls: Sequence[ToolCall]) -> Ending | None:
        """The ending that comes before any call of the turn is run."""
        if turn.stop is StopReason.REFUSAL:
            return Ending(TerminationReason.REFUSAL, "the model refused")
        if self.parts.control.is_cancelled:
            return self.model_turns.cancelled()
        cut = bool(calls) and turn.stop is StopReason.MAX_TOKENS
        if cut and self.config.on_truncation == "fail":
            return Ending(TerminationReason.TRUNCATED, "the answer was cut at its token limit")
        if self.parts.loop_detector.sees_too_many(calls):
            why = f"the same turn {self.config.loop_detection} times in a row"
            return Ending(TerminationReason.LOOP_DETECTED, why)
        return None

    def _end_unrun(self, message: Message, ending: Ending) -> Ending:
        """End on a turn whose calls are answered but not run."""
        self.model_turns.add_unrun(message, ending.error or ending.reason)
        return ending

    def _reprompt(self, message: Message) -> None:
        texts = tuple(block for block in message.content if isinstance(block, Text) and block.text)
        self.transcript.add_assistant(Message(role="assistant", content=texts))
        self.transcript.add_user(TRUNCATED)

    def _run_calls(self, message: Message, plan: IterationPlan) -> Ending | Candidate | None:
        message = self._within_cap(message)
        self.transcript.add_assistant(message)
        self._enter("tool_calls")
        turn = self.parts.answerer.answer(message.tool_calls, plan.tools)
        self._enter("iteration")
        self.progress.draft = turn.draft or self.progress.draft
        decided = self._decide(turn, message.text)
        if not isinstance(decided, Candidate):
            self.transcript.add_results(turn.results)
        if isinstance(decided, Ending) and decided.reason is TerminationReason.SUSPENDED:
            return self._suspend(turn.suspend, decided)
        return decided

    def _within_cap(self, message: Message) -> Message:
        cap = self.config.max_tool_calls_per_turn
        if cap is None or self.config.overflow == "error":
            return message
        surplus = {id(call) for call in message.tool_calls[cap:]}
        kept = tuple(block for block in message.content if id(block) not in surplus)
        return Message(role="assistant", content=kept)

    def _decide(self, turn: AnsweredTurn, text: str) -> Ending | Candidate | None:
        """What the answered calls of a turn lead to."""
        if turn.completes_at is None and not self._was_unreadable(turn):
            self.parts.completion.start_over()
        if turn.ending is not None:
            return turn.ending
        if turn.suspend is not None:
            return Ending(TerminationReason.SUSPENDED)
        signal = signal_of(turn, self.config, self.setup.terminal_check)
        if signal is not None:
            return signal if isinstance(signal, Ending) else signalled(signal)
        if turn.completes_at is not None:
            return self._complete(turn, turn.completes_at, text)
        handed_in = turn.submitted if self.config.reflection else turn.draft is not None
        if not handed_in:
            return None
        if self.progress.draft is not None:
            return Candidate(self.progress.draft, turn)
        if self.config.submit_before_output == "fatal":
            why = "submit was called before any draft"
            return Ending(TerminationReason.SUBMIT_BEFORE_OUTPUT, why)
        turn.reject("There is no draft yet: hand one in first.")
        return None

    def _was_unreadable(self, turn: AnsweredTurn) -> bool:
        """Whether it cannot be known what it says, which leaves an open question open."""
        if not self.parts.handed_in.completes_by_call:
            return False
        return all(isinstance(read_arguments(call.arguments), str) for call in turn.calls)

    def _complete(self, turn: AnsweredTurn, position: int, text: str) -> Candidate | None:
        """The task is said to be complete: asked back once, taken the second time."""
        question = self.parts.completion.question_to_completion()
        if question is not None:
            self.model_turns.next_tag = "confirm"
            turn.put(position, question)
            return None
        confirm = self.config.confirm
        self.progress.confirmed = True if confirm.enabled and confirm.mode != "counted" else None
        return Candidate(self.progress.draft or Draft(output_from_text(text)), turn)

    def _text_only(self, text: str) -> Ending | Candidate | None:
        has_draft = self.config.reflection and self.progress.draft is not None
        decision = self.parts.completion.judge(text, has_draft=has_draft)
        if isinstance(decision, AskBack):
            self.model_turns.next_tag = decision.tag
            self.transcript.add_user(decision.text)
            return None
        if self.parts.control.has_injected:
            # The answer was given without knowing what is about to be said.
            self.parts.completion.start_over()
            return None
        if isinstance(decision, Ending):
            return decision
        self.progress.final_text = decision.text
        self.progress.confirmed = decision.confirmed
        return Candidate(Draft(output_from_text(decision.text)))

    def _suspend(self, suspend: Suspend | None, ending: Ending) -> Ending:
        self.progress.suspend = suspend
        broke_off = self.model_turns.last_call() if self.config.suspend_reply else None
        return broke_off or ending

    def _validate(self, candidate: Candidate) -> Ending | None:
        """Hold a result against the output's schema and validators; None for another attempt."""
        self._enter("validation")
        self.progress.draft = candidate.draft
        complaint = None
        if self.setup.output is not None:
            self.events.emit("validation_started")
            complaint = first_failure(candidate.draft.value, self.setup.output)
            verdict = {"complaint": complaint} if complaint is not None else {}
            self.events.emit("validation_failed" if verdict else "validation_passed", **verdict)
        if complaint is not None:
            self.progress.validation_failures.append(complaint)
            self._reject(candidate, complaint)
        elif candidate.turn is not None:
            self.transcript.add_results(candidate.turn.results)
        self._enter("iteration")
        return Ending(TerminationReason.COMPLETED) if complaint is None else self._stopped()

    def _reject(self, candidate: Candidate, complaint: str) -> None:
        assert self.setup.output is not None
        text = REJECTED.format(complaint=complaint, name=self.setup.output.tool.name)
        if candidate.turn is None:
            self.transcript.add_user(text)
        else:
            candidate.turn.reject(text)
            self.transcript.add_results(candidate.turn.results)

    def _at_limit(self) -> Ending | None:
        """What happens at a limit of iterations; None below it."""
        if self.parts.control.is_cancelled:
            return self.model_turns.cancelled()
        hard = self.config.hard_limit
        if hard is not None and self.progress.iterations >= hard:
            why = f"the hard limit of {hard} iterations is reached"
            given = ask_at_limit(self.setup.on_iteration_limit)
            if isinstance(given, Ending):
                return given
            return Ending(TerminationReason.MAX_ITERATIONS, why, given)
        if self.progress.attempt_iterations < self.config.max_iterations:
            return None
        why = f"the limit of {self.config.max_iterations} iterations is reached"
        reached = Ending(TerminationReason.MAX_ITERATIONS, why)
        if not self.config.max_iterations:
            return reached
        if self.config.on_limit == "callback":
            given = ask_at_limit(self.setup.on_iteration_limit)
            return signalled(given) if isinstance(given, Signal) else given or reached
        if self.config.on_limit == "wrap_up":
            return self.model_turns.last_call(WRAP_UP) or reached
        return reached

    def _warn_at_soft_limit(self) -> None:
        if not self.warned and self._is_past_soft_limit():
            self.warned = True
            soft = self.config.soft_limit
            self.events.emit("limit_warning", iterations=self.progress.iterations, soft_limit=soft)

    def _is_past_soft_limit(self) -> bool:
        soft = self.config.soft_limit
        return soft is not None and self.progress.iterations >= soft

    def _enter(self, phase: Phase) -> None:
        self.parts.control.phase = phase

    def _so_far(self, ending: Ending) -> Trajectory:
        return trajectory_of(self.parts, self.progress, ending)

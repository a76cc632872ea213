"""The engine: one conversation, from its first message to exactly one ending."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from harness.errors import RunFailedError
from harness.loop.answer import output_from_text
from harness.loop.budget import Spent, blocks_model_call
from harness.loop.completion import AskBack, TextCompletion
from harness.loop.configuration import check_configuration
from harness.loop.events import EventLog
from harness.loop.model_calls import ModelCaller
from harness.loop.text_protocol import PROTOCOLS, TextProtocolProvider
from harness.loop.tool_calls import AnsweredTurn, Draft, Ending, ToolCallAnswerer, not_run
from harness.loop.transcript import Transcript, user_text
from harness.loop.validation import first_failure
from harness.protocols import ModelRequest, Observer, OutputSpec, Provider, ToolProvider
from harness.schema.loop_config import LoopConfig, TerminationReason
from harness.schema.messages import Message, ModelTurn, StopReason, Text
from harness.schema.trajectory import CallTag, Trajectory

TRUNCATED = (
    "Your answer was cut at its length limit and none of its tool calls were run. "
    "Answer again, shorter."
)
REJECTED = "Validation failed: {complaint}\nCorrect it and call `{name}` again."
LIMITS = (
    TerminationReason.MAX_ITERATIONS,
    TerminationReason.BUDGET_EXCEEDED,
    TerminationReason.DURATION_EXCEEDED,
)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A result that is to be validated, and the turn that handed it in, if calls did."""

    draft: Draft
    turn: AnsweredTurn | None = None


class Loop:
    """One configuration of the loop; every `run` is a fresh conversation."""

    def __init__(
        self,
        provider: Provider,
        *,
        model: str,
        tools: ToolProvider | None = None,
        output: OutputSpec | None = None,
        config: LoopConfig | None = None,
        temperature: float | None = None,
        observers: Sequence[Observer] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.provider = provider
        self.model = model
        self.tools = tools
        self.output = output
        self.config = config or LoopConfig()
        self.temperature = temperature
        self.observers = tuple(observers)
        self.clock = clock
        self._cancelled: str | None = None
        self._running: ToolCallAnswerer | None = None
        check_configuration(self.config, tools, output)

    def cancel(self, reason: str = "") -> None:
        """Start no further model call in the current run, or in the next if none is running."""
        self._cancelled = reason
        if self._running is not None:
            self._running.cancelled = reason

    def run(self, messages: str | Sequence[Message], *, system: str | None = None) -> Trajectory:
        """Run one conversation to its end.

        Args:
            messages: The conversation so far, or the text of its one user message. It is copied.
            system: The system prompt.

        Raises:
            RunFailedError: only with `raise_on_failure`, when the run did not complete.
        """
        start = (user_text(messages),) if isinstance(messages, str) else tuple(messages)
        run = _Run(self, start, system)
        self._running = run.answerer
        # A cancel from another thread meets one of the two: it never gets lost between them.
        if self._cancelled is not None:
            run.answerer.cancelled = self._cancelled
        try:
            trajectory = run.to_the_end()
        finally:
            self._running = self._cancelled = None
        completed = trajectory.termination_reason is TerminationReason.COMPLETED
        if self.config.raise_on_failure and not completed:
            why = trajectory.error or "no further detail"
            raise RunFailedError(
                f"the run ended {trajectory.termination_reason}: {why}", trajectory
            )
        return trajectory


class _Run:
    """The state of one run, and the steps that move it on."""

    def __init__(self, loop: Loop, messages: Sequence[Message], system: str | None) -> None:
        self.loop = loop
        self.config = loop.config
        self.system = system
        provider = loop.provider
        if self.config.text_protocol is not None:
            provider = TextProtocolProvider(provider, PROTOCOLS[self.config.text_protocol])
        self.transcript = Transcript(messages)
        self.events = EventLog(loop.observers, loop.clock)
        self.model = ModelCaller(provider, self.events, self.config.llm_error_threshold)
        self.answerer = ToolCallAnswerer(loop.tools, loop.output, self.config, self.events)
        self.completion = TextCompletion(self.config, loop.output, self.events)
        self.iterations = self.attempts = self.attempt_iterations = 0
        self.next_tag: CallTag = "main"
        self.draft: Draft | None = None
        self.final_text = ""
        self.confirmed: bool | None = None
        self.truncated = False
        self.validation_failures: list[str] = []

    def to_the_end(self) -> Trajectory:
        """Run attempts until one ending, and tell the whole story."""
        self.events.emit("run_started")
        ending = self._attempts()
        if self._is_cancelled:
            ending = self._cancelled()
        self.events.emit("run_completed", reason=ending.reason.value, error=ending.error)
        return self._trajectory(ending)

    def _attempts(self) -> Ending:
        while self.attempts < self.config.max_attempts:
            self.attempts += 1
            self.attempt_iterations = 0
            self.draft = self.confirmed = None
            self.completion.start_over()
            self.events.emit("attempt_started", attempt=self.attempts)
            found = self._iterate()
            ending = found if isinstance(found, Ending) else self._validate(found)
            self.events.emit("attempt_completed", attempt=self.attempts)
            if ending is not None:
                return ending
        why = f"no valid output in {self.config.max_attempts} attempts"
        return Ending(TerminationReason.MAX_ATTEMPTS, why)

    def _iterate(self) -> Ending | Candidate:
        while True:
            blocked = self._blocked()
            if blocked is not None:
                return blocked
            self.events.iteration += 1
            self.events.emit("iteration_started")
            decided = self._cancelled() if self._is_cancelled else self._iteration()
            self.events.emit("iteration_completed")
            if decided is not None:
                return decided

    def _blocked(self) -> Ending | None:
        """What keeps the next model call from starting: a cancel, a limit or the budget."""
        if self._is_cancelled:
            return self._cancelled()
        if self.attempt_iterations >= self.config.max_iterations:
            why = f"the limit of {self.config.max_iterations} iterations is reached"
            return Ending(TerminationReason.MAX_ITERATIONS, why)
        spent = Spent(self.iterations, self.model.usage.tokens, self.events.elapsed_s)
        blocked = blocks_model_call(self.config.budget, spent)
        return None if blocked is None else Ending(*blocked)

    def _iteration(self) -> Ending | Candidate | None:
        """One model call and what follows from it; None to go on."""
        self.iterations += 1
        self.attempt_iterations += 1
        turn = self._ask_model()
        if not isinstance(turn, ModelTurn):
            return turn
        message = Message(role="assistant", content=turn.content)
        calls = message.tool_calls
        if message.text:
            self.final_text = message.text
        self.truncated = turn.stop is StopReason.MAX_TOKENS and not calls
        if turn.stop is StopReason.REFUSAL:
            return self._end_unrun(message, Ending(TerminationReason.REFUSAL, "the model refused"))
        if self._is_cancelled:
            return self._end_unrun(message, self._cancelled())
        if calls and turn.stop is StopReason.MAX_TOKENS:
            if self.config.on_truncation == "fail":
                cut = Ending(TerminationReason.TRUNCATED, "the answer was cut at its token limit")
                return self._end_unrun(message, cut)
            if self.config.on_truncation == "reprompt":
                self._reprompt(message)
                return None
        if calls:
            return self._run_calls(message)
        self.transcript.add_assistant(message)
        if turn.stop is StopReason.PAUSE_TURN:
            return None
        return self._text_only(message.text)

    def _ask_model(self) -> ModelTurn | Ending | None:
        request = ModelRequest(
            model=self.loop.model,
            system=self.system,
            messages=self.transcript.messages,
            tools=self.answerer.offered(),
            max_output_tokens=self.config.max_output_tokens,
            temperature=self.loop.temperature,
        )
        turn = self.model.call(request, self.next_tag)
        if isinstance(turn, ModelTurn) and turn.stop is not StopReason.PAUSE_TURN:
            self.next_tag = "main"
        return turn

    def _end_unrun(self, message: Message, ending: Ending) -> Ending:
        """End on a turn whose calls are answered but not run."""
        self.transcript.add_assistant(message)
        self.transcript.add_results(not_run(message.tool_calls, ending.error or ending.reason))
        return ending

    def _reprompt(self, message: Message) -> None:
        texts = tuple(block for block in message.content if isinstance(block, Text) and block.text)
        self.transcript.add_assistant(Message(role="assistant", content=texts))
        self.transcript.add_user(TRUNCATED)

    def _run_calls(self, message: Message) -> Ending | Candidate | None:
        cap = self.config.max_tool_calls_per_turn
        if cap is not None and self.config.overflow == "drop":
            surplus = {id(call) for call in message.tool_calls[cap:]}
            kept = tuple(block for block in message.content if id(block) not in surplus)
            message = Message(role="assistant", content=kept)
        self.completion.start_over()
        self.transcript.add_assistant(message)
        turn = self.answerer.answer(message.tool_calls)
        self.draft = turn.draft or self.draft
        decided = self._decide(turn)
        if not isinstance(decided, Candidate):
            self.transcript.add_results(turn.results)
        return decided

    def _decide(self, turn: AnsweredTurn) -> Ending | Candidate | None:
        """What the answered calls of a turn lead to."""
        if turn.ending is not None:
            return turn.ending
        handed_in = turn.submitted if self.config.reflection else turn.draft is not None
        if not handed_in:
            return None
        if self.draft is not None:
            return Candidate(self.draft, turn)
        if self.config.submit_before_output == "fatal":
            why = "submit was called before any draft"
            return Ending(TerminationReason.SUBMIT_BEFORE_OUTPUT, why)
        turn.reject("There is no draft yet: hand one in first.")
        return None

    def _text_only(self, text: str) -> Ending | Candidate | None:
        has_draft = self.config.reflection and self.draft is not None
        decision = self.completion.judge(text, has_draft=has_draft)
        if isinstance(decision, Ending):
            return decision
        if isinstance(decision, AskBack):
            self.next_tag = decision.tag
            self.transcript.add_user(decision.text)
            return None
        self.final_text = decision.text
        self.confirmed = decision.confirmed
        return Candidate(Draft(output_from_text(decision.text)))

    def _validate(self, candidate: Candidate) -> Ending | None:
        """Hold a result against the output's schema and validators; None for another attempt."""
        self.draft = candidate.draft
        complaint = None
        if self.loop.output is not None:
            self.events.emit("validation_started")
            complaint = first_failure(candidate.draft.value, self.loop.output)
            verdict = {"complaint": complaint} if complaint is not None else {}
            self.events.emit("validation_failed" if verdict else "validation_passed", **verdict)
        if complaint is not None:
            self.validation_failures.append(complaint)
            self._reject(candidate, complaint)
        elif candidate.turn is not None:
            self.transcript.add_results(candidate.turn.results)
        return Ending(TerminationReason.COMPLETED) if complaint is None else None

    def _reject(self, candidate: Candidate, complaint: str) -> None:
        assert self.loop.output is not None
        text = REJECTED.format(complaint=complaint, name=self.loop.output.tool.name)
        if candidate.turn is None:
            self.transcript.add_user(text)
        else:
            candidate.turn.reject(text)
            self.transcript.add_results(candidate.turn.results)

    @property
    def _is_cancelled(self) -> bool:
        return self.answerer.cancelled is not None

    def _cancelled(self) -> Ending:
        return Ending(TerminationReason.CANCELLED, self.answerer.cancelled or None)

    def _trajectory(self, ending: Ending) -> Trajectory:
        draft = self.draft
        if draft is None and self.loop.output is None and ending.reason in LIMITS:
            draft = Draft(output_from_text(self.final_text)) if self.final_text else None
        executed = tuple(self.answerer.executed)
        return Trajectory(
            termination_reason=ending.reason,
            output_seen=draft is not None,
            output=draft.value if draft is not None else None,
            final_text=self.final_text,
            confirmed=self.confirmed,
            truncated=self.truncated,
            system=self.system,
            messages=self.transcript.messages,
            iterations=self.iterations,
            attempts=self.attempts,
            model_calls=self.model.made,
            failed_calls=self.model.failed,
            tool_calls_made=len(executed),
            tools_used=tuple(dict.fromkeys(executed)),
            tools_executed=executed,
            validation_failures=tuple(self.validation_failures),
            usage=self.model.usage.total,
            usage_by_tag=self.model.usage.by_tag,
            models=tuple(self.model.models),
            error=ending.error,
            callback_errors=tuple(self.events.callback_errors),
            events=tuple(self.events.events),
            duration_s=round(self.events.elapsed_s, 6),
        )

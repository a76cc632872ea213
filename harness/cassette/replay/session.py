"""One trial's view of a cassette: its own cursors, its own misses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from harness.cassette.file.tape import Tape, ToolKey, verdict_id
from harness.cassette.format import InteractionLine, StoredResponse, StoredResult, request_of
from harness.cassette.replay.explain import Miss, explain, explain_tool
from harness.cassette.replay.in_order import InOrder, RequestDifference
from harness.cassette.replay.nearest import find_clean
from harness.cassette.replay.unexpected import unexpected_told
from harness.cassette.replay.used import Used
from harness.cassette.request.canonical import CanonicalRequest
from harness.cassette.request.each_message_once import redacting
from harness.cassette.request.rules import Rules
from harness.cassette.response.keeping import LiveAnswer, Unsettled, is_passing
from harness.errors import HarnessError, InfrastructureError, ReplayMissError
from harness.schema.results import Verdict

_IN_TOOL: ContextVar[bool] = ContextVar("in_tool", default=False)
"""Whether a tool is running here: its model calls are no turn of the trial's."""


class Session:
    """Serves and records one trial of one variant; made by `Store.session`."""

    def __init__(
        self,
        tape: Tape,
        variant: str,
        *,
        rules: Rules,
        recording: bool,
        replaces: bool,
        where: str,
        record_hint: str,
    ) -> None:
        """Start a trial at the beginning of the recording.

        Raises:
            CassetteError: what this variant's trial used cannot be read.
        """
        self.variant = variant
        self.recording = recording
        """Whether what is missing is recorded instead of missed."""
        self.misses: list[Miss] = []
        """After the first one every request is missed."""
        self.error: HarnessError | None = None
        """What broke the cassette under the trial; `finish` raises it."""
        self.served = 0
        self.recorded = 0
        self.last: str | None = None
        """The latest model call but those that tools make: what tool calls belong to."""
        self.elapsed_s = 0.0
        """How long the answers and tool results used so far took: the same whenever replayed."""
        self.unanswered = False
        """Whether the latest request has no recorded answer, so that replay could not go on."""
        self.redactor = tape.redactor
        self.rules = rules
        """What does not count when requests and tool results are compared."""
        self._tape = tape
        self.where = where
        """The cassette, as messages name it."""
        self.record_hint = record_hint
        """Command that records what a miss lacks."""
        self._literal = self.redactor.without_rules()
        self._redacted = redacting(self.redactor)
        self._cursors: Counter[str] = Counter()
        self._uses = Used()
        self._unsettled = Unsettled(keep_errors=rules.rules.keep_errors, replaces=replaces)
        self._repeating: dict[str, InteractionLine] = {}
        self._in_order = InOrder(tape, rules) if tape.by_position else None
        trial = tape.trial(variant)
        self._used = frozenset(() if trial is None else trial.interactions)
        self.is_recorded = trial is not None
        """Whether a trial of this variant was recorded to its end."""

    @property
    def request_differences(self) -> list[RequestDifference]:
        """Where answers are given in order: what was asked otherwise than it was recorded."""
        return [] if self._in_order is None else self._in_order.differences

    @property
    def turn_differences(self) -> list[RequestDifference]:
        """The calls among them that added something else to the conversation than was recorded."""
        return [] if self._in_order is None else self._in_order.turns

    @property
    def unused(self) -> int:
        """Where answers are given in order: those that were never asked for."""
        return 0 if self._in_order is None else self._in_order.unused

    def claim(self, request: CanonicalRequest) -> InteractionLine | None:
        """The recorded answer; None where the call is to go to the live model.

        Raises:
            ReplayMissError: nothing is recorded, and nothing may be; `misses` holds it as well.
            CassetteError: the cassette cannot be trusted.
        """
        with self._whole():
            self._refuse_after_miss()
            return self._claim(request)

    def claim_as_sent(self, sent: str) -> InteractionLine | None:
        """The recorded answer to a model call that was recorded in these very bytes.

        None says only that `claim` has to look for it.

        Args:
            sent: Digest of the call as it is sent.

        Raises:
            ReplayMissError: an earlier request was missed.
            CassetteError: the cassette cannot be trusted.
        """
        digest = self._tape.index.sent.get(sent)
        if digest is None or self._in_order is not None:
            return None
        with self._whole():
            self._refuse_after_miss()
            return self._serve(digest, is_model_call=True)

    @contextmanager
    def _whole(self) -> Iterator[None]:
        """Alone with the cassette; whatever breaks it ends the trial."""
        with self.remembering():
            # Before the lock, which a thread of the parent may hold for ever in a fork.
            self._tape.check_writer()
            with self._tape.lock:
                self._tape.settle()
                yield

    @contextmanager
    def remembering(self) -> Iterator[None]:
        """Have whatever goes wrong inside end the trial, whoever catches it."""
        try:
            with unexpected_told(self.where):
                yield
        except ReplayMissError:
            raise
        except HarnessError as error:
            self.fail(error)
            raise

    def _claim(self, request: CanonicalRequest) -> InteractionLine | None:
        # As it is first: a value that only now is known as a key may have been recorded plainly.
        # Redaction rules last: they are dear.
        if self._in_order is not None and request.is_model_call:
            return self._claim_next(self._in_order, request)
        asked = self.rules.request(request)
        answer = self._serve(asked.digest, is_model_call=asked.is_model_call)
        if answer is not None:
            return answer
        known = self.rules.request(request.redacted(self._literal.json))
        if known.digest != asked.digest:
            answer = self._serve(known.digest, is_model_call=known.is_model_call)
        if answer is not None:
            return answer
        clean = self._clean(request)
        if clean.digest not in (asked.digest, known.digest):
            answer = self._serve(clean.digest, is_model_call=clean.is_model_call)
        if answer is None and not self.recording:
            raise self.miss(self._explain(clean, asked))
        self.unanswered = answer is None
        if answer is None:
            self._unsettled.ask(clean)
        return answer

    def _clean(self, request: CanonicalRequest) -> CanonicalRequest:
        """The request as it is kept; secrets go first, since the rules may cut into one."""
        return self.rules.request(self._redacted(request))

    def _claim_next(self, in_order: InOrder, request: CanonicalRequest) -> InteractionLine:
        clean = self._clean(request)
        line = in_order.interaction(clean)
        if line is None:
            raise self.miss(in_order.miss(self.where))
        self._advance(line, is_model_call=True)
        self.served += 1
        return line

    def give(self, line: InteractionLine) -> None:
        """Account for a model call's answer that the trial is given whatever it asked.

        It may be another cassette's, so the recorded trial does not name it.

        Raises:
            ReplayMissError: an earlier request was missed.
        """
        with self._whole():
            self._refuse_after_miss()
            self._spend(line, is_model_call=True)
            self.served += 1

    def _serve(self, request_digest: str, *, is_model_call: bool) -> InteractionLine | None:
        ordinal = self._cursors[request_digest]
        for error in self._unsettled.given_up(request_digest, is_repeated=ordinal > 0):
            self._append(error.at_once())
            ordinal += 1
        line = self._tape.find(request_digest, ordinal, self.variant, self._used)
        line = line or self._repeating.get(request_digest)
        if line is not None and line.repeats and self.recording:
            # Where something else may be recorded, an error is not for ever.
            line = self._tape.find(request_digest, ordinal, self.variant, frozenset())
        if line is None or (line.repeats and self.recording):
            return None
        if line.repeats:
            self._repeating[request_digest] = line
        self._unsettled.go_on(request_digest)
        self._advance(line, is_model_call=is_model_call)
        self.served += 1
        return line

    def _advance(self, line: InteractionLine, *, is_model_call: bool) -> None:
        # First: if an exception comes in between, the next such request gets the same.
        self._uses.interactions.append(line.id)
        self._spend(line, is_model_call=is_model_call)

    def _spend(self, line: InteractionLine, *, is_model_call: bool) -> None:
        self.unanswered = False
        self._cursors[request_of(line.id)] += 1
        # On replay a tool is not run: its own duration is all that passes. An error is known as one
        # that was not got over only when the trial has gone on: until then nothing had come of it.
        if _IN_TOOL.get() or is_passing(line.response.status):
            return
        self.spend(line.latency_s)
        if is_model_call:
            self.last = line.id

    def append(
        self,
        request: CanonicalRequest,
        response: StoredResponse,
        *,
        latency_s: float,
        first_byte_s: float | None = None,
    ) -> None:
        """Record a live answer; it is on disk when this returns.

        An error that is worth a retry is held until it is known whether one got over it; a refused
        key or a wrong address is never recorded, and leaves the trial incomplete.

        Args:
            request: What was asked.
            response: The answer, without secrets.
            latency_s: From the request to the end of the answer.
            first_byte_s: From the request to the first byte of the answer.

        Raises:
            InfrastructureError: it could not be written, or the cassette broke before.
        """
        with self._whole():
            if self.error is not None:
                raise InfrastructureError(str(self.error))
            answer = LiveAnswer(self._clean(request), response, latency_s, first_byte_s)
            if self._unsettled.settles(answer, len(self._uses.interactions) + 1):
                self._append(answer)

    def _append(self, answer: LiveAnswer, *, repeats: bool = False) -> None:
        request = answer.request
        first_byte_s = None if answer.first_byte_s is None else round(answer.first_byte_s, 4)
        line = self._tape.add_interaction(
            request,
            self._cursors[request.digest],
            answer.response,
            variant=self.variant,
            latency_s=round(answer.latency_s, 4),
            first_byte_s=first_byte_s,
            repeats=repeats,
        )
        self._advance(line, is_model_call=request.is_model_call)
        self.recorded += 1

    def _append_error(self, answer: LiveAnswer) -> None:
        """Record an error that was never got over, unless one is recorded already."""
        digest = answer.request.digest
        line = self._tape.find(digest, self._cursors[digest], self.variant, self._used)
        if line is None or not line.repeats:
            self._append(answer.for_good(), repeats=True)
        else:
            self._advance(line, is_model_call=answer.request.is_model_call)

    def spend(self, seconds: float) -> None:
        """Let the trial's time pass."""
        with self._tape.lock:
            self.elapsed_s += seconds

    @contextmanager
    def running_tool(self) -> Iterator[None]:
        """While a tool runs, in this context and copies of it."""
        token = _IN_TOOL.set(True)
        try:
            yield
        finally:
            _IN_TOOL.reset(token)

    def tool_result(self, key: ToolKey) -> StoredResult | None:
        """The recorded result of a tool call; None where there is none.

        Raises:
            CassetteError: the cassette cannot be trusted.
        """
        with self._whole():
            line = self._tape.tool(key.id) if self._in_order is None else self._in_order.tool(key)
            if line is not None:
                self._uses.tools.append(line.id)
                return line.result
            return None if self._in_order is None else self._in_order.without_result(key)

    def record_tool(self, key: ToolKey, result: StoredResult, sandbox: str | None) -> None:
        """Record a tool call's result, already redacted; it is on disk when this returns."""
        with self._whole():
            name = self._tape.add_tool(key, result, sandbox=sandbox, variant=self.variant)
            self._uses.tools.append(name)

    def verdict(self, transcript_digest: str, tests_digest: str) -> Verdict | None:
        """The recorded word of the verifier on this transcript; None where there is none."""
        with self._whole():
            line = self._tape.verdict(verdict_id(transcript_digest, tests_digest))
            if line is None:
                return None
            self._uses.verdicts.append(line.id)
            return line.verdict

    def record_verdict(
        self, transcript_digest: str, tests_digest: str, verdict: Verdict
    ) -> Verdict:
        """Record the verifier's word; gives it back as recorded, without secrets."""
        clean = Verdict.model_validate(self.redactor.json(verdict.model_dump(mode="json")))
        with self._whole():
            self._uses.verdicts.append(
                self._tape.add_verdict(transcript_digest, tests_digest, clean, variant=self.variant)
            )
        return clean

    def miss(self, miss: Miss) -> ReplayMissError:
        """Remember a miss; every later request is refused. Gives the error to raise."""
        with self._tape.lock:
            self.misses.append(miss := miss.redacted(self.redactor))
        return ReplayMissError(miss.text)

    def fail(self, error: HarnessError) -> None:
        """Remember that the cassette broke: nothing more is served or recorded."""
        if self.error is None:
            self.error = error

    def finish(self, *, complete: bool = True) -> None:
        """End the trial; a recorded one is marked as finished unless it is not complete.

        One that is not complete keeps the cassette unfinished: recording again goes on with it.

        Raises:
            HarnessError: the cassette broke during the trial.
        """
        if self.error is not None:
            raise self.error
        if not self.recording:
            return
        lacking = self._unsettled.lacking()
        if self.misses or lacking or not complete:
            self._tape.incomplete = lacking or self._tape.incomplete or "a trial is not complete"
            return
        with self._whole():
            for answer in self._unsettled.take_errors():
                self._append_error(answer)
            trial = self._uses.finished(self.variant, self._tape.origin.task_digest)
            if trial is not None:
                self._tape.add_trial(trial)

    def _refuse_after_miss(self) -> None:
        if self.error is not None:
            raise ReplayMissError(str(self.error))
        if self.misses:
            text = "Not looked up: an earlier request of this trial had no recording."
            raise self.miss(Miss("after a miss", text))

    def explain_tool(self, key: ToolKey) -> Miss:
        """Why a tool call has no recorded result, in words."""
        with self._tape.lock:
            beside = self._tape.tools_of(key.interaction)
        return explain_tool(key, beside, where=self.where, record_hint=self.record_hint)

    def _explain(self, request: CanonicalRequest, asked: CanonicalRequest) -> Miss:
        recorded = self._tape.recorded_task_digest(self.variant)
        return explain(
            request,
            find_clean(self._tape.tree, request, asked, self.redactor),
            task_changed=recorded != self._tape.origin.task_digest if recorded else None,
            where=self.where,
            record_hint=self.record_hint,
        )

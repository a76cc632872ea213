"""Replay in order: the i-th call gets the i-th recorded answer, and what it asked is compared."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from harness.cassette.file.tape import Tape, ToolKey
from harness.cassette.format import InteractionLine, StoredResult, ToolLine
from harness.cassette.replay.explain import Miss, first_difference, name_message
from harness.cassette.replay.nearest import compared
from harness.cassette.replay.observation import observation
from harness.cassette.replay.turns import compared_text, last_turn, said
from harness.cassette.request.canonical import CanonicalRequest, canonical_json
from harness.cassette.request.rules import Rules
from harness.cassette.response.as_stream import streamed
from harness.cassette.show.text_diff import difference, harmless
from harness.schema.record import JsonObject

_LOOKS = "look"
"""The argument by which keystrokes say whether their output is to be shown yet."""


@dataclass(frozen=True, slots=True)
class RequestDifference:
    """Something that a trial asked otherwise than it was recorded."""

    call: int
    """The model call, counted from 1; of a tool call, the one whose answer asked for it."""
    cause: str
    """What is not as it was recorded: `message 3 (user)`, `tool shell`."""
    difference: str
    """It as a unified diff."""


class InOrder:
    """One trial's place in a recording that is replayed in order."""

    def __init__(self, tape: Tape, rules: Rules) -> None:
        """Start before the first call."""
        self.differences: list[RequestDifference] = []
        """The first difference of each call, where it was not told before."""
        self.turns: list[RequestDifference] = []
        """The calls that added something else to the conversation, after normalisation."""
        self._tape = tape
        self._rules = rules
        self._interactions = list(tape.index.interactions)
        self._calls = 0
        self._other_form: str | None = None
        """In what form the next answer can be given, where another one is asked for."""
        self._told = 0
        """The latest call whose answer's tools were given what is recorded as text."""
        self._tools: defaultdict[tuple[str | None, int], list[str]] | None = None

    @property
    def unused(self) -> int:
        """Answers after the last one that was given."""
        return len(self._interactions) - self._calls

    def interaction(self, request: CanonicalRequest) -> InteractionLine | None:
        """The next recorded answer, as a stream if one is asked for; None where there is none."""
        if self._calls == len(self._interactions):
            return None
        line = self._tape.interaction(self._interactions[self._calls])
        if line.id.partition(".")[0] != request.digest:
            recorded = compared(self._tape.tree, line, request).redacted(self._tape.redactor)
            if recorded.endpoint != request.endpoint:
                self._other_form = f"{recorded.endpoint}, not {request.endpoint}"
                return None
            self._calls += 1
            self._add(*first_difference(request, recorded))
            self._compare_turn(request, line)
        else:
            self._calls += 1
        if not request.parameters.get("stream"):
            return line
        response = streamed(request.endpoint, line.response)
        if response is None:
            self._other_form = f"{request.endpoint} without streaming"
            return None
        return line.model_copy(update={"response": response})

    def _compare_turn(self, request: CanonicalRequest, line: InteractionLine) -> None:
        """What a call adds, alone: what differs further up was told when it was added."""
        before = last_turn(self._tape.tree.conversation(line))
        now = last_turn(request.messages)
        recorded = self._tape.redactor.text(compared_text(before, self._rules.text))
        if recorded != (sent := compared_text(now, self._rules.text)):
            cause = harmless(name_message(len(request.messages) - 1, now[-1] if now else {}))
            shown = difference(recorded, sent)
            self.turns.append(RequestDifference(self._calls, cause, shown))

    def tool(self, key: ToolKey) -> ToolLine | None:
        """The next recorded result of the tool call at a place of a turn."""
        if self._tools is None:
            self._tools = self._tools_by_place()
        waiting = self._tools[key.interaction, key.position]
        line = self._tape.tool(waiting.pop(0)) if waiting else None
        if line is not None and (line.name, canonical_json(line.arguments)) != (
            key.name,
            canonical_json(key.arguments),
        ):
            now: JsonObject = {"name": key.name, "arguments": key.arguments}
            recorded = self._tape.redactor.json({"name": line.name, "arguments": line.arguments})
            self._add(f"tool {key.name}", difference(recorded, now))
        return line

    def without_result(self, key: ToolKey) -> StoredResult:
        """What a call is given that has no result of its own.

        Where tools are told of as text alone, all that the turn gave goes to the first call that
        looks at it, since nothing says which call gave what. Else nothing is known.
        """
        content = ""
        if self._tape.index.tools:
            now: JsonObject = {"name": key.name, "arguments": key.arguments}
            self._add(f"tool {key.name}", difference(None, now))
            return StoredResult(content=content, status="ok", duration_s=0.0, together=True)
        if key.arguments.get(_LOOKS) is not False:
            if self._told < self._calls < len(self._interactions):
                following = self._tape.interaction(self._interactions[self._calls])
                content = observation(said(last_turn(following.add)))
            self._told = self._calls
        return StoredResult(content=content, status="ok", duration_s=0.0, together=True)

    def _tools_by_place(self) -> defaultdict[tuple[str | None, int], list[str]]:
        places: defaultdict[tuple[str | None, int], list[str]] = defaultdict(list)
        for name in self._tape.index.tools:
            line = self._tape.tool(name)
            if line is not None:
                places[line.interaction, line.position].append(name)
        return places

    def _add(self, cause: str, shown: str) -> None:
        # A conversation is sent again with every call: what differs in it is told once.
        told = {(one.cause, one.difference) for one in self.differences}
        if (cause, shown) not in told:
            self.differences.append(RequestDifference(self._calls, cause, shown))

    def miss(self, where: str) -> Miss:
        """Why there is no answer, in words."""
        count = len(self._interactions)
        if self._other_form is not None:
            return Miss(
                "another form of answer",
                f"{where} gives its recorded answers in order, in the form in which they were"
                f" recorded: {self._other_form}. Let the agent ask in that form.",
            )
        # Only a suite has versions of tasks, and only its trials can be forked.
        is_trial = bool(self._tape.origin.task_digest)
        fork = "Go on from there with `harness fork`, or record" if is_trial else "Record"
        return Miss(
            "after the last recorded call",
            f"{where} gives its {count} recorded model call{'s' * (count != 1)} in order, and this"
            f" is call {count + 1}. {fork} a new cassette.",
        )

"""One open cassette file with its index: finding, reading and adding lines."""

from __future__ import annotations

import importlib.metadata
import platform
import threading
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from harness.cassette.body import response_facts
from harness.cassette.canonical import DIGEST_CHARS, CanonicalRequest, digest
from harness.cassette.explain import Nearest, find_nearest
from harness.cassette.format import (
    HeaderLine,
    InteractionLine,
    Line,
    ParametersLine,
    StoredResponse,
    StoredResult,
    ToolLine,
    TrialLine,
    VerdictLine,
)
from harness.cassette.index import Entry, Index, conversation, read_interaction, read_parameters
from harness.cassette.journal import Journal, Place
from harness.errors import CassetteError
from harness.redaction import Redactor
from harness.schema.record import JsonObject
from harness.schema.results import Verdict

_LIBRARIES = ("anthropic", "loop-harness", "openai", "vcrpy")


@dataclass(frozen=True, slots=True)
class Origin:
    """What a cassette belongs to: one task and repeat."""

    suite: str
    task: str
    repeat: int
    task_digest: str


@dataclass(frozen=True, slots=True)
class ToolKey:
    """What identifies a tool call in a trial."""

    interaction: str | None
    """The model call whose answer asked for it."""
    position: int
    """Index of the call in its turn."""
    name: str
    arguments: JsonObject
    identity: str
    """Digest of the tool's schema and settings."""
    timeout_s: float
    ordinal: int = 0
    """Counts calls that are alike in all of this."""

    @property
    def id(self) -> str:
        """The key in a cassette."""
        parts = [self.interaction, self.position, self.name, self.arguments, self.identity]
        return digest([*parts, self.timeout_s, self.ordinal])[:DIGEST_CHARS]


def verdict_id(transcript_digest: str, tests_digest: str) -> str:
    """The key of a verdict in a cassette."""
    return digest([transcript_digest, tests_digest])[:DIGEST_CHARS]


class Tape:
    """Reads and appends the lines of one file; safe to share between threads."""

    def __init__(self, journal: Journal | None, origin: Origin, redactor: Redactor) -> None:
        """Load a file; without one it is empty and cannot be added to.

        Raises:
            CassetteError: the file cannot be trusted.
        """
        self.journal = journal
        self.index = Index() if journal is None else Index.load(journal)
        self.origin = origin
        self.redactor = redactor
        self.incomplete = False
        """Whether a trial that recorded has an end that replay would not come to."""
        self.lock = threading.RLock()

    def find(
        self, request_digest: str, ordinal: int, variant: str, used: frozenset[str]
    ) -> Entry | None:
        """The answer to the k-th such request of a trial.

        Where variants kept different answers, the one this variant's recorded trial used.
        """
        entries = self.index.interactions.get((request_digest, ordinal), ())
        if len(entries) > 1:
            for mine in (
                next((e for e in entries if e.id in used), None),
                next((e for e in entries if e.variant == variant), None),
            ):
                if mine is not None:
                    return mine
        return entries[0] if entries else None

    def interaction(self, entry: Entry) -> InteractionLine:
        """Read an interaction."""
        return read_interaction(self._open(), entry)

    def conversation(self, entry: Entry) -> tuple[JsonObject, ...]:
        """All messages of an interaction's request."""
        return conversation(self._open(), self.index, entry)

    def parameters(self, name: str) -> ParametersLine:
        """Read a set of parameters."""
        return read_parameters(self._open(), self.index, name)

    def tool(self, name: str) -> ToolLine | None:
        """A recorded tool call."""
        line = self._read(self.index.tools.get(name))
        return line if isinstance(line, ToolLine) else None

    def verdict(self, name: str) -> VerdictLine | None:
        """A recorded verdict."""
        line = self._read(self.index.verdicts.get(name))
        return line if isinstance(line, VerdictLine) else None

    def nearest(self, request: CanonicalRequest) -> Nearest | None:
        """The recorded request that shares the longest beginning with one."""
        if self.journal is None:
            return None
        return find_nearest(self.journal, self.index, request)

    def recorded_task_digest(self, variant: str) -> str | None:
        """The version of the task that a variant was last recorded with."""
        trial = self.index.trials.get(variant)
        if trial is not None:
            return trial.task_digest
        return None if self.index.header is None else self.index.header.task_digest

    def add_interaction(
        self,
        request: CanonicalRequest,
        ordinal: int,
        response: StoredResponse,
        *,
        variant: str,
        latency_s: float,
        first_byte_s: float | None = None,
        recorded_at: datetime | None = None,
    ) -> str:
        """Append an interaction, already redacted, and the parameters if they are new."""
        with self.lock:
            lines: list[Line] = []
            if request.parameters_digest not in self.index.parameters:
                lines.append(
                    ParametersLine(
                        id=request.parameters_digest,
                        endpoint=request.endpoint,
                        body=request.parameters,
                    )
                )
            parent, known = self._longest_recorded(request)
            model, fingerprint, usage = response_facts(response)
            taken = len(self.index.interactions.get((request.digest, ordinal), ()))
            interaction = InteractionLine(
                id=f"{request.digest}.{ordinal}" + (f".{taken}" if taken else ""),
                parent=parent,
                chain=request.chain_end,
                parameters=request.parameters_digest,
                variant=variant,
                recorded_at=recorded_at or datetime.now(UTC),
                latency_s=latency_s,
                first_byte_s=first_byte_s,
                model=model,
                fingerprint=fingerprint,
                usage=usage,
                add=list(request.messages[known:]),
                response=response,
            )
            self.add(*lines, interaction)
            return interaction.id

    def _longest_recorded(self, request: CanonicalRequest) -> tuple[str | None, int]:
        for count in range(len(request.chain), 0, -1):
            if request.chain[count - 1] in self.index.ends:
                return request.chain[count - 1], count
        return None, 0

    def add_tool(
        self, key: ToolKey, result: StoredResult, *, sandbox: str | None, variant: str
    ) -> str:
        """Append a tool call, already redacted."""
        line = ToolLine(
            id=key.id,
            interaction=key.interaction,
            position=key.position,
            ordinal=key.ordinal,
            name=key.name,
            identity=key.identity,
            timeout_s=key.timeout_s,
            sandbox=sandbox,
            variant=variant,
            arguments=key.arguments,
            result=result,
        )
        self.add(line)
        return line.id

    def add_verdict(
        self, transcript_digest: str, tests_digest: str, verdict: Verdict, *, variant: str
    ) -> str:
        """Append a verdict, already redacted."""
        line = VerdictLine(
            id=verdict_id(transcript_digest, tests_digest),
            transcript_digest=transcript_digest,
            tests_digest=tests_digest,
            variant=variant,
            verdict=verdict,
        )
        self.add(line)
        return line.id

    def add_trial(self, trial: TrialLine) -> None:
        """Append the end of a trial, unless the same is there."""
        before = self.index.trials.get(trial.variant)
        if before is None or before.model_copy(update={"finished_at": trial.finished_at}) != trial:
            self.add(trial)

    def add(self, *lines: Line) -> None:
        """Append lines, all or none, after the header if the file is new.

        Raises:
            InfrastructureError: they could not be written.
        """
        with self.lock:
            journal = self._open()
            if journal.is_empty:
                lines = (self._header(), *lines)
            places = journal.append(*lines)
            for line, place in zip(lines, places, strict=True):
                self.index.add(line, place)

    def _header(self) -> HeaderLine:
        origin = self.origin
        versions = {"python": platform.python_version()}
        for name in _LIBRARIES:
            try:
                versions[name] = importlib.metadata.version(name)
            except importlib.metadata.PackageNotFoundError:
                continue
        return HeaderLine(
            suite=self.redactor.text(origin.suite),
            task=self.redactor.text(origin.task),
            repeat=origin.repeat,
            task_digest=origin.task_digest,
            versions=versions,
        )

    def _read(self, place: Place | None) -> Line | None:
        return None if place is None else self._open().read(place)

    def _open(self) -> Journal:
        if self.journal is None:
            raise CassetteError("there is no cassette file to read from or write to")
        return self.journal


def carry_over(old: Tape, new: Tape) -> None:
    """Take the branches of variants that `new` has no finished trial of over from `old`."""
    done = frozenset(new.index.trials)
    moved: dict[str, str] = {}
    for entry in (e for entries in old.index.interactions.values() for e in entries):
        if _users(old, "interactions", entry.id, entry.variant) - done:
            moved[entry.id] = _move(old, new, entry)
    tools = _move_tools(old, new, moved, done)
    for name in old.index.verdicts:
        verdict = old.verdict(name)
        if verdict is None or name in new.index.verdicts:
            continue
        if _users(old, "verdicts", name, verdict.variant) - done:
            new.add(verdict)
    for variant, trial in old.index.trials.items():
        if variant not in done:
            new.add_trial(
                trial.model_copy(
                    update={
                        "interactions": tuple(moved[i] for i in trial.interactions),
                        "tools": tuple(tools[t] for t in trial.tools),
                    }
                )
            )


def _users(
    tape: Tape, kind: Literal["interactions", "tools", "verdicts"], name: str, recorded_by: str
) -> set[str]:
    """The variants whose trials used a line; who recorded it where no finished trial did."""
    users = {v for v, trial in tape.index.trials.items() if name in getattr(trial, kind)}
    return users or {recorded_by}


def _move_tools(
    old: Tape, new: Tape, moved: dict[str, str], done: frozenset[str]
) -> dict[str, str]:
    tools: dict[str, str] = {}
    for name in old.index.tools:
        line = old.tool(name)
        # A call of a trial that was not finished is found again only with the answer it belongs to.
        if line is None or not (line.interaction is None or line.interaction in moved):
            continue
        if _users(old, "tools", name, line.variant) - done:
            tools[name] = _move_tool(new, line, moved)
    return tools


def _move_tool(new: Tape, line: ToolLine, moved: dict[str, str]) -> str:
    key = ToolKey(
        None if line.interaction is None else moved[line.interaction],
        line.position,
        line.name,
        line.arguments,
        line.identity,
        line.timeout_s,
        line.ordinal,
    )
    if key.id not in new.index.tools:
        new.add_tool(key, line.result, sandbox=line.sandbox, variant=line.variant)
    return key.id


def _move(old: Tape, new: Tape, entry: Entry) -> str:
    line = old.interaction(entry)
    parameters = old.parameters(entry.parameters)
    request = CanonicalRequest.of(
        parameters.endpoint, parameters.body, old.conversation(entry), is_model_call=True
    )
    ordinal = entry.key[1]
    for there in new.index.interactions.get((request.digest, ordinal), ()):
        known = new.interaction(there)
        if known.response == line.response and known.recorded_at == line.recorded_at:
            return there.id
    return new.add_interaction(
        request,
        ordinal,
        line.response,
        variant=line.variant,
        latency_s=line.latency_s,
        recorded_at=line.recorded_at,
    )

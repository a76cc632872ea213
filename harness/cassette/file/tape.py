"""One open cassette file with its index: finding, reading and adding lines."""

from __future__ import annotations

import importlib.metadata
import json
import platform
import threading
from collections.abc import Container
from dataclasses import dataclass, fields
from datetime import UTC, datetime

from harness.cassette.file.index import Index
from harness.cassette.file.journal import Journal, Place
from harness.cassette.file.tree import Tree, read_interaction
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
from harness.cassette.request.canonical import DIGEST_CHARS, CanonicalRequest, digest
from harness.cassette.response.sameness import same_trial
from harness.errors import CassetteError, HarnessError
from harness.providers.deadline import limit_s
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

    def header(self, redactor: Redactor) -> HeaderLine:
        """The first line of a new cassette."""
        versions = {"python": platform.python_version()}
        for name in _LIBRARIES:
            try:
                versions[name] = importlib.metadata.version(name)
            except importlib.metadata.PackageNotFoundError:
                continue
        return HeaderLine(
            suite=redactor.text(self.suite),
            task=redactor.text(self.task),
            repeat=self.repeat,
            task_digest=self.task_digest,
            versions=versions,
        )


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

    @classmethod
    def of(cls, line: ToolLine) -> ToolKey:
        """The key of a recorded call."""
        return cls(**{one.name: getattr(line, one.name) for one in fields(cls)})

    @property
    def id(self) -> str:
        """The key in a cassette."""
        parts = [self.interaction, self.position, self.name, self.arguments, self.identity]
        return digest([*parts, float(self.timeout_s), self.ordinal])[:DIGEST_CHARS]


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
        self.incomplete: str | None = None
        """Why replay would not come to the end of a trial that recorded; None where it would."""
        self.lock = threading.RLock()
        self._tree: Tree | None = None
        self._in_doubt = False
        """Whether a line is being added: then file and index may not agree."""
        if journal is not None and (journal.writable or self.by_position):
            self.check()

    @property
    def by_position(self) -> bool:
        """Whether answers are given in order, whatever is asked."""
        return self.index.header is not None and self.index.header.match == "position"

    @property
    def tree(self) -> Tree:
        """The conversation tree; every line has been checked when it is given.

        Raises:
            CassetteError: a line is damaged.
        """
        if self._tree is None:
            self._tree = Tree(self.journal, self.index)
        return self._tree

    def check(self) -> None:
        """Check every line, once: nothing is called missing because its line is damaged.

        Raises:
            CassetteError: a line is damaged.
        """
        _ = self.tree

    def check_writer(self) -> None:
        """Refuse a process that was forked while this was open for recording.

        Raises:
            CassetteError: it was.
        """
        if self.journal is not None and self.journal.writable:
            self.journal.check_process()

    def check_place(self) -> None:
        """Make sure that what was recorded is where the next one looks for it.

        Raises:
            InfrastructureError: somebody has removed, replaced or changed the file.
        """
        if self.journal is not None and self.journal.has_grown:
            self.journal.check_place()

    def variants(self) -> set[str]:
        """Whoever recorded something."""
        lines = (self._open().parse(*one) for one in self._open().scan())
        named = (InteractionLine, ToolLine, VerdictLine, TrialLine)
        return {line.variant for line in lines if isinstance(line, named)}

    def settle(self) -> None:
        """Read the file again where an exception broke off an addition, as a timeout's does.

        What is whole stays; so it is after a recording was killed.

        Raises:
            CassetteError: the file cannot be trusted.
        """
        if self._in_doubt:
            journal = self._open()
            journal.look_again()
            self.index = Index.load(journal)
            self._tree = None
            self.check()
            self._in_doubt = False

    def find(
        self, request_digest: str, ordinal: int, variant: str, used: frozenset[str]
    ) -> InteractionLine | None:
        """The answer to the k-th such request of a trial.

        Where there are several, the one that this variant's recorded trial used, else the first
        that is no error for good, its own before others'. A variant whose trial made the request,
        but less often, gets none of another's. A call that was cut when its run's time was over is
        an answer only to one that has no more time; outside trials, where nothing may be recorded,
        to one that has a limit.

        Args:
            request_digest: The digest of the request.
            ordinal: How often the trial made it before.
            variant: The trial's variant.
            used: What its last finished trial used.

        Raises:
            CassetteError: the answer, or any line where the trial does not name it, is damaged.
        """
        names = self.index.answers(f"{request_digest}.{ordinal}")
        for name in names:
            if name in used and self._is_answer_here(line := self.interaction(name)):
                return line
        # Nobody says that there is no other answer, in a line that is damaged.
        self.check()
        lines = [line for line in map(self.interaction, names) if self._is_answer_here(line)]
        earlier = (f"{request_digest}.{before}" for before in range(ordinal if lines else 0))
        if any(name in used for key in earlier for name in self.index.answers(key)):
            # The trial made this request, and less often than others did.
            lines = [line for line in lines if line.variant == variant]
        return min(lines, key=lambda line: (line.repeats, line.variant != variant), default=None)

    def _is_answer_here(self, line: InteractionLine) -> bool:
        """Whether the call that is being made has no more time than one that was cut had."""
        if not line.response.is_out_of_time:
            return True
        left = limit_s()
        if left is None:
            return False
        # Only a trial goes by the recorded times. Other code has more left: answers come at once.
        is_replay = self.journal is not None and not self.journal.writable
        return left <= line.latency_s or (is_replay and not self.origin.task_digest)

    def interaction(self, name: str) -> InteractionLine:
        """Read an interaction."""
        return read_interaction(self._open(), self.index, name)

    def tool(self, name: str) -> ToolLine | None:
        """A recorded tool call."""
        line = self._read(self.index.tools.get(name))
        return line if isinstance(line, ToolLine) else None

    def tools_of(self, interaction: str | None) -> list[ToolLine]:
        """The recorded tool calls that one answer asked for."""
        mark = f'"interaction":{json.dumps(interaction)}'
        named = [
            name
            for name, place in self.index.tools.items()
            if mark.encode() in self._open().raw(place)
        ]
        lines = [line for name in named if (line := self.tool(name)) is not None]
        return [line for line in lines if line.interaction == interaction]

    def verdict(self, name: str) -> VerdictLine | None:
        """A recorded verdict."""
        line = self._read(self.index.verdicts.get(name))
        return line if isinstance(line, VerdictLine) else None

    def trial(self, variant: str) -> TrialLine | None:
        """The last finished trial of a variant."""
        place = self.index.trials.get(variant)
        line = None if place is None else self._open().read(place)
        return line if isinstance(line, TrialLine) else None

    def recorded_task_digest(self, variant: str) -> str | None:
        """The version of the task that a variant was last recorded with."""
        trial = self.trial(variant)
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
        repeats: bool = False,
    ) -> InteractionLine:
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
            interaction = InteractionLine(
                id=free_name(f"{request.digest}.{ordinal}", self.index.interactions),
                sent=request.sent,
                parent=parent,
                chain=request.chain_end,
                parameters=request.parameters_digest,
                variant=variant,
                recorded_at=recorded_at or datetime.now(UTC),
                latency_s=latency_s,
                first_byte_s=first_byte_s,
                repeats=repeats,
                add=list(request.messages[known:]),
                response=response,
            )
            self.add(*lines, interaction)
            return interaction

    def _longest_recorded(self, request: CanonicalRequest) -> tuple[str | None, int]:
        for count in range(len(request.chain), 0, -1):
            if request.chain[count - 1] in self.tree.ends:
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
        before = self.trial(trial.variant)
        if before is None or not same_trial(before, trial):
            self.add(trial)

    def add(self, *lines: Line) -> None:
        """Append lines, all or none, after the header if the file is new.

        Raises:
            InfrastructureError: they could not be written.
            CassetteError: the file is only replayed, or holds a line of the same id.
        """
        with self.lock:
            journal = self._open()
            if not journal.writable:
                raise CassetteError(f"{journal.path}: is only replayed; nothing can be added to it")
            for line in filter(self.index.has, lines):
                raise CassetteError(f"{journal.path}: this {line.kind} is recorded already: {line}")
            if journal.is_empty:
                lines = (self.origin.header(self.redactor), *lines)
            # The tree is made of what is there before, and an exception may come at any moment.
            tree = self.tree
            self._in_doubt = True
            try:
                places = journal.append(*lines)
            except HarnessError:
                self._in_doubt = False  # nothing was written
                raise
            for line, place in zip(lines, places, strict=True):
                self.index.add(line, place)
                tree.add(line, place)
            self._in_doubt = False

    def _read(self, place: Place | None) -> Line | None:
        if place is None:
            self.check()
            return None
        return self._open().read(place)

    def _open(self) -> Journal:
        if self.journal is None:
            raise CassetteError("there is no cassette file to read from or write to")
        return self.journal


def free_name(key: str, taken: Container[str]) -> str:
    """An id for an answer to `REQUEST.ORDINAL`, with a number if there are others."""
    if key not in taken:
        return key
    number = 1
    while f"{key}.{number}" in taken:
        number += 1
    return f"{key}.{number}"

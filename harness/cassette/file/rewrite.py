"""Writing a cassette anew from lines that are there, each with its bytes where it can keep them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from harness.cassette.file.journal import Journal
from harness.cassette.file.lines import FileLine
from harness.cassette.file.view import view_of
from harness.cassette.format import (
    HeaderLine,
    InteractionLine,
    Line,
    ParametersLine,
    ToolLine,
    VerdictLine,
    encode_line,
)
from harness.cassette.request.canonical import chain_of
from harness.schema.record import JsonObject

Named: TypeAlias = InteractionLine | ToolLine | VerdictLine


class Recording:
    """All lines of one file, in order, with their bytes."""

    def __init__(self, journal: Journal) -> None:
        """Read a file.

        Raises:
            CassetteError: it cannot be trusted.
        """
        read = [FileLine(place[0], raw, journal.parse(place, raw)) for place, raw in journal.scan()]
        self.lines = [(each.line, each.raw) for each in read if each.line is not None]
        self.header = next(line for line, _ in self.lines if isinstance(line, HeaderLine))
        self._view = view_of(journal.path, self.header, read)
        self.parameters = {
            line.id: (line, raw) for line, raw in self.lines if isinstance(line, ParametersLine)
        }
        self.interactions = {name: one.line for name, one in self._view.interactions.items()}
        self.tools = {line.id: line for line in self._view.tools}
        self.verdicts = {line.id: line for line in self._view.verdicts}
        self.trials = self._view.trials
        """The last one of each variant."""
        self._answers: dict[str, list[InteractionLine]] = {}
        self._said: dict[str, str] = {}
        """Id of an interaction with that conversation, by its chain digest."""
        for line in self.interactions.values():
            self._answers.setdefault(line.key, []).append(line)
            self._said.setdefault(line.chain, line.id)
        self._users: dict[str, set[str]] = {}
        for variant, trial in self.trials.items():
            for name in (*trial.interactions, *trial.tools, *trial.verdicts):
                self._users.setdefault(name, set()).add(variant)

    def users(self, line: Named) -> set[str]:
        """The variants whose last trial used a line; who recorded it where none did."""
        return self._users.get(line.id) or {line.variant}

    def answers(self, key: str) -> Sequence[InteractionLine]:
        """All answers to `REQUEST.ORDINAL`."""
        return self._answers.get(key, ())

    def turn_tools(self, interaction: str) -> Sequence[ToolLine]:
        """The tool calls that an answer asked for."""
        return self._view.interactions[interaction].tools

    def endpoint(self, line: InteractionLine) -> str:
        """What kind of model an interaction asked."""
        return self.parameters[line.parameters][0].endpoint

    def conversation(self, line: InteractionLine) -> list[JsonObject]:
        """All messages of an interaction's request."""
        return self._view.messages(self._said[line.chain])


class Writer:
    """Collects the lines of a new file; what a line names stands before it."""

    def __init__(self) -> None:
        """Start before the header."""
        self.lines: list[bytes] = []
        self._ends: set[str] = set()
        self._parameters: set[str] = set()

    def raw(self, raw: bytes) -> None:
        """Add a line as it stands."""
        self.lines.append(raw + b"\n")

    def add(self, line: Line) -> None:
        """Add a line that is new."""
        self.lines.append(encode_line(line))

    def line(self, source: Recording, line: Named, raw: bytes | None) -> None:
        """Add a line of a file: its bytes, unless it is changed or its parent is not there."""
        if isinstance(line, InteractionLine):
            if line.parameters not in self._parameters:
                self._parameters.add(line.parameters)
                self.raw(source.parameters[line.parameters][1])
            if line.parent is not None and line.parent not in self._ends:
                line, raw = self._continued(line, source.conversation(line)), None
            self._ends.add(line.chain)
        if raw is None:
            self.add(line)
        else:
            self.raw(raw)

    def _continued(self, line: InteractionLine, messages: list[JsonObject]) -> InteractionLine:
        """An interaction after the longest beginning of its conversation that is written."""
        parent, add = None, messages
        for count, chain in enumerate(chain_of(messages), start=1):
            if chain in self._ends:
                parent, add = chain, messages[count:]
        return line.model_copy(update={"parent": parent, "add": add})

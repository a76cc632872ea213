"""Writing a cassette anew from lines that are there, each with its bytes where it can keep them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from harness.cassette.canonical import EMPTY_CHAIN, chain_after
from harness.cassette.format import (
    HeaderLine,
    InteractionLine,
    Line,
    ParametersLine,
    ToolLine,
    TrialLine,
    VerdictLine,
    encode_line,
)
from harness.cassette.journal import Journal
from harness.schema.record import JsonObject

Named: TypeAlias = InteractionLine | ToolLine | VerdictLine


class Recording:
    """All lines of one file, in order."""

    def __init__(self, lines: Iterable[tuple[Line, bytes]]) -> None:
        """Take lines with their bytes, without the line end."""
        self.lines = list(lines)
        self.parameters: dict[str, tuple[ParametersLine, bytes]] = {}
        self.interactions: dict[str, InteractionLine] = {}
        self.tools: dict[str, ToolLine] = {}
        self.verdicts: dict[str, VerdictLine] = {}
        self.trials: dict[str, TrialLine] = {}
        """The last one of each variant."""
        self._ends: dict[str, InteractionLine] = {}
        self._answers: dict[str, list[InteractionLine]] = {}
        self._turn_tools: dict[str | None, list[ToolLine]] = {}
        self._users: dict[str, set[str]] = {}
        for line, raw in self.lines:
            self._take(line, raw)
        for variant, trial in self.trials.items():
            for name in (*trial.interactions, *trial.tools, *trial.verdicts):
                self._users.setdefault(name, set()).add(variant)

    @classmethod
    def of(cls, journal: Journal) -> Recording:
        """Read a file.

        Raises:
            CassetteError: it cannot be trusted.
        """
        return cls((journal.parse(place, raw), raw) for place, raw in journal.scan())

    def _take(self, line: Line, raw: bytes) -> None:
        match line:
            case HeaderLine():
                self.header = line
            case ParametersLine():
                self.parameters[line.id] = line, raw
            case InteractionLine():
                self.interactions[line.id] = line
                self._ends.setdefault(line.chain, line)
                self._answers.setdefault(line.key, []).append(line)
            case ToolLine():
                self.tools[line.id] = line
                self._turn_tools.setdefault(line.interaction, []).append(line)
            case VerdictLine():
                self.verdicts[line.id] = line
            case TrialLine():
                self.trials[line.variant] = line

    def users(self, line: Named) -> set[str]:
        """The variants whose last trial used a line; who recorded it where none did."""
        return self._users.get(line.id) or {line.variant}

    def answers(self, key: str) -> Sequence[InteractionLine]:
        """All answers to `REQUEST.ORDINAL`."""
        return self._answers.get(key, ())

    def turn_tools(self, interaction: str) -> Sequence[ToolLine]:
        """The tool calls that an answer asked for."""
        return self._turn_tools.get(interaction, ())

    def endpoint(self, line: InteractionLine) -> str:
        """What kind of model an interaction asked."""
        return self.parameters[line.parameters][0].endpoint

    def conversation(self, line: InteractionLine) -> list[JsonObject]:
        """All messages of an interaction's request."""
        parts = [line.add]
        while line.parent is not None:
            line = self._ends[line.parent]
            parts.append(line.add)
        return [message for part in reversed(parts) for message in part]


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
        chain = EMPTY_CHAIN
        for count, message in enumerate(messages, start=1):
            chain = chain_after(chain, message)
            if chain in self._ends:
                parent, add = chain, messages[count:]
        return line.model_copy(update={"parent": parent, "add": add})

"""What a cassette file holds and where: every look-up is one dictionary access."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field

from harness.cassette.format import (
    HeaderLine,
    InteractionLine,
    Line,
    ParametersLine,
    ToolLine,
    TrialLine,
    VerdictLine,
)
from harness.cassette.journal import Journal, Place
from harness.schema.record import JsonObject

NO_HEADER = "not a cassette: the first line is no header"

# The head of a line is enough to find it; its content is parsed when it is asked for.
_INTERACTION = re.compile(
    rb'\{"kind":"interaction","id":"([0-9a-f]{24}\.[0-9]+(?:\.[0-9]+)?)",'
    rb'"parent":(?:null|"([0-9a-f]{24})"),"chain":"([0-9a-f]{24})","parameters":"([0-9a-f]{24})",'
    rb'"variant":"([^"\\]*)",'
)
_IDENTIFIED = re.compile(rb'\{"kind":"(parameters|tool|verdict)","id":"([0-9a-f]{24})",')


@dataclass(frozen=True, slots=True)
class Entry:
    """One interaction: its place in the conversation tree and in the file."""

    id: str
    parent: str | None
    chain: str
    parameters: str
    variant: str
    place: Place

    @property
    def key(self) -> tuple[str, int]:
        """Request digest and ordinal."""
        request, ordinal = self.id.split(".")[:2]
        return request, int(ordinal)


@dataclass(slots=True)
class Index:
    """Everything of a file that is needed to find a line in it."""

    header: HeaderLine | None = None
    parameters: dict[str, Place] = field(default_factory=dict)
    interactions: dict[tuple[str, int], list[Entry]] = field(default_factory=dict)
    children: dict[str | None, list[Entry]] = field(default_factory=lambda: defaultdict(list))
    """By the parent's chain digest."""
    ends: dict[str, Entry] = field(default_factory=dict)
    """First interaction of each conversation, by chain digest."""
    tools: dict[str, Place] = field(default_factory=dict)
    verdicts: dict[str, Place] = field(default_factory=dict)
    trials: dict[str, TrialLine] = field(default_factory=dict)

    @classmethod
    def load(cls, journal: Journal) -> Index:
        """Index a file.

        Raises:
            CassetteError: the file cannot be trusted; the text names file and line.
        """
        index = cls()
        for place, raw in journal.scan():
            if place.number == 1:
                header = journal.parse(place, raw)
                if not isinstance(header, HeaderLine):
                    raise journal.untrusted(1, NO_HEADER)
                index.header = header
            elif not index._add_by_head(place, raw):
                index._add_in_full(journal, place, raw)
        return index

    def _add_by_head(self, place: Place, raw: bytes) -> bool:
        found = _INTERACTION.match(raw)
        if found is not None:
            name, parent, chain, parameters, variant = (
                None if part is None else part.decode() for part in found.groups()
            )
            if (
                parent is not None and parent not in self.ends
            ) or parameters not in self.parameters:
                return False
            self.add_interaction(
                Entry(str(name), parent, str(chain), parameters, str(variant), place)
            )
            return True
        found = _IDENTIFIED.match(raw)
        if found is not None:
            getattr(self, _PLACES[found[1]])[found[2].decode()] = place
        return found is not None

    def _add_in_full(self, journal: Journal, place: Place, raw: bytes) -> None:
        line = journal.parse(place, raw)
        problem = self.add(line, place)
        if problem is not None:
            raise journal.untrusted(place.number, problem)

    def add(self, line: Line, place: Place) -> str | None:
        """Index a line; says what is wrong where it does not fit."""
        if isinstance(line, HeaderLine):
            if self.header is not None:
                return "a second header"
            self.header = line
        elif isinstance(line, ParametersLine):
            self.parameters[line.id] = place
        elif isinstance(line, InteractionLine):
            if line.parent is not None and line.parent not in self.ends:
                return f"parent {line.parent!r} is not in the file"
            if line.parameters not in self.parameters:
                return f"parameters {line.parameters!r} are not in the file"
            self.add_interaction(
                Entry(line.id, line.parent, line.chain, line.parameters, line.variant, place)
            )
        elif isinstance(line, ToolLine):
            self.tools[line.id] = place
        elif isinstance(line, VerdictLine):
            self.verdicts[line.id] = place
        else:
            self.trials[line.variant] = line
        return None

    def add_interaction(self, entry: Entry) -> None:
        """Index an interaction."""
        self.interactions.setdefault(entry.key, []).append(entry)
        self.children[entry.parent].append(entry)
        self.ends.setdefault(entry.chain, entry)


_PLACES = {b"parameters": "parameters", b"tool": "tools", b"verdict": "verdicts"}


def read_interaction(journal: Journal, entry: Entry) -> InteractionLine:
    """The line of an interaction.

    Raises:
        CassetteError: it is not what was written.
    """
    line = journal.read(entry.place)
    if not isinstance(line, InteractionLine):
        raise journal.untrusted(entry.place.number, "not an interaction")
    return line


def read_parameters(journal: Journal, index: Index, name: str) -> ParametersLine:
    """A set of parameters.

    Raises:
        CassetteError: it is not what was written.
    """
    place = index.parameters[name]
    line = journal.read(place)
    if not isinstance(line, ParametersLine):
        raise journal.untrusted(place.number, "not a set of parameters")
    return line


def conversation(journal: Journal, index: Index, entry: Entry) -> tuple[JsonObject, ...]:
    """All messages of an interaction's request, its ancestors' included."""
    parts: list[list[JsonObject]] = []
    current: Entry | None = entry
    while current is not None:
        parts.append(read_interaction(journal, current).add)
        current = None if current.parent is None else index.ends[current.parent]
    return tuple(message for part in reversed(parts) for message in part)

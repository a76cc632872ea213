"""Where each line of a cassette stands: every look-up is one dictionary access.

Only the head of a line is read for it, and nothing is believed of it: what a line says counts when
it is read, and checked against its seal.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from harness.cassette.file.journal import Journal, Place
from harness.cassette.format import (
    HeaderLine,
    InteractionLine,
    Line,
    TrialLine,
    is_sealed,
    request_of,
)
from harness.errors import CassetteError

NO_HEADER = "not a cassette: the first line is no header"

_HEAD = re.compile(
    rb'\{"kind":"([a-z]+)","(?:id":"([0-9a-f]{24}[0-9.]*)"(?:,"sent":"([0-9a-f]{24})")?|'
    rb'variant":"([^"\\]*)"),'
)


@dataclass(slots=True)
class Index:
    """Everything of a file that is needed to find a line in it."""

    header: HeaderLine | None = None
    parameters: dict[str, Place] = field(default_factory=dict)
    interactions: dict[str, Place] = field(default_factory=dict)
    """In the order of the file."""
    alternatives: dict[str, list[str]] = field(default_factory=dict)
    """Ids that have a number, by the same without it."""
    sent: dict[str, str] = field(default_factory=dict)
    """Digest of a model call as it was sent -> digest of the request."""
    tools: dict[str, Place] = field(default_factory=dict)
    verdicts: dict[str, Place] = field(default_factory=dict)
    trials: dict[str, Place] = field(default_factory=dict)
    """The last one of each variant."""

    @classmethod
    def load(cls, journal: Journal) -> Index:
        """Index a file.

        Raises:
            CassetteError: a line is of no known kind, or has the id of another; the file is cut,
                or no cassette. The text names file and line.
        """
        index = cls()
        kinds = index._kinds()
        for place, raw in journal.scan(check=False):
            head = _HEAD.match(raw) if index.header is not None else None
            places = None if head is None else kinds.get(head[1])
            if head is None or places is None:
                fits = index._add_in_full(journal, place, raw)
            else:
                try:
                    name = (head[2] or head[4]).decode()
                except UnicodeDecodeError as error:
                    raise journal.damaged(place[0]) from error
                fits = index._add(places, name, place)
                if head[3] is not None:
                    index.sent[head[3].decode()] = request_of(head[2].decode())
            if not fits:
                raise _repeated(journal, place, raw)
        return index

    def _kinds(self) -> dict[bytes, dict[str, Place]]:
        return {
            b"interaction": self.interactions,
            b"parameters": self.parameters,
            b"tool": self.tools,
            b"verdict": self.verdicts,
            b"trial": self.trials,
        }

    def _add_in_full(self, journal: Journal, place: Place, raw: bytes) -> bool:
        """A header, or a line with a head that is not plain."""
        if not is_sealed(raw):
            raise journal.damaged(place[0])
        line = journal.parse(place, raw)
        if isinstance(line, HeaderLine) != (self.header is None):
            problem = NO_HEADER if self.header is None else "a second header"
            raise journal.untrusted(place[0], problem)
        return self.add(line, place)

    def add(self, line: Line, place: Place) -> bool:
        """Index a line; False where its id is taken."""
        if isinstance(line, HeaderLine):
            self.header = line
            return True
        if isinstance(line, InteractionLine) and line.sent is not None:
            self.sent[line.sent] = request_of(line.id)
        name = line.variant if isinstance(line, TrialLine) else line.id
        return self._add(self._kinds()[line.kind.encode()], name, place)

    def _add(self, places: dict[str, Place], name: str, place: Place) -> bool:
        # Parameters are known by a digest of what they are, and of trials the last one counts.
        if name in places and places is not self.trials:
            return places is self.parameters
        places[name] = place
        if places is self.interactions and name.count(".") == 2:
            self.alternatives.setdefault(name.rpartition(".")[0], []).append(name)
        return True

    def has(self, line: Line) -> bool:
        """Whether a line of this id is there."""
        if isinstance(line, HeaderLine | TrialLine):
            return False
        return line.id in self._kinds()[line.kind.encode()]

    def answers(self, key: str) -> list[str]:
        """The ids of all answers to `REQUEST.ORDINAL`."""
        first = [key] if key in self.interactions else []
        return [*first, *self.alternatives.get(key, ())]


def _repeated(journal: Journal, place: Place, raw: bytes) -> CassetteError:
    """The error for a line that has the id of an earlier one: damage, or a merge."""
    for _ in journal.scan():
        pass
    name = getattr(journal.parse(place, raw), "id", "")
    return journal.untrusted(place[0], f"an earlier line has the id {name!r} too")

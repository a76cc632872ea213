"""The conversation tree of a cassette: for recording and explanations; replay needs none."""

from __future__ import annotations

import re

from harness.cassette.file.index import Index
from harness.cassette.file.journal import Journal, Place
from harness.cassette.format import InteractionLine, Line, ParametersLine
from harness.schema.record import JsonObject

_INTERACTION = re.compile(
    rb'\{"kind":"interaction","id":"([0-9a-f]{24}[0-9.]*)",(?:"sent":"[0-9a-f]{24}",)?'
    rb'"parent":(?:null|"([0-9a-f]{24})"),'
    rb'"chain":"([0-9a-f]{24})","parameters":"([0-9a-f]{24})",'
)


class Tree:
    """Which interaction continues which conversation; with it every line has been checked."""

    def __init__(self, journal: Journal | None, index: Index) -> None:
        """Read the whole file.

        Raises:
            CassetteError: it cannot be trusted; the text names file and line.
        """
        self.ends: dict[str, str] = {}
        """Id of the first interaction of each conversation, by chain digest."""
        self.children: dict[str | None, list[str]] = {}
        """Ids of what continues a conversation, by its chain digest."""
        self._journal = journal
        self._index = index
        if journal is None:
            return
        for place, raw in journal.scan():
            head = _INTERACTION.match(raw)
            if head is not None:
                name, chain, parameters = (head[at].decode() for at in (1, 3, 4))
                parent = None if head[2] is None else head[2].decode()
                problem = self._add(name, parent, chain, parameters, number=place[0])
            elif raw.startswith(b'{"kind":"interaction"'):
                problem = self.add(journal.parse(place, raw), place)
            else:
                continue
            if problem is not None:
                raise journal.untrusted(place[0], problem)

    def add(self, line: Line, place: Place) -> str | None:
        """Add a line that is indexed; says what is wrong where it does not fit."""
        if not isinstance(line, InteractionLine):
            return None
        return self._add(line.id, line.parent, line.chain, line.parameters, number=place[0])

    def _add(
        self, name: str, parent: str | None, chain: str, parameters: str, *, number: int
    ) -> str | None:
        if parent is not None and parent not in self.ends:
            return f"parent {parent!r} is not in the file"
        if self._index.parameters.get(parameters, (number, 0, 0))[0] >= number:
            return f"parameters {parameters!r} are not in the file"
        self.children.setdefault(parent, []).append(name)
        self.ends.setdefault(chain, name)
        return None

    def interaction(self, name: str) -> InteractionLine:
        """An interaction of the file.

        Raises:
            CassetteError: it is not what was written.
        """
        return read_interaction(self._open(), self._index, name)

    def raw(self, name: str) -> bytes:
        """An interaction as it stands: to compare it, never to serve it."""
        return self._open().raw(self._index.interactions[name])

    def parameters(self, name: str) -> ParametersLine:
        """A set of parameters of the file.

        Raises:
            CassetteError: it is not what was written.
        """
        place = self._index.parameters[name]
        line = self._open().read(place)
        if not isinstance(line, ParametersLine):
            raise self._open().untrusted(place[0], "not a set of parameters")
        return line

    def conversation(self, line: InteractionLine) -> tuple[JsonObject, ...]:
        """All messages of an interaction's request, its ancestors' included."""
        parts = [line.add]
        while line.parent is not None:
            line = self.interaction(self.ends[line.parent])
            parts.append(line.add)
        return tuple(message for part in reversed(parts) for message in part)

    def _open(self) -> Journal:
        assert self._journal is not None, "a tree without a file holds nothing to read"
        return self._journal


def read_interaction(journal: Journal, index: Index, name: str) -> InteractionLine:
    """An interaction of a file.

    Raises:
        CassetteError: it is not what was written.
    """
    place = index.interactions[name]
    line = journal.read(place)
    if not isinstance(line, InteractionLine):
        raise journal.untrusted(place[0], "not an interaction")
    return line

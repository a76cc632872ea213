"""A cassette as data to look at: for listings, for `show`, and for whoever audits it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from harness.cassette.format import (
    HeaderLine,
    InteractionLine,
    ParametersLine,
    ToolLine,
    TrialLine,
    VerdictLine,
)
from harness.cassette.index import NO_HEADER, Index
from harness.cassette.journal import Journal


@dataclass(frozen=True, slots=True)
class InteractionView:
    """An interaction in the conversation tree."""

    line: InteractionLine
    endpoint: str
    parent: str | None
    """Id of the interaction whose conversation this one continues."""
    children: tuple[str, ...]
    """Ids, in the order recorded."""
    variants: tuple[str, ...]
    """Variants whose finished trials used it; who recorded it where none did."""
    tools: tuple[ToolLine, ...]
    """The calls that its answer asked for, in order."""


@dataclass(frozen=True, slots=True)
class CassetteView:
    """All of a cassette."""

    path: Path
    size_bytes: int
    header: HeaderLine
    parameters: dict[str, ParametersLine]
    interactions: dict[str, InteractionView]
    """By id, in the order recorded: parents come before their children."""
    tools: tuple[ToolLine, ...]
    """All tool calls; those that belong to no interaction stand only here."""
    verdicts: tuple[VerdictLine, ...]
    trials: dict[str, TrialLine]
    """Finished trials, by variant."""

    @property
    def roots(self) -> tuple[str, ...]:
        """Ids of the interactions that begin a conversation."""
        return tuple(name for name, view in self.interactions.items() if view.parent is None)

    @property
    def models(self) -> tuple[str, ...]:
        """The models that answered, sorted."""
        views = self.interactions.values()
        return tuple(sorted({v.line.model for v in views if v.line.model is not None}))

    @property
    def recorded_between(self) -> tuple[datetime, datetime] | None:
        """The times of the first and the last recording."""
        times = [view.line.recorded_at for view in self.interactions.values()]
        return (min(times), max(times)) if times else None


def read(path: Path) -> CassetteView:
    """Read all of a cassette, every line checked.

    Raises:
        CassetteError: it cannot be trusted; the text names file and line.
    """
    journal = Journal.open_for_reading(path)
    try:
        return _view(journal)
    finally:
        journal.close()


def _view(journal: Journal) -> CassetteView:
    index = Index()
    interactions: dict[str, InteractionLine] = {}
    parameters: dict[str, ParametersLine] = {}
    tools: dict[str, ToolLine] = {}
    verdicts: dict[str, VerdictLine] = {}
    size = 0
    for place, raw in journal.scan():
        size = place.offset + place.length + 1
        line = journal.parse(place, raw)
        problem = index.add(line, place)
        if index.header is None:
            problem = NO_HEADER
        if problem is not None:
            raise journal.untrusted(place.number, problem)
        match line:
            case InteractionLine():
                interactions[line.id] = line
            case ParametersLine():
                parameters[line.id] = line
            case ToolLine():
                tools[line.id] = line
            case VerdictLine():
                verdicts[line.id] = line
    if index.header is None:
        raise journal.untrusted(1, NO_HEADER)
    return CassetteView(
        path=journal.path,
        size_bytes=size,
        header=index.header,
        parameters=parameters,
        interactions=_tree(index, interactions, parameters, tools),
        tools=tuple(tools.values()),
        verdicts=tuple(verdicts.values()),
        trials=index.trials,
    )


def _tree(
    index: Index,
    interactions: dict[str, InteractionLine],
    parameters: dict[str, ParametersLine],
    tools: dict[str, ToolLine],
) -> dict[str, InteractionView]:
    parents: dict[str, str | None] = {}
    children: dict[str, list[str]] = {name: [] for name in interactions}
    calls: dict[str, list[ToolLine]] = {name: [] for name in interactions}
    users: dict[str, list[str]] = {name: [] for name in interactions}
    for name, line in interactions.items():
        parent = None if line.parent is None else index.ends[line.parent].id
        parents[name] = parent
        if parent is not None:
            children[parent].append(name)
    for tool in tools.values():
        if tool.interaction in calls:
            calls[tool.interaction].append(tool)
    for variant, trial in index.trials.items():
        for name in trial.interactions:
            users[name].append(variant)
    return {
        name: InteractionView(
            line=line,
            endpoint=parameters[line.parameters].endpoint,
            parent=parents[name],
            children=tuple(children[name]),
            variants=tuple(users[name]) or (line.variant,),
            tools=tuple(sorted(calls[name], key=lambda tool: tool.position)),
        )
        for name, line in interactions.items()
    }

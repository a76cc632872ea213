"""A cassette as data to look at: for listings, for `show`, and for whoever audits it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from harness.cassette.file.lines import FileLine, Problem, problems, read_lines
from harness.cassette.format import (
    HeaderLine,
    InteractionLine,
    ParametersLine,
    ToolLine,
    TrialLine,
    VerdictLine,
)
from harness.cassette.response.body import answering_model
from harness.errors import CassetteError
from harness.schema.record import JsonObject

_NEXT_STEP = (
    "after an edit by hand `harness cassette fix` seals it again; else take the file back from"
    " version control, or remove it and record it again"
)


@dataclass(frozen=True, slots=True)
class InteractionView:
    """An interaction in the conversation tree."""

    number: int
    """Of its line in the file."""
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
    def models(self) -> tuple[str, ...]:
        """The models that answered, sorted."""
        answers = (view.line.response for view in self.interactions.values())
        return tuple(sorted({name for one in answers if (name := answering_model(one))}))

    @property
    def recorded_between(self) -> tuple[datetime, datetime] | None:
        """The times of the first and the last recording."""
        times = [view.line.recorded_at for view in self.interactions.values()]
        return (min(times), max(times)) if times else None

    def messages(self, name: str) -> list[JsonObject]:
        """All messages of an interaction's request, from the first."""
        parts = []
        current: str | None = name
        while current is not None:
            one = self.interactions[current]
            parts.append(one.line.add)
            current = one.parent
        return [message for part in reversed(parts) for message in part]


def read(path: Path) -> CassetteView:
    """Read all of a cassette, every line checked.

    Raises:
        CassetteError: it cannot be trusted; the text names file and line.
    """
    view, found = read_damaged(path)
    for problem in found:
        raise CassetteError(f"{path}:{problem.number}: {problem.text}; {_NEXT_STEP}")
    return view


def read_damaged(path: Path) -> tuple[CassetteView, tuple[Problem, ...]]:
    """Read what can be read of a cassette, and say what is wrong with it.

    Raises:
        CassetteError: there is no such file, or it does not begin like a cassette.
    """
    lines = read_lines(path)
    found = tuple(problems(lines))
    # It may not be the first line while a merge is not finished.
    header = next((each.line for each in lines if isinstance(each.line, HeaderLine)), None)
    if header is None:
        raise CassetteError(f"{path}:1: {_not_a_cassette(lines, found[0])}")
    return view_of(path, header, lines), found


def _not_a_cassette(lines: list[FileLine], first: Problem) -> str:
    if first.kind == "other_format":
        return first.text
    what = "not a cassette, or its first line is damaged" if lines else first.text
    return f"{what}; {_NEXT_STEP}"


def view_of(path: Path, header: HeaderLine, lines: list[FileLine]) -> CassetteView:
    """What the lines of a file say, as far as they can be read."""
    interactions: dict[str, InteractionLine] = {}
    parameters: dict[str, ParametersLine] = {}
    tools: dict[str, ToolLine] = {}
    verdicts: dict[str, VerdictLine] = {}
    trials: dict[str, TrialLine] = {}
    numbers: dict[str, int] = {}
    for each in lines:
        match each.line:
            case InteractionLine() as line:
                interactions[line.id] = line
                numbers[line.id] = each.number
            case ParametersLine() as line:
                parameters[line.id] = line
            case ToolLine() as line:
                tools[line.id] = line
            case VerdictLine() as line:
                verdicts[line.id] = line
            case TrialLine() as line:
                trials[line.variant] = line
    return CassetteView(
        path=path,
        size_bytes=sum(len(each.raw) + 1 for each in lines),
        header=header,
        parameters=parameters,
        interactions=_tree(interactions, parameters, tools, trials, numbers),
        tools=tuple(tools.values()),
        verdicts=tuple(verdicts.values()),
        trials=trials,
    )


def _tree(
    interactions: dict[str, InteractionLine],
    parameters: dict[str, ParametersLine],
    tools: dict[str, ToolLine],
    trials: dict[str, TrialLine],
    numbers: dict[str, int],
) -> dict[str, InteractionView]:
    ends: dict[str, str] = {}
    parents: dict[str, str | None] = {}
    children: dict[str, list[str]] = {name: [] for name in interactions}
    calls: dict[str, list[ToolLine]] = {name: [] for name in interactions}
    users: dict[str, list[str]] = {name: [] for name in interactions}
    for name, line in interactions.items():
        parent = None if line.parent is None else ends.get(line.parent)
        parents[name] = parent
        if parent is not None:
            children[parent].append(name)
        ends.setdefault(line.chain, name)
    for tool in tools.values():
        if tool.interaction in calls:
            calls[tool.interaction].append(tool)
    for variant, trial in trials.items():
        for name in trial.interactions:
            if name in users and variant not in users[name]:
                users[name].append(variant)
    return {
        name: InteractionView(
            number=numbers[name],
            line=line,
            endpoint=parameters[line.parameters].endpoint if line.parameters in parameters else "?",
            parent=parents[name],
            children=tuple(children[name]),
            variants=tuple(users[name]) or (line.variant,),
            tools=tuple(sorted(calls[name], key=lambda tool: tool.position)),
        )
        for name, line in interactions.items()
    }

"""Making a cassette whole again after an edit by hand, a merge, or a recording that was cut."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from harness.cassette.file.ids import end_of
from harness.cassette.file.journal import Journal, replace_file
from harness.cassette.file.lines import FileLine, Problem, compact, object_of, problems, read_lines
from harness.cassette.file.tape import ToolKey, free_name, verdict_id
from harness.cassette.file.view import view_of
from harness.cassette.format import (
    HeaderLine,
    InteractionLine,
    Line,
    ParametersLine,
    ToolLine,
    TrialLine,
    VerdictLine,
    decode_line,
    seal,
)
from harness.cassette.request.canonical import parameters_digest, request_digest
from harness.cassette.show.calls import SENT_BACK_CHANGED, spoken
from harness.cassette.show.conversations import conversations
from harness.errors import CassetteError
from harness.schema.record import Json

AnyLine = TypeVar("AnyLine", InteractionLine, ToolLine)


@dataclass(frozen=True, slots=True)
class Note:
    """Something to say about a line."""

    number: int
    """In the file as it was."""
    text: str


@dataclass(frozen=True, slots=True)
class Repair:
    """A cassette as it should be."""

    path: Path
    lines: tuple[bytes, ...]
    """With their ends."""
    changes: tuple[Note, ...]
    """What differs from the file."""
    doubts: tuple[Note, ...]
    """What does not fit together any more, and only who edited it can mend."""


def plan_repair(path: Path) -> Repair:
    """See what there is to repair; nothing is written.

    Raises:
        CassetteError: a line is beyond repair; the text names each.
    """
    lines = read_lines(path)
    repairing = _Repairing(path, lines)
    for each in lines:
        repairing.add(each)
    return repairing.repaired()


def repair(path: Path) -> Repair:
    """Repair a cassette, in one step.

    Raises:
        CassetteError: a line is beyond repair, or somebody is recording it; it is as it was.
        InfrastructureError: it cannot be written; it is as it was.
    """
    journal = Journal.open_for_writing(path)
    try:
        planned = plan_repair(path)
        if planned.changes:
            replace_file(journal.path, planned.lines)
        return planned
    finally:
        journal.close()


@dataclass(slots=True)
class _New:
    """What the lines so far are called now, by what they were called."""

    chains: dict[str, str] = field(default_factory=dict)
    parameters: dict[str, str] = field(default_factory=dict)
    interactions: dict[str, str] = field(default_factory=dict)
    tools: dict[str, str] = field(default_factory=dict)
    verdicts: dict[str, str] = field(default_factory=dict)

    def known(self, what: str) -> set[str]:
        """What can be named: by its old name or its new one."""
        names: dict[str, str] = getattr(self, what)
        return {*names, *names.values()}


class _Repairing:
    def __init__(self, path: Path, lines: Sequence[FileLine]) -> None:
        self._path = path
        self._new = _New()
        self._named = _named(lines)
        self._lost = self._named.difference(getattr(each.line, "id", "") for each in lines)
        self._seen: dict[tuple[str, str], tuple[int, Line]] = {}
        self._taken: set[str] = set()
        self._lines: list[bytes] = []
        self._numbers: list[int] = []
        """Of the lines that are left, in the file as it was."""
        self._edited: set[int] = set()
        self._changes: list[Note] = []
        self._hopeless: list[str] = []

    def add(self, each: FileLine) -> None:
        """Take the next line."""
        if not each.raw.strip():
            self._changes.append(Note(each.number, "an empty line, removed"))
        elif each.line is None and each.problem is not None:
            self._take_unreadable(each, each.problem)
        elif each.line is not None and not self._is_repeated(each.number, each.line):
            self._take(each, each.line)

    def _take_unreadable(self, each: FileLine, problem: Problem) -> None:
        if problem.kind == "cut" and self._lines:
            size = len(each.raw)
            self._changes.append(Note(each.number, f"cut after {size:,} bytes, removed"))
        else:
            self._refuse(each.number, problem.text)

    def _refuse(self, number: int, why: str) -> None:
        self._hopeless.append(f"{self._path}:{number}: {why}")

    def _is_repeated(self, number: int, line: Line) -> bool:
        """Whether the same line stands before it, as after a merge."""
        if isinstance(line, TrialLine):
            return False
        key = (line.kind, "" if isinstance(line, HeaderLine) else line.id)
        first, before = self._seen.setdefault(key, (number, line))
        if first == number:
            return False
        if before == line:
            self._changes.append(Note(number, f"the same as line {first}, removed"))
        else:
            self._refuse(
                number,
                f"line {first} has the same id and says something else; remove one of the two, and"
                " what follows from it",
            )
        return True

    def _take(self, each: FileLine, line: Line) -> None:
        value = object_of(each.raw)
        if each.problem is not None:
            line = self._with_references(each.number, line)
        renamed = self._renamed(line)
        changed = {key: new for key, new in renamed.items() if value.get(key) != new}
        if each.problem is None and not changed:
            raw = each.raw
        else:
            fields = type(line).model_fields
            value |= changed
            raw = seal(compact({key: value[key] for key in fields if key in value}))[:-1]
            decode_line(raw)
        self._lines.append(raw + b"\n")
        self._numbers.append(each.number)
        done = []
        if each.problem is not None:
            self._edited.add(each.number)
            done.append("edited, sealed again")
        if changed:
            done.append(f"computed anew: {', '.join(sorted(changed))}")
        if done:
            self._changes.append(Note(each.number, f"{line.kind}: {'; '.join(done)}"))

    def _with_references(self, number: int, line: Line) -> Line:
        """A damaged line that names what is there: what its own ids were computed from.

        Nobody edits a digest. Renamed after a wrong one, neither it nor what follows from it would
        be found again.
        """
        match line:
            case InteractionLine():
                return self._with_request(number, line)
            case ToolLine():
                names = self._new.known("interactions")
                if line.interaction is not None and line.interaction not in names:
                    moved = (line.model_copy(update={"interaction": name}) for name in names)
                    fits = (one.interaction for one in moved if ToolKey.of(one).id == line.id)
                    return self._naming(number, line, "interaction", fits)
            case VerdictLine():
                right = verdict_id(line.transcript_digest, line.tests_digest)
                if line.id in self._named and line.id != right:
                    self._refuse(number, "transcript_digest or tests_digest is damaged")
            case TrialLine():
                for what, used in _references(line):
                    for name in sorted(set(used) - self._new.known(what)):
                        self._refuse(number, f"{what}: there is no {name!r} before it")
        return line

    def _with_request(self, number: int, line: InteractionLine) -> InteractionLine:
        request = line.id.partition(".")[0]
        chains, parameters = self._new.known("chains"), self._new.known("parameters")
        if line.parent is not None and line.parent not in chains:
            ends = (None, *chains)
            parents = (end for end in ends if end_of(end, line.add) == line.chain)
            line = self._naming(number, line, "parent", parents)
        if line.parameters not in parameters:
            sets = (one for one in parameters if request_digest(one, line.chain) == request)
            line = self._naming(number, line, "parameters", sets)
        lost = [name for name in self._lost if name.partition(".")[0] == request]
        if lost and line.id not in self._named:
            self._refuse(number, f"its id is damaged, or the line of {lost[0]!r} is gone")
        return line

    def _naming(self, number: int, line: AnyLine, key: str, fits: Iterator[str | None]) -> AnyLine:
        missing = getattr(line, key)
        right = next(fits, missing)
        if right == missing:
            self._refuse(number, f"{key}: there is no {missing!r} before it, and nothing else fits")
        return line.model_copy(update={key: right})

    def _renamed(self, line: Line) -> dict[str, Json]:
        """The fields of a line that are computed from what it and the lines before it say."""
        match line:
            case ParametersLine():
                new = parameters_digest(line.endpoint, line.body)
                self._new.parameters[line.id] = new
                return {"id": new}
            case InteractionLine():
                return self._renamed_interaction(line)
            case ToolLine():
                name = line.interaction
                named = self._new.interactions.get(name, name) if name is not None else None
                new = ToolKey.of(line.model_copy(update={"interaction": named})).id
                self._new.tools[line.id] = new
                return {"id": new, "interaction": named}
            case VerdictLine():
                new = verdict_id(line.transcript_digest, line.tests_digest)
                self._new.verdicts[line.id] = new
                return {"id": new}
            case TrialLine():
                return {
                    what: [getattr(self._new, what).get(name, name) for name in names]
                    for what, names in _references(line)
                }
        return {}

    def _renamed_interaction(self, line: InteractionLine) -> dict[str, Json]:
        parent = line.parent
        if parent is not None:
            parent = self._new.chains.get(parent, parent)
        parameters = self._new.parameters.get(line.parameters, line.parameters)
        chain = end_of(parent, line.add)
        self._new.chains.setdefault(line.chain, chain)
        request, _, rest = line.id.partition(".")
        right = request_digest(parameters, chain)
        new = line.id
        if right != request or new in self._taken:
            new = free_name(f"{right}.{rest.partition('.')[0]}", self._taken)
        self._taken.add(new)
        self._new.interactions[line.id] = new
        # A request that was edited was never sent like this.
        is_as_it_was = right == request or (parameters, chain) == (line.parameters, line.chain)
        sent = line.sent if is_as_it_was else None
        fields = {"parent": parent, "chain": chain, "parameters": parameters}
        return {"id": new, "sent": sent, **fields}

    def repaired(self) -> Repair:
        if not self._lines and not self._hopeless:
            raise CassetteError(f"{self._path}:1: the file is empty; there is nothing to repair")
        if self._hopeless:
            raise CassetteError("\n".join(self._hopeless))
        file_lines = [
            FileLine(number, raw[:-1], decode_line(raw[:-1]))
            for number, raw in enumerate(self._lines, start=1)
        ]
        header = file_lines[0].line
        if not isinstance(header, HeaderLine):
            raise CassetteError(f"{self._path}:1: not a cassette: the first line is no header")
        if not self._changes and b"".join(self._lines) != self._path.read_bytes():
            self._changes.append(Note(self._numbers[-1], "its line end was missing"))
        return Repair(
            self._path,
            tuple(self._lines),
            tuple(sorted(self._changes, key=lambda note: note.number)),
            tuple(sorted(self._doubts(header, file_lines), key=lambda note: note.number)),
        )

    def _doubts(self, header: HeaderLine, lines: list[FileLine]) -> Iterator[Note]:
        for problem in problems(lines):
            text = f"{problem.text}; `harness cassette prune` removes it"
            yield Note(self._numbers[problem.number - 1], text)
        view = view_of(self._path, header, lines)
        calls = spoken(view, conversations(view))
        numbers = {name: self._numbers[one.number - 1] for name, one in view.interactions.items()}
        edited = {name for name, number in numbers.items() if number in self._edited}
        for name, one in calls.items():
            back = any(SENT_BACK_CHANGED in passage.title for passage in one.asked)
            if one.call.before in edited and back:
                text = (
                    f"it sends back another answer than line {numbers[one.call.before]} gives now;"
                    " edit its first message too, or record from here on"
                )
                yield Note(numbers[name], text)
        judged = [
            (variant, edited.intersection(trial.interactions))
            for variant, trial in view.trials.items()
            if trial.verdicts
        ]
        variants = [variant for variant, touched in judged if touched]
        if variants:
            text = (
                f"the verdicts of {', '.join(variants)} were given before this edit: where the"
                " conversation differs now, there is none until `--tools live` or a new recording"
            )
            first = min(numbers[name] for _, touched in judged for name in touched)
            yield Note(first, text)


def _references(trial: TrialLine) -> Iterator[tuple[str, tuple[str, ...]]]:
    for what in ("interactions", "tools", "verdicts"):
        yield what, getattr(trial, what)


def _named(lines: Sequence[FileLine]) -> set[str]:
    """What trials name that are as they were sealed."""
    trials = [e.line for e in lines if isinstance(e.line, TrialLine) and e.problem is None]
    return {name for trial in trials for _, names in _references(trial) for name in names}

"""What a cassette is made of after some of its variants were recorded anew."""

from __future__ import annotations

from harness.cassette.file.rewrite import Named, Recording, Writer
from harness.cassette.file.tape import ToolKey, free_name
from harness.cassette.format import InteractionLine, ToolLine, TrialLine, VerdictLine
from harness.cassette.response.sameness import same_answer, same_result, same_trial


def merged(old: Recording, new: Recording) -> list[bytes]:
    """The lines of a file after its recording anew.

    What `new` has no finished trial of is kept; so is what was recorded again and came out the
    same. Kept lines stand as they stood, a changed one in the place of the old one, and what is
    new comes after them.
    """
    plan = _Plan(old, new)
    writer = Writer()
    writer.raw((old if plan.keeps_header else new).lines[0][1])
    for line, raw in old.lines:
        if isinstance(line, TrialLine):
            if plan.keeps_trial(line):
                writer.raw(raw)
        elif isinstance(line, InteractionLine | ToolLine | VerdictLine):
            if line.id in plan.kept:
                writer.line(old, line, raw)
            else:
                plan.write(writer, line.id)
    for line, _ in new.lines:
        if isinstance(line, InteractionLine | ToolLine | VerdictLine):
            plan.write(writer, plan.names[line.id])
    for variant, trial in plan.trials.items():
        if not (variant in old.trials and same_trial(old.trials[variant], trial)):
            writer.add(trial)
    return writer.lines


class _Plan:
    """What becomes of each line of an old recording and of a new one."""

    def __init__(self, old: Recording, new: Recording) -> None:
        self._old = old
        self._new = new
        self.kept: set[str] = set()
        """Ids of the old lines that stay as they are."""
        self.names: dict[str, str] = {}
        """Id in the new recording -> the id it has in the end."""
        self._fresh: dict[str, Named] = {}
        """The new lines that are not written yet, by the id they have in the end."""
        self._carry()
        self._place_interactions()
        self._place_tools()
        self._place_verdicts()
        self.trials = {variant: self._renamed(trial) for variant, trial in new.trials.items()}

    @property
    def keeps_header(self) -> bool:
        """Whether answers are left that the old header speaks of."""
        old, new = self._old.header, self._new.header
        is_same_cell = old.model_copy(update={"versions": new.versions}) == new
        return is_same_cell and not self.kept.isdisjoint(self._old.interactions)

    def keeps_trial(self, trial: TrialLine) -> bool:
        """Whether an old trial still counts: it was not recorded anew, or came out the same."""
        now = self.trials.get(trial.variant)
        if now is None:
            return self.kept.issuperset((*trial.interactions, *trial.tools, *trial.verdicts))
        return trial is self._old.trials[trial.variant] and same_trial(trial, now)

    def write(self, writer: Writer, name: str) -> None:
        """Write a new line, unless there is none of this id, or it is written."""
        line = self._fresh.pop(name, None)
        if line is not None:
            writer.line(self._new, line, None)

    def _carry(self) -> None:
        """Keep what variants used that were not recorded anew."""
        old, done = self._old, self._new.trials.keys()
        found: tuple[Named, ...] = (*old.interactions.values(), *old.verdicts.values())
        self.kept.update(line.id for line in found if old.users(line) - done)
        # A call of a trial that was not finished is found again only with its own answer.
        for tool in old.tools.values():
            is_found = tool.interaction is None or tool.interaction in self.kept
            if is_found and old.users(tool) - done:
                self.kept.add(tool.id)

    def _place_interactions(self) -> None:
        twins = {name: self._twin(line) for name, line in self._new.interactions.items()}
        self.kept.update(twin for twin in twins.values() if twin is not None)
        taken = set(self.kept)
        for name, line in self._new.interactions.items():
            final = twins[name]
            if final is None:
                final = free_name(line.key, taken)
                taken.add(final)
                self._fresh[final] = line.model_copy(update={"id": final})
            self.names[name] = final

    def _twin(self, line: InteractionLine) -> str | None:
        """The old interaction that says the same."""
        endpoint = self._new.endpoint(line)
        for other in self._old.answers(line.key):
            if same_answer(endpoint, other, line) and not self._is_contradicted(line, other.id):
                return other.id
        return None

    def _is_contradicted(self, line: InteractionLine, name: str) -> bool:
        """Whether a tool gave something else, and another variant still needs what it gave."""
        moved = (_moved(tool, name) for tool in self._new.turn_tools(line.id))
        return any(
            tool.id in self.kept and not same_result(self._old.tools[tool.id], tool)
            for tool in moved
        )

    def _place_tools(self) -> None:
        for name, tool in self._new.tools.items():
            turn = tool.interaction
            moved = _moved(tool, None if turn is None else self.names[turn])
            other = self._old.tools.get(moved.id)
            self._place(name, moved, is_same=other is not None and same_result(other, moved))

    def _place_verdicts(self) -> None:
        for name, line in self._new.verdicts.items():
            other = self._old.verdicts.get(name)
            self._place(name, line, is_same=other is not None and other.verdict == line.verdict)

    def _place(self, name: str, line: ToolLine | VerdictLine, *, is_same: bool) -> None:
        self.names[name] = line.id
        if is_same:
            self.kept.add(line.id)
        else:
            self.kept.discard(line.id)
            self._fresh[line.id] = line

    def _renamed(self, trial: TrialLine) -> TrialLine:
        names = {
            kind: tuple(self.names[name] for name in getattr(trial, kind))
            for kind in ("interactions", "tools", "verdicts")
        }
        return trial.model_copy(update=names)


def _moved(tool: ToolLine, interaction: str | None) -> ToolLine:
    """A tool call as it is found with its turn under another id."""
    moved = tool.model_copy(update={"interaction": interaction})
    return moved.model_copy(update={"id": ToolKey.of(moved).id})

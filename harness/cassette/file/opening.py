"""Which files a cassette is served from and recorded into, by mode and by what is there."""

from __future__ import annotations

import logging
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from harness.cassette.file.journal import Journal
from harness.cassette.file.place import forget_second_name
from harness.cassette.file.tape import Origin, Tape
from harness.errors import CassetteError
from harness.redaction import Redactor
from harness.schema.results import RecordMode

_LOG = logging.getLogger("harness.cassette")


@dataclass(frozen=True, slots=True)
class Opened:
    """The open files of a cassette."""

    tape: Tape
    """What is served and recorded into."""
    old: Tape | None = None
    """What it is to replace."""
    begun: frozenset[str] | None = None
    """The variants that are recorded anew; None for all."""

    @property
    def recording(self) -> bool:
        """Whether what is missing is recorded."""
        return self.tape.journal is not None and self.tape.journal.writable


@dataclass(frozen=True, slots=True)
class Opening:
    """A cassette that is to be opened."""

    path: Path
    mode: RecordMode
    origin: Origin
    redactor: Redactor

    @property
    def partial(self) -> Path:
        """What is recorded stands here until it is finished."""
        return self.path.with_name(self.path.name + ".partial")

    def _records(self) -> bool:
        if self.mode == "once":
            return not self.path.exists() or self._is_unfinished()
        return self.mode != "none"

    def _is_unfinished(self) -> bool:
        return self.partial.exists() and self.partial.stat().st_size > 0

    def open(self) -> Opened:
        """Open what there is; see `Store.open`."""
        if self.mode != "none":
            forget_second_name(self.partial, self.path)
        while True:
            with ExitStack() as opened:
                found = self._open(opened)
                if found is not None:
                    opened.pop_all()
                    return found

    def _open(self, opened: ExitStack) -> Opened | None:
        """None where somebody else has changed what is there in between."""
        if not self._records():
            if not self.path.exists():
                return Opened(Tape(None, self.origin, self.redactor))
            return Opened(self._load(Journal.open_for_reading(self.path), opened))
        if self.mode != "all" and self.path.exists() and not self._is_unfinished():
            tape = self._load(Journal.open_for_writing(self.path), opened)
            # Left by a process that was killed before it recorded anything.
            self.partial.unlink(missing_ok=True)
            return Opened(tape)
        # The old file is locked and checked first: nothing is paid for and then lost.
        old = None
        if self.path.exists():
            old = self._load(Journal.open_for_writing(self.path), opened)
        journal = Journal.open_for_writing(self.partial, may_start_over=True)
        tape = self._load(journal, opened)
        if old is None and self.path.exists():
            if journal.is_empty:
                journal.remove()
            return None
        if tape.index.interactions:
            count = len(tape.index.interactions)
            _LOG.warning("%s: going on with %d recorded answers", self.partial, count)
        goes_on = old is not None and self.mode != "all"
        return Opened(tape, old, frozenset(tape.variants()) if goes_on else None)

    def _load(self, journal: Journal, opened: ExitStack) -> Tape:
        opened.callback(journal.close)
        tape = Tape(journal, self.origin, self.redactor)
        if journal.repaired:
            _LOG.warning("%s", journal.repaired)
        if journal.writable and tape.by_position:
            fork = "go on from it with `harness fork`, or " if self.origin.task_digest else ""
            raise CassetteError(
                f"{journal.path}: its answers are given in order, so nothing can be"
                f" recorded into it; {fork}record a new one"
            )
        return tape

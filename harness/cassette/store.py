"""One cassette: all recorded variants of one task and repeat, in one file with one writer."""

from __future__ import annotations

import logging
from contextlib import ExitStack, closing
from pathlib import Path
from types import TracebackType
from typing import Self

from harness.cassette.carry import merged
from harness.cassette.index import Index
from harness.cassette.journal import Journal, replace_file
from harness.cassette.rewrite import Recording
from harness.cassette.rules import Rules
from harness.cassette.session import Session
from harness.cassette.tape import Origin, Tape
from harness.cassette.tree import Tree
from harness.errors import CassetteError
from harness.redaction import Redactor
from harness.schema.results import RecordMode

_LOG = logging.getLogger("harness.cassette")


def check_file(path: Path) -> None:
    """Check every line of a cassette.

    Raises:
        CassetteError: it cannot be trusted; the text names file and line.
    """
    with closing(Journal.open_for_reading(path)) as journal:
        Tree(journal, Index.load(journal))


class Store:
    """An open cassette; its variants' trials run one after another."""

    def __init__(
        self,
        path: Path,
        tape: Tape,
        *,
        old: Tape | None,
        recording: bool,
        rules: Rules,
        record_hint: str,
    ) -> None:
        """Use `Store.open`."""
        self.path = path
        self.recording = recording
        """Whether what is missing is recorded instead of missed."""
        self._tape = tape
        self._old = old
        self._rules = rules
        self._record_hint = record_hint
        self._closed = False

    @classmethod
    def open(
        cls,
        path: Path,
        mode: RecordMode,
        *,
        origin: Origin,
        redactor: Redactor,
        rules: Rules | None = None,
        record_hint: str = "",
    ) -> Store:
        """Open the cassette of a cell.

        Args:
            path: The file; recordings that replace it or begin it stand beside it, as
                `NAME.partial`, until they are closed.
            mode: `none` never records and makes no file. `once` records where there is no file.
                `new_episodes` serves what is there and records the rest. `all` records anew and
                keeps the branches of variants that were not run. A recording mode goes on with
                what an interrupted recording left behind.
            origin: What the cassette belongs to.
            redactor: Removes secrets from all that is written.
            rules: What does not count when requests are compared, and which errors are kept.
            record_hint: Command that records what a miss lacks.

        Raises:
            CassetteError: the file cannot be trusted, somebody else is recording it, or it is
                replayed in order and nothing can be recorded into it.
        """
        partial = path.with_name(path.name + ".partial")
        unfinished = partial.exists() and partial.stat().st_size > 0
        recording = mode != "none" and not (mode == "once" and path.exists() and not unfinished)
        with ExitStack() as opened:

            def load(journal: Journal) -> Tape:
                opened.callback(journal.close)
                tape = Tape(journal, origin, redactor)
                if journal.repaired:
                    _LOG.warning("%s", journal.repaired)
                if recording and tape.by_position:
                    raise CassetteError(
                        f"{journal.path}: its answers are given in order, so nothing can be"
                        " recorded into it; go on from it with `harness fork`, or record a new one"
                    )
                return tape

            old = None
            if not recording:
                if path.exists():
                    tape = load(Journal.open_for_reading(path))
                else:
                    tape = Tape(None, origin, redactor)
            elif mode != "all" and path.exists() and not unfinished:
                tape = load(Journal.open_for_writing(path))
                # Left by a process that was killed before it recorded anything.
                partial.unlink(missing_ok=True)
            else:
                # The old file is locked and checked first: nothing is paid for and then lost.
                old = load(Journal.open_for_writing(path)) if path.exists() else None
                tape = load(Journal.open_for_writing(partial, may_start_over=True))
                if tape.index.interactions:
                    count = len(tape.index.interactions)
                    _LOG.warning("%s: going on with %d recorded answers", partial, count)
            opened.pop_all()
        rules = rules or Rules()
        return cls(path, tape, old=old, recording=recording, rules=rules, record_hint=record_hint)

    def session(self, variant: str) -> Session:
        """Begin a trial of a variant."""
        where = f"{self.path}"
        if self._tape.journal is None:
            beside = "; an unfinished recording is beside it" if self._has_partial() else ""
            where += f" (no such file{beside})"
        return Session(
            self._tape,
            variant,
            rules=self._rules,
            recording=self.recording,
            where=where,
            record_hint=self._record_hint,
        )

    def _has_partial(self) -> bool:
        return self.path.with_name(self.path.name + ".partial").exists()

    def close(self, *, finished: bool = True) -> None:
        """Give the file up; a finished recording takes its place.

        Args:
            finished: False leaves an unfinished recording beside the file, to go on with later;
                so does a trial in it that is not complete.
        """
        if self._closed:
            return
        self._closed = True
        with ExitStack() as closing:
            for tape in (self._old, self._tape):
                if tape is not None and tape.journal is not None:
                    closing.callback(tape.journal.close)
            journal = self._tape.journal
            if journal is None or journal.path == self.path:
                return
            if journal.is_empty:
                journal.remove()
            elif self._tape.incomplete:
                _LOG.warning("%s: a trial is not complete; record again to go on", journal.path)
            elif finished:
                if self._old is None:
                    journal.rename(self.path)
                else:
                    replace_file(self.path, self._merged(self._old, journal))
                    journal.remove()

    def _merged(self, old: Tape, new: Journal) -> list[bytes]:
        assert old.journal is not None
        return merged(Recording(old.journal), Recording(new))

    def __enter__(self) -> Self:
        """Use as a context manager: an exception leaves the recording unfinished."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close."""
        self.close(finished=kind is None)

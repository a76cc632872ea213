"""One cassette: all recorded variants of one task and repeat, in one file with one writer."""

from __future__ import annotations

import logging
from contextlib import ExitStack, closing
from pathlib import Path
from types import TracebackType
from typing import Self

from harness.cassette.file.index import Index
from harness.cassette.file.journal import Journal, replace_file
from harness.cassette.file.merge import merged
from harness.cassette.file.opening import Opened, Opening
from harness.cassette.file.rewrite import Recording
from harness.cassette.file.tape import Origin, Tape
from harness.cassette.file.tree import Tree
from harness.cassette.replay.explain import UNFINISHED
from harness.cassette.replay.session import Session
from harness.cassette.request.rules import Rules
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

    def __init__(self, path: Path, opened: Opened, *, rules: Rules, record_hint: str) -> None:
        """Use `Store.open`."""
        self.path = path
        self.recording = opened.recording
        """Whether what is missing is recorded instead of missed."""
        self._tape = opened.tape
        self._old = opened.old
        self._begun = opened.begun
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
                what an interrupted recording left behind; where that was to replace a file, the
                variants that it had not come to are served from that.
            origin: What the cassette belongs to.
            redactor: Removes secrets from all that is written.
            rules: What does not count when requests are compared, and which errors are kept.
            record_hint: Command that records what a miss lacks.

        Raises:
            CassetteError: the file cannot be trusted, somebody else is recording it, or it is
                replayed in order and nothing can be recorded into it.
        """
        if path.is_symlink():
            path = path.resolve()
        opened = Opening(path, mode, origin, redactor).open()
        return cls(path, opened, rules=rules or Rules(), record_hint=record_hint)

    def session(self, variant: str) -> Session:
        """Begin a trial of a variant."""
        where = f"{self.path}"
        if self._tape.journal is None:
            beside = f"; {UNFINISHED}" if self._has_partial() else ""
            where += f" (no such file{beside})"
        tape = self._tape
        if self._old is not None and self._begun is not None and variant not in self._begun:
            tape = self._old
        return Session(
            tape,
            variant,
            rules=self._rules,
            recording=self.recording,
            replaces=self._old is not None and tape is self._tape,
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

        Raises:
            CassetteError: somebody else has made the file meanwhile; the new recording stays.
            InfrastructureError: somebody else has changed what was recorded, or it cannot be put
                in its place; nothing is removed.
        """
        if self._closed:
            return
        self._closed = True
        with ExitStack() as closing:
            tapes = [tape for tape in (self._old, self._tape) if tape is not None]
            for tape in tapes:
                if tape.journal is not None:
                    closing.callback(tape.journal.close)
            journal = self._tape.journal
            if journal is not None and journal.is_ours:
                self._end(tapes, finished=finished)
                self._put_in_place(journal, finished=finished)

    def _end(self, tapes: list[Tape], *, finished: bool) -> None:
        for tape in tapes:
            tape.settle()
            if tape.incomplete is not None:
                _LOG.warning("%s; record again to go on", self._unfinished(tape, tape.incomplete))
            if finished:
                tape.check_place()

    def _unfinished(self, tape: Tape, why: str) -> str:
        if tape.journal is None or tape.journal.path == self.path:
            return f"{self.path}: {why}"
        if tape.journal.is_empty:
            return f"{self.path}: not written: {why}, and nothing was recorded"
        return f"{self.path}: not written: {why}; what was recorded is in {tape.journal.path.name}"

    def _put_in_place(self, journal: Journal, *, finished: bool) -> None:
        old = None if self._old is None else self._old.journal
        if journal.path == self.path:
            return
        if journal.is_empty:
            journal.remove()
        elif not finished or self._tape.incomplete is not None:
            return
        elif old is None:
            journal.publish(self.path)
        else:
            old.check_place()
            replace_file(self.path, merged(Recording(old), Recording(journal)))
            journal.remove()

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

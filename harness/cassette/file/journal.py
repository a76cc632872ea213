"""One cassette file: sealed lines that are appended, synced, and found again by their place."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

from harness.cassette.file.place import (
    name_for_new,
    refuse_other,
    sync_folder,
    take_name,
    write_synced,
)
from harness.cassette.format import (
    Line,
    decode_line,
    encode_line,
    ends_with_seal,
    is_sealed,
    other_format,
)
from harness.errors import CassetteError, InfrastructureError

_NEXT_STEP = "take the file back from version control, or remove it and record it again"
_BLOCK = 1 << 18

# A plain tuple of numbers is cheap to make, and the garbage collector does not walk it.
Place: TypeAlias = tuple[int, int, int]
"""Where a line stands: its number counted from 1, its offset, its length without the line end."""


class Journal:
    """An open cassette file."""

    def __init__(
        self, path: Path, fd: int, *, writable: bool, may_start_over: bool = False
    ) -> None:
        """Wrap an open descriptor; use `open_for_reading` and `open_for_writing`."""
        self.path = path
        self.writable = writable
        self.repaired: str | None = None
        """What was cut away from the end of the file, in words."""
        self._fd = fd
        self._size = os.fstat(fd).st_size
        # What stands in a file that was empty is what was written through this journal.
        self._opened_with = self._size
        self._may_start_over = may_start_over or self._size == 0
        self._lines = 0
        self._process = os.getpid()

    @classmethod
    def open_for_reading(cls, path: Path) -> Journal:
        """Open a file that stays as it is."""
        _refuse_folder(path)
        try:
            return cls(path, os.open(path, os.O_RDONLY | os.O_CLOEXEC), writable=False)
        except OSError as error:
            raise CassetteError(f"{path}: cannot be read: {error.strerror}") from error

    @classmethod
    def open_for_writing(cls, path: Path, *, may_start_over: bool = False) -> Journal:
        """Open a file, and keep every other writer out.

        Args:
            path: The file.
            may_start_over: Whether it is made where there is none, and a cut first line is cut
                away too. Only for a file that nobody but a recording writes: elsewhere it may be
                anything, and not ours to remove.

        Raises:
            CassetteError: it cannot be written, or somebody else is recording it.
        """
        if path.is_symlink():
            path = path.resolve()  # a file that is written anew must not take the link's place
        _refuse_folder(path)
        try:
            if may_start_over:
                path.parent.mkdir(parents=True, exist_ok=True)
            create = os.O_CREAT if may_start_over else 0
            fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | create, 0o644)
        except OSError as error:
            raise CassetteError(f"{path}: cannot be written: {error.strerror}") from error
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not os.path.samestat(os.fstat(fd), path.stat()):
                raise FileNotFoundError  # renamed by its writer in between
        except (BlockingIOError, FileNotFoundError) as error:
            os.close(fd)
            raise CassetteError(
                f"{path}: somebody else (maybe this process) is recording this cassette; wait for"
                " that to end"
            ) from error
        except OSError as error:
            os.close(fd)
            raise CassetteError(f"{path}: cannot be locked: {error.strerror}") from error
        with suppress(OSError):
            name_for_new(path).unlink()  # left by a writer that was killed
        return cls(path, fd, writable=True, may_start_over=may_start_over)

    @property
    def is_empty(self) -> bool:
        """Whether nothing has been written."""
        return self._size == 0

    @property
    def has_grown(self) -> bool:
        """Whether something was written since it was opened."""
        return self._size != self._opened_with

    def check_place(self) -> None:
        """Make sure that who looks for the file finds this one, as it was written.

        Raises:
            InfrastructureError: somebody has removed, replaced or changed it.
        """
        refuse_other(self.path, self._fd, self._size)

    @property
    def is_ours(self) -> bool:
        """Whether this process opened it; one that was forked since shares file and lock."""
        return os.getpid() == self._process

    def check_process(self) -> None:
        """Refuse to write for a process that was forked since the file was opened.

        Raises:
            CassetteError: it was.
        """
        if not self.is_ours:
            raise CassetteError(
                f"{self.path}: opened for recording by another process; open a cassette of its own"
                " in each process, with `harness.cassette.use`"
            )

    def look_again(self) -> None:
        """Take the file as it is now, after a write that something broke off in the middle."""
        self.check_process()
        self._size = os.fstat(self._fd).st_size
        self._lines = 0
        self._write(b"")  # what is there may not be on disk yet

    def scan(self, *, check: bool = True) -> Iterator[tuple[Place, bytes]]:
        """Every line in order, with its place.

        A cut last line is cut away when the file is open for writing. The first line may be cut
        only where the file may start over.

        Args:
            check: Whether each line is checked against its seal. The first and the last always
                are: whether this is a cassette, and whether it is whole.

        Raises:
            CassetteError: a line is damaged or cut, or the file is of another format.
        """
        number = offset = 0
        for raw, is_ended in self._split():
            number += 1
            is_last = offset + len(raw) + is_ended == self._size
            must_check = check or number == 1 or is_last
            if must_check and not self._accept(number, offset, raw, is_ended):
                return
            self._lines = number
            yield (number, offset, len(raw)), raw
            # Only now: whoever asked has not refused the line.
            if not is_ended and self.writable:
                self._write(b"\n")
            offset += len(raw) + 1
        if number == 0 and not self.writable:
            raise self.untrusted(1, "the file is empty")

    def _split(self) -> Iterator[tuple[bytes, bool]]:
        """Each line, and whether its line end is there; never more than a block at once."""
        parts: list[bytes] = []
        offset, size = 0, self._size
        while offset < size:
            block = self._pread(offset, min(_BLOCK, size - offset))
            if not block:
                break
            offset += len(block)
            if b"\n" not in block:
                parts.append(block)
                continue
            *whole, rest = b"".join((*parts, block)).split(b"\n")
            for raw in whole:
                yield raw, True
            parts = [rest] if rest else []
        if parts:
            yield b"".join(parts), False

    def _accept(self, number: int, offset: int, raw: bytes, is_ended: bool) -> bool:
        """Whether a line is as it was written; False for a cut one, which is cut away."""
        if number == 1:
            self._refuse_other_format(raw)
        if is_sealed(raw):
            return True
        if number == 1 and (is_ended or not self._may_start_over):
            raise self.untrusted(1, "not a cassette, or its first line is damaged")
        # A whole line with something after it was not cut: nothing of it may be removed.
        if is_ended or ends_with_seal(raw):
            raise self.damaged(number)
        self._repair_cut(number, offset)
        return False

    def _refuse_other_format(self, raw: bytes) -> None:
        found = other_format(raw)
        if found is not None:
            raise self._error(
                1, f"format {found!r} is not known here; use the version that recorded it"
            )

    def _repair_cut(self, number: int, offset: int) -> None:
        if not self.writable:
            raise self._error(
                number,
                "the last line is cut; run with --record-mode new_episodes, which removes it"
                " and records it again",
            )
        os.ftruncate(self._fd, offset)
        os.fsync(self._fd)
        self.repaired = f"{self.path}:{number}: the last line was cut and has been removed"
        self._size = offset

    def read(self, place: Place) -> Line:
        """One line, checked and parsed.

        Raises:
            CassetteError: it is not what was written.
        """
        number, offset, length = place
        raw = self._pread(offset, length)
        if not is_sealed(raw):
            raise self.damaged(number)
        return self.parse(place, raw)

    def raw(self, place: Place) -> bytes:
        """One line as it stands, unchecked: to compare it, never to serve it."""
        return self._pread(place[1], place[2])

    def parse(self, place: Place, raw: bytes) -> Line:
        """Parse a line that `scan` gave."""
        try:
            return decode_line(raw)
        except ValueError as error:
            raise self.untrusted(place[0], str(error)) from error

    def append(self, *lines: Line) -> list[Place]:
        """Write lines to the end, all or none; they are on disk when this returns.

        Raises:
            InfrastructureError: they could not be written; the file is as before. Or somebody
                else has put another in its place.
            CassetteError: another process opened it.
        """
        self.check_process()
        self.check_place()
        encoded = [encode_line(line) for line in lines]
        for raw in encoded:
            self._refuse_unreadable(raw)
        places: list[Place] = []
        offset = self._size
        for raw in encoded:
            places.append((self._lines + len(places) + 1, offset, len(raw) - 1))
            offset += len(raw)
        self._write(b"".join(encoded))
        self._lines += len(encoded)
        return places

    def _refuse_unreadable(self, raw: bytes) -> None:
        try:
            decode_line(raw[:-1])
        except ValueError as error:
            raise InfrastructureError(
                f"{self.path}: cannot be written in a way that can be read again: {error}; nothing"
                " recorded was lost"
            ) from error

    def _write(self, data: bytes) -> None:
        try:
            write_synced(self._fd, data)
        except OSError as error:
            if error.errno is None:
                raise  # not the disk's: a signal's handler raised it, as for a timeout
            os.ftruncate(self._fd, self._size)
            raise InfrastructureError(
                f"{self.path}: cannot be written: {error.strerror}; nothing recorded was lost"
            ) from error
        self._size += len(data)

    def publish(self, path: Path) -> None:
        """Take the name of a file that is not there, in one step.

        Raises:
            CassetteError: it is there; both are as they were.
            InfrastructureError: it cannot be done; the file keeps its name.
        """
        take_name(self.path, path)
        self.path = path

    def remove(self) -> None:
        """Remove the file."""
        self.path.unlink(missing_ok=True)

    def close(self) -> None:
        """Give up the descriptor, and with it the lock."""
        if self._fd >= 0:
            if self.writable and self.is_ours:
                # Processes that were forked meanwhile have the lock too, as long as they live.
                fcntl.flock(self._fd, fcntl.LOCK_UN)
            os.close(self._fd)
            self._fd = -1

    def _pread(self, offset: int, length: int) -> bytes:
        data = os.pread(self._fd, length, offset)
        if len(data) == length or not data:
            return data
        # A read may give less than it was asked for; then the rest is asked for.
        return data + self._pread(offset + len(data), length - len(data))

    def damaged(self, number: int) -> CassetteError:
        """The error for a line that is not what was written."""
        return self.untrusted(number, "the line is damaged")

    def untrusted(self, number: int, problem: str) -> CassetteError:
        """The error for a line that cannot be used."""
        return self._error(number, f"{problem}; {_NEXT_STEP}")

    def _error(self, number: int, text: str) -> CassetteError:
        return CassetteError(f"{self.path}:{number}: {text}")


def replace_file(path: Path, lines: Iterable[bytes]) -> None:
    """Write a file anew, in one step; the caller holds its lock.

    Raises:
        InfrastructureError: it could not be written; the file is as before.
    """
    beside = name_for_new(path)
    try:
        fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        try:
            write_synced(fd, b"".join(lines))
        finally:
            os.close(fd)
        beside.replace(path)
    except OSError as error:
        with suppress(OSError):
            beside.unlink()
        raise InfrastructureError(
            f"{path}: cannot be written: {error.strerror}; nothing recorded was lost"
        ) from error
    sync_folder(path.parent)


def _refuse_folder(path: Path) -> None:
    if path.is_dir():
        raise CassetteError(f"{path}: a folder where a cassette should be; move it away")

"""One cassette file: sealed lines that are appended, synced, and found again by their place."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.cassette.format import Line, decode_line, encode_line, is_sealed, other_format
from harness.errors import CassetteError, InfrastructureError

_NEXT_STEP = "take the file back from version control, or remove it and record it again"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a line stands."""

    number: int
    """Counted from 1."""
    offset: int
    length: int
    """Without the line end."""


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
        self._may_start_over = may_start_over
        self._fd = fd
        self._size = os.fstat(fd).st_size
        self._lines = 0

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
        """Open or make a file, and keep every other writer out.

        Args:
            path: The file.
            may_start_over: Whether a cut first line is cut away too. Only for a file that nobody
                but a recording writes: elsewhere it may be anything, and not ours to remove.

        Raises:
            CassetteError: it cannot be written, or somebody else is recording it.
        """
        _refuse_folder(path)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise CassetteError(f"{path}: cannot be written: {error.strerror}") from error
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not os.path.samestat(os.fstat(fd), path.stat()):
                raise FileNotFoundError  # renamed by its writer in between
        except OSError as error:
            os.close(fd)
            raise CassetteError(
                f"{path}: another process is recording this cassette; wait for it to end"
            ) from error
        return cls(path, fd, writable=True, may_start_over=may_start_over)

    @property
    def is_empty(self) -> bool:
        """Whether nothing has been written."""
        return self._size == 0

    def scan(self) -> Iterator[tuple[Place, bytes]]:
        """Every line in order, each checked against its seal.

        A cut last line is cut away when the file is open for writing. The first line may be cut
        only where the file may start over.

        Raises:
            CassetteError: a line is damaged or cut, or the file is of another format.
        """
        data = self._pread(0, self._size)
        offset = 0
        while offset < len(data):
            end = data.find(b"\n", offset)
            raw = data[offset:] if end < 0 else data[offset:end]
            number = self._lines + 1
            self._refuse_other_format(raw, number)
            if not is_sealed(raw):
                if number == 1 and (end >= 0 or not self._may_start_over):
                    raise self.untrusted(1, "not a cassette, or its first line is damaged")
                if end >= 0:
                    raise self.untrusted(number, "the line is damaged")
                self._repair_cut(number, offset)
                return
            self._lines = number
            yield Place(number, offset, len(raw)), raw
            # Only now: whoever asked has not refused the line.
            if end < 0 and self.writable:
                self._write(b"\n")
            offset += len(raw) + 1
        if not data and not self.writable:
            raise self.untrusted(1, "the file is empty")

    def _refuse_other_format(self, raw: bytes, number: int) -> None:
        if number > 1:
            return
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
        raw = self._pread(place.offset, place.length)
        if not is_sealed(raw):
            raise self.untrusted(place.number, "the line is damaged")
        return self.parse(place, raw)

    def raw(self, place: Place) -> bytes:
        """One line as it stands, unchecked: to compare it, never to serve it."""
        return self._pread(place.offset, place.length)

    def parse(self, place: Place, raw: bytes) -> Line:
        """Parse a line that `scan` gave."""
        try:
            return decode_line(raw)
        except ValueError as error:
            raise self.untrusted(place.number, str(error)) from error

    def append(self, *lines: Line) -> list[Place]:
        """Write lines to the end, all or none; they are on disk when this returns.

        Raises:
            InfrastructureError: they could not be written; the file is as before.
        """
        encoded = [encode_line(line) for line in lines]
        places: list[Place] = []
        offset = self._size
        for raw in encoded:
            places.append(Place(self._lines + len(places) + 1, offset, len(raw) - 1))
            offset += len(raw)
        self._write(b"".join(encoded))
        self._lines += len(encoded)
        return places

    def _write(self, data: bytes) -> None:
        try:
            written = os.write(self._fd, data)
            if written != len(data):
                raise OSError(28, "the file system is full")
            os.fsync(self._fd)
        except OSError as error:
            os.ftruncate(self._fd, self._size)
            raise InfrastructureError(
                f"{self.path}: cannot be written: {error.strerror}; nothing recorded was lost"
            ) from error
        self._size += len(data)

    def rename(self, path: Path) -> None:
        """Take the place of another file, in one step."""
        self.path.replace(path)
        self.path = path
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def remove(self) -> None:
        """Remove the file."""
        self.path.unlink(missing_ok=True)

    def close(self) -> None:
        """Give up the descriptor, and with it the lock."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _pread(self, offset: int, length: int) -> bytes:
        parts = []
        while length > 0:
            part = os.pread(self._fd, length, offset)
            if not part:
                break
            parts.append(part)
            offset += len(part)
            length -= len(part)
        return b"".join(parts)

    def untrusted(self, number: int, problem: str) -> CassetteError:
        """The error for a line that cannot be used."""
        return self._error(number, f"{problem}; {_NEXT_STEP}")

    def _error(self, number: int, text: str) -> CassetteError:
        return CassetteError(f"{self.path}:{number}: {text}")


def _refuse_folder(path: Path) -> None:
    if path.is_dir():
        raise CassetteError(f"{path}: a folder where a cassette should be; move it away")

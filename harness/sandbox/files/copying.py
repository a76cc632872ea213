"""Copying files into and out of a container's tree: through open folders, never through links."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath

from harness.sandbox.files.confined import FOLDER
from harness.sandbox.files.owner import own, own_link

_PLAIN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

_MAX_DEPTH = 100
"""Each level keeps two folders open."""

_MAX_ENTRIES = 100_000


def copy_file(source: int, parent: int, name: str, owner: int | None = None) -> None:
    """Make a file in an open folder, with an open file's content and mode.

    A file or link that is there gives way.

    Args:
        source: Open file.
        parent: Open folder.
        name: In that folder.
        owner: Whom it belongs to, if not to this user.
    """
    try:
        target = os.open(name, _NEW, 0o600, dir_fd=parent)
    except FileExistsError:
        os.unlink(name, dir_fd=parent)
        target = os.open(name, _NEW, 0o600, dir_fd=parent)
    try:
        found = os.fstat(source)
        copied = 0
        # No further than it was at first: somebody may be writing to it.
        while copied < found.st_size:
            count = os.sendfile(target, source, copied, found.st_size - copied)
            if count == 0:
                break
            copied += count
        own(target, owner)
        os.fchmod(target, stat.S_IMODE(found.st_mode) & 0o777)
    finally:
        os.close(target)


def copy_folder(
    source: int,
    target: int,
    *,
    within: str = "",
    without: Collection[str] = (),
    owner: int | None = None,
) -> None:
    """Lay what is in one open folder over what is in another, links as links.

    What is neither file, folder nor link is left out.

    Args:
        source: Open folder.
        target: Open folder.
        within: Where the source is, as `without` names it.
        without: Paths of files and folders that are left out.
        owner: Whom the copies belong to, if not to this user.

    Raises:
        OSError: something cannot be read or written, or lies too deep.
    """
    copy = _Copy(limit=None, without=without, owner=owner)
    copy.folder(source, target, PurePosixPath(within), 0)


def take_folder(source: int, target: int, limit: int) -> None:
    """Copy files and folders out of one open folder into another; links are left out.

    Raises:
        OSError: as `copy_folder`; also, they are more than `limit` bytes, or very many.
    """
    _Copy(limit=limit).folder(source, target, PurePosixPath(), 0)


@contextmanager
def folder_in(parent: int, name: str) -> Iterator[int]:
    """Open a folder in an open folder; it is made if there is none, in place of what is there."""
    try:
        os.mkdir(name, 0o755, dir_fd=parent)
    except FileExistsError:
        if not stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
            os.unlink(name, dir_fd=parent)
            os.mkdir(name, 0o755, dir_fd=parent)
    with _opened(name, FOLDER, parent) as fd:
        yield fd


@dataclass(slots=True)
class _Copy:
    limit: int | None
    """Bytes that may still be copied; None if the source is trusted."""
    without: Collection[str] = ()
    owner: int | None = None
    entries: int = 0

    def folder(self, source: int, target: int, here: PurePosixPath, depth: int) -> None:
        if depth > _MAX_DEPTH:
            raise OSError(errno.ENAMETOOLONG, f"more than {_MAX_DEPTH} folders in one another")
        for name in os.listdir(source):
            self.entries += 1
            if self.limit is not None and self.entries > _MAX_ENTRIES:
                raise OSError(errno.EFBIG, f"more than {_MAX_ENTRIES} files and folders")
            if self.without and str(here / name) in self.without:
                continue
            kind = os.stat(name, dir_fd=source, follow_symlinks=False).st_mode
            if stat.S_ISDIR(kind):
                with _opened(name, FOLDER, source) as inner, folder_in(target, name) as made:
                    self.folder(inner, made, here / name, depth + 1)
                    own(made, self.owner)
                    # Last, for it may say that nothing can be made in it.
                    os.fchmod(made, stat.S_IMODE(kind) & 0o777)
            elif stat.S_ISREG(kind):
                self._file(source, target, name)
            elif stat.S_ISLNK(kind) and self.limit is None:
                self._link(source, target, name)

    def _file(self, source: int, target: int, name: str) -> None:
        with _opened(name, _PLAIN, source) as inner:
            found = os.fstat(inner)
            if not stat.S_ISREG(found.st_mode):
                return
            if self.limit is not None:
                self.limit -= found.st_size
                if self.limit < 0:
                    raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
            copy_file(inner, target, name, self.owner)

    def _link(self, source: int, target: int, name: str) -> None:
        place = os.readlink(name, dir_fd=source)
        try:
            os.symlink(place, name, dir_fd=target)
        except FileExistsError:
            os.unlink(name, dir_fd=target)
            os.symlink(place, name, dir_fd=target)
        own_link(name, self.owner, folder=target)


@contextmanager
def _opened(name: str, flags: int, parent: int) -> Iterator[int]:
    fd = os.open(name, flags, dir_fd=parent)
    try:
        yield fd
    finally:
        os.close(fd)

"""Opening files below a folder, never outside it, whatever links the agent has made there."""

from __future__ import annotations

import errno
import os
import stat
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath

WORKSPACE = "/workspace"

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MAX_LINKS = 40


class PathRefusedError(Exception):
    """A path that leads outside; its text is for the agent."""


@contextmanager
def open_below(
    root: Path, path: str, flags: int = os.O_RDONLY, *, make_folders: bool = False
) -> Iterator[int]:
    """Open a path as a sandboxed process would name it.

    Each part is opened by itself, relative to the one before and without following links; links
    are read and walked here. So there is no moment in which swapping a part leads outside.

    Args:
        root: The folder on the host.
        path: Relative to /workspace, or below it.
        flags: For `os.open`.
        make_folders: Make the folders on the way that are missing.

    Raises:
        PathRefusedError: the path leads outside.
        OSError: as `os.open` does.
    """
    walk = _Walk(root)
    try:
        fd = walk.open(path, flags, make_folders)
        try:
            yield fd
        finally:
            os.close(fd)
    finally:
        walk.close()


class _Walk:
    """The open folders from the root to where the walk has come."""

    def __init__(self, root: Path) -> None:
        self._fds = [os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)]

    def close(self) -> None:
        for fd in self._fds:
            os.close(fd)

    def open(self, path: str, flags: int, make_folders: bool) -> int:
        pending = deque(_parts(path, path))
        links = 0
        while pending:
            name = pending.popleft()
            if name == "..":
                self._leave(path)
                continue
            target = self._link_target(name)
            if target is not None:
                links += 1
                if links > _MAX_LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
                if target.startswith("/"):
                    self._rewind()
                pending.extendleft(reversed(_parts(target, path)))
            elif pending:
                self._enter(name, make_folders)
            else:
                flags |= os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
                return os.open(name, flags, 0o666, dir_fd=self._fds[-1])
        return os.dup(self._fds[-1])

    def _leave(self, path: str) -> None:
        if len(self._fds) == 1:
            raise _outside(path)
        os.close(self._fds.pop())

    def _rewind(self) -> None:
        while len(self._fds) > 1:
            os.close(self._fds.pop())

    def _enter(self, name: str, make_folders: bool) -> None:
        if make_folders:
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=self._fds[-1])
        self._fds.append(os.open(name, _FOLDER, dir_fd=self._fds[-1]))

    def _link_target(self, name: str) -> str | None:
        try:
            found = os.stat(name, dir_fd=self._fds[-1], follow_symlinks=False)
            return os.readlink(name, dir_fd=self._fds[-1]) if stat.S_ISLNK(found.st_mode) else None
        except FileNotFoundError:
            return None


def _parts(path: str, asked: str) -> list[str]:
    parts = PurePosixPath(path).parts
    if parts[:1] not in (("/",), ("//",)):
        return list(parts)
    if parts[1:2] != (WORKSPACE[1:],):
        raise _outside(asked)
    return list(parts[2:])


def _outside(path: str) -> PathRefusedError:
    return PathRefusedError(f"{path}: outside {WORKSPACE}")

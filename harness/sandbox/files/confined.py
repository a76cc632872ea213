"""Opening files of a container from outside of it, whatever links the agent has made there."""

from __future__ import annotations

import errno
import os
import stat
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath

from harness.sandbox.files.owner import own

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
"""A folder itself is opened, and not what a link in its place leads to."""
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_MAX_LINKS = 40
_MAX_DEPTH = 256
"""Folders that are named; each is kept open."""


@contextmanager
def open_inside(
    root: Path,
    path: str,
    flags: int = os.O_RDONLY,
    *,
    workdir: str = "/",
    mounts: Mapping[str, Path] = {},
    make_folders: bool = False,
    owner: int | None = None,
) -> Iterator[int]:
    """Open a path as a process of the container would name it.

    Each part is opened by itself, relative to the one before and without following links; links
    are read and walked here, from the container's root if they are absolute. So there is no moment
    in which swapping a part leads outside.

    Args:
        root: The container's root folder, on the host.
        path: Absolute, or relative to the working directory.
        flags: For `os.open`.
        workdir: The working directory, as a path of the container.
        mounts: What is mounted read-only, by place in the container.
        make_folders: Make the folders on the way that are missing, and with `os.O_DIRECTORY` the
            last one too.
        owner: Whom that belongs to which is made, if not to this user.

    Raises:
        OSError: as `os.open` does.
    """
    _hold_usable(path)
    walk = _Walk(root, mounts, owner)
    try:
        fd = walk.open(f"{workdir}/{path}" if path[:1] != "/" else path, flags, make_folders)
        try:
            yield fd
        finally:
            os.close(fd)
    finally:
        walk.close()


class _Walk:
    """The open folders from the root to where the walk has come."""

    def __init__(self, root: Path, mounts: Mapping[str, Path], owner: int | None) -> None:
        self._mounts = mounts
        self._owner = owner
        self._fds = [os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)]
        self._names: list[str] = []
        self._mounted_from: int | None = None
        """Number of names that lead to the mount the walk is in."""

    def close(self) -> None:
        for fd in self._fds:
            os.close(fd)

    def open(self, path: str, flags: int, make_folders: bool) -> int:
        pending = deque(_parts(path))
        links = 0
        while pending:
            name = pending.popleft()
            if name == "..":
                self._leave()
                continue
            mounted = self._mounts.get("/" + "/".join((*self._names, name)))
            target = None if mounted is not None else self._link_target(name)
            if target is not None:
                links += 1
                if links > _MAX_LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
                if target.startswith("/"):
                    self._rewind()
                pending.extendleft(reversed(_parts(target)))
            elif pending or (make_folders and flags & os.O_DIRECTORY):
                self._enter(name, mounted, make_folders)
            else:
                return self._last(name, mounted, flags)
        return os.dup(self._fds[-1])

    def _leave(self) -> None:
        # As the kernel has it: above the root is the root.
        if self._names:
            os.close(self._fds.pop())
            self._names.pop()
            if self._mounted_from is not None and len(self._names) < self._mounted_from:
                self._mounted_from = None

    def _rewind(self) -> None:
        while self._names:
            self._leave()

    def _enter(self, name: str, mounted: Path | None, make_folders: bool) -> None:
        if mounted is not None:
            self._fds.append(os.open(mounted, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
            self._names.append(name)
            if self._mounted_from is None:
                self._mounted_from = len(self._names)
            return
        if make_folders and self._mounted_from is None:
            with suppress(FileExistsError):
                os.mkdir(name, 0o755, dir_fd=self._fds[-1])
        self._fds.append(os.open(name, FOLDER, dir_fd=self._fds[-1]))
        self._names.append(name)
        if make_folders and self._mounted_from is None:
            own(self._fds[-1], self._owner)

    def _last(self, name: str, mounted: Path | None, flags: int) -> int:
        if flags & _WRITES and (mounted is not None or self._mounted_from is not None):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        flags |= os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        if mounted is not None:
            return os.open(mounted, flags)
        fd = os.open(name, flags, 0o644, dir_fd=self._fds[-1])
        if flags & os.O_CREAT:
            own(fd, self._owner)
        return fd

    def _link_target(self, name: str) -> str | None:
        try:
            found = os.stat(name, dir_fd=self._fds[-1], follow_symlinks=False)
            return os.readlink(name, dir_fd=self._fds[-1]) if stat.S_ISLNK(found.st_mode) else None
        except FileNotFoundError:
            return None


def _hold_usable(path: str) -> None:
    try:
        if b"\0" in os.fsencode(path):
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
    except UnicodeEncodeError:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL)) from None
    if path.count("/") > _MAX_DEPTH:
        raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))


def _parts(path: str) -> list[str]:
    return [part for part in PurePosixPath(path).parts if part not in ("/", "//")]

"""The files of a container, reached from outside of it."""

from __future__ import annotations

import errno
import glob
import os
import posixpath
import stat
from collections.abc import Collection, Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from pathlib import Path, PurePosixPath

from harness.errors import SandboxError
from harness.sandbox.files.confined import FOLDER, open_inside
from harness.sandbox.files.copying import copy_file, copy_folder, take_folder
from harness.sandbox.files.root_folder import RootFolder
from harness.schema.environment import CopyFiles
from harness.values import FileContent

_CLEAR_MODE = 0o755


class Tree:
    """Files by the paths that processes of the container name them with."""

    def __init__(self, root: RootFolder, workdir: str) -> None:
        self._root = root
        self._workdir = workdir
        self.mounts: Mapping[str, Path] = {}
        """What is mounted read-only: place -> source."""
        with self._open(workdir, os.O_DIRECTORY, make_folders=True):
            pass

    def read(self, path: str, limit: int) -> FileContent:
        """The beginning of a plain file."""
        with self._open(path) as fd:
            found = os.fstat(fd)
            if stat.S_ISDIR(found.st_mode):
                raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
            _hold_plain(found)
            with os.fdopen(fd, "rb", closefd=False) as file:
                return FileContent(file.read(limit), found.st_size)

    def write(self, path: str, content: bytes) -> None:
        """Make or replace a plain file, and the folders on its way."""
        with self._open(path, os.O_WRONLY | os.O_CREAT, make_folders=True) as fd:
            _hold_plain(os.fstat(fd))
            os.ftruncate(fd, 0)
            with os.fdopen(fd, "wb", closefd=False) as file:
                file.write(content)

    def names(self, path: str) -> tuple[str, ...]:
        """What is in a folder, sorted, folders with a slash."""
        with self._open(path, os.O_DIRECTORY) as fd, os.scandir(fd) as entries:
            return tuple(
                sorted(
                    f"{entry.name}/" if entry.is_dir(follow_symlinks=False) else entry.name
                    for entry in entries
                )
            )

    def upload(self, source: Path, target: str, *, merge: bool) -> None:
        """Copy a file or folder of the host to a place inside, with its modes."""
        with _opened(source) as from_fd:
            is_folder = stat.S_ISDIR(os.fstat(from_fd).st_mode)
            place = PurePosixPath(target)
            with self._folder(str(place.parent)) as parent:
                if not (merge and is_folder):
                    with suppress(FileNotFoundError):
                        self._root.throw_away(parent, place.name)
                if not is_folder:
                    copy_file(from_fd, parent, place.name, self._root.owner)
                    return
            with self._folder(target) as to_fd:
                copy_folder(from_fd, to_fd, owner=self._root.owner)
                if not merge:
                    os.fchmod(to_fd, stat.S_IMODE(os.fstat(from_fd).st_mode) & 0o777)

    def clear(self, path: str) -> None:
        """Have an empty folder in a place, whatever stands there."""
        place = PurePosixPath(path)
        with self._folder(str(place.parent)) as parent:
            if _is_as_made(parent, place.name):
                return
            with suppress(FileNotFoundError):
                self._root.throw_away(parent, place.name)
        with self._folder(path) as made:
            os.fchmod(made, _CLEAR_MODE)

    def download(self, source: str, target: Path, *, limit: int) -> None:
        """Copy a file or folder from inside to a new place on the host; links are left out."""
        with self._open(source) as from_fd:
            found = os.fstat(from_fd)
            if stat.S_ISDIR(found.st_mode):
                target.mkdir()
                with _opened(target) as to_fd:
                    take_folder(from_fd, to_fd, limit)
                return
            _hold_plain(found)
            if found.st_size > limit:
                raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
            with _opened(target.parent) as parent:
                copy_file(from_fd, parent, target.name)

    def make_folder(self, path: str) -> None:
        """Make a folder and those above it."""
        with self._folder(path):
            pass

    def copy(self, step: CopyFiles, context: Path) -> None:
        """Copy files of a build context as `COPY` does: of a folder, what is in it.

        Raises:
            SandboxError: there is nothing to copy, or it cannot be.
        """
        without = frozenset(posixpath.normpath(path) for path in step.exclude)
        try:
            sources = [name for pattern in step.sources for name in _matching(pattern, context)]
            many = len(sources) > 1 or step.target.endswith("/")
            for name in sources:
                if name not in without:
                    self._copy_one(context, name, step.target, many, without)
        except OSError as error:
            what = f"{' '.join(step.sources)} of {str(context)!r} to {step.target}"
            raise SandboxError(f"cannot copy {what}: {error.strerror or error}") from error

    def _copy_one(
        self, context: Path, name: str, target: str, many: bool, without: Collection[str]
    ) -> None:
        # Links lead nowhere but to files of the context.
        with open_inside(context, name) as source:
            if stat.S_ISDIR(os.fstat(source).st_mode):
                with self._folder(target) as folder:
                    copy_folder(
                        source, folder, within=name, without=without, owner=self._root.owner
                    )
                return
            _hold_plain(os.fstat(source))
            place = PurePosixPath(target)
            if many or self._is_folder(target):
                place /= PurePosixPath(name).name
            with self._folder(str(place.parent)) as parent:
                copy_file(source, parent, place.name, self._root.owner)

    def _is_folder(self, path: str) -> bool:
        try:
            with self._open(path, os.O_DIRECTORY):
                return True
        except OSError:
            return False

    def _folder(self, path: str) -> AbstractContextManager[int]:
        return self._open(path, os.O_DIRECTORY, make_folders=True)

    def _open(
        self, path: str, flags: int = os.O_RDONLY, *, make_folders: bool = False
    ) -> AbstractContextManager[int]:
        return open_inside(
            self._root.path,
            path,
            flags,
            workdir=self._workdir,
            mounts=self.mounts,
            make_folders=make_folders,
            owner=self._root.owner,
        )


def _matching(pattern: str, context: Path) -> Iterator[str]:
    """Paths in a build context; one that is no glob stands for itself."""
    path = posixpath.normpath(f"/{pattern}").lstrip("/")
    if not glob.has_magic(path):
        yield path
        return
    names = sorted(glob.glob(path, root_dir=context, include_hidden=True))
    if not names:
        raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))
    yield from names


def _is_as_made(parent: int, name: str) -> bool:
    """Whether it is an empty folder that nobody has changed."""
    try:
        fd = os.open(name, FOLDER, dir_fd=parent)
        try:
            mode = stat.S_IMODE(os.fstat(fd).st_mode)
            # There may be very many.
            with os.scandir(fd) as entries:
                is_empty = next(entries, None) is None
            return is_empty and mode == _CLEAR_MODE and not os.listxattr(fd)
        finally:
            os.close(fd)
    except OSError:
        return False


def _opened(path: Path) -> AbstractContextManager[int]:
    """A file or folder of the host."""
    return open_inside(Path("/"), str(path.resolve()))


def _hold_plain(found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "not a file")

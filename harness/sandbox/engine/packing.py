"""Tar files on their way to an engine and from it.

What comes from an engine was made of a hostile container's files: a member that would lie outside
of the folder it is unpacked to is refused, and only plain files and folders are unpacked at all.
"""

from __future__ import annotations

import errno
import io
import os
import shutil
import stat
import tarfile
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Protocol

from harness.errors import SandboxError

_MAX_DEPTH = 100
_MAX_ENTRIES = 100_000
_HEADS_BYTES = 256 << 20
"""What names and modes of very many files may take beside the files."""


class Source(Protocol):
    """What a tar file is read from."""

    def read(self, size: int) -> bytes:
        """The next bytes."""
        ...


class Packer:
    """Writes a tar file; all that is in it belongs to root."""

    def __init__(self, file: IO[bytes]) -> None:
        self._tar = tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT)  # noqa: SIM115

    def folder(self, name: str, mode: int = 0o755) -> None:
        """A folder with nothing in it."""
        self._tar.addfile(_member(name, tarfile.DIRTYPE, mode))

    def file(self, name: str, content: bytes, mode: int = 0o644) -> None:
        """A plain file."""
        member = _member(name, tarfile.REGTYPE, mode)
        member.size = len(content)
        self._tar.addfile(member, io.BytesIO(content))

    def host_file(self, path: Path, name: str) -> None:
        """A plain file of this host, with its mode."""
        with path.open("rb") as content:
            found = os.fstat(content.fileno())
            member = _member(name, tarfile.REGTYPE, found.st_mode)
            member.size = found.st_size
            self._tar.addfile(member, content)

    def host_folder(self, path: Path, name: str, without: Collection[str] = ()) -> None:
        """What is in a folder of this host, links as links; what is neither is left out.

        Args:
            path: On this host.
            name: What its place in the tar file is; empty for all of it.
            without: Paths below the folder that are left out.
        """
        for entry, place in entries(path, without):
            inside = f"{name}/{place}" if name else place
            mode = entry.stat(follow_symlinks=False).st_mode
            if stat.S_ISDIR(mode):
                self.folder(inside, mode)
            elif stat.S_ISREG(mode):
                self.host_file(Path(entry.path), inside)
            elif stat.S_ISLNK(mode):
                member = _member(inside, tarfile.SYMTYPE, 0o777)
                member.linkname = os.readlink(entry.path)
                self._tar.addfile(member)

    def close(self) -> None:
        """Write the end."""
        self._tar.close()


def entries(
    folder: Path, without: Collection[str] = (), within: str = ""
) -> Iterator[tuple[os.DirEntry[str], str]]:
    """All that is below a folder with the path from there, sorted; a folder before its content."""
    with os.scandir(folder) as found:
        ordered = sorted(found, key=lambda entry: entry.name)
    for entry in ordered:
        place = f"{within}{entry.name}"
        if place in without:
            continue
        yield entry, place
        if entry.is_dir(follow_symlinks=False):
            yield from entries(Path(entry.path), without, f"{place}/")


def first_file(source: Source, limit: int) -> tuple[bytes, int]:
    """The beginning of the one plain file in a tar file, and its size.

    Raises:
        OSError: it is no plain file.
        SandboxError: the tar file is damaged.
    """
    with _reading(source, limit) as tar:
        member = tar.next()
        content = None if member is None or not member.isreg() else tar.extractfile(member)
        if member is None or content is None:
            raise OSError(errno.EINVAL, "not a file")
        return content.read(limit), member.size


def unpack(source: Source, name: str, target: Path, limit: int) -> None:
    """Unpack a file or folder to a new place on this host; links are left out.

    Args:
        source: The tar file.
        name: What the file or folder is called in it.
        target: Must not exist.
        limit: Bytes of all files together.

    Raises:
        OSError: they are more, or very many, or lie too deep.
        SandboxError: the tar file is damaged, or names a place outside of the folder.
    """
    folders: list[tuple[Path, int]] = []
    count = 0
    with _reading(source, limit) as tar:
        while (member := tar.next()) is not None:
            count += 1
            if count > _MAX_ENTRIES:
                raise OSError(errno.EFBIG, f"more than {_MAX_ENTRIES} files and folders")
            place = target.joinpath(*_parts(member.name, name))
            if member.isdir():
                place.mkdir(0o700)
                folders.append((place, member.mode))
            elif member.isreg():
                limit -= member.size
                if limit < 0:
                    raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
                _unpack_file(tar, member, place)
            elif member.islnk():
                # Another name of a file that came before.
                other = target.joinpath(*_parts(member.linkname, name))
                limit -= other.lstat().st_size
                if limit < 0:
                    raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
                shutil.copy(other, place)
    if count == 0:
        raise SandboxError("the engine's archive is empty")
    # Last, for they may say that nothing can be made in them.
    for place, mode in reversed(folders):
        place.chmod(stat.S_IMODE(mode) & 0o777)


def _unpack_file(tar: tarfile.TarFile, member: tarfile.TarInfo, place: Path) -> None:
    content = tar.extractfile(member)
    assert content is not None
    with place.open("xb") as file:
        shutil.copyfileobj(content, file)
        os.fchmod(file.fileno(), stat.S_IMODE(member.mode) & 0o777)


def _parts(name: str, root: str) -> Sequence[str]:
    """Where a member lies below the root of what was asked for."""
    first, *rest = PurePosixPath(name).parts or ("",)
    if first != root or ".." in rest:
        raise SandboxError(f"the engine's archive of {root!r} holds {name[:200]!r}")
    if len(rest) > _MAX_DEPTH:
        raise OSError(errno.ENAMETOOLONG, f"more than {_MAX_DEPTH} folders in one another")
    return rest


class _Limited:
    """A source that ends at some point, whatever the heads in it say."""

    def __init__(self, source: Source, limit: int) -> None:
        self._source = source
        self._left = limit

    def read(self, size: int) -> bytes:
        data = self._source.read(size)
        self._left -= len(data)
        if self._left < 0:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
        return data


@contextmanager
def _reading(source: Source, limit: int) -> Iterator[tarfile.TarFile]:
    try:
        limited = _Limited(source, limit + _HEADS_BYTES)
        with tarfile.open(fileobj=limited, mode="r|") as tar:  # type: ignore[call-overload]
            yield tar
    except (tarfile.TarError, EOFError, ValueError) as error:
        raise SandboxError(f"the engine's archive is damaged: {error}") from error


def _member(name: str, kind: bytes, mode: int) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type = kind
    member.mode = stat.S_IMODE(mode) & 0o777
    member.uname = member.gname = "root"
    member.mtime = int(time.time())
    return member

"""Files and their names on the disk: written to the end, found again, never over another."""

from __future__ import annotations

import os
from pathlib import Path

from harness.errors import CassetteError, InfrastructureError


def refuse_other(path: Path, fd: int, size: int) -> None:
    """Make sure that who looks for an open file finds it, as it was written.

    Raises:
        InfrastructureError: somebody has removed, replaced or changed it.
    """
    try:
        there = path.stat()
    except OSError:
        problem = "removed"
    else:
        if not os.path.samestat(there, os.fstat(fd)):
            problem = "replaced"
        elif there.st_size != size:
            problem = "written into"
        else:
            return
    raise InfrastructureError(
        f"{path}: somebody else has {problem} this file while it was recorded; nothing more is"
        " written to it. Look at it, then record again"
    )


def take_name(path: Path, name: Path) -> None:
    """Give a file a name that is free, in one step.

    Raises:
        CassetteError: it is not free; both files are as they were.
        InfrastructureError: it cannot be done; the file keeps its name.
    """
    try:
        try:
            os.link(path, name)
        except FileExistsError:
            raise
        except OSError:  # not every file system has links
            if name.exists():
                raise FileExistsError from None
            path.replace(name)
        path.unlink(missing_ok=True)
    except FileExistsError as error:
        raise CassetteError(
            f"{name}: somebody else made this file while it was recorded; the new recording is"
            f" {path.name}. Move one of the two away, or bring them together with"
            " --record-mode new_episodes"
        ) from error
    except OSError as error:
        raise InfrastructureError(
            f"{name}: cannot be written: {error.strerror}; what was recorded is in {path.name}"
        ) from error
    sync_folder(name.parent)


def forget_second_name(path: Path, name: Path) -> None:
    """Finish what `take_name` was doing when it was killed: one file had both names."""
    if path.exists() and name.exists() and path.samefile(name):
        path.unlink(missing_ok=True)


def name_for_new(path: Path) -> Path:
    """Where a file stands while it is written anew."""
    return path.with_name(path.name + ".new")


def write_synced(fd: int, data: bytes) -> None:
    """Write all of it to the disk.

    Raises:
        OSError: not all of it is written.
    """
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]
    os.fsync(fd)


def sync_folder(folder: Path) -> None:
    """Bring a change of names to the disk."""
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)

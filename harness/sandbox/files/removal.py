"""Removing what agents leave: folders closed to everybody, or too deep for any path."""

from __future__ import annotations

import os
import shutil
import stat
import uuid
from pathlib import Path


def remove(folder: Path) -> None:
    """Remove a folder and all in it; no process may be working in it any more.

    Raises:
        OSError: something in it cannot be removed.
    """
    try:
        shutil.rmtree(folder)
    except FileNotFoundError:
        return
    except (OSError, RecursionError):
        _flatten(folder)
        os.rmdir(folder)


def _flatten(top: Path) -> None:
    """Empty a folder, however deep it is: each folder in it is first moved to the top."""
    top.chmod(0o700)
    top_fd = os.open(top, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        folders = _without_files(top_fd)
        while folders:
            name = folders.pop()
            fd = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=top_fd)
            try:
                for inner in _without_files(fd):
                    # No name that is there already.
                    place = uuid.uuid4().hex
                    os.rename(inner, place, src_dir_fd=fd, dst_dir_fd=top_fd)
                    folders.append(place)
            finally:
                os.close(fd)
            os.rmdir(name, dir_fd=top_fd)
    finally:
        os.close(top_fd)


def _without_files(folder: int) -> list[str]:
    """Remove what are no folders, and open the others to their owner."""
    names = []
    for name in os.listdir(folder):
        if stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            os.chmod(name, 0o700, dir_fd=folder)
            names.append(name)
        else:
            os.unlink(name, dir_fd=folder)
    return names

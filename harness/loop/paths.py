"""Paths as tools name them: relative ones are below the working folder."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterable

WORKSPACE = "/workspace"


def sandbox_path(path: str) -> str:
    """The absolute path without `.`, `..` and doubled slashes, so that one file has one name."""
    # POSIX lets two leading slashes stand; three are one.
    return posixpath.normpath("//" + posixpath.join(WORKSPACE, path))


def is_below(path: str, folders: Iterable[str]) -> bool:
    """Whether a path is one of these folders or files, or below one, links followed.

    In the working folder links are not followed: the host does not have it, and the file tools
    never leave it.

    Raises:
        ValueError: it is no path.
    """
    place = _real(path)
    return any(posixpath.commonpath((place, _real(folder))) == _real(folder) for folder in folders)


def _real(path: str) -> str:
    path = sandbox_path(path)
    if path == WORKSPACE or path.startswith(f"{WORKSPACE}/"):
        if "\0" in path:
            raise ValueError("a path holds no null character")
        return path
    return os.path.realpath(path)

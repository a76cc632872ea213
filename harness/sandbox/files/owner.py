"""The users that processes of containers are, where nothing else would hold them to limits.

Limits of processes do not bind root. Where root can make no control group either, each container
gets a user of its own: the kernel then counts that container's processes alone.
"""

from __future__ import annotations

import os
import secrets
from functools import cache
from pathlib import Path

from harness.sandbox.limits import cgroups

# No distribution gives these away: https://systemd.io/UIDS-GIDS/ lists who uses which.
_FIRST, _COUNT = 0x7000_0000, 0x1000_0000


@cache
def is_needed() -> bool:
    """Whether processes of containers have to be another user than this one, and can be."""
    return os.geteuid() == 0 and cgroups.parents().processes is None and _all_mapped()


def new_owner() -> int | None:
    """A user that nobody else is, or None for this one."""
    return _FIRST + 1 + secrets.randbelow(_COUNT - 1) if is_needed() else None


def builder() -> int | None:
    """The user that builds what containers share, or None for this one."""
    return _FIRST if is_needed() else None


def own(fd: int, owner: int | None) -> None:
    """Give an open file or folder to a user, if it is not to be this one's."""
    if owner is not None and os.fstat(fd).st_uid != owner:
        os.fchown(fd, owner, owner)


def own_link(name: str, owner: int | None, *, folder: int) -> None:
    """Give a link in an open folder to a user, if it is not to be this one's."""
    if owner is not None:
        os.chown(name, owner, owner, dir_fd=folder, follow_symlinks=False)


def own_tree(top: Path, owner: int | None) -> None:
    """Give a folder and all in it to a user; nobody else may work in it yet."""
    if owner is None:
        return
    for _, folders, files, fd in os.fwalk(top):
        own(fd, owner)
        # Links to folders are among the folders.
        for name in (*folders, *files):
            own_link(name, owner, folder=fd)


def _all_mapped() -> bool:
    """Whether this process's user namespace knows these users."""
    lines = Path("/proc/self/uid_map").read_text().splitlines()
    ranges = [(int(first), int(count)) for first, _, count in (line.split() for line in lines)]
    return any(first <= _FIRST and first + count >= _FIRST + _COUNT for first, count in ranges)

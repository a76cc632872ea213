"""The folder on the host that is a container's root: what it begins with, and where mounts go."""

from __future__ import annotations

import fcntl
import os
import stat
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path, PurePosixPath

from harness.sandbox import view
from harness.sandbox.files.confined import FOLDER
from harness.sandbox.files.owner import own, own_link, own_tree
from harness.sandbox.files.removal import remove
from harness.values import Mount

HOME = "/root"

_PREFIX = "harness-root-"
_NEW_PREFIX = "harness-new-"

_FOLDERS = {
    "": 0o755,
    **dict.fromkeys(("dev", "etc", "home", "mnt", "opt", "proc", "run", "srv", "usr"), 0o755),
    **dict.fromkeys(("var", "var/cache", "var/lib", "var/log"), 0o755),
    **dict.fromkeys(("logs", "logs/agent", "logs/verifier", "logs/artifacts"), 0o755),
    **dict.fromkeys(("opt/python", view.PYTHON_FOLDER[1:]), 0o755),
    **dict.fromkeys(("tmp", "var/tmp"), 0o1777),
    "root": 0o700,
}


class RootFolder:
    """A container's root on the host, with a place beside it for what is thrown away."""

    def __init__(self, owner: int | None = None) -> None:
        """Make it.

        Args:
            owner: Whom all in it belongs to, if not to this user.
        """
        remove_left_over()
        self.owner = owner
        self._base, self._lock = _locked_folder()
        self.path = self._base / "root"
        self._trash = self._base / "trash"
        self._thrown_away = 0
        for name, mode in _FOLDERS.items():
            (self.path / name).mkdir()
            # By itself, since making it leaves out what the umask says.
            (self.path / name).chmod(mode)
        for place, text in view.etc_files(network=False).items():
            (self.path / place[1:]).write_text(text)
        for place, target in view.system_links().items():
            (self.path / place[1:]).symlink_to(target)
        own_tree(self.path, owner)

    @property
    def everything(self) -> Path:
        """The folder that holds all that the container takes of the disk."""
        return self._base

    def close(self) -> None:
        """Remove it; no process may work in it any more."""
        try:
            remove(self._base)
        finally:
            os.close(self._lock)

    def throw_away(self, parent: int, name: str) -> None:
        """Take something out of the tree at once, whatever it is and however big.

        Args:
            parent: The open folder it is in.
            name: In that folder.

        Raises:
            FileNotFoundError: there is nothing.
        """
        if stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
            _let_move(parent, name)
        if self._thrown_away == 0:
            self._trash.mkdir(mode=0o700, exist_ok=True)
        self._thrown_away += 1
        os.rename(name, self._trash / str(self._thrown_away), src_dir_fd=parent)

    def mounted(self, mounts: Sequence[Mount]) -> tuple[Mount, ...]:
        """All mounts in the order to be made, after seeing that each has its place in the tree.

        A folder that holds a mount is mounted on itself, since only what is a mount can neither be
        moved nor replaced by a link: so a process inside cannot turn the next one's mounts aside.
        """
        targets = {PurePosixPath(mount.target) for mount in mounts}
        parents = {parent for target in targets for parent in target.parents[:-1]}
        ancestors = {
            str(parent) for parent in parents if targets.isdisjoint((parent, *parent.parents))
        }
        own = [Mount(self.path / place[1:], place, writable=True) for place in ancestors]
        ordered = sorted((*own, *mounts), key=lambda mount: len(PurePosixPath(mount.target).parts))
        self._make_places(ordered)
        return tuple(ordered)

    def _make_places(self, mounts: Sequence[Mount]) -> None:
        root = os.open(self.path, FOLDER)
        try:
            for name in ("proc", "dev"):
                self._make_folder(root, (name,))
            for mount in mounts:
                parts = PurePosixPath(mount.target).parts[1:]
                if mount.source.is_dir():
                    self._make_folder(root, parts)
                else:
                    self._make_file(root, parts)
            for place, target in view.system_links().items():
                if "/" not in place[1:]:
                    self._make_link(root, place[1:], target)
        finally:
            os.close(root)

    def _make_folder(self, root: int, parts: Sequence[str]) -> None:
        os.close(self._opened(root, parts))

    def _opened(self, root: int, parts: Sequence[str]) -> int:
        here = os.dup(root)
        for name in parts:
            above = here
            try:
                try:
                    here = os.open(name, FOLDER, dir_fd=above)
                except (FileNotFoundError, NotADirectoryError, PermissionError):
                    self._clear(above, name)
                    os.mkdir(name, 0o755, dir_fd=above)
                    here = os.open(name, FOLDER, dir_fd=above)
                    own(here, self.owner)
            finally:
                os.close(above)
        return here

    def _make_file(self, root: int, parts: Sequence[str]) -> None:
        parent = self._opened(root, parts[:-1])
        try:
            if not _is(stat.S_ISREG, parent, parts[-1]):
                self._clear(parent, parts[-1])
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
                made = os.open(parts[-1], flags, 0o644, dir_fd=parent)
                own(made, self.owner)
                os.close(made)
        finally:
            os.close(parent)

    def _make_link(self, root: int, name: str, target: str) -> None:
        if not (_is(stat.S_ISLNK, root, name) and os.readlink(name, dir_fd=root) == target):
            self._clear(root, name)
            os.symlink(target, name, dir_fd=root)
            own_link(name, self.owner, folder=root)

    def _clear(self, parent: int, name: str) -> None:
        try:
            self.throw_away(parent, name)
        except FileNotFoundError:
            return


@cache
def remove_left_over() -> None:
    """Remove, once, what a harness that was killed has left: who lives holds a lock on his own."""
    for base in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError):
            lock = os.open(base, FOLDER)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.fstat(lock).st_uid == os.geteuid():
                    remove(base)
            finally:
                os.close(lock)


def _locked_folder() -> tuple[Path, int]:
    """A new folder, and what holds it for as long as this process lives."""
    new = Path(tempfile.mkdtemp(prefix=_NEW_PREFIX))
    lock = os.open(new, FOLDER)
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    # Only now it has a name by which others find it.
    base = new.with_name(_PREFIX + new.name.removeprefix(_NEW_PREFIX))
    new.rename(base)
    return base, lock


def _is(kind: Callable[[int], bool], parent: int, name: str) -> bool:
    try:
        return kind(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return False


def _let_move(parent: int, name: str) -> None:
    """A folder can be moved only by who may write to it."""
    fd = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    try:
        os.chmod(f"/proc/self/fd/{fd}", 0o700)
    finally:
        os.close(fd)

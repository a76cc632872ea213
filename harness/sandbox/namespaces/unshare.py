"""The sandbox for hosts without bubblewrap: the same view, made with system calls."""

from __future__ import annotations

import marshal
import os
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from harness.sandbox import view
from harness.sandbox.files import owner
from harness.sandbox.namespaces import seccomp
from harness.sandbox.namespaces.process import Launch
from harness.sandbox.namespaces.runner import Runner, Scene
from harness.values import Mount

_ENTER = str(Path(__file__).with_name("enter.py"))


class Unshare(Runner):
    """Runs processes in user, mount, process, network and other namespaces of their own."""

    kind = "unshare"

    def new_owner(self) -> int | None:
        """Whose files a new container has, and who its processes are, if it is not this user."""
        return owner.new_owner()

    def launch(self, scene: Scene, command: Sequence[str], opened: ExitStack) -> Launch:
        """How a command is started."""
        user = owner.builder() if scene.root is None else scene.owner
        if scene.root is None and user is not None:
            _hand_over(scene.mounts, user)
        no_folder = f"cannot enter {scene.cwd}: "
        seen = {
            "hostname": view.HOSTNAME,
            "user": user,
            "proc_read_only": view.PROC_READ_ONLY,
            "devices": view.DEVICES,
            "shared_memory": view.SHARED_MEMORY_BYTES,
            "root": None if scene.root is None else str(scene.root),
            "mounts": [(str(mount.source), mount.target, mount.writable) for mount in scene.mounts],
            "links": dict(scene.links),
            "files": dict(scene.files),
            "network": scene.network,
            "cwd": scene.cwd,
            "no_folder": no_folder,
            "filter": seccomp.no_keys(),
            "env": dict(scene.env),
            "command": list(command),
        }
        view_fd = os.memfd_create("view")
        opened.callback(os.close, view_fd)
        os.write(view_fd, marshal.dumps(seen))
        os.lseek(view_fd, 0, os.SEEK_SET)
        start = (sys.executable, "-I", "-S", _ENTER)
        return Launch(
            lambda status_fd: [*start, str(status_fd), str(view_fd)],
            (view_fd,),
            no_folder=no_folder,
        )


def _hand_over(mounts: Sequence[Mount], user: int) -> None:
    """Let a user write where it is meant to, and all others read what it makes there."""
    for mount in mounts:
        # What is its own already has nothing in it that is not.
        if mount.writable and mount.source.stat().st_uid != user:
            owner.own_tree(mount.source, user)
            mount.source.chmod(0o755)

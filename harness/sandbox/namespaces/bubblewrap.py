"""The sandbox that bubblewrap makes."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import PurePosixPath

from harness.errors import SandboxError
from harness.sandbox import view
from harness.sandbox.namespaces import seccomp
from harness.sandbox.namespaces.process import Launch
from harness.sandbox.namespaces.runner import Runner, Scene
from harness.values import Mount

# Dropping the capabilities matters: a bwrap started by root keeps them, and could remount /usr.
# In a user namespace of its own a process has them again, and could lift its own limits.
_ISOLATION = (
    *("--unshare-user", "--uid", "0", "--gid", "0", "--cap-drop", "ALL", "--disable-userns"),
    *("--unshare-pid", "--unshare-ipc", "--unshare-uts"),
    *("--hostname", view.HOSTNAME, "--die-with-parent", "--new-session"),
)


class Bubblewrap(Runner):
    """Runs processes under `bwrap`."""

    kind = "bubblewrap"
    asks_inside = True

    def launch(self, scene: Scene, command: Sequence[str], opened: ExitStack) -> Launch:
        """How a command is started.

        Raises:
            SandboxError: bubblewrap is not installed.
        """
        executable = shutil.which("bwrap")
        if executable is None:
            raise SandboxError("bwrap is not installed")
        files = {place: _in_memory(text, opened) for place, text in scene.files.items()}
        wait_fd, go_fd = os.pipe2(os.O_CLOEXEC)
        for fd in (wait_fd, go_fd):
            opened.callback(os.close, fd)
        given = [wait_fd, *files.values()]
        options = [*_options(scene, files), "--block-fd", str(wait_fd)]
        if seccomp.no_keys():
            given.append(_in_memory(seccomp.no_keys(), opened))
            options += ["--seccomp", str(given[-1])]
        # Not on the command line: that can be read inside, and names folders of the host.
        options_fd = _in_memory("".join(f"{option}\0" for option in options), opened)

        def arguments(status_fd: int) -> list[str]:
            report = ("--json-status-fd", str(status_fd), "--args", str(options_fd))
            isolation = _ISOLATION if scene.network else (*_ISOLATION, "--unshare-net")
            return [executable, *isolation, *report, "--", *command]

        return Launch(
            arguments,
            (options_fd, *given),
            no_folder=f"bwrap: Can't chdir to {scene.cwd}: ",
            go_fd=go_fd,
        )


def _options(scene: Scene, files: Mapping[str, int]) -> list[str]:
    options = [] if scene.root is None else ["--bind", str(scene.root), "/"]
    options += ["--proc", "/proc", "--dev", "/dev"]
    options += ["--perms", "1777", "--size", str(view.SHARED_MEMORY_BYTES), "--tmpfs", "/dev/shm"]
    options += ["--remount-ro", "/dev"]
    for path in view.PROC_READ_ONLY:
        options += ["--ro-bind-try", path, path]
    if scene.root is None:
        options += ["--perms", "1777", "--tmpfs", "/tmp", "--perms", "0755", "--dir", "/etc"]
    options += _binds(scene.mounts)
    for place, target in scene.links.items():
        # bwrap would make the folders of a link for itself alone.
        for folder in reversed(PurePosixPath(place).parents[:-1]):
            options += ["--perms", "0755", "--dir", str(folder)]
        options += ["--symlink", target, place]
    for place, fd in files.items():
        options += ["--perms", "0644", "--file", str(fd), place]
    if scene.root is None:
        options += ["--remount-ro", "/"]
    # Only here: bwrap itself is a process of the host, and must not be told what to load.
    options.append("--clearenv")
    for name, value in scene.env.items():
        options += ["--setenv", name, value]
    return [*options, "--chdir", scene.cwd]


def _binds(mounts: Sequence[Mount]) -> list[str]:
    arguments = []
    for mount in mounts:
        option = "--bind" if mount.writable else "--ro-bind"
        arguments += [option, str(mount.source), mount.target]
    return arguments


def _in_memory(content: str | bytes, opened: ExitStack) -> int:
    fd = os.memfd_create("sandbox")
    opened.callback(os.close, fd)
    os.write(fd, os.fsencode(content))
    os.lseek(fd, 0, os.SEEK_SET)
    return fd

"""The sandbox that bubblewrap makes."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import PurePosixPath

from harness.errors import SandboxError
from harness.sandbox import view
from harness.sandbox.process import OUTPUT_LIMIT, supervise
from harness.values import Mount, ProcessResult

# Dropping the capabilities matters: a bwrap started by root keeps them, and could remount /usr.
_ISOLATION = (
    *("--unshare-user", "--uid", "0", "--gid", "0", "--cap-drop", "ALL"),
    *("--unshare-pid", "--unshare-ipc", "--unshare-uts"),
    *("--hostname", view.HOSTNAME, "--die-with-parent", "--new-session"),
)


class Bubblewrap:
    """Runs processes under `bwrap`."""

    kind = "bubblewrap"

    def __init__(self, output_limit: int = OUTPUT_LIMIT) -> None:
        self._output_limit = output_limit

    def run(
        self,
        command: Sequence[str],
        *,
        mounts: Sequence[Mount],
        timeout_s: float,
        cwd: str = "/workspace",
        env: Mapping[str, str] = {},
        network: bool = False,
    ) -> ProcessResult:
        """Run a command to its end or its timeout, then kill all it started.

        Args:
            command: Program and arguments.
            mounts: What it sees besides the system.
            timeout_s: Seconds until everything is killed.
            cwd: Where it starts.
            env: Variables besides the few that are always there.
            network: Let it use the host's.

        Raises:
            SandboxError: bubblewrap is missing or not allowed here.
        """
        executable = shutil.which("bwrap")
        if executable is None:
            raise SandboxError("bwrap is not installed")
        checked = view.check_mounts(mounts)
        texts = view.etc_files(network=network)
        with ExitStack() as opened:
            files = {target: _in_memory(text, opened) for target, text in texts.items()}

            options = [
                *_system(files, network),
                *_binds(checked),
                "--remount-ro",
                "/",
                "--chdir",
                cwd,
            ]
            # Not on the command line: that can be read inside, and names folders of the host.
            options_fd = _in_memory("".join(f"{option}\0" for option in options), opened)

            def launcher(status_fd: int) -> list[str]:
                report = ("--json-status-fd", str(status_fd), "--args", str(options_fd))
                isolation = _ISOLATION if network else (*_ISOLATION, "--unshare-net")
                return [executable, *isolation, *report, "--", *view.start(command)]

            return supervise(
                launcher,
                env=view.environment(cwd, env),
                timeout_s=timeout_s,
                output_limit=self._output_limit,
                pass_fds=(options_fd, *files.values()),
            )


def _system(files: Mapping[str, int], network: bool) -> list[str]:
    arguments = ["--proc", "/proc", "--dev", "/dev", "--perms", "1777", "--tmpfs", "/tmp"]
    arguments += ["--perms", "0755", "--dir", "/etc"]
    for path in view.PROC_READ_ONLY:
        arguments += ["--ro-bind-try", path, path]
    arguments += _binds(view.system_mounts(network=network))
    for place, target in view.system_links().items():
        # bwrap would make the folders of a link for itself alone.
        for folder in reversed(PurePosixPath(place).parents[:-1]):
            arguments += ["--perms", "0755", "--dir", str(folder)]
        arguments += ["--symlink", target, place]
    for place, fd in files.items():
        arguments += ["--perms", "0644", "--file", str(fd), place]
    return arguments


def _binds(mounts: Sequence[Mount]) -> list[str]:
    arguments = []
    for mount in mounts:
        option = "--bind" if mount.writable else "--ro-bind"
        arguments += [option, str(mount.source), mount.target]
    return arguments


def _in_memory(text: str, opened: ExitStack) -> int:
    fd = os.memfd_create("sandbox")
    opened.callback(os.close, fd)
    os.write(fd, os.fsencode(text))
    os.lseek(fd, 0, os.SEEK_SET)
    return fd

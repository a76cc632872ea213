"""The sandbox for hosts without bubblewrap: the same view, made with system calls."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness.sandbox import view
from harness.sandbox.process import OUTPUT_LIMIT, supervise
from harness.values import Mount, ProcessResult

_ENTER = str(Path(__file__).with_name("enter.py"))


class Unshare:
    """Runs processes in user, mount, process, network and other namespaces of their own."""

    kind = "unshare"

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
            SandboxError: namespaces are not allowed here.
        """
        seen = {
            "hostname": view.HOSTNAME,
            "proc_read_only": view.PROC_READ_ONLY,
            "devices": view.DEVICES,
            "system": _plain(view.system_mounts(network=network)),
            "network": network,
            "links": view.system_links(),
            "files": view.etc_files(network=network),
            "mounts": _plain(view.check_mounts(mounts)),
            "cwd": cwd,
            "env": view.environment(cwd, env),
            "command": view.start(command),
        }
        view_fd = os.memfd_create("view")
        try:
            os.write(view_fd, json.dumps(seen).encode())
            os.lseek(view_fd, 0, os.SEEK_SET)
            start = (sys.executable, "-I", "-S", _ENTER)
            return supervise(
                lambda status_fd: [*start, str(status_fd), str(view_fd)],
                env={"LANG": "C.UTF-8"},
                timeout_s=timeout_s,
                output_limit=self._output_limit,
                pass_fds=(view_fd,),
            )
        finally:
            os.close(view_fd)


def _plain(mounts: Sequence[Mount]) -> list[tuple[str, str, bool]]:
    return [(str(mount.source), mount.target, mount.writable) for mount in mounts]

"""A sandbox with a workspace, and a look at the host's processes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.sandbox.namespaces.bubblewrap import Bubblewrap
from harness.sandbox.namespaces.runner import Runner
from harness.sandbox.namespaces.unshare import Unshare
from harness.values import Mount, ProcessResult

RUNNERS: dict[str, type[Runner]] = {
    "bubblewrap": Bubblewrap,
    "unshare": Unshare,
}


@dataclass(frozen=True)
class Box:
    runner: Runner
    folder: Path
    mounts: tuple[Mount, ...]

    def bash(
        self, script: str, timeout_s: float = 60, env: Mapping[str, str] = {}
    ) -> ProcessResult:
        return self.runner.run(
            ["bash", "-c", script], mounts=self.mounts, timeout_s=timeout_s, env=env
        )


def runs_on_host(*command: str) -> bool:
    """Whether any process of the host has exactly these arguments."""
    wanted = "".join(f"{word}\0" for word in command).encode()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if path.read_bytes() == wanted:
                return True
        except (FileNotFoundError, ProcessLookupError):
            continue
    return False

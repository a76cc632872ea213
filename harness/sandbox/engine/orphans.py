"""Whose containers are: those of a harness that was killed are removed by the next one."""

from __future__ import annotations

import json
import os
import time
from functools import cache
from pathlib import Path

from harness.sandbox.engine.answers import Containers
from harness.sandbox.engine.api import Engine, told

OWNER = "loop-harness.owner"
"""Label of every container: the process that made it, as no other will ever be called."""

_LIFETIME_S = 90_000
"""A container that is older has ended by itself."""


def own_name() -> str:
    """This process: where it runs, its number there, and when it began."""
    return _name(os.getpid()) or ""


@cache
def remove_orphans(address: str, pid: int) -> None:
    """Remove the containers of processes that are dead, once for each process.

    Args:
        address: Of the engine.
        pid: This process.

    Raises:
        SandboxError: the engine does not answer as it should.
    """
    engine = Engine(address)
    query = {"all": "1", "filters": json.dumps({"label": [OWNER]})}
    answer = engine.call("GET", "/containers/json", query)
    for found in told(Containers, answer.body, "GET /containers/json").root:
        owner = (found.labels or {}).get(OWNER, "")
        if _is_dead(owner) or found.created < time.time() - _LIFETIME_S:
            # Another harness may be doing the same.
            query = {"force": "1", "v": "1"}
            engine.call("DELETE", f"/containers/{found.id}", query, expect=(204, 404, 409))


def _is_dead(owner: str) -> bool:
    """Whether a process ran where this one does, and does no more."""
    place, _, rest = owner.partition(" ")
    pid, _, _ = rest.partition(" ")
    return place == _place() and pid.isdigit() and _name(int(pid)) != owner


def _name(pid: int) -> str | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    began = stat.rpartition(")")[2].split()[19]
    return f"{_place()} {pid} {began}"


def _place() -> str:
    """What counts processes: a boot of a host, and a namespace there."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
    return f"{boot}/{os.stat('/proc/self/ns/pid').st_ino}"

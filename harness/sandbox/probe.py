"""Which sandboxes work on this host: found out by running one, never by guessing."""

from __future__ import annotations

from functools import cache

from harness.errors import SandboxError
from harness.protocols import ProcessRunner
from harness.sandbox.bubblewrap import Bubblewrap
from harness.sandbox.unshare import Unshare

_SANDBOXES: dict[str, ProcessRunner] = {"bubblewrap": Bubblewrap(), "unshare": Unshare()}

KINDS = tuple(_SANDBOXES)
"""In order of preference."""

_PROBE_TIMEOUT_S = 20.0


@cache
def problem(kind: str) -> str | None:
    """Why a kind of sandbox does not work here, or None if it does."""
    try:
        result = _SANDBOXES[kind].run(["true"], mounts=(), timeout_s=_PROBE_TIMEOUT_S, cwd="/tmp")
    except SandboxError as error:
        return str(error)
    return None if result.exit_code == 0 else f"`true` failed in it: {result.output.strip()}"


def best() -> ProcessRunner:
    """The first sandbox that works on this host.

    Raises:
        SandboxError: none does; the text says what to install or allow.
    """
    for kind, sandbox in _SANDBOXES.items():
        if problem(kind) is None:
            return sandbox
    reasons = "; ".join(f"{kind}: {problem(kind)}" for kind in KINDS)
    raise SandboxError(
        f"no sandbox works here ({reasons}). Install bubblewrap (`apt-get install bubblewrap`) and "
        "allow user namespaces, or replay, which needs no sandbox"
    )

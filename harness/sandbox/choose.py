"""Which sandboxes there are, and which of them work on this host: found out by running one."""

from __future__ import annotations

from functools import cache

from harness.containers import Sandbox
from harness.errors import BadInputError, SandboxError
from harness.sandbox.container import FolderSandbox, Progress, SandboxSettings, silent
from harness.sandbox.directory import DirectorySandbox
from harness.sandbox.docker import DockerSandbox
from harness.sandbox.engine.api import DEFAULT_ADDRESS
from harness.sandbox.namespaces.bubblewrap import Bubblewrap
from harness.sandbox.namespaces.runner import Runner
from harness.sandbox.namespaces.unshare import Unshare

_RUNNERS: dict[str, type[Runner]] = {"bubblewrap": Bubblewrap, "unshare": Unshare}

KINDS = (*_RUNNERS, "docker", "directory")
AUTOMATIC = ("bubblewrap", "unshare")
"""Those that are chosen by themselves, in order of preference."""


def sandbox(
    kind: str | None = None,
    settings: SandboxSettings | None = None,
    progress: Progress = silent,
) -> Sandbox:
    """A sandbox by its name; without one, the first that works on this host.

    Args:
        kind: One of `KINDS`.
        settings: What its containers are made with, if not with what they are by themselves.
        progress: Told what is being built, which can take minutes.

    Raises:
        BadInputError: there is no such kind.
        SandboxError: it does not work here; the text says what to install or allow.
    """
    if kind is None:
        kind = _first_working()
    elif kind not in KINDS:
        raise BadInputError(f"sandbox {kind!r}: use {', '.join(KINDS)}")
    settings = settings or SandboxSettings()
    reason = problem(kind, settings.engine)
    if reason is not None:
        raise SandboxError(f"the sandbox {kind!r} does not work here: {reason}")
    return _made(kind, settings, progress)


@cache
def problem(kind: str, engine: str = DEFAULT_ADDRESS) -> str | None:
    """Why a kind of sandbox does not work here, or None if it does.

    Args:
        kind: One of `KINDS`.
        engine: Where a container engine listens, for the kind that has one.
    """
    return _made(kind, SandboxSettings(engine=engine)).problem()


def has_own_users(kind: str) -> bool:
    """Whether each container of a kind is a user of its own here: nothing else holds it.

    Args:
        kind: One of `KINDS`.
    """
    return kind in _RUNNERS and _RUNNERS[kind]().new_owner() is not None


def _made(kind: str, settings: SandboxSettings, progress: Progress = silent) -> Sandbox:
    if kind == "docker":
        return DockerSandbox(settings, progress)
    if kind == "directory":
        return DirectorySandbox(settings)
    return FolderSandbox(_RUNNERS[kind](), settings, progress)


def _first_working() -> str:
    kinds: dict[str, list[str]] = {}
    for kind in AUTOMATIC:
        reason = problem(kind)
        if reason is None:
            return kind
        kinds.setdefault(reason, []).append(kind)
    reasons = "; ".join(f"{', '.join(names)}: {reason}" for reason, names in kinds.items())
    raise SandboxError(
        f"no sandbox works here ({reasons}). Install bubblewrap (`apt-get install bubblewrap`) and "
        "allow user namespaces, or replay, which needs no sandbox"
    )

"""`harness doctor`: what is installed and usable here."""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Iterator

from harness.cli import FINE
from harness.cli.options import environment, make_command
from harness.cli.terminal import Terminal
from harness.providers.catalog import VENDORS
from harness.runner.start import SHAPING
from harness.sandbox.choose import AUTOMATIC, KINDS, has_own_users, problem
from harness.sandbox.engine.api import engine_address
from harness.schema.record import Record

_WORKS = {"docker": "works, if asked for", "directory": "works; for trusted tasks, if asked for"}
_WORKS_AS_OTHERS = "works; each container is a user of its own, since no control group can be made"


class SandboxState(Record):
    """One kind of sandbox on this host."""

    kind: str
    works: bool
    problem: str | None
    own_users: bool = False
    """Whether each container's processes are a user of their own, since only that holds them."""


class Diagnosis(Record):
    """What was found."""

    python: str
    system: str
    versions: dict[str, str | None]
    """Package -> version; None where it is not installed."""
    sandboxes: tuple[SandboxState, ...]
    """In order of preference: the first that works is used, the last two if asked for alone."""
    keys: dict[str, bool]
    """Key variable -> whether it is set; values are never looked at."""


@make_command("doctor", example="harness doctor")
def command(terminal: Terminal) -> int:
    """Say what is installed and usable here: versions, sandboxes, and which keys are set.

    Replaying needs neither a sandbox nor a key.
    """
    found = diagnose()
    terminal.result(found.model_dump(mode="json"), _lines(found))
    return FINE


def diagnose() -> Diagnosis:
    """Look at this host."""
    variables = environment()
    problems = {kind: problem(kind, engine_address(variables)) for kind in KINDS}
    return Diagnosis(
        python=platform.python_version(),
        system=f"{platform.system()} {platform.machine()}",
        versions={package: _version(package) for package in SHAPING},
        sandboxes=tuple(
            SandboxState(
                kind=kind,
                works=why is None,
                problem=why,
                own_users=why is None and has_own_users(kind),
            )
            for kind, why in problems.items()
        ),
        keys={
            vendor.key_variable: bool(variables.get(vendor.key_variable))
            for vendor in VENDORS.values()
        },
    )


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _lines(found: Diagnosis) -> Iterator[str]:
    yield f"Python {found.python} on {found.system}"
    for package, version in found.versions.items():
        yield f"{package} {version or 'not installed'}"
    for sandbox in found.sandboxes:
        works = _WORKS_AS_OTHERS if sandbox.own_users else _WORKS.get(sandbox.kind, "works")
        yield f"sandbox {sandbox.kind}: {works if sandbox.works else sandbox.problem}"
    if not any(sandbox.works for sandbox in found.sandboxes if sandbox.kind in AUTOMATIC):
        yield "No sandbox works: recording needs one, replaying does not."
    for name, is_set in found.keys.items():
        yield f"{name}: {'set' if is_set else 'not set; needed only to record with that vendor'}"

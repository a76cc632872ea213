"""The sandboxes of this host."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.sandbox import choose
from harness.sandbox.namespaces.runner import Runner
from harness.values import Mount
from tests.sandbox.box import RUNNERS, Box
from tests.sandbox.docker_engine import Engine


@pytest.fixture(params=sorted(RUNNERS))
def runner(request: pytest.FixtureRequest) -> Runner:
    reason = choose.problem(request.param)
    if reason is not None:
        pytest.skip(f"the {request.param} sandbox does not work on this host: {reason}")
    return RUNNERS[request.param]()


@pytest.fixture
def box(runner: Runner, tmp_path: Path) -> Box:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return Box(runner, folder, (Mount(folder, "/workspace", writable=True),))


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    """A container engine; what it is asked to run runs in a sandbox of this host."""
    working = [kind for kind in choose.AUTOMATIC if choose.problem(kind) is None]
    if not working:
        pytest.skip("no sandbox works on this host (`apt-get install bubblewrap`)")
    running = Engine(RUNNERS[working[0]]())
    yield running
    running.close()

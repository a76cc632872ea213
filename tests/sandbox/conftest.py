"""The sandboxes of this host."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.sandbox import choose
from harness.sandbox.runner import Runner
from harness.values import Mount
from tests.sandbox.box import RUNNERS, Box


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

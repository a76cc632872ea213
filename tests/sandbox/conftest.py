"""The sandboxes of this host."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.protocols import ProcessRunner
from harness.sandbox import probe
from harness.values import Mount
from tests.sandbox.box import SANDBOXES, Box


@pytest.fixture(params=probe.KINDS)
def sandbox(request: pytest.FixtureRequest) -> ProcessRunner:
    reason = probe.problem(request.param)
    if reason is not None:
        pytest.skip(f"the {request.param} sandbox does not work on this host: {reason}")
    return SANDBOXES[request.param]()


@pytest.fixture
def box(sandbox: ProcessRunner, tmp_path: Path) -> Box:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return Box(sandbox, folder, (Mount(folder, "/workspace", writable=True),))

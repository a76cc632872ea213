"""Finding a sandbox that works."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import harness
from harness.sandbox import choose
from harness.sandbox.namespaces.runner import Runner
from harness.values import Mount

ASK = "from harness.sandbox import choose; print(choose.sandbox().kind)"
CHECKOUT = Path(harness.__file__).parent.parent


def test_the_best_sandbox_is_the_first_that_works():
    working = [kind for kind in choose.AUTOMATIC if choose.problem(kind) is None]
    if not working:
        pytest.skip("no sandbox works on this host")
    assert choose.sandbox().kind == working[0]


def test_without_bubblewrap_namespaces_are_made_directly(tmp_path: Path):
    if (reason := choose.problem("unshare")) is not None:
        pytest.skip(f"the unshare sandbox does not work on this host: {reason}")
    done = subprocess.run(
        [sys.executable, "-c", ASK],
        env={"PATH": str(tmp_path), "PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "unshare\n"


def test_where_no_sandbox_works_the_error_says_what_to_install(runner: Runner):
    # No namespaces can be made inside a sandbox.
    folders = {os.path.realpath(path) for path in (sys.prefix, sys.base_prefix, CHECKOUT)}
    result = runner.run(
        [sys.executable, "-c", ASK],
        mounts=[Mount(Path(path), path) for path in sorted(folders - {"/usr"})],
        cwd="/",
        env={"PYTHONPATH": str(CHECKOUT)},
        timeout_s=60,
    )
    assert result.exit_code == 1
    assert "SandboxError: no sandbox works here (bubblewrap: " in result.output
    assert "apt-get install bubblewrap" in result.output

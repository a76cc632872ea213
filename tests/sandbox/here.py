"""The sandbox that tests of other parts run things in."""

from __future__ import annotations

import pytest

from harness.containers import Sandbox
from harness.sandbox import choose


def working_sandbox() -> Sandbox:
    """The one that is chosen by itself on this host; without any, the test is skipped."""
    reasons = [choose.problem(kind) for kind in choose.AUTOMATIC]
    if None not in reasons:
        pytest.skip(f"no sandbox works on this host (`apt-get install bubblewrap`): {reasons}")
    return choose.sandbox()

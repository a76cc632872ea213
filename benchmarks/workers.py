"""Measurements in fresh processes: what one leaves behind costs the next one nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PEERS_PYTHON = ROOT / ".venv-bench" / "bin" / "python"
PEERS_STAMP = ROOT / ".venv-bench" / "peers.stamp"
"""Made by `make bench` once everything is installed."""

Worker = Callable[..., dict[str, Any]]
"""Takes what the `main` of a module takes."""


class WorkerFailed(Exception):
    """A measurement broke; the text is the last line that it said."""


def fresh(module: str, python: Path = Path(sys.executable)) -> Worker:
    """Runs the `main` of a module in a process of its own each time."""

    def work(*positional: Any, **named: Any) -> dict[str, Any]:
        command = [str(python), "-m", module, json.dumps([positional, named])]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode:
            raise WorkerFailed((done.stderr.strip().splitlines() or ["no word"])[-1])
        answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return answer

    return work

"""Running a task's verifier on what an agent left behind, and reading its reward."""

from __future__ import annotations

import json
import math
import tempfile
from pathlib import Path

from harness.protocols import Mount, Sandbox
from harness.schema.record import Json
from harness.schema.results import Verdict
from harness.schema.suite import Task

LOG_CHARACTERS = 4000
"""How much of the end of the verifier's output is kept."""


def verify(
    task: Task,
    workspace: Path,
    sandbox: Sandbox,
    *,
    answer: str,
    output: Json,
    output_seen: bool,
) -> Verdict:
    """Run `tests/test.sh` on the agent's folder.

    The verifier sees /workspace, its own /tests, and /logs with the agent's answer.txt and, if
    there was an output, output.json. Its exit code is ignored; its reward file counts.

    Raises:
        SandboxError: the sandbox failed, which says nothing about the agent.
    """
    with tempfile.TemporaryDirectory(prefix="harness-logs-") as folder:
        logs = Path(folder)
        (logs / "agent").mkdir()
        (logs / "verifier").mkdir()
        (logs / "agent" / "answer.txt").write_text(answer, encoding="utf-8")
        if output_seen:
            written = json.dumps(output, ensure_ascii=False)
            (logs / "agent" / "output.json").write_text(written, encoding="utf-8")
        result = sandbox.run(
            ["bash", "/tests/test.sh"],
            mounts=[
                Mount(workspace, "/workspace", writable=True),
                Mount(task.tests, "/tests"),
                Mount(logs, "/logs", writable=True),
            ],
            timeout_s=task.verifier_timeout_s,
        )
        log = result.output[-LOG_CHARACTERS:]
        if result.timed_out:
            error = f"the verifier did not end within {task.verifier_timeout_s:g} s"
            return Verdict(error=error, log=log)
        return read_rewards(logs / "verifier", log)


def read_rewards(folder: Path, log: str) -> Verdict:
    """reward.json (flat, finite numbers) wins over reward.txt (one number); neither is an error."""
    for name in ("reward.json", "reward.txt"):
        path = folder / name
        if path.is_file() and not path.is_symlink():
            text = path.read_text(encoding="utf-8", errors="replace")
            rewards = _parse(text) if name == "reward.json" else _parse_number(text)
            if rewards is None:
                return Verdict(error=f"{name} holds no finite number: {text[:80]!r}", log=log)
            return Verdict(rewards=rewards, log=log)
    return Verdict(error="the verifier wrote neither reward.json nor reward.txt", log=log)


def _parse(text: str) -> dict[str, float] | None:
    try:
        parsed = json.loads(text)
    except ValueError:
        return None
    if not isinstance(parsed, dict) or not parsed:
        return None
    numbers = {key: value for key, value in parsed.items() if _is_finite(value)}
    return {key: float(value) for key, value in numbers.items()} if numbers == parsed else None


def _parse_number(text: str) -> dict[str, float] | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return {"reward": number} if math.isfinite(number) else None


def _is_finite(value: object) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and math.isfinite(float(value))  # type: ignore[arg-type]

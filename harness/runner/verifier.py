"""Running a task's verifier on what an agent left behind, and reading its reward."""

from __future__ import annotations

import json
import math
import os
import stat
import tempfile
from pathlib import Path
from typing import Annotated

from pydantic import Field, FiniteFloat, TypeAdapter, ValidationError

from harness.protocols import ProcessRunner
from harness.schema.environment import Verifier
from harness.schema.record import Json
from harness.schema.results import Verdict
from harness.values import Mount

LOG_CHARACTERS = 4000
"""How much of the end of the verifier's output is kept."""

REWARD_BYTES = 65_536
"""A reward file may be this long."""

_REWARDS = TypeAdapter(Annotated[dict[str, FiniteFloat], Field(min_length=1)])


def verify(
    verifier: Verifier,
    workspace: Path,
    sandbox: ProcessRunner,
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
                *(Mount(folder, "/tests") for folder in verifier.tests),
                Mount(logs, "/logs", writable=True),
            ],
            timeout_s=verifier.timeout_s,
        )
        log = result.output[-LOG_CHARACTERS:]
        if result.timed_out:
            error = f"the verifier did not end within {verifier.timeout_s:g} s"
            return Verdict(error=error, log=log)
        return read_rewards(logs / "verifier", log)


def read_rewards(folder: Path, log: str) -> Verdict:
    """reward.json (flat, finite numbers) wins over reward.txt (one number); neither is an error.

    The verifier runs what the agent wrote, so nothing in its folder is trusted.
    """
    for name, parse in (("reward.json", _parse_named), ("reward.txt", _parse_number)):
        try:
            content = _content(folder, name)
        except FileNotFoundError:
            continue
        except OSError as error:
            return Verdict(error=f"{name} cannot be read: {error.strerror}", log=log)
        if content is None:
            limit = f"a plain file of at most {REWARD_BYTES} bytes"
            return Verdict(error=f"{name} is not {limit}", log=log)
        rewards = parse(content)
        if rewards is None:
            text = content.decode(errors="replace")
            return Verdict(error=f"{name} holds no finite number: {text[:80]!r}", log=log)
        return Verdict(rewards=rewards, log=log)
    return Verdict(error="the verifier wrote neither reward.json nor reward.txt", log=log)


def _content(folder: Path, name: str) -> bytes | None:
    """What a plain file holds, reached without following links; None if it is not one, or long."""
    folder_fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        # Opening a pipe without O_NONBLOCK waits for a writer.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        file_fd = os.open(name, flags, dir_fd=folder_fd)
    finally:
        os.close(folder_fd)
    try:
        found = os.fstat(file_fd)
        if not stat.S_ISREG(found.st_mode) or found.st_size > REWARD_BYTES:
            return None
        return os.read(file_fd, REWARD_BYTES)
    finally:
        os.close(file_fd)


def _parse_named(content: bytes) -> dict[str, float] | None:
    try:
        return _REWARDS.validate_json(content, strict=True)
    except ValidationError:
        return None


def _parse_number(content: bytes) -> dict[str, float] | None:
    try:
        number = float(content)
    except ValueError:
        return None
    return {"reward": number} if math.isfinite(number) else None

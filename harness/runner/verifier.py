"""Running a task's verifier on what an agent left behind, and reading its reward."""

from __future__ import annotations

import json
import math
import tempfile
from pathlib import Path
from typing import Annotated

from pydantic import Field, FiniteFloat, TypeAdapter, ValidationError

from harness.containers import Container
from harness.schema.environment import Verifier
from harness.schema.record import Json
from harness.schema.results import Verdict

LOG_CHARACTERS = 4000
"""How much of the end of the verifier's output is kept."""

REWARD_BYTES = 65_536
"""A reward file may be this long."""

_REWARDS = TypeAdapter(Annotated[dict[str, FiniteFloat], Field(min_length=1)])


def verify(
    verifier: Verifier,
    container: Container,
    *,
    answer: str,
    output: Json,
    output_seen: bool,
) -> Verdict:
    """Run `tests/test.sh` on the agent's machine.

    The verifier finds its own /tests, and /logs with the agent's answer.txt and, if there was an
    output, output.json. Its exit code is ignored; its reward file counts.

    Raises:
        SandboxError: the sandbox failed, which says nothing about the agent.
    """
    for place, folder in enumerate(verifier.tests):
        container.upload(folder, verifier.place, merge=place > 0)
    with tempfile.TemporaryDirectory(prefix="harness-logs-") as name:
        logs = Path(name)
        (logs / "agent").mkdir()
        (logs / "verifier").mkdir()
        (logs / "agent" / "answer.txt").write_text(answer, encoding="utf-8")
        if output_seen:
            written = json.dumps(output, ensure_ascii=False)
            (logs / "agent" / "output.json").write_text(written, encoding="utf-8")
        # In place of what is there: no reward is left from before.
        container.upload(logs, "/logs")
    result = container.run(["bash", f"{verifier.place}/test.sh"], timeout_s=verifier.timeout_s)
    log = result.output[-LOG_CHARACTERS:]
    if result.timed_out:
        error = f"the verifier did not end within {verifier.timeout_s:g} s"
        return Verdict(error=error, log=log)
    return read_rewards(container, log)


def read_rewards(container: Container, log: str) -> Verdict:
    """reward.json (flat, finite numbers) wins over reward.txt (one number); neither is an error.

    The verifier runs what the agent wrote, so nothing in its folder is trusted.
    """
    for name, parse in (("reward.json", _parse_named), ("reward.txt", _parse_number)):
        try:
            found = container.read(f"/logs/verifier/{name}", REWARD_BYTES)
        except FileNotFoundError:
            continue
        except OSError as error:
            return Verdict(error=f"{name} cannot be read: {error.strerror}", log=log)
        if found.size > REWARD_BYTES:
            return Verdict(error=f"{name} is longer than {REWARD_BYTES} bytes", log=log)
        rewards = parse(found.data)
        if rewards is None:
            text = found.data.decode(errors="replace")
            return Verdict(error=f"{name} holds no finite number: {text[:80]!r}", log=log)
        return Verdict(rewards=rewards, log=log)
    return Verdict(error="the verifier wrote neither reward.json nor reward.txt", log=log)


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

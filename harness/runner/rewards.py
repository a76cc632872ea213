"""The numbers that verifiers write: reading one step's, and what several steps come to."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from pydantic import Field, FiniteFloat, TypeAdapter, ValidationError

from harness.containers import Container
from harness.schema.results import Verdict

LOG_CHARACTERS = 4000
"""How much of the end of a verifier's output is kept."""

REWARD_BYTES = 65_536
"""A reward file may be this long."""

MOST = 1e100
"""A reward beyond this, or below its negative, cannot be added, squared and told."""

FOLDER = "/logs/verifier"

_LAST_LINE = 200
"""Characters of the last line that a verifier without a reward wrote."""

_REWARDS = TypeAdapter(Annotated[dict[str, FiniteFloat], Field(min_length=1)])


def read_rewards(container: Container, log: str, exit_code: int | None = 0) -> Verdict:
    """reward.json (flat, finite numbers) wins over reward.txt (one number); neither is an error.

    The verifier runs what the agent wrote, so nothing in its folder is trusted.

    Args:
        container: Where the verifier ran.
        log: The end of its output.
        exit_code: Its own, told where it wrote no reward.
    """
    for name, parse in (("reward.json", _named), ("reward.txt", _number)):
        try:
            content = container.read(f"{FOLDER}/{name}", REWARD_BYTES)
        except FileNotFoundError:
            continue
        except OSError as error:
            return Verdict(error=f"{name} cannot be read: {error.strerror}", log=log)
        if content.size > REWARD_BYTES:
            return Verdict(error=f"{name} is longer than {REWARD_BYTES} bytes", log=log)
        rewards = parse(content.data)
        if rewards is None:
            text = content.data.decode(errors="replace")
            return Verdict(error=f"{name} holds no finite number: {text[:80]!r}", log=log)
        if any(abs(value) > MOST for value in rewards.values()):
            return Verdict(error=f"{name} holds a number beyond {MOST:g}", log=log)
        return Verdict(rewards=rewards, log=log)
    lacks = "the verifier wrote neither reward.json nor reward.txt"
    if exit_code:
        last = "".join(log.strip().splitlines()[-1:])[-_LAST_LINE:]
        lacks += f"; test.sh exited with {exit_code}{f': {last}' if last else ''}"
    return Verdict(error=lacks, log=log)


def _named(content: bytes) -> dict[str, float] | None:
    try:
        return _REWARDS.validate_json(content, strict=True)
    except ValidationError:
        return None


def _number(content: bytes) -> dict[str, float] | None:
    try:
        number = float(content)
    except ValueError:
        return None
    return {"reward": number} if math.isfinite(number) else None


def combined(
    strategy: Literal["mean", "final"], verdicts: Sequence[tuple[str, Verdict | None]]
) -> Verdict | None:
    """What the steps that were played come to, as Harbor counts them.

    `mean`: of each reward over the steps that have a verdict, a missing one counting as 0;
    `final`: the last one's. A verifier that failed leaves the whole without a reward.

    Args:
        strategy: The task's.
        verdicts: Name and verdict of each step that was played; None where there is no verifier.
    """
    judged = [(name, verdict) for name, verdict in verdicts if verdict is not None]
    if not judged:
        return None
    log = "\n".join(f"[step {name}]\n{verdict.log}" for name, verdict in judged)[-LOG_CHARACTERS:]
    for name, verdict in judged:
        if verdict.error is not None:
            return Verdict(error=f"step {name}: {verdict.error}", log=log)
    if strategy == "final":
        return Verdict(rewards=judged[-1][1].rewards, log=log)
    names = {key: None for _, verdict in judged for key in verdict.rewards}
    try:
        means = {
            key: math.fsum(verdict.rewards.get(key, 0.0) for _, verdict in judged) / len(judged)
            for key in names
        }
    except OverflowError:
        return Verdict(error="the steps' rewards are too large to be added", log=log)
    return Verdict(rewards=means, log=log)


def shortfall(least: Mapping[str, float], verdict: Verdict | None) -> str | None:
    """Why the steps after this one are not begun; None when they are."""
    if verdict is not None and verdict.error is not None:
        return verdict.error
    rewards = {} if verdict is None else verdict.rewards
    for name, minimum in least.items():
        if name not in rewards:
            return f"no reward {name!r}, and {minimum:g} is needed to go on"
        if rewards[name] < minimum:
            return f"{name} {rewards[name]:g} is below {minimum:g}, which is needed to go on"
    return None

"""What the verifier said, and how the run ended: two facts, two scores."""

from __future__ import annotations

from harness.schema.results import Outcome, Score, Verdict
from harness.values import ScoreInput


def reward(verdict: Verdict | None) -> Score:
    """The one number a verdict comes to: the reward named `reward`, else the mean of the others."""
    if verdict is None:
        return Score(value=None, explanation="no verdict")
    if verdict.error is not None:
        return Score(value=None, explanation=verdict.error)
    if not verdict.rewards:
        return Score(value=None, explanation="the verifier gave no reward")
    if "reward" in verdict.rewards:
        return Score(value=verdict.rewards["reward"])
    value = sum(verdict.rewards.values()) / len(verdict.rewards)
    return Score(value=value, explanation=f"mean of {', '.join(sorted(verdict.rewards))}")


def outcome(verdict: Verdict | None) -> Outcome | None:
    """Passed means a reward of at least 1; None where there is no reward."""
    value = reward(verdict).value
    if value is None:
        return None
    return "passed" if float(value) >= 1 else "failed"


class Reward:
    """The verifier's reward."""

    name = "reward"

    def score(self, trial: ScoreInput) -> Score:
        """The number that also decides the outcome."""
        return reward(trial.verdict)


class Ending:
    """How the run ended."""

    name = "ending"

    def score(self, trial: ScoreInput) -> Score:
        """The termination reason, and whether the task expects it."""
        ending = trial.trajectory.termination_reason
        expected = trial.task.expected_endings
        wanted = " or ".join(str(reason) for reason in expected)
        said = "as the task expects" if ending in expected else f"the task expects {wanted}"
        return Score(value=str(ending), explanation=said)

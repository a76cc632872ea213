"""The scorers that every trial gets."""

from __future__ import annotations

from harness.protocols import Scorer
from harness.schema.loop_config import UNSCORED
from harness.schema.results import Score
from harness.scorers.efficiency import Attempts, Cost, Iterations, Tokens, ToolCalls
from harness.scorers.outcome import Ending, Reward
from harness.scorers.validation import Validation
from harness.values import ScoreInput

STANDARD: tuple[Scorer, ...] = (
    Reward(),
    Ending(),
    Iterations(),
    Attempts(),
    ToolCalls(),
    Tokens(),
    Cost(),
    Validation(),
)


def score_trial(trial: ScoreInput) -> dict[str, Score]:
    """Every standard score by name; without values where the ending says nothing of the agent."""
    ending = trial.trajectory.termination_reason
    if ending in UNSCORED:
        said = f"not scored: the trial ended in {ending}"
        return {scorer.name: Score(value=None, explanation=said) for scorer in STANDARD}
    return {scorer.name: scorer.score(trial) for scorer in STANDARD}

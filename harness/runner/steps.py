"""Playing the steps of a trial: each an agent's run and a verifier's word, live or recorded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from harness.cassette.replay.session import Session
from harness.cassette.replay.tool_results import RecordedTools
from harness.errors import InfrastructureError
from harness.runner.rewards import combined, shortfall
from harness.runner.stage import Left, Stage
from harness.runner.step_story import joined, judged
from harness.runner.trial_record import transcript_digest
from harness.schema.environment import Step
from harness.schema.loop_config import UNSCORED, TerminationReason
from harness.schema.results import Verdict
from harness.schema.suite import Task
from harness.schema.trajectory import Trajectory

UNFINISHED = (
    TerminationReason.INFRASTRUCTURE_ERROR,
    TerminationReason.CANCELLED,
    TerminationReason.SKIPPED,
)
"""Endings that replay would not come to: recording again goes on with such a trial."""


@dataclass(frozen=True, slots=True)
class StepPlayer:
    """One trial's steps."""

    task: Task
    session: Session
    tools: RecordedTools
    stage: Stage
    run: Callable[[Step], Trajectory]
    """An agent's run, with its true ending and without secrets."""
    is_live: bool
    """Whether tools and verifiers run again although they are recorded."""

    def play(self) -> tuple[Trajectory, Verdict | None]:
        """Play the steps until one keeps the next from beginning."""
        if len(self.task.steps) == 1:
            (step,) = self.task.steps
            trajectory = self._agent(step)
            return self._verdict(step, trajectory, trajectory)
        story: Trajectory | None = None
        verdicts: list[tuple[str, Verdict | None]] = []
        for number, step in enumerate(self.task.steps, 1):
            now = self._agent(step)
            whole = joined(story, now, step=step.name, number=number)
            story, verdict = self._verdict(step, whole, now)
            if story.termination_reason in UNSCORED:
                # Nothing can be said of the trial, whatever its first steps were worth.
                return story, None
            verdicts.append((step.name, verdict))
            stop = shortfall(step.min_reward, verdict)
            story = judged(story, step.name, verdict, stop)
            if stop is not None or story.termination_reason in UNFINISHED:
                break
        assert story is not None
        return story, combined(self.task.reward_strategy, verdicts)

    def _agent(self, step: Step) -> Trajectory:
        self.tools.prepare(partial(self.stage.begin, step))
        return self.run(step)

    def _verdict(
        self, step: Step, story: Trajectory, now: Trajectory
    ) -> tuple[Trajectory, Verdict | None]:
        """The verifier's word, recorded or live; a sandbox that fails changes the ending.

        Args:
            step: Whose verifier it is.
            story: The trial so far: what a recorded verdict is found by.
            now: This step's part of it.
        """
        if story.termination_reason in UNSCORED:
            return story, None
        left = Left(now.final_text, now.output, now.output_seen)
        session = self.session
        transcript = transcript_digest(story)
        recorded = session.verdict(transcript, self.task.tests_digest)
        if (recorded is not None or not session.recording) and not self.is_live:
            # Where a later step runs live, it finds the machine as this verifier left it.
            self.tools.prepare(partial(self.stage.verify, step, left))
            return story, recorded
        try:
            self.tools.rebuild()
            verdict = self.stage.verify(step, left)
        except InfrastructureError as error:
            broken = {
                "termination_reason": TerminationReason.INFRASTRUCTURE_ERROR,
                "error": str(error),
            }
            return story.model_copy(update=broken), None
        is_whole = story.termination_reason not in UNFINISHED
        if verdict is not None and session.recording and is_whole:
            verdict = session.record_verdict(transcript, self.task.tests_digest, verdict)
        return story, verdict

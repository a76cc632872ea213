"""A finished trial, and its line in the log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from harness.cassette.request.canonical import digest
from harness.runner.log import TRAJECTORIES
from harness.runner.plan import TrialSpec
from harness.schema.results import MissCause, RequestChange, Score, ToolChange, TrialRecord, Verdict
from harness.schema.suite import Variant
from harness.schema.trajectory import Trajectory
from harness.scorers.efficiency import cost_usd
from harness.scorers.outcome import outcome


@dataclass(frozen=True, slots=True)
class Trial:
    """A finished trial: its line in the log, and its story. Neither holds a secret."""

    record: TrialRecord
    trajectory: Trajectory
    verdict: Verdict | None


@dataclass(frozen=True, slots=True)
class Replayed:
    """What a trial used of its cassette."""

    cassette: str | None = None
    """Its file, relative to the cassettes folder."""
    served: int = 0
    recorded: int = 0
    calls_with_retries: int | None = None
    tool_differences: int = 0
    tool_changes: tuple[ToolChange, ...] = ()
    request_differences: int = 0
    request_changes: tuple[RequestChange, ...] = ()
    unused: int = 0
    miss: MissCause | None = None


def transcript_digest(trajectory: Trajectory) -> str:
    """Identity of what was said and handed in, word for word."""
    dumped = trajectory.model_dump(mode="json")
    parts = ("system", "messages", "final_text", "output_seen", "output")
    return digest({part: dumped[part] for part in parts})


def variant_digest(variant: Variant) -> str:
    """Identity of all that makes a variant's trials what they are."""
    # Its loop holds the preset's settings; by which name they came changes nothing.
    unimportant = {"name", "description", "tasks", "preset"}
    settings = variant.model_dump(mode="json", exclude={*unimportant, "chosen", "disclosure"})
    # Only where there is something to tell: digests of variants without it stay what they were.
    if variant.chosen is not None:
        settings["chosen"] = [one.model_dump(mode="json") for one in variant.chosen.skills]
    if variant.disclosure is not None:
        settings["disclosure"] = variant.disclosure
    return digest(settings)


def trial_record(
    spec: TrialSpec,
    trajectory: Trajectory,
    verdict: Verdict | None,
    scores: Mapping[str, Score],
    *,
    duration_s: float,
    replayed: Replayed | None = None,
    ignored: tuple[str, ...] = (),
    sandbox: str | None = None,
) -> TrialRecord:
    """The line of a trial; without `replayed` it had no cassette."""
    used = replayed or Replayed()
    return TrialRecord(
        trial_id=spec.trial_id,
        suite=spec.suite,
        task=spec.task.name,
        variant=spec.variant.name,
        repeat=spec.repeat,
        termination_reason=trajectory.termination_reason,
        outcome=outcome(verdict),
        verdict=verdict,
        iterations=trajectory.iterations,
        attempts=trajectory.attempts,
        model_calls=trajectory.model_calls,
        tool_calls_made=trajectory.tool_calls_made,
        tools_used=trajectory.tools_used,
        validation_failures=len(trajectory.validation_failures),
        confirmed=trajectory.confirmed,
        usage=trajectory.usage,
        cost_usd=cost_usd(trajectory.usage, spec.model.price),
        duration_s=duration_s,
        finished_at=datetime.now(UTC),
        scores=dict(scores),
        error=trajectory.error,
        response_models=trajectory.models,
        mixed=len(trajectory.models) > 1,
        served=used.served,
        recorded=used.recorded,
        calls_with_retries=used.calls_with_retries,
        tool_differences=used.tool_differences,
        first_tool_difference=used.tool_changes[0].summary if used.tool_changes else None,
        tool_changes=used.tool_changes,
        request_differences=used.request_differences,
        request_changes=used.request_changes,
        unused=used.unused,
        miss=used.miss,
        ignored=ignored,
        sandbox=sandbox,
        own_verifier=any(step.verifier.environment is not None for step in spec.task.steps),
        transcript_digest=transcript_digest(trajectory),
        task_digest=spec.task.digest,
        variant_digest=variant_digest(spec.variant),
        cassette=used.cassette,
        trajectory=f"{TRAJECTORIES}/{spec.trial_id}.json",
    )

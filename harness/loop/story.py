"""What a run comes to: its counts while it goes on, its trajectory, its suspended state."""

from __future__ import annotations

from harness.loop.answer import output_from_text
from harness.loop.endings import Draft, Ending
from harness.loop.parts import Parts
from harness.loop.progress import Progress
from harness.schema.loop_config import TerminationReason
from harness.schema.record import storable
from harness.schema.trajectory import SuspendedRun, Trajectory

LIMITS = (
    TerminationReason.MAX_ITERATIONS,
    TerminationReason.BUDGET_EXCEEDED,
    TerminationReason.DURATION_EXCEEDED,
)
"""Endings at which the last text becomes the output."""


def trajectory_of(parts: Parts, progress: Progress, ending: Ending) -> Trajectory:
    """The whole run, as far as it has come."""
    draft = progress.draft
    if draft is None and parts.setup.output is None and ending.reason in LIMITS:
        draft = Draft(output_from_text(progress.final_text)) if progress.final_text else None
    executed = tuple(parts.answerer.executed)
    signal = ending.signal
    is_suspended = ending.reason is TerminationReason.SUSPENDED
    return Trajectory(
        termination_reason=ending.reason,
        run_id=parts.events.run_id,
        signal=signal.name if signal else None,
        signal_data=signal.data if signal else None,
        output_seen=draft is not None,
        output=draft.value if draft is not None else None,
        final_text=progress.final_text,
        confirmed=progress.confirmed,
        truncated=progress.truncated,
        wrapped_up=progress.wrapped_up,
        suspended=suspended(parts, progress) if is_suspended else None,
        system=parts.system,
        messages=tuple(parts.transcript.messages),
        iterations=progress.iterations,
        attempts=progress.attempts,
        model_calls=parts.model.made,
        failed_calls=parts.model.failed,
        tool_calls_made=len(executed),
        tools_used=tuple(dict.fromkeys(executed)),
        tools_executed=executed,
        validation_failures=tuple(progress.validation_failures),
        usage=parts.model.usage.total,
        usage_by_tag=parts.model.usage.by_tag,
        models=tuple(parts.model.models),
        error=None if ending.error is None else storable(ending.error),
        callback_errors=tuple(parts.events.callback_errors),
        events=tuple(parts.events.events),
        duration_s=round(parts.events.elapsed_s, 6),
    )


def suspended(parts: Parts, progress: Progress) -> SuspendedRun:
    """What it takes to go on later, in another process perhaps, with all counts kept."""
    assert progress.suspend is not None
    return SuspendedRun(
        run_id=parts.events.run_id,
        correlation_id=progress.suspend.correlation_id,
        data=progress.suspend.data,
        system=parts.system,
        messages=tuple(parts.transcript.messages),
        iterations=progress.iterations,
        attempts=progress.attempts,
        attempt_iterations=progress.attempt_iterations,
        model_calls=parts.model.made,
        failed_calls=parts.model.failed,
        tools_executed=tuple(parts.answerer.executed),
        files_modified=tuple(sorted(parts.budget.files_modified)),
        lines_changed=parts.budget.lines_changed,
        usage=parts.model.usage.total,
        usage_by_tag=parts.model.usage.by_tag,
        models=tuple(parts.model.models),
        final_text=progress.final_text,
        validation_failures=tuple(progress.validation_failures),
        has_draft=progress.draft is not None,
        draft=progress.draft.value if progress.draft else None,
        elapsed_s=parts.events.elapsed_s,
    )

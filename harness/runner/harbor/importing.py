"""Harbor's trials become a run of ours, which everything that reads runs can read."""

from __future__ import annotations

import importlib.metadata
import secrets
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from harness.errors import BadInputError
from harness.redaction import Redactor
from harness.runner.harbor.endings import ending_of, error_of, verdict_of
from harness.runner.harbor.story import messages_of, system_of
from harness.runner.harbor.trials import HarborTrial
from harness.runner.harbor.variants import Chosen
from harness.runner.log import TRAJECTORIES, RunLog
from harness.runner.naming import safe_name
from harness.runner.trial_record import transcript_digest
from harness.schema.loop_config import LoopConfig
from harness.schema.results import ForeignAgent, RunRecord, Score, TrialRecord, Untold, Verdict
from harness.schema.suite import ModelConfig, Task, Variant
from harness.schema.trajectory import Trajectory, UsageTotal
from harness.scorers.outcome import outcome
from harness.scorers.standard import score_trial
from harness.values import ScoreInput

SUITE = "harbor"
"""What a run is called whose trials are of no data set, or of several."""
_PROVIDERS: dict[str, Literal["anthropic", "openai", "ollama", "google"]] = {
    "anthropic": "anthropic",
    "gemini": "google",
    "google": "google",
    "ollama": "ollama",
    "vertex_ai": "google",
}
"""By Harbor's name; the servers of all others speak OpenAI's format."""


@dataclass(frozen=True, slots=True)
class _Imported:
    record: TrialRecord
    trajectory: Trajectory


def import_run(
    chosen: Sequence[Chosen], *, reports: Path, out: Path | None, redactor: Redactor
) -> RunLog:
    """Write a run folder with a trial for each of Harbor's; it is there when it is whole.

    Args:
        chosen: The trials with their variants.
        reports: Where run folders are made.
        out: The run's folder itself, instead of a new one under reports.
        redactor: Removes secrets from all that is written.

    Raises:
        BadInputError: the folder is there already.
    """
    suite = _suite(chosen)
    ended = [one.trial.result.ended for one in chosen]
    # As old as its trials: a trend over runs goes by it.
    created = max((moment for moment in ended if moment is not None), default=datetime.now(UTC))
    run_id = out.name if out else f"{created:%Y%m%d-%H%M%S}-{suite}-{secrets.token_hex(2)}"
    folder = out or reports / run_id
    if folder.exists():
        raise BadInputError(f"{folder}: this folder is there already; choose another with --out")
    trials = _trials(chosen, suite)
    run = _run(chosen, trials, suite, run_id, created)
    partial = folder.with_name(f"{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    try:
        log = RunLog.create(partial, redactor.record(run))
        for one in trials:
            told = redactor.record(one.trajectory)
            record = redactor.record(one.record)
            digest = {"transcript_digest": transcript_digest(told)}
            log.add(record.model_copy(update=digest), told.model_dump_json(indent=1))
        partial.rename(folder)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    return RunLog(folder)


def _suite(chosen: Sequence[Chosen]) -> str:
    sources = {one.trial.result.source for one in chosen}
    only = sources.pop() if len(sources) == 1 else None
    return safe_name(only.rpartition("/")[2]) if only else SUITE


def _trials(chosen: Sequence[Chosen], suite: str) -> list[_Imported]:
    """In the order of their beginning, so that repeats are counted as they were run."""
    counted: Counter[tuple[str, str]] = Counter()
    found = []
    for one in sorted(chosen, key=lambda one: (_begun(one), one.trial.result.trial_name)):
        task = safe_name(one.trial.result.task_name)
        found.append(_trial(one, suite, task, counted[task, one.variant]))
        counted[task, one.variant] += 1
    return found


def _begun(one: Chosen) -> float:
    began = one.trial.result.started_at
    return began.timestamp() if began else 0.0


def _trial(one: Chosen, suite: str, task: str, repeat: int) -> _Imported:
    trial_id = f"{task}/{one.variant}/{repeat}"
    result = one.trial.result
    verdict = verdict_of(result, one.trial.log)
    trajectory = _trajectory(one.trial, trial_id)
    record = TrialRecord(
        trial_id=trial_id,
        suite=suite,
        task=task,
        variant=one.variant,
        repeat=repeat,
        termination_reason=trajectory.termination_reason,
        outcome=outcome(verdict),
        iterations=trajectory.iterations,
        attempts=trajectory.attempts,
        model_calls=trajectory.model_calls,
        tool_calls_made=trajectory.tool_calls_made,
        tools_used=trajectory.tools_used,
        validation_failures=0,
        usage=trajectory.usage,
        cost_usd=result.used.cost_usd,
        duration_s=round(result.whole_s, 6),
        scores=_scores(one, trajectory, verdict),
        error=trajectory.error,
        verdict=verdict,
        finished_at=result.finished_at,
        response_models=trajectory.models,
        untold=_untold(trajectory),
        transcript_digest=transcript_digest(trajectory),
        task_digest=result.task_checksum,
        variant_digest="",
        cassette=None,
        trajectory=f"{TRAJECTORIES}/{trial_id}.json",
    )
    return _Imported(record, trajectory)


def _trajectory(trial: HarborTrial, trial_id: str) -> Trajectory:
    result = trial.result
    messages = messages_of(trial.conversations)
    answers = [one for one in messages if one.role == "assistant"]
    calls = [call.name for one in answers for call in one.tool_calls]
    return Trajectory(
        termination_reason=ending_of(result),
        run_id=trial_id,
        final_text=answers[-1].text if answers else "",
        system=system_of(trial.conversations),
        messages=messages,
        iterations=len(answers),
        attempts=1,
        model_calls=len(answers),
        tool_calls_made=len(calls),
        tools_used=tuple(dict.fromkeys(calls)),
        tools_executed=tuple(calls),
        usage=_usage(trial, len(answers)),
        models=(result.model.name,),
        error=error_of(result),
        duration_s=round(result.agent_s, 6),
    )


def _usage(trial: HarborTrial, calls: int) -> UsageTotal:
    used = trial.result.used
    read = used.n_cache_tokens
    fresh = used.n_input_tokens
    if fresh is not None and read is not None:
        # Harbor counts what was read from a cache as input too.
        fresh = max(0, fresh - read)
    unknown = fresh is None and used.n_output_tokens is None
    return UsageTotal(
        input=fresh,
        output=used.n_output_tokens,
        cache_read=read,
        missing_calls=max(1, calls) if unknown else 0,
    )


def _untold(trajectory: Trajectory) -> tuple[Untold, ...]:
    """What the files do not tell; an agent that talks in text has its calls in its text."""
    if not trajectory.model_calls:
        return ("iterations", "model_calls", "tool_calls")
    return () if trajectory.tool_calls_made else ("tool_calls",)


def _scores(one: Chosen, trajectory: Trajectory, verdict: Verdict | None) -> dict[str, Score]:
    result = one.trial.result
    task = Task(
        name=result.task_name,
        folder=one.trial.folder,
        instruction="",
        tests=one.trial.folder,
        digest="",
        tests_digest="",
    )
    given = ScoreInput(task=task, model=_model(one), trajectory=trajectory, verdict=verdict)
    scores = score_trial(given)
    told = {"iterations": "iterations", "tool_calls": "tool_calls"}
    for name, number in told.items():
        if number in _untold(trajectory):
            scores[name] = Score(value=None, explanation="Harbor's files do not tell")
    # What endings the task expects is not known, and the cost is the one that was charged.
    scores["ending"] = Score(value=scores["ending"].value)
    if scores["cost_usd"].explanation.startswith("no price") and result.used.cost_usd is not None:
        scores["cost_usd"] = Score(value=result.used.cost_usd)
    return scores


def _model(one: Chosen) -> ModelConfig:
    model = one.trial.result.model
    provider = _PROVIDERS.get((model.provider or "").lower(), "openai")
    return ModelConfig(provider=provider, name=model.name)


def _run(
    chosen: Sequence[Chosen],
    trials: Sequence[_Imported],
    suite: str,
    run_id: str,
    created: datetime,
) -> RunRecord:
    first: dict[str, Chosen] = {}
    for one in chosen:
        first.setdefault(one.variant, one)
    records = [one.record for one in trials]
    return RunRecord(
        run_id=run_id,
        created_at=created,
        suite=suite,
        suite_version=1,
        suite_folder=suite,
        record_mode="none",
        tools="replay",
        imported="Harbor",
        agents={name: _agent(one) for name, one in first.items()},
        tasks={record.task: record.task_digest for record in reversed(records)},
        variants=tuple(
            Variant(
                name=name,
                description=_described(one),
                model=_model(one),
                loop=LoopConfig(),
            )
            for name, one in first.items()
        ),
        repeats=1 + max(record.repeat for record in records),
        planned_trials=len(records),
        versions={"loop-harness": importlib.metadata.version("loop-harness")},
        host={},
    )


def _agent(one: Chosen) -> ForeignAgent:
    result = one.trial.result
    agent = result.agent_info
    return ForeignAgent(name=agent.name, version=agent.version, provider=result.model.provider)


def _described(one: Chosen) -> str:
    agent = one.trial.result.agent_info
    return f"{agent.name} {agent.version}".strip() + ", run by Harbor"

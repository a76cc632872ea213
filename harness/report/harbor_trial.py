"""One trial as the folder that Harbor keeps of it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from harness.report.atif import atif, prompt_tokens
from harness.report.exported import (
    ExportedFile,
    Times,
    agent_name,
    agent_version,
    iso,
    json_text,
    plain_text,
    provider_of,
    rewards_of,
    safe_name,
    settings_of,
    stable_id,
    suite_path,
    times_of,
    variant_of,
    verdict_error,
)
from harness.report.harbor_errors import raised
from harness.report.steps import steps_of
from harness.schema.results import RunRecord, TrialRecord, Untold
from harness.schema.suite import Variant
from harness.schema.trajectory import Event, Trajectory

_ALPHABET = "23456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_ID_LENGTH = 7
_LONGEST_TASK = 32
_COUNTS: Mapping[Untold, str] = {
    "iterations": "iterations",
    "model_calls": "model_calls",
    "tool_calls": "tool_calls_made",
}
_LINE = 200
"""Characters of what an event says that trial.log has; the trajectory has all."""


@dataclass(frozen=True, slots=True)
class HarborTrial:
    """A trial with all that its folder holds."""

    result: dict[str, Any]
    files: tuple[ExportedFile, ...]


def harbor_trial(
    run: RunRecord, trial: TrialRecord, trajectory: Trajectory | None, name: str
) -> HarborTrial:
    """The folder `name` of a trial."""
    result = _result(run, trial, trajectory, name)
    exception = result["exception_info"]
    files = {
        "config.json": json_text(result["config"]),
        "result.json": json_text(result),
        "trial.log": plain_text("\n".join(_log_lines(trial, trajectory))),
    }
    if exception is not None:
        files["exception.txt"] = plain_text(exception["exception_traceback"])
    files |= dict(_agent_files(run, trial, trajectory))
    files |= dict(_verifier_files(trial))
    for step in steps_of(run, trial, trajectory) if trajectory else ():
        folder = f"steps/{safe_name(step.name)}"
        own = (*_agent_files(run, step.trial, step.trajectory), *_verifier_files(step.trial))
        files |= {f"{folder}/{path}": text for path, text in own}
    return HarborTrial(
        result, tuple(ExportedFile(f"{name}/{path}", text) for path, text in files.items())
    )


def trial_name(run: RunRecord, trial: TrialRecord) -> str:
    """`TASK__XXXXXXX`, the same whenever the run is exported."""
    number = stable_id(run, trial.trial_id).int
    digits = []
    for _ in range(_ID_LENGTH):
        number, digit = divmod(number, len(_ALPHABET))
        digits.append(_ALPHABET[digit])
    task = safe_name(trial.task.split("/")[-1])[:_LONGEST_TASK].rstrip("_-")
    return f"{task}__{''.join(digits)}"


def job_name(run: RunRecord) -> str:
    """Name of the job's folder."""
    return safe_name(run.run_id)


def environment(run: RunRecord) -> dict[str, Any]:
    """Where trials ran: without a word, Harbor takes it for Docker."""
    return {} if run.imported else {"import_path": "harness.sandbox"}


def agent_config(run: RunRecord, variant: Variant) -> dict[str, Any]:
    """A variant as Harbor's AgentConfig: in its tables, an agent is what is compared."""
    return {
        "name": agent_name(run, variant.name),
        "model_name": f"{provider_of(run, variant)}/{variant.model.name}",
        "kwargs": settings_of(run, variant),
    }


def _result(
    run: RunRecord, trial: TrialRecord, trajectory: Trajectory | None, name: str
) -> dict[str, Any]:
    """A TrialResult; what has no place there is in `agent_result.metadata`."""
    rewards = rewards_of(trial)
    times = times_of(trial, trajectory)
    return {
        "id": str(stable_id(run, trial.trial_id)),
        "task_name": trial.task,
        "trial_name": name,
        "trial_uri": f"file:{job_name(run)}/{name}",
        "task_id": {"path": f"{suite_path(run)}/{trial.task}"},
        "source": trial.suite,
        "task_checksum": trial.task_digest,
        "config": _config(run, trial, name),
        "agent_info": _agent_info(run, trial),
        "agent_result": {**_numbers(trial), "metadata": _metadata(trial, trajectory)},
        "verifier_result": {"rewards": rewards} if rewards else None,
        "exception_info": _exception_info(run, trial, trajectory),
        "started_at": iso(times.started) if times else None,
        "finished_at": iso(times.finished) if times else None,
        "agent_execution": _agent_execution(times),
        "step_results": _step_results(run, trial, trajectory),
    }


def _numbers(trial: TrialRecord) -> dict[str, Any]:
    """What an AgentContext counts."""
    return {
        "n_input_tokens": prompt_tokens(trial.usage),
        "n_cache_tokens": trial.usage.cache_read,
        "n_output_tokens": trial.usage.output,
        "cost_usd": trial.cost_usd,
    }


def _agent_execution(times: Times | None) -> dict[str, str] | None:
    if times is None:
        return None
    return {"started_at": iso(times.started), "finished_at": iso(times.agent_finished)}


def _step_results(
    run: RunRecord, trial: TrialRecord, trajectory: Trajectory | None
) -> list[dict[str, Any]] | None:
    """Of a task with several steps: what each came to."""
    found = []
    for step in steps_of(run, trial, trajectory) if trajectory else ():
        rewards = rewards_of(step.trial)
        reason = step.trial.termination_reason.value
        found.append(
            {
                "step_name": safe_name(step.name),
                "agent_result": {
                    **_numbers(step.trial),
                    "metadata": {"step": step.name, "termination_reason": reason},
                },
                "verifier_result": {"rewards": rewards} if rewards else None,
                "exception_info": _exception_info(run, step.trial, step.trajectory),
                "agent_execution": _agent_execution(times_of(step.trial, step.trajectory)),
            }
        )
    return found or None


def _config(run: RunRecord, trial: TrialRecord, name: str) -> dict[str, Any]:
    return {
        "task": {"path": f"{suite_path(run)}/{trial.task}", "source": trial.suite},
        "trial_name": name,
        "trials_dir": job_name(run),
        "agent": _agent_config(run, trial),
        "environment": environment(run),
        "job_id": str(stable_id(run)),
    }


def _agent_config(run: RunRecord, trial: TrialRecord) -> dict[str, Any]:
    variant = variant_of(run, trial)
    return agent_config(run, variant) if variant else {"name": agent_name(run, trial.variant)}


def _agent_info(run: RunRecord, trial: TrialRecord) -> dict[str, Any]:
    variant = variant_of(run, trial)
    model = {"name": variant.model.name, "provider": provider_of(run, variant)} if variant else None
    return {
        "name": agent_name(run, trial.variant),
        "version": agent_version(run, trial.variant),
        "model_info": model,
    }


def _metadata(trial: TrialRecord, trajectory: Trajectory | None) -> dict[str, Any]:
    """The line of the log, without what stands elsewhere in the export."""
    elsewhere = {"trial_id", "suite", "task", "verdict", "trajectory", "cost_usd", "finished_at"}
    found = trial.model_dump(mode="json", exclude=elsewhere)
    found |= {_COUNTS[name]: None for name in trial.untold}
    found["verifier_error"] = verdict_error(trial.verdict) or None
    if trajectory is not None:
        found["agent_duration_s"] = trajectory.duration_s
    return found


def _exception_info(
    run: RunRecord, trial: TrialRecord, trajectory: Trajectory | None
) -> dict[str, Any] | None:
    exception = raised(run, trial, trajectory)
    if exception is None:
        return None
    return {
        "exception_type": exception.name,
        "exception_message": exception.message,
        "exception_traceback": f"{exception.name}: {exception.message}",
        "occurred_at": iso(trial.finished_at or run.created_at),
    }


def _log_lines(trial: TrialRecord, trajectory: Trajectory | None) -> Iterator[str]:
    """What happened, an event a line."""
    yield f"{trial.trial_id}: {trial.termination_reason}"
    for event in trajectory.events if trajectory else ():
        yield _log_line(event)
    if trial.error:
        yield trial.error


def _log_line(event: Event) -> str:
    said = json.dumps(event.data, ensure_ascii=False) if event.data else ""
    said = f"{said[:_LINE]}…" if len(said) > _LINE else said
    return f"{event.at_s:10.3f} s  iteration {event.iteration}  {event.kind}  {said}".rstrip()


def _agent_files(
    run: RunRecord, trial: TrialRecord, trajectory: Trajectory | None
) -> Iterator[tuple[str, str]]:
    if trajectory is None:
        return
    story = atif(run, trial, trajectory)
    if story is not None:
        yield "agent/trajectory.json", json_text(story)
    if trajectory.final_text or "model_calls" not in trial.untold:
        yield "agent/answer.txt", plain_text(trajectory.final_text)
    if trajectory.output_seen:
        yield "agent/output.json", json_text(trajectory.output)


def _verifier_files(trial: TrialRecord) -> Iterator[tuple[str, str]]:
    rewards = rewards_of(trial)
    if rewards is not None and rewards.keys() == {"reward"}:
        yield "verifier/reward.txt", f"{rewards['reward']}\n"
    elif rewards is not None:
        yield "verifier/reward.json", json_text(rewards)
    if trial.verdict is not None and trial.verdict.log:
        yield "verifier/test-stdout.txt", plain_text(trial.verdict.log)

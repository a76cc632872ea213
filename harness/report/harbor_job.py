"""A run as a job folder of Harbor, for its viewer and whatever else reads such folders."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from harness.report.exported import ExportedFile, iso, json_text, portable, stable_id, suite_path
from harness.report.harbor_trial import (
    agent_config,
    environment,
    harbor_trial,
    job_name,
    trial_name,
)
from harness.report.view import LoadTrajectory
from harness.schema.loop_config import TerminationReason
from harness.schema.results import RunRecord, TrialRecord

Result = dict[str, Any]
"""A TrialResult."""


def harbor_files(
    run: RunRecord, trials: Iterable[TrialRecord], load: LoadTrajectory
) -> Iterator[ExportedFile]:
    """The job folder of a run, named after it.

    Skipped trials are left out: Harbor has no word for a trial that was never begun, and would
    count it as one that failed.
    """
    job = job_name(run)
    begun, skipped = [], 0
    for trial in trials:
        if trial.termination_reason is TerminationReason.SKIPPED:
            skipped += 1
        else:
            begun.append(trial)
    yield ExportedFile(f"{job}/config.json", json_text(_config(run)))
    results = []
    for trial in begun:
        made = harbor_trial(run, trial, load(trial), trial_name(run, trial))
        results.append(made.result | {"agent_result": _without_metadata(made.result)})
        for file in made.files:
            yield ExportedFile(f"{job}/{file.path}", portable(run, file.text))
    total = max(run.planned_trials - skipped, len(begun))
    yield ExportedFile(f"{job}/result.json", json_text(_result(run, results, total)))


def _without_metadata(result: Result) -> dict[str, Any]:
    """What sums need: the rest of a long run would fill the memory."""
    return {key: value for key, value in result["agent_result"].items() if key != "metadata"}


def _config(run: RunRecord) -> dict[str, Any]:
    """A JobConfig."""
    return {
        "job_name": job_name(run),
        "jobs_dir": ".",
        "n_attempts": run.repeats,
        "environment": environment(run),
        "agents": [agent_config(run, variant) for variant in run.variants],
        "datasets": [{"path": suite_path(run), "task_names": sorted(run.tasks)}],
    }


def _result(run: RunRecord, results: Sequence[Result], total: int) -> dict[str, Any]:
    """A JobResult; like Harbor's own, without the results of its trials."""
    moments = [result[key] for result in results for key in ("started_at", "finished_at")]
    told = [iso(run.created_at), *(moment for moment in moments if moment)]
    first, last = min(told), max(told)
    errors = [result["exception_info"] for result in results if result["exception_info"]]
    cancelled = [error for error in errors if error["exception_type"] == "CancelledError"]
    return {
        "id": str(stable_id(run)),
        "started_at": first,
        "updated_at": last,
        "finished_at": last if len(results) == total else None,
        "n_total_trials": total,
        "stats": {
            "n_completed_trials": len(results),
            "n_errored_trials": len(errors),
            "n_running_trials": 0,
            "n_pending_trials": total - len(results),
            "n_cancelled_trials": len(cancelled),
            "n_retries": 0,
            "evals": {key: _eval(group) for key, group in _evals(results).items()},
            **{
                key: _sum(result["agent_result"][key] for result in results)
                for key in ("n_input_tokens", "n_cache_tokens", "n_output_tokens", "cost_usd")
            },
        },
    }


def _sum(values: Iterable[float | None]) -> float | None:
    reported = [value for value in values if value is not None]
    return sum(reported) if reported else None


def _evals(results: Iterable[Result]) -> dict[str, list[Result]]:
    """The results by what Harbor's tables have a row for: agent, model and suite."""
    found: dict[str, list[Result]] = defaultdict(list)
    for result in results:
        info = result["agent_info"]
        model = info["model_info"]["name"] if info["model_info"] else None
        parts = (info["name"], model, result["source"])
        found["__".join(part for part in parts if part)].append(result)
    return found


def _eval(results: Sequence[Result]) -> dict[str, Any]:
    rewards = [_rewards(result) for result in results]
    stats: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    errors: dict[str, list[str]] = defaultdict(list)
    for result, given in zip(results, rewards, strict=True):
        for key, value in (given or {}).items():
            stats[key][str(value)].append(result["trial_name"])
        if result["exception_info"]:
            errors[result["exception_info"]["exception_type"]].append(result["trial_name"])
    return {
        "n_trials": sum(given is not None for given in rewards),
        "n_errors": sum(map(len, errors.values())),
        "metrics": [_means(rewards)],
        "pass_at_k": _pass_at_k(results),
        "reward_stats": stats,
        "exception_stats": errors,
    }


def _rewards(result: Result) -> dict[str, float] | None:
    verdict = result["verifier_result"]
    return verdict["rewards"] if verdict else None


def _means(rewards: Sequence[Mapping[str, float] | None]) -> dict[str, float]:
    """Harbor's metric: a trial without rewards counts as 0."""
    names = sorted({name for given in rewards for name in given or {}})
    if len(names) < 2:
        return {"mean": sum(sum((given or {}).values()) for given in rewards) / len(rewards)}
    return {
        name: sum((given or {}).get(name, 0) for given in rewards) / len(rewards) for name in names
    }


def _pass_at_k(results: Sequence[Result]) -> dict[str, float]:
    """Chance that one of k trials of a task passes, over the tasks (Chen et al. 2021, eq. 1).

    Told for 2, 4, 8… and 5, 10, 15…, as far as every task has trials; only where all that was
    given is one reward of 0 or 1. No reward counts as 0.
    """
    by_task: dict[str, list[bool]] = defaultdict(list)
    for result in results:
        given = _rewards(result)
        if given is not None and (len(given) > 1 or not set(given.values()) <= {0, 1}):
            return {}
        by_task[result["task_name"]].append(1 in (given or {}).values())
    least = min(map(len, by_task.values()))
    powers = (2**power for power in range(1, least.bit_length()))
    wanted = sorted({*powers, *range(5, least + 1, 5)})
    return {
        str(k): sum(
            1 - math.comb(len(passed) - sum(passed), k) / math.comb(len(passed), k)
            for passed in by_task.values()
        )
        / len(by_task)
        for k in wanted
    }

"""What a run is as a job folder of Harbor."""

from __future__ import annotations

import json
import os
from collections import Counter
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from harness.errors import (
    AuthenticationError,
    ContextExceededError,
    InfrastructureError,
    MalformedAnswerError,
    ModelCallError,
    OverloadedError,
    RateLimitedError,
)
from harness.report.exported import write_files
from harness.report.harbor_job import harbor_files
from harness.runner.rewards import read_rewards
from harness.runner.stage import check_health
from harness.schema.environment import Environment, FileCommand, Healthcheck, folder_environment
from harness.schema.loop_config import TerminationReason
from harness.schema.results import Verdict
from harness.schema.trajectory import UsageTotal
from tests.loop.support import run
from tests.report.exports import (
    as_atif,
    as_harbor,
    check_harbor,
    every_ending,
    needs_schemas,
    one_trial,
    results,
)
from tests.report.hostile import HOSTILE, hostile_run
from tests.report.sample_run import SampleRun, sample_run
from tests.sandbox.here import working_sandbox

FEW = ("contact-card", "meeting-slot", "new-release", "sum-sales")
EXCEPTIONS = {
    "duration_exceeded": "AgentTimeoutError",
    "context_exceeded": "ContextLengthExceededError",
    "truncated": "OutputLengthExceededError",
    "refusal": "AgentSafetyRefusalError",
    "error": "NonZeroAgentExitCodeError",
    "tool_error": "NonZeroAgentExitCodeError",
    "model_error": "ApiError",
    "cancelled": "CancelledError",
    "replay_miss": "ReplayMissError",
    "infrastructure_error": "InfrastructureError",
}


def only(found: dict[str, Any]) -> Any:
    (one,) = found.values()
    return one


def exception(sample: SampleRun) -> str | None:
    info = only(results(sample))["exception_info"]
    return info["exception_type"] if info else None


def test_every_ending_has_the_exception_that_harbor_knows_and_keeps_its_reward():
    found = {}
    for result in results(every_ending()).values():
        reason = result["agent_result"]["metadata"]["termination_reason"]
        assert result["verifier_result"] == {"rewards": {"reward": 1.0}}
        info = result["exception_info"]
        if info is not None:
            found[reason] = info["exception_type"]
            assert info["exception_message"] == f"it ended {reason}"
    assert found == EXCEPTIONS


def test_a_trial_that_ran_out_of_time_has_exception_and_reward_in_files_too():
    sample = one_trial(
        termination_reason=TerminationReason.DURATION_EXCEEDED,
        error="the time of 900 s is used up",
        verdict=Verdict(rewards={"reward": 1.0}, log="1 passed"),
    )
    files = as_harbor(sample)
    named = {path.split("/", 1)[1]: text for path, text in files.items() if "/" in path}
    assert named["exception.txt"] == "AgentTimeoutError: the time of 900 s is used up\n"
    assert named["verifier/reward.txt"] == "1.0\n"
    assert named["verifier/test-stdout.txt"] == "1 passed\n"


@pytest.mark.parametrize(
    ("error", "name"),
    [
        (RateLimitedError("x"), "ApiRateLimitError"),
        (AuthenticationError("x"), "AgentAuthenticationError"),
        (OverloadedError("x"), "ApiOverloadedError"),
        (MalformedAnswerError("x"), "APIResponseValidationError"),
        (ContextExceededError("x"), "ContextLengthExceededError"),
        (ModelCallError("x"), "ApiError"),
        (InfrastructureError("x"), "InfrastructureError"),
    ],
)
def test_a_model_that_fails_is_told_by_how_it_failed(error, name):
    trajectory, _ = run([error])
    sample = one_trial(termination_reason=trajectory.termination_reason, error=trajectory.error)
    trial_id = sample.trials[0].trial_id
    assert exception(SampleRun(sample.run, sample.trials, {trial_id: trajectory})) == name


@pytest.mark.parametrize(
    ("file", "content", "name"),
    [
        (None, "", "RewardFileNotFoundError"),
        ("reward.txt", "", "RewardFileEmptyError"),
        ("reward.txt", "nan", "VerifierOutputParseError"),
        ("reward.json", '{"a": "good"}', "VerifierOutputParseError"),
        ("reward.txt", "x" * 99999, "VerifierOutputParseError"),
    ],
)
def test_a_verifier_without_a_reward_is_told_by_what_it_left(tmp_path, file, content, name):
    with closing(working_sandbox().open(folder_environment(tmp_path), {})) as container:
        if file:
            container.write(f"/logs/verifier/{file}", content.encode())
        verdict = read_rewards(container, "its log")
    sample = one_trial(termination_reason=TerminationReason.COMPLETED, verdict=verdict)
    result = only(results(sample))
    assert result["exception_info"]["exception_type"] == name
    assert result["verifier_result"] is None
    assert result["agent_result"]["metadata"]["verifier_error"] == verdict.error


def why_not(*build: FileCommand, timeout_s: float = 10) -> str:
    """Why a machine could not be made."""
    environment = Environment(context=Path(), build=build, build_timeout_s=timeout_s)
    with (
        pytest.raises(InfrastructureError) as refused,
        closing(working_sandbox().open(environment, {})) as container,
    ):
        check_health(container, Healthcheck(command="false", retries=1), timeout_s)
    return str(refused.value)


@pytest.mark.parametrize(
    ("commands", "timeout_s", "name"),
    [
        (("false",), 10, "SandboxBuildFailedError"),
        (("sleep 99",), 1, "EnvironmentStartTimeoutError"),
        ((), 10, "HealthcheckError"),
    ],
)
def test_a_machine_that_could_not_be_made_is_told_by_what_failed(commands, timeout_s, name):
    error = why_not(*(FileCommand(command=c, cwd="/") for c in commands), timeout_s=timeout_s)
    sample = one_trial(termination_reason=TerminationReason.INFRASTRUCTURE_ERROR, error=error)
    assert exception(SampleRun(sample.run, sample.trials, {})) == name


def test_a_verifier_that_ran_out_of_time_is_told_so():
    verdict = Verdict(error="the verifier did not end within 600 s")
    assert exception(
        one_trial(termination_reason=TerminationReason.COMPLETED, verdict=verdict)
    ) == ("VerifierTimeoutError")


def test_the_agents_exception_goes_before_the_verifiers():
    sample = one_trial(
        termination_reason=TerminationReason.DURATION_EXCEEDED,
        verdict=Verdict(error="the verifier did not end within 600 s"),
    )
    assert exception(sample) == "AgentTimeoutError"


def test_skipped_trials_are_no_part_of_the_job():
    sample = every_ending()
    job = json.loads(as_harbor(sample)["result.json"])
    assert job["n_total_trials"] == len(sample.trials) - 1
    assert job["stats"]["n_completed_trials"] == len(sample.trials) - 1
    assert job["stats"]["n_pending_trials"] == 0
    assert job["stats"]["n_cancelled_trials"] == 1


def test_a_trial_without_verdict_usage_or_trajectory_says_so_and_nothing_more():
    sample = one_trial(usage=UsageTotal(missing_calls=3), cost_usd=None, scores={}, verdict=None)
    result = only(results(SampleRun(sample.run, sample.trials, {})))
    context = {k: v for k, v in result["agent_result"].items() if k != "metadata"}
    assert set(context.values()) == {None}
    assert result["verifier_result"] is None
    assert result["started_at"] is None
    paths = as_harbor(SampleRun(sample.run, sample.trials, {}))
    assert sorted(path.split("/")[-1] for path in paths) == [
        *("config.json", "config.json", "result.json", "result.json", "trial.log")
    ]


def test_the_files_of_a_trial():
    sample = one_trial(
        verdict=Verdict(rewards={"style": 0.5, "tests": 1.0}, log="2 passed\n"),
        termination_reason=TerminationReason.COMPLETED,
    )
    (trial,) = sample.trials
    paths = as_harbor(sample)
    (name,) = {path.split("/")[0] for path in paths if "/" in path}
    task, _, letters = name.partition("__")
    assert (task, len(letters), letters.isalnum()) == ("clean-names", 7, True)
    assert json.loads(paths[f"{name}/verifier/reward.json"]) == {"style": 0.5, "tests": 1.0}
    assert paths[f"{name}/verifier/test-stdout.txt"] == "2 passed\n"
    story = json.loads(paths[f"{name}/agent/trajectory.json"])
    assert story["schema_version"] == "ATIF-v1.8"
    trajectory = sample.trajectories[trial.trial_id]
    assert paths[f"{name}/agent/answer.txt"] == f"{trajectory.final_text}\n"
    log = paths[f"{name}/trial.log"].splitlines()
    assert log[0] == "clean-names/baseline/0: completed"
    assert len(log) == 1 + len(trajectory.events)
    assert f"{name}/exception.txt" not in paths


def test_tokens_that_a_cache_held_are_part_of_the_input():
    usage = UsageTotal(input=100, output=20, cache_read=30, cache_write=4)
    result = only(results(one_trial(usage=usage)))["agent_result"]
    assert (result["n_input_tokens"], result["n_cache_tokens"]) == (134, 30)
    assert result["n_output_tokens"] == 20


def test_the_line_of_the_log_is_in_the_metadata():
    sample = one_trial()
    metadata = only(results(sample))["agent_result"]["metadata"]
    line = sample.trials[0].model_dump(mode="json")
    for key in ("variant", "iterations", "scores", "usage", "transcript_digest", "cassette"):
        assert metadata[key] == line[key], key


def test_ids_and_names_are_the_same_whenever_a_run_is_exported_and_different_for_another():
    sample = sample_run(tasks=FEW, repeats=2)
    assert as_harbor(sample) == as_harbor(sample)
    ids = {UUID(result["id"]) for result in results(sample).values()}
    assert len(ids) == len(sample.trials)
    later = sample.run.model_copy(update={"created_at": sample.run.created_at + timedelta(days=1)})
    other = results(SampleRun(later, sample.trials, sample.trajectories))
    assert ids.isdisjoint(UUID(result["id"]) for result in other.values())


def test_a_long_task_name_is_cut_as_harbor_cuts_it():
    name = "a-very-long-name-of-a-task-that-_-goes-on"
    (path,) = {p.split("/")[0] for p in as_harbor(one_trial(task=name)) if "/" in p}
    assert path.partition("__")[0] == "a-very-long-name-of-a-task-that"


def test_the_jobs_numbers_are_those_of_its_trials():
    sample = sample_run(tasks=FEW)
    stats = json.loads(as_harbor(sample)["result.json"])["stats"]
    found = list(results(sample).values())
    assert stats["n_completed_trials"] == len(sample.trials)
    assert stats["n_errored_trials"] == sum(r["exception_info"] is not None for r in found)
    assert stats["n_output_tokens"] == sum(r["agent_result"]["n_output_tokens"] for r in found)
    assert stats["cost_usd"] == pytest.approx(
        sum(r["agent_result"]["cost_usd"] or 0 for r in found)
    )
    rows = {key: row["n_trials"] for key, row in stats["evals"].items()}
    judged = Counter(trial.variant for trial in sample.trials if trial.outcome is not None)
    assert rows == {
        f"loop-harness-{variant}__small-coder-1.5b__basics": count
        for variant, count in judged.items()
    }
    for row in stats["evals"].values():
        given = {float(value): len(names) for value, names in row["reward_stats"]["reward"].items()}
        assert row["n_trials"] == sum(given.values())


@pytest.mark.parametrize(
    ("rewards", "expected"),
    [
        ([1.0, 0.0, 1.0, 0.0], {"2": 5 / 6, "4": 1.0}),
        ([0.0] * 5, {"2": 0.0, "4": 0.0, "5": 0.0}),
        ([1.0, None], {"2": 1.0}),
        ([1.0], {}),
        ([0.5, 1.0], {}),
    ],
)
def test_the_chance_that_one_of_several_trials_passes(rewards, expected):
    sample = sample_run(tasks=("clean-names",), variants=("baseline",), repeats=len(rewards))
    trials = [
        trial.model_copy(
            update={
                "verdict": Verdict(error="broken")
                if reward is None
                else Verdict(rewards={"reward": reward})
            }
        )
        for trial, reward in zip(sample.trials, rewards, strict=True)
    ]
    job = as_harbor(SampleRun(sample.run, tuple(trials), sample.trajectories))["result.json"]
    (row,) = json.loads(job)["stats"]["evals"].values()
    assert row["pass_at_k"] == pytest.approx(expected)
    mean = sum(reward or 0 for reward in rewards) / len(rewards)
    assert row["metrics"] == [{"mean": pytest.approx(mean)}]


def test_several_rewards_have_a_mean_each():
    sample = one_trial(verdict=Verdict(rewards={"style": 0.5, "tests": 1.0}))
    (row,) = json.loads(as_harbor(sample)["result.json"])["stats"]["evals"].values()
    assert row["metrics"] == [{"style": 0.5, "tests": 1.0}]
    assert row["pass_at_k"] == {}


def test_a_run_that_was_cut_off_is_not_finished():
    sample = sample_run(tasks=FEW, repeats=1)
    whole = json.loads(as_harbor(sample)["result.json"])
    assert whole["finished_at"] is not None
    part = json.loads(
        as_harbor(SampleRun(sample.run, sample.trials[:-2], sample.trajectories))["result.json"]
    )
    assert (part["finished_at"], part["stats"]["n_pending_trials"]) == (None, 2)


def test_a_trial_ends_when_it_was_logged_and_lasts_as_long_as_its_agent():
    ended = datetime(2026, 11, 22, 10, 0, 30, tzinfo=UTC)
    sample = one_trial(finished_at=ended, duration_s=2.0)
    (trial,) = sample.trials
    slow = sample.trajectories[trial.trial_id].model_copy(update={"duration_s": 20.0})
    result = only(results(SampleRun(sample.run, sample.trials, {trial.trial_id: slow})))
    assert (result["started_at"], result["finished_at"]) == (
        "2026-11-22T10:00:10Z",
        "2026-11-22T10:00:30Z",
    )
    assert result["agent_execution"]["finished_at"] == "2026-11-22T10:00:30Z"


@pytest.mark.parametrize("folder", ["/home/user/suites/basics", "../basics", "~/basics"])
def test_no_path_of_this_machine_is_exported(folder):
    sample = sample_run(tasks=FEW, repeats=1)
    there = sample.run.model_copy(update={"suite_folder": folder})
    here = SampleRun(there, sample.trials, sample.trajectories)
    assert not [path for path, text in as_harbor(here).items() if folder in text]
    for result in results(here).values():
        assert result["task_id"] == {"path": f"basics/{result['task_name']}"}


def test_a_message_for_the_user_names_the_suite_and_not_its_place():
    sample = one_trial(
        termination_reason=TerminationReason.REPLAY_MISS,
        error="next: harness run /home/user/suites/basics --task clean-names",
    )
    there = sample.run.model_copy(update={"suite_folder": "/home/user/suites/basics"})
    here = SampleRun(there, sample.trials, sample.trajectories)
    told = only(results(here))["exception_info"]["exception_message"]
    assert told == "next: harness run basics --task clean-names"
    (story,) = as_atif(here).values()
    assert story["extra"]["error"] == told


def test_hostile_names_stay_in_the_folder_and_hostile_text_as_it_is():
    sample = hostile_run()
    files = as_harbor(sample)
    for path in files:
        assert ".." not in path.split("/")
        assert path.isascii()
        assert not {"<", " ", "\\", "\0"} & set(path)
    found = results(sample)
    told = HOSTILE.replace("\ud800", "?")
    infos = [result["exception_info"] for result in found.values()]
    assert {info["exception_message"] for info in infos if info} <= {told}
    assert {result["agent_result"]["metadata"]["error"] for result in found.values()} == {told}
    assert len(found) == len(sample.trials)


@needs_schemas
@pytest.mark.parametrize(
    "sample",
    [every_ending(), hostile_run(), sample_run(tasks=FEW, repeats=2)],
    ids=["every ending", "hostile", "ordinary"],
)
def test_every_file_is_as_its_schema_says(sample):
    counted = Counter(check_harbor(harbor_files(sample.run, sample.trials, sample.load)))
    assert counted["JobConfig"] == counted["JobResult"] == 1
    trials = sum(trial.termination_reason != "skipped" for trial in sample.trials)
    assert counted["TrialConfig"] == counted["TrialResult"] == counted["atif"] == trials


def test_harbors_own_reader_loads_it_and_comes_to_the_same_numbers(tmp_path: Path):
    reason = "harbor (Python 3.12 and newer) is not installed"
    scanner = pytest.importorskip("harbor.viewer.scanner", reason=reason)
    stats = pytest.importorskip("harbor.models.job.result", reason=reason).JobStats
    samples = (sample_run(tasks=FEW), every_ending(), hostile_run())
    for number, sample in enumerate(samples):
        jobs = tmp_path / str(number)
        write_files(jobs, harbor_files(sample.run, sample.trials, sample.load))
        reader = scanner.JobScanner(jobs)
        (job,) = reader.list_jobs()
        assert reader.get_job_config(job) is not None
        found = [reader.get_trial_result(job, name) for name in reader.list_trials(job)]
        assert len(found) == len(os.listdir(jobs / job)) - 2
        for name, result in zip(reader.list_trials(job), found, strict=True):
            assert reader.get_trial_config(job, name) == result.config
            assert result.trial_name == name
        told = reader.get_job_result(job)
        computed = stats.from_trial_results(found, n_total_trials=told.n_total_trials)
        assert comparable(told.stats) == comparable(computed)


def comparable(stats: Any) -> Any:
    """A JobStats without what only Harbor's job adds, and in an order of its own."""
    data = stats.model_dump(mode="json")
    for row in data["evals"].values():
        row.pop("metrics")
        row.pop("pass_at_k")
        for lists in (*row["reward_stats"].values(), row["exception_stats"]):
            for names in lists.values():
                names.sort()
    data["cost_usd"] = data["cost_usd"] and round(data["cost_usd"], 9)
    return data


def test_trials_that_others_ran_keep_their_agents_name_and_their_exception():
    sample = one_trial(
        termination_reason=TerminationReason.MODEL_ERROR,
        error="ApiUsageLimitError: no money left",
        untold=("model_calls",),
    )
    there = sample.run.model_copy(update={"imported": "Harbor"})
    result = only(results(SampleRun(there, sample.trials, sample.trajectories)))
    assert result["agent_info"]["name"] == result["config"]["agent"]["name"] == "baseline"
    assert result["agent_info"]["version"] == "unknown"
    assert result["config"]["environment"] == {}
    told = result["exception_info"]
    assert (told["exception_type"], told["exception_message"]) == (
        "ApiUsageLimitError",
        "no money left",
    )
    (story,) = as_atif(SampleRun(there, sample.trials, sample.trajectories)).values()
    assert story["agent"]["name"] == "baseline"
    assert "model_calls" not in story["final_metrics"]["extra"]

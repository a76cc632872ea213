"""Trials that Harbor ran, as a run of ours."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.errors import BadInputError
from harness.redaction import Redactor
from harness.runner.harbor.importing import import_run
from harness.runner.harbor.trials import read_trials
from harness.runner.harbor.variants import VariantGlob, chosen_by_facts, chosen_by_globs
from harness.runner.log import RunLog
from harness.schema.loop_config import TerminationReason
from harness.schema.messages import Text, ToolCall, ToolResult
from harness.schema.results import TrialRecord
from tests.runner.harbor_folders import raised, result, trial

KEY = "sk-proj-" + "a1B2c3D4" * 6


def imported(*paths: Path, out: Path, globs: tuple[str, ...] = ()) -> RunLog:
    trials, _ = read_trials(paths)
    chosen = chosen_by_facts(trials)
    if globs:
        chosen, _ = chosen_by_globs(trials, [VariantGlob.parse(glob) for glob in globs])
    return import_run(chosen, reports=out, out=None, redactor=Redactor({}))


def only(path: Path, out: Path) -> TrialRecord:
    [record] = imported(path, out=out).trials()
    return record


def test_a_trial_keeps_its_numbers_its_ending_and_its_conversation(tmp_path: Path):
    log = imported(trial(tmp_path / "job/count-lines__AbCdEfG"), out=tmp_path / "reports")
    [record] = log.trials()
    assert record.trial_id == "count-lines/terminus-2-tiny-1/0"
    assert (record.termination_reason, record.outcome) == (TerminationReason.COMPLETED, "passed")
    usage = record.usage
    assert (usage.input, usage.cache_read, usage.output, usage.missing_calls) == (60, 40, 7, 0)
    assert (record.cost_usd, record.duration_s, record.model_calls) == (0.25, 100.0, 2)
    assert record.scores["cost_usd"].value == 0.25
    trajectory = log.trajectory(record)
    assert trajectory is not None
    assert [(one.role, one.text) for one in trajectory.messages] == [
        ("user", "Count the lines."),
        ("assistant", '{"commands": []}'),
        ("user", "New Terminal Output:\n3"),
        ("assistant", "There are 3."),
    ]
    assert (trajectory.final_text, trajectory.duration_s) == ("There are 3.", 30.0)
    run = log.run()
    assert (run.imported, run.suite, run.tasks) == ("Harbor", "harbor", {"count-lines": "c0ffee"})
    assert "somebody" not in json.dumps(run.model_dump(mode="json"))


def test_what_the_files_do_not_tell_is_not_taken_for_0(tmp_path: Path):
    silent: dict[str, Any] = {"agent_result": None, "verifier_result": None}
    record = only(trial(tmp_path / "t", story=None, **silent), tmp_path / "reports")
    assert record.untold == ("iterations", "model_calls", "tool_calls")
    assert record.scores["iterations"].value is None
    assert (record.usage.input, record.usage.missing_calls) == (None, 1)
    assert (record.outcome, record.cost_usd) == (None, None)


@pytest.mark.parametrize(
    ("name", "ending", "outcome"),
    [
        ("AgentTimeoutError", TerminationReason.DURATION_EXCEEDED, "passed"),
        ("ContextLengthExceededError", TerminationReason.CONTEXT_EXCEEDED, "passed"),
        ("ApiRateLimitError", TerminationReason.MODEL_ERROR, "passed"),
        ("EnvironmentStartTimeoutError", TerminationReason.INFRASTRUCTURE_ERROR, None),
        ("CancelledError", TerminationReason.CANCELLED, "passed"),
        ("NonZeroAgentExitCodeError", TerminationReason.ERROR, "passed"),
        ("SomethingNobodyKnowsError", TerminationReason.ERROR, "passed"),
    ],
)
def test_harbors_exceptions_are_our_endings(
    name: str, ending: TerminationReason, outcome: str | None, tmp_path: Path
):
    record = only(trial(tmp_path / "t", exception_info=raised(name)), tmp_path / "reports")
    assert (record.termination_reason, record.outcome) == (ending, outcome)
    assert record.error == f"{name}: it went wrong"


def test_a_verifier_that_failed_says_nothing_about_the_agent(tmp_path: Path):
    broken = {"exception_info": raised("VerifierTimeoutError"), "verifier_result": None}
    record = only(trial(tmp_path / "t", **broken), tmp_path / "reports")
    assert (record.termination_reason, record.outcome) == (TerminationReason.COMPLETED, None)
    assert record.error is None
    assert record.verdict is not None
    assert record.verdict.error == "VerifierTimeoutError: it went wrong"


def test_the_end_of_what_the_verifier_printed_is_kept(tmp_path: Path):
    folder = trial(tmp_path / "t")
    (folder / "verifier").mkdir()
    (folder / "verifier" / "test-stdout.txt").write_text("é" * 9000 + "\n3 passed\n")
    record = only(folder, tmp_path / "reports")
    assert record.verdict is not None
    assert len(record.verdict.log) == 4000
    assert record.verdict.log.endswith("é\n3 passed\n")


def test_the_steps_of_a_trial_count_together(tmp_path: Path):
    steps = [
        {
            "step_name": name,
            "agent_result": {"n_input_tokens": 10, "n_cache_tokens": None, "n_output_tokens": 1},
            "verifier_result": {"rewards": {"reward": reward}},
            "exception_info": None if reward else raised("AgentTimeoutError"),
            "agent_execution": {
                "started_at": "2026-01-26T04:00:30Z",
                "finished_at": "2026-01-26T04:00:40Z",
            },
        }
        for name, reward in (("one", 1.0), ("two", 0.0))
    ]
    whole: dict[str, Any] = {"agent_result": None, "verifier_result": None}
    whole |= {"agent_execution": None, "step_results": steps}
    folder = trial(tmp_path / "t", story=None, **whole)
    for name in ("one", "two"):
        path = folder / "steps" / name / "agent" / "trajectory.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps([{"prompt": f"Do {name}.", "response": "Done."}]))
    log = imported(folder, out=tmp_path / "reports")
    [record] = log.trials()
    trajectory = log.trajectory(record)
    assert trajectory is not None
    assert record.termination_reason is TerminationReason.DURATION_EXCEEDED
    assert (record.usage.input, record.usage.output, record.model_calls) == (20, 2, 2)
    assert (record.scores["reward"].value, trajectory.duration_s) == (0.5, 20.0)


def test_tool_calls_of_atif_are_ours(tmp_path: Path):
    call = {"tool_call_id": "c1", "function_name": "shell", "arguments": {"command": "ls"}}
    story = {
        "schema_version": "ATIF-v1.4",
        "session_id": "s",
        "agent": {"name": "a", "version": "1"},
        "steps": [
            {"step_id": 1, "source": "system", "message": "Be brief."},
            {"step_id": 2, "source": "user", "message": "Go."},
            {
                "step_id": 3,
                "source": "agent",
                "message": "Looking.",
                "tool_calls": [call],
                "observation": {"results": [{"source_call_id": "c1", "content": "a.txt"}]},
            },
            {"step_id": 4, "source": "agent", "message": "One file."},
        ],
    }
    log = imported(trial(tmp_path / "t", story=story), out=tmp_path / "reports")
    [record] = log.trials()
    trajectory = log.trajectory(record)
    assert trajectory is not None
    assert trajectory.system == "Be brief."
    assert [one.content for one in trajectory.messages[1:3]] == [
        (
            Text(text="Looking."),
            ToolCall(id="c1", name="shell", arguments='{"command": "ls"}'),
        ),
        (ToolResult(call_id="c1", name="shell", content="a.txt"),),
    ]
    assert (record.tool_calls_made, record.tools_used, record.untold) == (1, ("shell",), ())


def test_secrets_are_removed_and_a_run_holds_none(tmp_path: Path):
    story = [{"episode": 0, "prompt": f"Use {KEY}.", "response": f"export KEY={KEY}"}]
    told = raised("ApiError", f"refused: {KEY}")
    log = imported(
        trial(tmp_path / "t", story=story, exception_info=told), out=tmp_path / "reports"
    )
    written = [path.read_text() for path in log.folder.rglob("*") if path.is_file()]
    assert len(written) == 3
    assert not any(KEY in text for text in written)


def test_variants_are_agents_and_models_or_jobs_where_only_they_differ(tmp_path: Path):
    def variants(*kinds: dict[str, Any]) -> list[str]:
        folder = tmp_path / f"case-{len(list(tmp_path.iterdir()))}"
        for number, kind in enumerate(kinds):
            trial(folder / f"t{number}", story=None, **kind)
        return [one.variant for one in chosen_by_facts(read_trials([folder])[0])]

    def of(job: str, model: str = "tiny-1") -> dict[str, Any]:
        info = {"name": "terminus-2", "version": "2", "model_info": {"name": model}}
        return {"config": {"trials_dir": f"/jobs/{job}"}, "agent_info": info}

    assert variants(of("a"), of("a", "big/2")) == ["terminus-2-tiny-1", "terminus-2-big-2"]
    # A job for each task, named after it: the rest of the name says what differs.
    assert variants(of("plain-count-lines-ad77e6"), of("skills-count-lines-df7d04")) == [
        "plain",
        "skills",
    ]
    assert variants(of("a"), of("b"), of("a", "big"), of("b", "big"))[:2] == [
        "terminus-2-tiny-1-a",
        "terminus-2-tiny-1-b",
    ]


def test_globs_choose_variants_in_their_order_and_repeats_count_by_time(tmp_path: Path):
    job = tmp_path / "job"
    late = {"started_at": "2026-01-27T00:00:00Z", "finished_at": "2026-01-27T00:00:01Z"}
    trial(job / "count__a", **late)
    trial(job / "count__b")
    trial(job / "count__c")
    log = imported(job, out=tmp_path / "reports", globs=("rest=*/count__[ab]", "one=count__c"))
    assert [one.name for one in log.run().variants] == ["rest", "one"]
    found = {one.trial_id: one.duration_s for one in log.trials()}
    assert found == {
        "count-lines/rest/0": 100.0,
        "count-lines/rest/1": 1.0,
        "count-lines/one/0": 100.0,
    }
    with pytest.raises(BadInputError, match=r"--variant x=nothing\*: it takes no trial"):
        imported(job, out=tmp_path / "reports", globs=("x=nothing*",))
    with pytest.raises(BadInputError, match="expected NAME=GLOB"):
        VariantGlob.parse("just-a-glob")


def test_a_job_is_searched_and_what_is_in_a_trial_is_no_trial(tmp_path: Path):
    job = tmp_path / "jobs" / "first"
    inner = trial(job / "count__a")
    trial(inner / "artifacts" / "copied", story=None)
    (job / "result.json").write_text(json.dumps({"n_total_trials": 2, "stats": {}}))
    (job / "killed__b").mkdir()
    (job / "killed__b" / "trial.log").write_text("")
    trials, unfinished = read_trials([tmp_path / "jobs", inner])
    assert [one.folder.name for one in trials] == ["count__a"]
    assert [path.name for path in unfinished] == ["killed__b"]


@pytest.mark.parametrize(
    ("spoiled", "named"),
    [
        ({"agent_result": {"n_input_tokens": "many"}}, r"agent_result\.n_input_tokens"),
        ({"verifier_result": {"rewards": {"reward": "good"}}}, r"verifier_result\.rewards"),
        ({"agent_info": None}, "agent_info"),
        ({"started_at": "yesterday"}, "started_at"),
    ],
)
def test_a_damaged_file_is_named_with_its_key_and_nothing_is_written(
    spoiled: dict[str, Any], named: str, tmp_path: Path
):
    trial(tmp_path / "job" / "a__1")
    trial(tmp_path / "job" / "b__2", **spoiled)
    with pytest.raises(BadInputError, match=rf"b__2/result\.json: {named}"):
        imported(tmp_path / "job", out=tmp_path / "reports")
    assert not (tmp_path / "reports").exists()


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("result.json", "{", "not JSON"),
        ("result.json", "[]", "expected an object"),
        ("result.json", '{"task": "x"}', "trial_name: missing"),
        ("agent/trajectory.json", '{"foreign": true}', "no known format of a conversation"),
        ("agent/trajectory.json", "", "the file is empty"),
    ],
)
def test_a_foreign_file_is_refused(name: str, text: str, said: str, tmp_path: Path):
    (trial(tmp_path / "t") / name).write_text(text)
    with pytest.raises(BadInputError, match=rf"{name}: .*{said}"):
        imported(tmp_path / "t", out=tmp_path / "reports")
    assert not (tmp_path / "reports").exists()


def test_a_folder_without_trials_is_refused(tmp_path: Path):
    with pytest.raises(BadInputError, match="no trial of Harbor's is here"):
        read_trials([tmp_path])


def test_an_existing_folder_is_kept(tmp_path: Path):
    trials, _ = read_trials([trial(tmp_path / "t")])
    with pytest.raises(BadInputError, match="is there already"):
        import_run(
            chosen_by_facts(trials), reports=tmp_path, out=tmp_path / "t", redactor=Redactor({})
        )
    assert json.loads((tmp_path / "t" / "result.json").read_text()) == result(trial_name="t")


@pytest.mark.parametrize("part", ["verifier/test-stdout.txt", "agent/trajectory.json"])
def test_a_link_out_of_a_trial_is_refused(tmp_path: Path, part: str):
    secret = tmp_path / "secret"
    secret.write_text("[]")
    folder = trial(tmp_path / "t", story=None)
    (folder / part).parent.mkdir()
    (folder / part).symlink_to(secret)
    with pytest.raises(BadInputError, match=f"{part}: a link out of the trial's folder"):
        read_trials([folder])


def test_a_result_that_is_a_link_out_of_its_trial_is_refused(tmp_path: Path):
    folder = trial(tmp_path / "t")
    (folder / "result.json").rename(tmp_path / "secret.json")
    (folder / "result.json").symlink_to(tmp_path / "secret.json")
    with pytest.raises(BadInputError, match=r"result\.json: a link out of the trial's folder"):
        read_trials([folder])


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"step_results": [{"step_name": "../../x"}]}, "step_results[0].step_name"),
        ({"step_results": [{"step_name": "/etc"}]}, "step_results[0].step_name"),
        ({"started_at": "0001-01-01T00:00:00+05:00"}, "started_at"),
        ({"finished_at": "9999-12-31T23:59:59-05:00"}, "finished_at"),
        ({"agent_execution": {"started_at": "9999-01-01"}}, "agent_execution.started_at"),
        ({"agent_result": {"n_input_tokens": 10**400}}, "agent_result.n_input_tokens"),
        ({"verifier_result": {"rewards": {"a": 1.7e308}}}, "verifier_result.rewards.a"),
        ({"agent_result": {"cost_usd": 1.7e308}}, "agent_result.cost_usd"),
    ],
)
def test_numbers_and_names_that_no_trial_has_are_named(
    tmp_path: Path, changes: dict[str, Any], key: str
):
    folder = trial(tmp_path / "t", **changes)
    with pytest.raises(BadInputError) as caught:
        read_trials([folder])
    assert str(caught.value).startswith(f"{folder / 'result.json'}: {key} = ")

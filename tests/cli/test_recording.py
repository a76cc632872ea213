"""`harness run` while it records: what is asked, what is kept, what never reaches a file."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from functools import partial
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.cli.tiny import (
    FRUIT,
    calls_in,
    command_line,
    make_suite,
    make_task,
    model_server,
    solve,
    text_of,
    trials_of,
    write,
)

KEY = 'planted/"key+0123456789abcdef'
"""Spelled otherwise in JSON, in JSON within JSON, and in URLs."""


def record_until_it_hangs(folder: Path, server, *options: str) -> subprocess.Popen[str]:
    """A recording that waits for an answer which never comes."""
    recording = subprocess.Popen(
        command_line("run", "suites/tiny", "--record-mode", "all", "--out", "killed", *options),
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # A shell starts what it puts into the background with interrupts ignored.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )
    assert server.hanging.wait(60)
    return recording


def test_a_killed_recording_goes_on_where_it_was(tmp_path, monkeypatch, harness):
    monkeypatch.chdir(tmp_path)
    # The first trial has two calls, which the second shares: the third is the second's own.
    with model_server(hangs_from=3) as server:
        make_suite(tmp_path / "suites/tiny", server.port)
        options = ("--task", "fruit", "--repeats", "1")
        recording = record_until_it_hangs(tmp_path, server, *options)
        recording.send_signal(signal.SIGKILL)
        recording.communicate()
        assert [trial.trial_id for trial in trials_of(tmp_path / "killed")] == ["fruit/plain/0"]
        before = len(server.asked)
        server.hangs_from = None
        done = harness(
            "run", "suites/tiny", *options, "--record-mode", "new_episodes", "--out", "finished"
        )
        assert done.code == 0
        assert len(server.asked) - before == 1
    assert calls_in(tmp_path / "finished") == {"fruit/plain/0": (2, 0), "fruit/confirmed/0": (2, 1)}
    assert harness("run", "suites/tiny", *options, "--out", "again").code == 0
    assert trials_of(tmp_path / "again") == trials_of(tmp_path / "finished")
    assert sorted(path.name for path in tmp_path.rglob("*.jsonl*")).count("0.jsonl") == 1


def test_workers_end_with_the_run_that_was_killed(tmp_path):
    with model_server(hangs_from=1) as server:
        make_suite(tmp_path / "suites/tiny", server.port)
        recording = record_until_it_hangs(tmp_path, server, "--jobs", "2")
        recording.send_signal(signal.SIGKILL)
        recording.wait()
        # The pipes close when the last process that holds them is gone.
        recording.communicate(timeout=60)


def test_an_interrupt_keeps_what_is_finished(tmp_path):
    with model_server(hangs_from=3) as server:
        make_suite(tmp_path / "suites/tiny", server.port)
        recording = record_until_it_hangs(tmp_path, server, "--task", "fruit", "--repeats", "1")
        os.killpg(recording.pid, signal.SIGINT)
        _, errors = recording.communicate(timeout=60)
    assert recording.returncode == 130
    assert errors.endswith("What was finished is in killed\nerror: interrupted\n")
    assert "Traceback" not in errors
    assert [trial.trial_id for trial in trials_of(tmp_path / "killed")] == ["fruit/plain/0"]
    assert (tmp_path / "cassettes/tiny/fruit/0.jsonl.partial").exists()


def test_an_interrupt_ends_every_worker_in_silence(tmp_path):
    # Two cells of three calls: when the sixth hangs, one worker waits for it, the other is idle.
    with model_server(hangs_from=6) as server:
        make_suite(tmp_path / "suites/tiny", server.port)
        recording = record_until_it_hangs(tmp_path, server, "--jobs", "2", "--repeats", "1")
        os.killpg(recording.pid, signal.SIGINT)
        # The server still does not answer: who waits for it would not end.
        _, errors = recording.communicate(timeout=60)
    assert recording.returncode == 130
    assert errors.endswith("What was finished is in killed\nerror: interrupted\n")
    assert "Traceback" not in errors


def test_a_key_reaches_no_file(tmp_path, monkeypatch, harness):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)

    def read_then_repeat(messages):
        if messages[-1]["role"] == "tool":
            return f"The file says: {messages[-1]['content']}"
        return "read_file", {"path": "data.txt"}

    with model_server(solve=read_then_repeat) as server:
        suite = make_suite(tmp_path / "suites/tiny", server.port)
        make_task(
            suite / "fruit",
            f"{FRUIT} The key is {KEY}, use it.",
            test="cat /logs/agent/answer.txt /workspace/data.txt",
            data=f"key = {KEY}\n",
        )
        options = ("--task", "fruit", "--repeats", "1", "--json")
        done = harness("run", "tiny", *options, "--record-mode", "all", "--out", "reports/first")
        assert done.code == 0
        assert server.headers[0]["authorization"] == f"Bearer {KEY}"
        asked = [[text_of(message) for message in messages[1:]] for messages in server.asked]
        assert KEY in asked[0][0]
        # What a tool gave is cleaned before the model sees it: replay feeds the same.
        assert asked[1][-1] == "key = [redacted]\n"
    again = harness("run", "tiny", *options, "--out", "reports/again")
    assert again.code == 0
    assert trials_of(Path("reports/again")) == trials_of(Path("reports/first"))
    assert files_with(b"[redacted]") != []
    assert files_with_the_key() == []


def files_with(text: bytes) -> list[Path]:
    files = [path for top in ("cassettes", "reports") for path in Path(top).rglob("*")]
    return [path for path in files if path.is_file() and text in path.read_bytes()]


def files_with_the_key() -> list[Path]:
    """The end of it is spelled alike everywhere."""
    return files_with(KEY[-20:].encode())


def test_a_key_in_the_settings_of_a_miss_reaches_no_file(recorded, monkeypatch, harness):
    monkeypatch.setenv("OPENAI_API_KEY", f" {KEY}\n")
    for folder in ("cassettes", "nowhere"):
        options = (
            *("--task", "fruit", "--repeats", "1", "--cassettes", folder),
            *("--set", f"model.name=x-{KEY}"),
            *("--set", f"model.base_url=http://127.0.0.1:1/{quote(KEY)}/v1"),
        )
        done = harness("run", "tiny", *options, "--out", f"reports/{folder}")
        assert done.code == 3
        assert "--set model.base_url=http://127.0.0.1:1/[redacted]/v1" in done.err
        assert KEY[-20:] not in done.out + done.err
        assert Path("reports", folder, "report.html") in files_with(b"x-[redacted]")
    assert files_with_the_key() == []


def test_a_key_that_a_server_repeats_in_its_refusal_reaches_no_file(tmp_path, monkeypatch, harness):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with model_server(refusal=f"the key {KEY} is not known here") as server:
        make_suite(tmp_path / "suites/tiny", server.port)
        options = ("--task", "fruit", "--repeats", "1", "--record-mode", "all")
        harness("run", "tiny", *options, "--out", "reports/refused")
        assert server.headers[0]["authorization"] == f"Bearer {KEY}"
    trials = trials_of(Path("reports/refused"))
    assert {trial.termination_reason for trial in trials} == {"model_error"}
    assert all("the key [redacted] is not known here" in str(trial.error) for trial in trials)
    assert files_with_the_key() == []


def test_space_around_a_key_is_not_sent(tmp_path, monkeypatch, harness):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", f" {KEY}\n")
    with model_server() as server:
        make_suite(tmp_path / "suites/tiny", server.port)
        options = ("--task", "fruit", "--repeats", "1", "--record-mode", "all")
        assert harness("run", "tiny", *options).code == 0
    assert {headers["authorization"] for headers in server.headers} == {f"Bearer {KEY}"}


@pytest.mark.parametrize("word", ["completed", "assistant", "write_file", "confirmed"])
def test_a_key_that_is_a_word_of_the_formats_changes_nothing(recorded, monkeypatch, harness, word):
    monkeypatch.setenv("OPENAI_API_KEY", word)
    done = harness("run", "tiny", "tiny", "--task", "fruit", "--repeats", "1", "--json")
    assert done.code == 0
    assert done.err == (
        "warning: the value of OPENAI_API_KEY is a word that recordings and run logs are made of: "
        "it is not removed from them\n"
    )
    (first, again) = (Path(run["folder"]) for run in done.json["runs"])
    assert trials_of(first) == trials_of(again)
    assert {trial.trial_id for trial in trials_of(first)} == {"fruit/plain/0", "fruit/confirmed/0"}
    assert files_with(b"[redacted]") == []


@pytest.mark.parametrize("mode", ["once", "new_episodes", "all"])
def test_every_cassette_is_checked_before_the_first_call(recorded, harness, mode):
    # The last to be run of the second suite; all before it would be asked for.
    make_suite(recorded / "suites/other", 1)
    for text in ("fruit/0.jsonl", "fruit/1.jsonl", "lines/0.jsonl"):
        (recorded / "cassettes/tiny" / text).unlink()
    path = recorded / "cassettes/tiny/lines/1.jsonl"
    path.write_bytes(path.read_bytes().replace(b"three", b"seven", 1))
    before = sorted(recorded.rglob("*"))
    with model_server() as server:
        url = f"model.base_url=http://127.0.0.1:{server.port}/v1"
        suites = ("suites/other", "tiny")
        done = harness("run", *suites, "--set", url, "--record-mode", mode)
    assert (done.code, done.out) == (2, "")
    assert "lines/1.jsonl:" in done.err
    assert server.asked == []
    assert sorted(recorded.rglob("*")) == before


def test_new_episodes_asks_only_for_what_changed(recorded, harness):
    with model_server() as server:
        write(recorded / "suites/tiny/fruit/instruction.md", FRUIT.replace("apple", "pear"))
        url = f"model.base_url=http://127.0.0.1:{server.port}/v1"
        options = ("--set", url, "--record-mode", "new_episodes", "--repeats", "1")
        assert harness("run", "tiny", *options, "--out", "again").code == 0
    # Where the server listens does not belong to a request; plain and confirmed share two calls.
    assert len(server.asked) == 3
    assert {name: live for name, (_, live) in calls_in(Path("again")).items()} == {
        "fruit/plain/0": 2, "fruit/confirmed/0": 1, "lines/plain/0": 0, "lines/confirmed/0": 0,
    }  # fmt: skip


def test_what_is_recorded_is_fed_and_run_again_up_to_where_recording_goes_on(recorded, harness):
    # The tool of turn 1 gives something else now; the model still sees what it saw.
    write(recorded / "suites/tiny/lines/environment/workspace/data.txt", "changed\n")
    with model_server() as server:
        options = (
            *("--set", f"model.base_url=http://127.0.0.1:{server.port}/v1"),
            *("--set", "loop.confirm.prompt=Sure?", "--task", "lines", "--repeats", "1"),
        )
        done = harness("run", "tiny", *options, "--record-mode", "new_episodes", "--out", "again")
    assert done.code == 0
    (asked,) = server.asked
    assert [text_of(message) for message in asked[3:]] == [
        "one\ntwo\n", "I see three lines.", "Sure?",
    ]  # fmt: skip
    assert calls_in(Path("again")) == {"lines/plain/0": (2, 0), "lines/confirmed/0": (2, 1)}
    (change,) = next(t for t in trials_of(Path("again")) if t.variant == "confirmed").tool_changes
    assert change.difference.splitlines()[3:] == ["-one", "-two", "+changed", " "]
    # A trial whose model is asked nothing runs nothing.
    assert next(t for t in trials_of(Path("again")) if t.variant == "plain").tool_changes == ()


def test_recording_reports_each_trial_as_it_ends(tmp_path, monkeypatch, harness):
    monkeypatch.chdir(tmp_path)
    with model_server() as server:
        make_suite(tmp_path / "suites/tiny", server.port)
        done = harness("run", "tiny", "--task", "lines", "--repeats", "1", "--record-mode", "once")
    assert done.err.splitlines()[0].startswith(
        "1/2 lines/plain/0: completed, failed, 2 model calls"
    )


@pytest.mark.parametrize("mode", ["once", "new_episodes", "all"])
def test_ci_records_only_where_that_is_allowed(recorded, harness, monkeypatch, mode):
    monkeypatch.setenv("CI", "true")
    done = harness("run", "tiny", "--record-mode", mode)
    assert (done.code, done.out) == (2, "")
    assert "add --allow-live" in done.err
    assert harness("run", "tiny", "--record-mode", mode, "--allow-live", "--dry-run").code == 0


@pytest.mark.parametrize(
    ("provider", "variable"),
    [("openai", "OPENAI_API_KEY"), ("anthropic", "ANTHROPIC_API_KEY")],
)
def test_recording_at_a_vendor_needs_its_key(recorded, harness, provider, variable):
    suite = recorded / "suites/tiny/suite.toml"
    lines = suite.read_text(encoding="utf-8").replace('"openai"', f'"{provider}"').splitlines()
    suite.write_text("\n".join(line for line in lines if "base_url" not in line), encoding="utf-8")
    done = harness("run", "tiny", "--record-mode", "all")
    assert done.code == 2
    assert f"{variable} is not set; set it, or give the model a base_url" in done.err
    assert sorted(path.name for path in Path("reports").iterdir()) == ["baselines", "first"]


def test_a_server_that_is_gone_is_no_fault_of_the_agent_and_nothing_is_kept_as_recorded(
    tmp_path, monkeypatch, harness
):
    monkeypatch.chdir(tmp_path)
    with model_server() as server:
        make_suite(tmp_path / "suites/tiny", server.port)
    options = ("--task", "fruit", "--variants", "plain", "--repeats", "1", "--json")
    done = harness("run", "tiny", *options, "--record-mode", "all")
    (run,) = done.json["runs"]
    assert run["totals"][0]["endings"] == {"infrastructure_error": 1}
    assert done.code == 3
    assert f"cannot reach http://127.0.0.1:{server.port}/v1" in done.err
    assert [path for path in Path("cassettes").rglob("*") if path.is_file()] == []
    assert harness("run", "tiny", *options).code == 3


@pytest.mark.parametrize("mode", ["once", "new_episodes", "all"])
def test_a_trial_whose_server_went_away_is_gone_on_with(tmp_path, monkeypatch, harness, mode):
    monkeypatch.chdir(tmp_path)
    failing = threading.Event()
    failing.set()

    def ends_after_the_first_call(messages):
        if failing.is_set() and messages[-1]["role"] == "tool":
            raise ConnectionError
        return solve(messages)

    options = ("--task", "fruit", "--variants", "plain", "--repeats", "1", "--record-mode", mode)
    with model_server(solve=ends_after_the_first_call) as server:
        make_suite(tmp_path / "suites/tiny", server.port)
        assert harness("run", "tiny", *options, "--out", "cut").code == 3
        (cut,) = trials_of(Path("cut"))
        assert (cut.termination_reason, cut.outcome) == ("infrastructure_error", None)
        assert calls_in(Path("cut")) == {"fruit/plain/0": (0, 1)}
        (left,) = [path for path in Path("cassettes").rglob("*") if path.is_file()]
        assert left.name == "0.jsonl.partial"
        assert '"kind":"verdict"' not in left.read_text(encoding="utf-8")
        replayed = harness("run", "tiny", *options[:-2])
        assert "  nothing recorded: 1 trial of fruit (plain)\n" in replayed.err
        assert "\n    an unfinished recording is beside it\nTo record" in replayed.err
        failing.clear()
        assert harness("run", "tiny", *options, "--out", "whole").code == 0
    assert calls_in(Path("whole")) == {"fruit/plain/0": (1, 1)}
    assert harness("run", "tiny", *options[:-2], "--out", "again").code == 0
    assert trials_of(Path("again")) == trials_of(Path("whole"))


def test_an_answer_that_nobody_can_read_is_a_finished_recording(tmp_path, monkeypatch, harness):
    monkeypatch.chdir(tmp_path)
    options = ("--task", "fruit", "--repeats", "1")
    with model_server(solve=lambda messages: (None, {})) as server:
        make_suite(tmp_path / "suites/tiny", server.port)
        harness("run", "tiny", *options, "--record-mode", "once", "--out", "recorded")
    recorded = trials_of(Path("recorded"))
    assert {trial.termination_reason for trial in recorded} == {"model_error"}
    harness("run", "tiny", *options, "--out", "replayed")
    assert trials_of(Path("replayed")) == recorded


@pytest.mark.parametrize(
    ("task_limit", "variants_limit"), [(0.2, None), (None, 0.2), (0.2, 99), (99, 0.2)]
)
def test_time_that_ran_out_while_recording_runs_out_on_replay(
    tmp_path, monkeypatch, harness, task_limit, variants_limit
):
    monkeypatch.chdir(tmp_path)

    def slowly(messages):
        time.sleep(0.3)
        return solve(messages)

    options = ["--task", "fruit", "--repeats", "1"]
    if variants_limit is not None:
        options += ["--set", f"loop.budget.max_duration_s={variants_limit}"]
    with model_server(solve=slowly) as server:
        suite = make_suite(tmp_path / "suites/tiny", server.port)
        if task_limit is not None:
            write(suite / "fruit/task.toml", f"[agent]\ntimeout_sec = {task_limit}\n")
        harness("run", "tiny", *options, "--record-mode", "all", "--out", "recorded")
    harness("run", "tiny", *options, "--out", "replayed")
    recorded, replayed = Path("recorded"), Path("replayed")
    assert trials_of(replayed) == trials_of(recorded)
    assert {(trial.variant, trial.termination_reason, trial.outcome) for trial in
            trials_of(recorded)} == {
        ("plain", "duration_exceeded", "failed"), ("confirmed", "duration_exceeded", "failed"),
    }  # fmt: skip
    for story in recorded.rglob("trajectories/**/*.json"):
        assert (replayed / story.relative_to(recorded)).read_bytes() == story.read_bytes()


def test_the_report_of_a_recording_says_that_tools_ran(recorded, harness):
    harness("run", "tiny", "--repeats", "1", "--out", "again")
    first, again = (
        Path(name, "report.html").read_text("utf-8") for name in ("reports/first", "again")
    )
    assert "<dd>replay: what the cassette held no result of really ran</dd>" in first
    assert "<dd>replay: tool results and verdicts came from the cassette</dd>" in again

"""Commands that only read: report, show, compare, doctor."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.tiny import FRUIT


def words(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def test_show_prints_the_whole_conversation(recorded, harness):
    done = harness("show", "last", "fruit/confirmed/1")
    assert done.code == 0
    order = (
        "fruit/confirmed/1: completed, passed",
        "Reward: 1",
        "── System\n    You work in /workspace.",
        f"── Instruction\n    {FRUIT}",
        "── Call write_file\n    path: fruit.txt\n    content: apple\n",
        "── Result of write_file\n    Wrote 5 bytes to fruit.txt",
        "── Answer 2\n    I see three lines.",
        "── Confirmation question\n",
        "── Answer 3\n    COMPLETED: checked",
    )
    places = [done.out.index(part) for part in order]
    assert places == sorted(places)


def test_show_gives_the_same_trial_as_json(recorded, harness):
    data = harness("show", "last", "lines/plain/0", "--json").json
    assert data["trial"]["outcome"] == "failed"
    assert data["trajectory"]["final_text"] == "I see three lines."


def test_the_only_trial_of_a_run_needs_no_name(recorded, harness):
    options = ("--variants", "plain", "--task", "fruit", "--repeat", "1")
    assert harness("run", "tiny", *options, "--out", "reports/one").code == 0
    done = harness("show", "one")
    assert (done.code, done.out) == (0, harness("show", "one", "fruit/plain/0").out)
    assert harness("show", "first").code == 2


def test_show_says_when_a_conversation_is_gone(recorded, harness):
    Path("reports/first/trajectories/lines/plain/0.json").unlink()
    done = harness("show", "last", "lines/plain/0")
    assert done.code == 0
    assert "The conversation is gone: no file trajectories/lines/plain/0.json" in done.out
    assert harness("show", "last", "lines/plain/0", "--json").json["trajectory"] is None


def test_last_is_the_latest_run(recorded, harness):
    assert harness("run", "tiny", "--task", "lines", "--out", "reports/a-later-run").code == 0
    assert harness("report", "last").out == "reports/a-later-run/report.html\n"


def test_report_writes_where_it_is_told(recorded, harness):
    assert harness("report", "first", "-o", "page.html").out == "page.html\n"
    page = Path("page.html").read_text(encoding="utf-8")
    assert "fruit" in page
    assert Path("reports/first/report.html").read_text(encoding="utf-8") == page
    data = harness("report", "first", "first", "--json").json
    assert data == {"format": "html", "reports": ["reports/first/report.html"] * 2}


def test_compare_prints_the_headline_and_every_metric(recorded, harness):
    done = harness("compare", "last")
    data = harness("compare", "last", "--json").json
    assert done.code == 0
    (found,) = data["comparisons"]
    assert data["exact"] is None
    assert (found["baseline"], found["candidate"]) == ("plain", "confirmed")
    assert done.out.startswith(f"{found['headline']}\n")
    assert "95% interval  adjusted p  conclusion\n" in done.out
    assert ["iterations", "2", "2.0", "3.0", "+1.0"] in [line[:5] for line in words(done.out)]


def test_compare_can_judge_the_other_way_round_and_one_metric(recorded, harness):
    done = harness("compare", "last", "--baseline", "confirmed", "--metric", "tokens", "--json")
    (found,) = done.json["comparisons"]
    assert (found["baseline"], found["candidate"]) == ("confirmed", "plain")
    assert [metric["metric"] for metric in found["metrics"]] == ["tokens"]
    told = harness("compare", "last", "--metric", "tokens").out
    assert told.startswith("confirmed vs plain: tokens ")
    assert ("pass rate" in told, "Iterations" in told) == (False, False)
    told = harness("compare", "last", "--metric", "pass_rate").out
    assert ("pass rate" in told, "terations" in told) == (True, False)


def test_an_inconclusive_comparison_fails_only_where_that_is_asked(recorded, harness):
    (found,) = harness("compare", "last", "--json").json["comparisons"]
    by_name = {metric["metric"]: metric["conclusion"] for metric in found["metrics"]}
    assert by_name["tokens"] == "inconclusive"
    assert harness("compare", "last", "--metric", "tokens").code == 0
    assert harness("compare", "last", "--metric", "tokens", "--strict").code == 3


def test_two_runs_are_compared_exactly_and_as_populations(recorded, harness):
    assert (
        harness("run", "tiny", "--set", "loop.max_iterations=2", "--out", "reports/cut").code == 0
    )
    data = harness("compare", "first", "cut", "--json").json
    assert (data["exact"]["same"], len(data["exact"]["differing"])) == (4, 4)
    assert [(one["baseline"], one["candidate"]) for one in data["comparisons"]] == [
        ("plain in first", "plain in cut"),
        ("confirmed in first", "confirmed in cut"),
    ]
    done = harness("compare", "first", "cut")
    assert done.out.startswith("Trials of both runs, compared exactly: 4 the same, 4 different.\n")
    assert "termination_reason: expected completed, got max_iterations (4 trials)" in done.out


def test_compare_needs_two_variants_or_two_runs(recorded, harness):
    assert harness("run", "tiny", "--variants", "plain", "--out", "reports/one").code == 0
    done = harness("compare", "one")
    assert done.code == 2
    assert "the run has only the variant 'plain'; name a second run" in done.err


def test_doctor_names_versions_sandboxes_and_keys_but_no_value(harness, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "do-not-print-me")
    done = harness("doctor")
    assert done.code == 0
    assert "OPENAI_API_KEY: set\n" in done.out
    assert "ANTHROPIC_API_KEY: not set" in done.out
    found = harness("doctor", "--json")
    assert found.json["keys"] == {
        "ANTHROPIC_API_KEY": False,
        "OPENAI_API_KEY": True,
        "OLLAMA_API_KEY": False,
        "GEMINI_API_KEY": False,
    }
    kinds = [sandbox["kind"] for sandbox in found.json["sandboxes"]]
    assert kinds == ["bubblewrap", "unshare", "docker", "directory"]
    assert "sandbox directory: works; for trusted tasks, if asked for\n" in done.out
    assert found.json["versions"]["vcrpy"]
    assert "do-not-print-me" not in done.out + done.err + found.out + found.err


def test_a_run_log_that_cannot_be_read_is_named(recorded, harness):
    path = Path("reports/first/trials.jsonl")
    lines = path.read_text(encoding="utf-8").splitlines()
    lines[2] = json.dumps(json.loads(lines[2]) | {"iterations": "many"})
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    for command in (["report", "first"], ["check", "first"], ["compare", "first"]):
        done = harness(*command)
        assert done.code == 2
        assert "reports/first/trials.jsonl, line 3: iterations" in done.err


@pytest.mark.parametrize("name", ["run.json", "trials.jsonl"])
def test_a_run_without_a_file_is_named(recorded, harness, name):
    (Path("reports/first") / name).unlink()
    done = harness("report", "reports/first")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "reports/first" in done.err


@pytest.mark.parametrize("name", ["run.json", "trials.jsonl", "trajectories/fruit/plain/0.json"])
def test_a_file_of_a_run_that_is_no_text_is_named(recorded, harness, name):
    (Path("reports/first") / name).write_bytes(b"\xff\xfe")
    done = harness("report", "reports/first")
    assert done.code == 2
    assert done.err == f"error: reports/first/{name}: not UTF-8 text; run the suite again\n"

"""`harness run`: what it prints, what it leaves, and how it ends."""

from __future__ import annotations

import html
import json
import re
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.cli import COMMANDS
from harness.cli.options import make_command
from harness.cli.terminal import Terminal
from tests.cli.tiny import (
    FRUIT,
    calls_in,
    command_line,
    in_subprocess,
    model_server,
    trials_of,
    write,
)


def test_replay_repeats_what_was_just_recorded_without_the_server(recorded, harness):
    done = harness("run", "tiny", "--out", "again")
    assert done.code == 0
    assert trials_of(recorded / "again") == trials_of(recorded / "reports" / "first")
    assert sum(served for served, _ in calls_in(recorded / "again").values()) == 20
    assert all(live == 0 for _, live in calls_in(recorded / "again").values())


def test_the_table_counts_what_the_log_holds(recorded, harness):
    done = harness("run", "tiny", "--out", "again")
    lines = [line.split() for line in done.out.splitlines()]
    assert ["fruit", "2/2", "2/2"] in lines
    assert ["lines", "0/2", "0/2"] in lines
    assert ["all", "its", "tasks", "2/4", "2/4"] in lines
    assert ["ended", "completed", "4", "4"] in lines
    assert ["iterations,", "mean", "2.0", "3.0"] in lines
    assert ["tokens,", "mean", "220", "330"] in lines
    assert done.out.endswith("Report: again/report.html\n")
    assert "<html" in (recorded / "again" / "report.html").read_text(encoding="utf-8")


def table_of(out: str) -> dict[str, list[str]]:
    """Rows by label, without rules."""
    rows = [re.split(r" {2,}", line.rstrip()) for line in out.split("\n\n")[0].splitlines()]
    return {row[0]: row[1:] for row in rows if not row[0].startswith("─")}


def expected_table(trials: list[dict[str, Any]], variants: list[str]) -> dict[str, list[str]]:
    """The same from the lines of trials.jsonl, counted in another way."""

    def row(cell: Callable[[list[dict[str, Any]]], str], **wanted: str) -> list[str]:
        cells = []
        for variant in variants:
            key = {"variant": variant} | wanted
            cells.append(cell([t for t in trials if key.items() <= t.items()]))
        return cells

    def passed(some: list[dict[str, Any]]) -> str:
        outcomes = [t["outcome"] for t in some if t["outcome"]]
        return f"{outcomes.count('passed')}/{len(outcomes)}" if outcomes else "–"

    def mean(some: list[dict[str, Any]], value: Callable[[dict[str, Any]], float]) -> float:
        values = [value(t) for t in some if t["termination_reason"] != "replay_miss"]
        return statistics.mean(values)

    def tokens(trial: dict[str, Any]) -> float:
        counts = trial["usage"]
        return float(counts["input"] + counts["output"])

    def ended(end: str, some: list[dict[str, Any]]) -> str:
        return str(sum(t["termination_reason"] == end for t in some))

    endings = {str(t["termination_reason"]): None for t in trials}
    return (
        {"passed, of trials judged": variants}
        | {task: row(passed, task=task) for task in ("fruit", "lines")}
        | {"all its tasks": row(passed)}
        | {f"ended {end.replace('_', ' ')}": row(partial(ended, end)) for end in endings}
        | {
            "iterations, mean": row(lambda some: f"{mean(some, lambda t: t['iterations']):.1f}"),
            "tokens, mean": row(lambda some: f"{mean(some, tokens):.0f}"),
            "cost, mean": row(lambda some: f"${mean(some, lambda t: t['cost_usd']):.4f}"),
        }
    )


@pytest.mark.parametrize("limits", [(), ("--set", "loop.max_iterations=2")], ids=["whole", "cut"])
@pytest.mark.parametrize("missing", [(), ("lines/0.jsonl",), ("fruit/0.jsonl", "fruit/1.jsonl")])
def test_every_cell_of_the_table_is_in_the_log(recorded, harness, limits, missing):
    for name in missing:
        (recorded / "cassettes" / "tiny" / name).unlink()
    price = "model.price={input = 10.0, output = 100.0}"
    done = harness("run", "tiny", "--set", price, *limits, "--out", "again")
    lines = (recorded / "again" / "trials.jsonl").read_text(encoding="utf-8").splitlines()
    trials = [json.loads(line) for line in lines]
    assert len(trials) == 8
    assert table_of(done.out) == expected_table(trials, ["plain", "confirmed"])


def test_live_tools_that_give_something_else_are_named(recorded, harness):
    write(recorded / "suites/tiny/lines/environment/workspace/data.txt", "changed\n")
    done = harness("run", "tiny", "--tools", "live", "--repeats", "1", "--out", "live")
    assert done.code == 0
    what = "read_file {\"path\":\"data.txt\"}: recorded 'one\\ntwo\\n', now 'changed\\n'"
    assert (
        "warning: 2 tool calls in 2 trials gave something else than what is recorded; the model "
        f"was answered with what is recorded\n  lines/confirmed/0: {what}\n"
    ) in done.out
    found = {
        t.trial_id: (t.tool_differences, t.first_tool_difference) for t in trials_of(Path("live"))
    }
    assert found == {
        "fruit/plain/0": (0, None),
        "fruit/confirmed/0": (0, None),
        "lines/plain/0": (1, what),
        "lines/confirmed/0": (1, what),
    }
    shown = harness("show", "live", "lines/plain/0").out
    assert (
        f"Tools run again: 1 call gave something else than what is recorded; first: {what}" in shown
    )
    page = html.unescape((recorded / "live" / "report.html").read_text(encoding="utf-8"))
    assert "Tools that ran again gave something else than what is recorded" in page
    assert f"first: {what}" in page
    again = harness("run", "tiny", "--tools", "live", "--repeats", "1", "--json").json
    assert [one["trial_id"] for one in again["runs"][0]["tool_differences"]] == [
        "lines/confirmed/0",
        "lines/plain/0",
    ]


def test_every_call_that_gave_something_else_is_listed_with_what_differs(recorded, harness):
    write(recorded / "suites/tiny/lines/environment/workspace/data.txt", "one\nthree\n")
    done = harness("run", "tiny", "--tools", "live", "--out", "live", "--task", "lines")
    listed = [line for line in done.out.splitlines() if line.startswith("  lines/")]
    assert [line.split(":")[0].strip() for line in listed] == [
        "lines/confirmed/0", "lines/confirmed/1", "lines/plain/0", "lines/plain/1",
    ]  # fmt: skip
    for trial in trials_of(Path("live")):
        (change,) = trial.tool_changes
        assert change.difference.splitlines()[3:] == [" one", "-two", "+three", " "]
    page = html.unescape((recorded / "live" / "report.html").read_text(encoding="utf-8"))
    assert page.count('<span class="removed">-two</span>') == 4
    shown = harness("show", "live", "lines/plain/0").out
    assert "\n      -two\n      +three\n" in shown


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--front", "direct", "--record-mode", "new_episodes"), "--front direct"),
        (("--faults", "429@1", "--record-mode", "all"), "--faults"),
        (("--faults", "418@1"), "faults '418@1': '418@1' is no fault"),
        (("--faults", "cut%0"), "'cut%0' is no fault"),
        (("--faults", "seed=3"), "faults 'seed=3': nothing goes wrong with it; write KIND@CALL"),
    ],
    ids=" ".join,
)
def test_options_of_replay_that_cannot_be_are_refused(recorded, harness, options, said):
    done = harness("run", "tiny", *options)
    assert (done.code, done.out) == (2, "")
    assert said in done.err
    assert sorted(path.name for path in Path("reports").iterdir()) == ["baselines", "first"]


@pytest.mark.parametrize("options", [("--front", "direct"), ("--pace", "recorded")], ids=" ".join)
def test_front_and_pace_change_no_result_and_are_in_the_report(recorded, harness, options):
    assert harness("run", "tiny", *options, "--out", "again").code == 0
    assert trials_of(Path("again")) == trials_of(Path("reports/first"))
    page = html.unescape(Path("again/report.html").read_text(encoding="utf-8"))
    assert f"{options[0].removeprefix('--')} {options[1]}" in page


def test_faults_reach_the_agent_and_are_in_the_report(recorded, harness):
    options = ("--faults", "400@2", "--task", "lines", "--variants", "plain", "--repeats", "1")
    assert harness("run", "tiny", *options, "--out", "faulty").code == 0
    (trial,) = trials_of(Path("faulty"))
    assert (trial.termination_reason, trial.model_calls) == ("model_error", 2)
    assert json.loads(Path("faulty/run.json").read_text("utf-8"))["faults"] == "400@2"
    assert "faults 400@2" in Path("faulty/report.html").read_text(encoding="utf-8")


def test_faults_that_no_trial_came_to_are_named(recorded, harness):
    limits = ("--task", "lines", "--variants", "plain", "--repeats", "1")
    # Two calls, and one more for the client's retry.
    done = harness("run", "tiny", *limits, "--faults", "503@1,500@4-9,timeout@99")
    assert "\nwarning: nothing came of --faults 500@4-9,timeout@99: " in done.out
    assert "no trial made more than 3 model calls, retries included\n" in done.out
    done = harness("run", "tiny", *limits, "--faults", "503@1", "--json")
    (run,) = done.json["runs"]
    assert (run["most_calls"], run["unmet_faults"]) == (3, [])
    assert "warning" not in harness("run", "tiny", *limits, "--faults", "503@1").out


def test_live_tools_that_give_the_same_are_no_warning(recorded, harness):
    done = harness("run", "tiny", "--tools", "live", "--repeats", "1")
    assert (done.code, done.err) == (0, "")
    assert "warning" not in done.out


def test_a_folder_that_is_rebuilt_otherwise_while_recording_is_named(recorded, harness):
    write(recorded / "suites/tiny/lines/environment/workspace/data.txt", "changed\n")
    with model_server() as server:
        options = (
            *("--set", f"model.base_url=http://127.0.0.1:{server.port}/v1"),
            *("--set", "loop.confirm.prompt=Sure?", "--task", "lines", "--repeats", "1"),
        )
        done = harness("run", "tiny", *options, "--record-mode", "new_episodes", "--out", "rebuilt")
    assert (done.code, len(server.asked)) == (0, 1)
    assert "warning: 1 tool call in 1 trial gave something else than what is recorded" in done.out
    assert "lines/confirmed/0: read_file" in done.out


def test_a_variant_of_some_tasks_stands_beside_the_first_one_on_the_same(recorded, harness):
    suite = recorded / "suites/tiny/suite.toml"
    suite.write_text(suite.read_text(encoding="utf-8") + 'tasks = ["fruit"]\n', encoding="utf-8")
    lines = [line.split() for line in harness("run", "tiny").out.splitlines()]
    assert ["lines", "0/2"] in lines
    assert ["all", "its", "tasks", "2/4", "2/2"] in lines
    assert ["plain", "on", "the", "same", "tasks", "2/4", "2/2"] in lines


def test_json_is_all_there_is_on_stdout(recorded, harness):
    done = harness("run", "tiny", "--task", "fruit", "--repeats", "1", "--json", "-v")
    (run,) = done.json["runs"]
    assert (run["planned"], run["trials"], run["unscored"]) == (2, 2, [])
    plain = run["tasks"][0]["variants"][0]
    assert (plain["variant"], plain["passed"], plain["judged"]) == ("plain", 1, 1)
    assert plain["endings"] == {"completed": 1}
    assert Path(run["report"]).is_file()
    assert "fruit/plain/0: completed, passed" in done.err


def test_quiet_leaves_the_result_alone(recorded, harness):
    assert harness("run", "tiny", "--repeats", "1", "-q").err == ""


@pytest.mark.slow
def test_two_jobs_give_the_same_trials_as_one(recorded):
    one = in_subprocess("run", "tiny", "--jobs", "1", "--out", "one", folder=recorded)
    two = in_subprocess("run", "tiny", "--jobs", "2", "--out", "two", folder=recorded)
    assert (one.code, two.code) == (0, 0)
    assert (one.err, two.err) == ("", "")
    assert trials_of(recorded / "one") == trials_of(recorded / "two")


def test_a_changed_word_misses_in_that_task_alone_and_is_shown(recorded, harness):
    write(recorded / "suites/tiny/fruit/instruction.md", FRUIT.replace("apple", "pear"))
    done = harness("run", "tiny", "--out", "again")
    assert done.code == 3
    endings = {trial.trial_id: trial.termination_reason for trial in trials_of(recorded / "again")}
    missed = {name for name, ending in endings.items() if ending == "replay_miss"}
    assert missed == {name for name in endings if name.startswith("fruit/")}
    assert len(missed) == 4
    for trial in trials_of(recorded / "again"):
        if trial.trial_id in missed:
            assert trial.error is not None
            assert "-" in trial.error
            assert "Write the word pear into" in trial.error
            assert "harness run tiny --task fruit --record-mode new_episodes" in trial.error
    assert done.err == (
        "error: 4 of 8 trials without a result (4 replay_miss), in fruit\n"
        "  message 2 (user): 4 trials of fruit (confirmed, plain)\n"
        "    --- recorded\n"
        "    +++ now\n"
        "    @@ -1 +1 @@\n"
        "    -Write the word apple into the file fruit.txt.\n"
        "    +Write the word pear into the file fruit.txt.\n"
        "To record what is missing: harness accept tiny\n"
    )


def test_the_command_that_records_a_miss_has_the_options_of_the_run(recorded, harness):
    shutil.move("cassettes", "my tapes")
    options = ("--cassettes", "my tapes", "--set", "model.temperature=0.9")
    limits = ("--variants", "confirmed, plain", "--repeats", "1")
    done = harness("run", "suites/tiny", "--task", "fruit", *limits, *options)
    assert done.code == 3
    assert (
        "harness accept suites/tiny --task fruit --set model.temperature=0.9 "
        "--cassettes 'my tapes' --variants confirmed,plain --repeats 1\n"
    ) in done.err
    (missed, *_) = harness(
        *("run", "suites/tiny", "--task", "fruit", *limits, *options, "--json")
    ).json["runs"][0]["unscored"]
    assert missed["error"].endswith(
        "harness run suites/tiny --task fruit --set model.temperature=0.9 --cassettes 'my tapes' "
        "--variants confirmed,plain --repeats 1 --record-mode new_episodes --allow-live"
    )


def test_without_cassettes_every_trial_is_a_miss(recorded, harness):
    done = harness("run", "tiny", "--cassettes", "nowhere", "--json")
    assert done.code == 3
    assert len(done.json["runs"][0]["unscored"]) == 8
    assert not Path("nowhere").exists()
    where = "run from the project's folder or give --cassettes DIR\n"
    assert done.err.startswith(f"warning: nowhere: no such folder, so nothing is recorded; {where}")
    Path("nowhere").mkdir()
    assert where not in harness("run", "tiny", "--cassettes", "nowhere").err


def test_dry_run_says_what_is_recorded_and_touches_nothing(recorded, harness):
    (recorded / "cassettes/tiny/lines/1.jsonl").unlink()
    before = sorted(recorded.rglob("*"))
    done = harness("run", "tiny", "--dry-run", "--json")
    (found,) = done.json["suites"]
    assert (found["trials"], found["recorded_calls"]) == (8, 15)
    assert (found["live_trials"], found["live_calls"], found["misses"]) == (0, 0, 2)
    rows = {(row["task"], row["variant"]): row for row in found["variants"]}
    assert rows["lines", "plain"]["recorded_trials"] == 1
    assert rows["fruit", "confirmed"]["recorded_calls"] == 6
    assert harness("run", "tiny", "--dry-run").code == 0
    assert sorted(recorded.rglob("*")) == before


@pytest.mark.parametrize(
    ("mode", "live_trials", "live_calls"),
    [("all", 8, None), ("new_episodes", 2, None), ("once", 2, None)],
)
def test_dry_run_counts_the_trials_that_would_be_live(
    recorded, harness, mode, live_trials, live_calls
):
    (recorded / "cassettes/tiny/lines/1.jsonl").unlink()
    (found,) = harness("run", "tiny", "--dry-run", "--record-mode", mode, "--json").json["suites"]
    assert (found["live_trials"], found["live_calls"]) == (live_trials, live_calls)
    assert found["misses"] == 0
    assert found["cost_usd"] is None


def test_dry_run_knows_that_a_task_has_changed(recorded, harness):
    write(recorded / "suites/tiny/fruit/instruction.md", FRUIT.replace("apple", "pear"))
    (found,) = harness("run", "tiny", "--dry-run", "--json").json["suites"]
    assert {row["task"]: row["misses"] for row in found["variants"]} == {"fruit": 2, "lines": 0}


def test_dry_run_estimates_calls_and_cost_from_the_recordings(recorded, harness):
    price = "model.price={input = 10.0, output = 100.0}"
    options = ("--dry-run", "--record-mode", "all", "--set", price)
    (found,) = harness("run", "tiny", *options, "--json").json["suites"]
    assert found["live_calls"] == 20
    assert found["cost_usd"] == pytest.approx(20 * (100 * 10 + 10 * 100) / 1e6)
    lines = harness("run", "tiny", *options).out
    assert "8 trials would make about 20 live calls; estimated cost: about $0.040." in lines


def test_dry_run_of_a_recording_needs_no_key(recorded, harness, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    suite = recorded / "suites/tiny/suite.toml"
    write(suite, suite.read_text(encoding="utf-8").replace("base_url", "# base_url"))
    options = ("--record-mode", "new_episodes", "--allow-live")
    before = sorted(recorded.rglob("*"))
    assert harness("run", "tiny", *options, "--dry-run").code == 0
    done = harness("run", "tiny", *options)
    assert done.code == 2
    assert "OPENAI_API_KEY is not set" in done.err
    assert sorted(recorded.rglob("*")) == before


def test_a_reader_that_stops_reading_is_no_error(recorded):
    whole = subprocess.Popen(
        [*command_line("baseline", "show", "--json")],
        cwd=recorded,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert whole.stdout is not None
    assert whole.stderr is not None
    whole.stdout.close()
    errors = whole.stderr.read()
    whole.stderr.close()
    assert (whole.wait(), errors) == (0, "")


def test_a_defect_is_one_line_and_a_traceback_only_on_demand(harness, monkeypatch):
    @make_command("broken", example="harness broken")
    def command(terminal: Terminal) -> int:
        raise RuntimeError("nobody has\nthought of this")

    monkeypatch.setitem(COMMANDS, "broken", "Fails.")
    monkeypatch.setitem(sys.modules, "harness.cli.broken", SimpleNamespace(command=command))
    done = harness("broken")
    assert (done.code, done.out) == (3, "")
    assert done.err == (
        "error: this is a defect in harness, please report it: RuntimeError: nobody has thought of "
        "this; -vv shows where\n"
    )
    assert "Traceback" in harness("broken", "-vv").err


def test_a_place_that_cannot_be_written_is_named(recorded, harness):
    done = harness("run", "tiny", "--repeats", "1", "--out", "cassettes/tiny/fruit/0.jsonl/run")
    assert (done.code, done.out) == (3, "")
    assert done.err == "error: cassettes/tiny/fruit/0.jsonl/run: Not a directory\n"


def test_what_a_model_wrote_cannot_command_the_terminal(recorded, harness):
    path = recorded / "reports" / "first" / "trajectories" / "fruit" / "plain" / "0.json"
    story = json.loads(path.read_text(encoding="utf-8"))
    story["messages"][-1]["content"][0]["text"] = "\x1b[2Jgone\r\u202e"
    path.write_text(json.dumps(story), encoding="utf-8")
    done = harness("show", "reports/first", "fruit/plain/0")
    assert "␛[2Jgone␍⟨U+202E⟩" in done.out
    assert "\x1b" not in done.out

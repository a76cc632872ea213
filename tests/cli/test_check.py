"""`harness check` and `harness baseline`: the same as it was, or what is different."""

from __future__ import annotations

import html
import json
import subprocess
from pathlib import Path

import pytest

from tests.cli.tiny import FRUIT, command_line, write

BASELINE = Path("reports/baselines/tiny.json")


def test_an_unchanged_suite_holds(recorded, harness):
    done = harness("check", "tiny")
    assert (done.code, done.out) == (0, "8 trials as in the baseline.\n")
    assert "Report: reports/" in done.err


def test_a_finished_run_is_held_without_running_it(recorded, harness):
    runs = sorted(Path("reports").iterdir())
    assert harness("check", "reports/first").code == 0
    assert harness("check", "first").code == 0
    assert harness("check", "last").code == 0
    assert sorted(Path("reports").iterdir()) == runs


def test_a_smaller_limit_is_found_with_tasks_and_endings(recorded, harness):
    done = harness("check", "tiny", "--set", "loop.max_iterations=1")
    assert done.code == 1
    assert done.out.startswith("8 of 8 trials differ from the baseline.\n")
    assert "termination_reason: expected completed, got max_iterations (8 trials)" in done.out
    assert "fruit · plain · repeat 0" in done.out
    assert "lines · confirmed · repeat 1" in done.out


def test_json_names_field_expected_and_got(recorded, harness):
    done = harness("check", "tiny", "--set", "loop.max_iterations=2", "--json")
    assert done.code == 1
    assert done.json["holds"] is False
    assert {found["variant"] for found in done.json["differing"]} == {"confirmed"}
    first = done.json["differing"][0]
    assert (first["task"], first["repeat"]) == ("fruit", 0)
    assert first["differences"][0] == {
        "field": "termination_reason", "expected": "completed", "got": "max_iterations",
    }  # fmt: skip


def test_misses_alone_leave_it_undecided(recorded, harness):
    write(recorded / "suites/tiny/fruit/instruction.md", FRUIT.replace("apple", "pear"))
    done = harness("check", "tiny")
    assert done.code == 3
    assert done.out.startswith("4 of 8 trials without a result (4 replay_miss), in fruit\n")
    assert "as in the baseline" not in done.out


def test_misses_are_explained_once_per_cause(recorded, harness):
    write(recorded / "suites/tiny/fruit/instruction.md", FRUIT.replace("apple", "pear"))
    done = harness("check", "tiny", "--explain")
    assert done.code == 3
    heading = "  message 2 (user): 4 trials of fruit (confirmed, plain)\n"
    assert done.out.splitlines(keepends=True)[1] == heading
    assert done.out.count("Write the word pear") == 1
    trials = ["fruit/confirmed/0", "fruit/confirmed/1", "fruit/plain/0", "fruit/plain/1"]
    for trial in trials:
        assert f"    in {trial}\n" in done.out
    assert done.out.endswith("To record what is missing: harness accept tiny\n")
    (group,) = harness("check", "tiny", "--json").json["misses"]
    assert (group["cause"], group["trials"]) == ("message 2 (user)", trials)
    assert "+Write the word pear into the file fruit.txt." in group["difference"]


def test_one_change_is_one_cause_in_all_tasks_and_variants(recorded, harness):
    suite = recorded / "suites/tiny/suite.toml"
    text = suite.read_text(encoding="utf-8")
    write(suite, text.replace("You work in /workspace.", "You work in a folder."))
    done = harness("check", "tiny")
    assert done.code == 3
    assert "  the system prompt: 8 trials of fruit, lines (confirmed, plain)\n" in done.out
    assert done.out.count("+You work in a folder.") == 1
    (report,) = (path for path in Path("reports").glob("*/report.html") if "first" not in str(path))
    page = html.unescape(report.read_text(encoding="utf-8"))
    notices = page[page.index('id="notices"') :].partition("</section>")[0]
    assert "To record what is missing: harness accept tiny<" in notices
    assert "8 replay misses: the system prompt.</strong> Tasks: fruit, lines. Variants: " in notices
    assert '<span class="added">+You work in a folder.</span>' in notices


def test_causes_that_differ_are_told_one_by_one(recorded, harness):
    write(recorded / "suites/tiny/fruit/instruction.md", FRUIT.replace("apple", "pear"))
    (recorded / "cassettes/tiny/lines/1.jsonl").unlink()
    done = harness("check", "tiny", "--set", "loop.confirm.prompt=Sure?")
    first = next(line for line in done.out.splitlines() if line.startswith("  "))
    assert first == "  message 2 (user): 4 trials of fruit (confirmed, plain)"
    assert "  nothing recorded: 2 trials of lines (confirmed, plain)\n" in done.out
    assert "  message 6 (user): 1 trial of lines (confirmed)\n" in done.out


def test_tools_that_were_recorded_otherwise_say_how(recorded, harness):
    done = harness("check", "tiny", "--set", "loop.tool_timeout_s=7", "--task", "lines")
    assert done.code == 3
    assert (
        "  tool read_file: 4 trials of lines (confirmed, plain)\n    It was recorded with a "
        in done.out
    )


def test_a_run_with_faults_is_compared_with_no_baseline(recorded, harness):
    assert harness("run", "tiny", "--faults", "429@1", "--out", "reports/faulty").code in (0, 3)
    for done in (harness("check", "faulty"), harness("baseline", "update", "faulty")):
        assert done.code == 2
        assert "with --faults 429@1" in done.err


def test_a_difference_weighs_more_than_a_miss(recorded, harness):
    write(recorded / "suites/tiny/fruit/instruction.md", FRUIT.replace("apple", "pear"))
    done = harness("check", "tiny", "--set", "loop.max_iterations=1")
    assert done.code == 1
    assert "4 of 8 trials differ" in done.out
    assert "4 of 8 trials without a result" in done.out


def test_a_task_that_is_gone_is_missed(recorded, harness):
    Path("suites/tiny/lines").rename("lines")
    done = harness("check", "tiny")
    assert done.code == 1
    assert "4 trials missing from the run:" in done.out


@pytest.mark.parametrize(
    "limits",
    [
        ("--task", "fruit"),
        ("--variants", "plain"),
        ("--repeats", "1"),
        ("--set", "repeats=1"),
        ("--task", "l*", "--variants", "confirmed", "--repeats", "1"),
    ],
    ids=" ".join,
)
def test_a_limited_check_asks_for_what_it_is_limited_to(recorded, harness, limits):
    assert harness("check", "tiny", *limits).code == 0
    if "--set" not in limits:
        assert harness("check", "first", *limits).code == 0


def test_a_limited_run_does_not_pass_for_the_whole(recorded, harness):
    assert harness("run", "tiny", "--task", "fruit", "--out", "reports/part").code == 0
    done = harness("check", "part")
    assert done.code == 1
    assert "4 trials missing from the run:" in done.out
    assert harness("check", "part", "--task", "fruit").code == 0


def test_without_a_baseline_it_says_how_to_make_one(recorded, harness):
    BASELINE.unlink()
    runs = sorted(Path("reports").iterdir())
    done = harness("check", "tiny")
    assert done.code == 2
    assert "make one from a finished run: harness baseline update last" in done.err
    assert sorted(Path("reports").iterdir()) == runs


@pytest.mark.parametrize("held", ["tiny", "missed"])
def test_without_a_baseline_misses_are_explained_all_the_same(recorded, harness, held):
    BASELINE.unlink()
    write(recorded / "suites/tiny/fruit/instruction.md", FRUIT.replace("apple", "pear"))
    assert harness("run", "tiny", "--task", "fruit", "--out", "missed").code == 3
    done = harness("check", held, "--task", "fruit", "--explain")
    assert (done.code, done.out) == (2, "")
    assert "  message 2 (user): 4 trials of fruit (confirmed, plain)\n" in done.err
    assert "    in fruit/plain/1\n" in done.err
    assert "To record what is missing: harness accept " in done.err
    assert "make one from a finished run: harness baseline update last" in done.err


def test_update_says_what_changes(recorded, harness):
    old = BASELINE.read_bytes()
    done = harness("baseline", "update", "last")
    assert done.out == f"{BASELINE}: 8 trials (0 added, 0 changed, 0 removed, 0 kept)\n"
    assert BASELINE.read_bytes() == old
    options = ("--task", "fruit", "--set", "loop.max_iterations=1")
    assert harness("run", "tiny", *options).code == 0
    data = harness("baseline", "update", "last", "--json").json
    assert (len(data["changed"]), len(data["kept"]), data["removed"]) == (4, 4, [])
    assert harness("check", "tiny", *options).code == 0


def test_a_run_with_misses_becomes_no_baseline(recorded, harness):
    old = BASELINE.read_bytes()
    assert harness("run", "tiny", "--cassettes", "nowhere").code == 3
    done = harness("baseline", "update", "last")
    assert done.code == 2
    assert "cannot become a baseline: no result in 'fruit/confirmed/0'" in done.err
    assert BASELINE.read_bytes() == old


def test_show_prints_what_the_file_holds(recorded, harness):
    done = harness("baseline", "show", "tiny")
    assert done.code == 0
    assert ["fruit/plain/0", "completed", "passed", "2", "1"] in [
        line.split() for line in done.out.splitlines()
    ]
    (data,) = harness("baseline", "show", "--json").json["baselines"]
    assert data == json.loads(BASELINE.read_text(encoding="utf-8"))


def test_a_limited_run_updates_its_trials_and_keeps_the_others(recorded, harness):
    before = json.loads(BASELINE.read_text(encoding="utf-8"))["trials"]
    limits = ("--task", "fruit", "--variants", "plain", "--repeats", "1")
    harness("run", "tiny", *limits, "--set", "loop.max_iterations=1")
    done = harness("baseline", "update", "last")
    assert done.out == f"{BASELINE}: 8 trials (0 added, 1 changed, 0 removed, 7 kept)\n"
    after = json.loads(BASELINE.read_text(encoding="utf-8"))["trials"]
    changed = after.pop("fruit/plain/0")
    assert changed["termination_reason"] == "max_iterations"
    assert before.pop("fruit/plain/0") != changed
    assert (after, list(after)) == (before, sorted(before))


def test_what_a_run_covers_and_does_not_hold_is_removed(recorded, harness):
    baseline = json.loads(BASELINE.read_text(encoding="utf-8"))
    baseline["trials"]["gone/plain/0"] = baseline["trials"]["fruit/plain/0"]
    BASELINE.write_text(json.dumps(baseline), encoding="utf-8")
    suite = Path("suites/tiny/suite.toml")
    text = suite.read_text(encoding="utf-8")
    write(suite, text.replace('name = "plain"', 'name = "plain"\ntasks = ["fruit"]'))
    harness("run", "tiny")
    data = harness("baseline", "update", "last", "--json").json
    assert data["removed"] == ["lines/plain/0", "lines/plain/1"]
    assert data["kept"] == ["gone/plain/0"]


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_a_reader_that_stops_reading_changes_no_exit_code(recorded, form):
    baseline = BASELINE.read_text(encoding="utf-8")
    BASELINE.write_text(baseline.replace('"iterations": 2', '"iterations": 9'), encoding="utf-8")
    check = subprocess.Popen(
        command_line("check", "first", *form),
        cwd=recorded,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert check.stdout is not None
    check.stdout.close()
    assert check.stderr is not None
    errors = check.stderr.read()
    check.stderr.close()
    assert (check.wait(), errors) == (1, "")

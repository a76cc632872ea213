"""Scenarios and presets on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Harness
from tests.cli.tiny import write
from tests.loader.suite_folders import SUITE, make_suite

HOLDS = "- {id: A1, turns: [{text: done}], expect: {iterations: 1}}\n"
DIFFERS = "- {id: B1, turns: [{text: done}], expect: {iterations: 2, final_text: done}}\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with suites/small of two scenarios that hold and one that does not."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "suites" / "small" / "a.yaml", HOLDS + HOLDS.replace("A1", "A2"))
    write(tmp_path / "suites" / "small" / "b.yaml", DIFFERS)
    return tmp_path


def test_a_run_that_holds_exits_with_0_and_says_so(folder: Path, harness: Harness):
    done = harness("run", "small", "--task", "A*", "--out", "here")
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines() == ["2 of 2 scenarios hold.", "", "Report: here/report.html"]
    assert "scripted" in (folder / "here" / "report.html").read_text(encoding="utf-8")


def test_a_run_that_differs_exits_with_1_and_names_what(folder: Path, harness: Harness):
    done = harness("run", "suites/small", "--repeats", "2")
    assert (done.code, done.err) == (1, "")
    assert done.out.splitlines()[:2] == [
        "B1: iterations: expected 2, got 1",
        "2 of 3 scenarios hold.",
    ]


def test_one_file_can_be_run(folder: Path, harness: Harness):
    done = harness("run", "suites/small/b.yaml", "--json")
    assert done.code == 1
    assert done.json["runs"][0]["suite"] == "b"
    assert done.json["runs"][0]["scenarios"]["differences"] == ["B1: iterations: expected 2, got 1"]


def test_set_applies_to_scenarios(folder: Path, harness: Harness):
    done = harness("run", "small", "--task", "A1", "--set", "loop.max_iterations=0")
    assert done.code == 1
    assert done.out.startswith("A1: iterations: expected 1, got 0\n")


def test_show_says_what_differs(folder: Path, harness: Harness):
    harness("run", "small", "--out", "here")
    done = harness("show", "here", "B1/scripted/0")
    assert "Scenario: 0 (B1: iterations: expected 2, got 1)" in done.out


def test_a_run_of_scenarios_can_be_a_baseline(folder: Path, harness: Harness):
    harness("run", "small", "--out", "here")
    assert harness("baseline", "update", "here").code == 0
    assert harness("check", "small").code == 0
    changed = harness("check", "small", "--set", "loop.max_iterations=0")
    assert changed.code == 1
    assert "A1" in changed.out


def test_a_dry_run_says_that_no_model_is_asked(folder: Path, harness: Harness):
    done = harness("run", "small", "--dry-run", "--preset", "sigil")
    assert done.code == 0
    assert done.out.splitlines() == [
        "scripted: preset sigil",
        "small: 3 scripted trials, no model.",
        "Nothing was run.",
    ]
    assert not (folder / "reports").exists()


def test_nothing_is_recorded(folder: Path, harness: Harness):
    assert harness("run", "small", "--task", "A1", "--record-mode", "all").code == 0
    assert not (folder / "cassettes").exists()


def test_a_scenario_that_cannot_be_used_is_bad_input(folder: Path, harness: Harness):
    write(folder / "suites" / "small" / "c.yaml", HOLDS.replace("A1", "B1"))
    done = harness("run", "small")
    assert done.code == 2
    assert done.err.startswith("error: suites/small/b.yaml and suites/small/c.yaml: ")


def test_an_unknown_suite_is_answered_with_the_names_of_all_kinds(folder: Path, harness: Harness):
    make_suite(folder / "suites" / "tasks")
    done = harness("run", "smal")
    assert done.code == 2
    assert "did you mean 'small'? known: small, tasks" in done.err


def test_a_preset_lies_between_the_suite_and_the_variant(folder: Path, harness: Harness):
    own = '[[variants]]\nname = "own"\npreset = "onering"\nloop.empty_retries = 1\n'
    make_suite(folder / "suites" / "tasks", suite=SUITE + own)
    done = harness("run", "tasks", "--out", "here", "--json")
    assert done.code == 3, "nothing is recorded"
    run = (folder / "here" / "run.json").read_text(encoding="utf-8")
    assert '"preset": "onering"' in run
    page = (folder / "here" / "report.html").read_text(encoding="utf-8")
    for change in ("preset: default → onering", "loop.max_iterations: 8 → 50"):
        assert change in page
    assert "loop.empty_retries: 0 → 1" in page


def test_the_preset_of_a_run_is_every_variants(folder: Path, harness: Harness):
    own = '[[variants]]\nname = "own"\npreset = "onering"\n'
    make_suite(folder / "suites" / "tasks", suite=SUITE + own)
    done = harness("run", "tasks", "--preset", "maestro", "--dry-run", "--json")
    assert done.json["suites"][0]["presets"] == {"baseline": "maestro", "own": "maestro"}


def test_an_unknown_preset_is_answered_with_the_names(folder: Path, harness: Harness):
    done = harness("run", "small", "--preset", "sigill")
    assert done.code == 2
    for name in ("default", "sigil", "maestro", "agent33", "onering", "terminus2"):
        assert f"'{name}'" in done.err
    make_suite(folder / "suites" / "tasks", suite=SUITE + 'preset = "sigill"\n')
    done = harness("run", "tasks")
    assert done.code == 2
    for word in ("suite.toml", "variants[0].preset = 'sigill'", "did you mean 'sigil'?", "maestro"):
        assert word in done.err


def test_scripted_is_no_provider_of_models(folder: Path, harness: Harness):
    make_suite(folder / "suites" / "tasks", suite=SUITE.replace('"openai"', '"scripted"'))
    done = harness("run", "tasks")
    assert done.code == 2
    for word in ("suite.toml", "'baseline'", "model.provider = 'scripted'"):
        assert word in done.err

"""Scenarios and presets on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Harness
from tests.cli.tiny import write
from tests.loader.suite_folders import SUITE, make_suite

HOLDS = "- {id: A1, turns: [{text: done}], expect: {iterations: 1}}\n"
DIFFERS = (
    "- {id: B1, title: goes on, turns: [{text: done}], expect: {iterations: 2, final_text: done}}\n"
)


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
    done = harness("run", "suites/small")
    assert (done.code, done.err) == (1, "")
    assert done.out.splitlines()[:2] == [
        "B1 (goes on): iterations: expected 2, got 1",
        "2 of 3 scenarios hold.",
    ]


def test_the_title_of_a_scenario_is_said_once(folder: Path, harness: Harness):
    done = harness("run", "small", "--task", "B1", "--set", "loop.max_iterations=0")
    lines = [line for line in done.out.splitlines() if line.startswith("B1")]
    assert len(lines) > 1
    assert ["(goes on)" in line for line in lines] == [True, *[False] * (len(lines) - 1)]


def test_one_file_can_be_run(folder: Path, harness: Harness):
    done = harness("run", "suites/small/b.yaml", "--json")
    assert done.code == 1
    assert done.json["runs"][0]["suite"] == "b"
    found = done.json["runs"][0]["scenarios"]
    assert found["differences"] == ["B1: iterations: expected 2, got 1"]
    assert found["titles"] == {"B1": "goes on"}


def test_set_applies_to_scenarios(folder: Path, harness: Harness):
    done = harness("run", "small", "--task", "A1", "--set", "loop.max_iterations=0")
    assert done.code == 1
    assert done.out.startswith("A1: iterations: expected 1, got 0\n")


def test_show_says_once_what_a_scenario_is_and_what_differs(folder: Path, harness: Harness):
    harness("run", "small", "--out", "here")
    lines = harness("show", "here", "B1/scripted/0").out.splitlines()
    assert lines[:5] == [
        "B1/scripted/0: completed, does not hold",
        "  goes on",
        "",
        "  iterations: expected 2, got 1",
        "",
    ]
    labels = {line.split(":")[0].strip() for line in lines[5:]}
    assert labels.isdisjoint({"Scenario", "Reward", "Cost", "Cassette", "Answered by"})


def test_show_without_a_trial_names_some_the_failed_ones_first(folder: Path, harness: Harness):
    harness("run", "small", "--out", "here")
    done = harness("show", "here")
    assert (done.code, done.out) == (2, "")
    assert done.err == (
        "error: which trial of here? give task/variant/repeat; "
        "there is B1/scripted/0, A1/scripted/0, A2/scripted/0\n"
    )


SETTINGS = """
- id: W1
  tools: {look: {returns: 1}, save: {returns: 2}}
  governance: {deny: {save: not today}}
  config: {max_iterations: 2, on_limit: wrap_up, soft_limit: 1}
  turns:
    - {calls: [{name: look, id: l1}, {name: save, id: s1}]}
    - {calls: [{name: look, id: l2}]}
    - {text: the end so far}
  expect: {termination_reason: max_iterations}
- id: S1
  tools: {ask: {suspend: {correlation_id: ticket-7, data: {who: boss}}}}
  turns: [{calls: [{name: ask, id: a1}]}, {text: I wait.}]
  expect: {termination_reason: suspended}
"""


def test_show_tells_what_the_settings_of_the_loop_did(folder: Path, harness: Harness):
    write(folder / "suites" / "small" / "c.yaml", SETTINGS)
    harness("run", "small", "--out", "here")
    said = harness("show", "here", "W1/scripted/0").out
    for part in (
        "Calls not executed: 1 denied",
        "Wrapped up: yes",
        "── Denied: save\n    Denied: not today.\n",
        "·· Soft limit reached\n    After iteration 1; soft_limit is 1.\n",
        "── Answer (asked to wrap up; tokens: 10 in, 5 out)\n    the end so far",
    ):
        assert part in said
    said = harness("show", "here", "S1/scripted/0").out
    assert 'Waits for: ticket-7, with {"who": "boss"}' in said
    assert "── Answer (reply before it was suspended; tokens: 10 in, 5 out)\n    I wait." in said


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


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--record-mode", "all"), "--record-mode all: scenarios ask no model"),
        (("--repeats", "2"), "--repeats 2: a scenario comes out the same every time"),
        (("--set", "repeats=2"), "--set repeats=2: a scenario comes out the same every time"),
    ],
)
def test_what_means_nothing_to_scenarios_is_refused(folder: Path, harness: Harness, options, words):
    done = harness("run", "small", *options)
    assert done.code == 2
    assert done.err.startswith(f"error: {words}; leave it out for ")
    assert not (folder / "reports").exists()
    assert harness("run", "small", "--task", "A1", "--repeats", "1").code == 0


OWN = """
- id: A3
  preset: sigil
  config: {max_iterations: 5, confirm: {enabled: false}}
  turns: [{text: done}]
  expect: {iterations: 1}
- id: A4
  config: {max_iterations: 6}
  stream: false
  turns: [{text: done}]
  expect: {iterations: 1}
- {id: A5, budget: {max_tokens: 99}, turns: [{text: done}], expect: {iterations: 1}}
"""


@pytest.mark.parametrize(
    ("options", "lines"),
    [
        ((), []),
        (("--set", "loop.breaker=2"), []),
        (
            ("--set", "loop.max_iterations=0", "--task", "A3", "--task", "A4"),
            ["2 scenarios set loop.max_iterations themselves and keep it"],
        ),
        (
            ("--set", "loop.stream=true", "--set", "loop.budget.max_tokens=1", "--task", "A[45]"),
            [
                "1 scenario sets loop.budget.max_tokens itself and keeps it",
                "1 scenario sets loop.stream itself and keeps it",
            ],
        ),
        (("--preset", "onering"), ["1 scenario sets preset itself and keeps it"]),
        (("--preset", "sigil", "--task", "A3"), []),
    ],
)
@pytest.mark.parametrize("dry", [(), ("--dry-run",)])
def test_what_a_scenario_sets_itself_is_told_of(
    folder: Path, harness: Harness, options, lines, dry
):
    write(folder / "suites" / "small" / "b.yaml", OWN)
    done = harness("run", "small", *options, *dry)
    assert done.code == 0
    assert done.err.splitlines() == lines


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

"""`harness report --format`: where exports go, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.runner.log import RunLog
from tests.cli.conftest import Harness


def files(folder: str) -> set[str]:
    return {str(path.relative_to(folder)) for path in Path(folder).rglob("*") if path.is_file()}


def test_every_format_goes_into_one_folder(recorded: Path, harness: Harness):
    done = harness("report", "first", "--format", "html,atif,harbor", "-o", "out")
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines() == ["out/first.html", "out/atif/first", "out/harbor/first"]
    trials = Path("reports/first/trials.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(files("out/atif/first")) == len(trials) == 8
    assert "fruit__plain__0.json" in files("out/atif/first")
    jobs = [json.loads(path.read_text()) for path in Path("out/harbor").glob("*/result.json")]
    assert [job["stats"]["n_completed_trials"] for job in jobs] == [8]
    assert len(list(Path("out/harbor/first").glob("*/result.json"))) == 8


def test_without_a_folder_they_go_into_the_runs_own(recorded: Path, harness: Harness):
    done = harness("report", "first", "last", "--format", "atif,harbor", "--json")
    assert done.json == {
        "format": "atif,harbor",
        "reports": ["reports/first/atif/first", "reports/first/harbor/first"] * 2,
    }
    assert harness("compare", "first").code == 0


def test_exporting_again_changes_nothing(recorded: Path, harness: Harness):
    def contents() -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in Path("out").rglob("*") if path.is_file()}

    assert harness("report", "first", "--format", "harbor,atif", "-o", "out").code == 0
    before = contents()
    assert harness("report", "first", "--format", "harbor,atif", "-o", "out").code == 0
    assert contents() == before


def test_a_trial_whose_conversation_is_gone_is_left_out_and_spoken_of(
    recorded: Path, harness: Harness
):
    Path("reports/first/trajectories/lines/plain/0.json").unlink()
    done = harness("report", "first", "--format", "atif,harbor", "-o", "out")
    assert done.code == 0
    assert done.err == "out/atif/first: left out, since they have no conversation: 1 trial\n"
    assert len(files("out/atif/first")) == 7
    assert len(list(Path("out/harbor/first").glob("*/result.json"))) == 8


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--format", "pdf"], "'pdf' is none of html, atif, harbor"),
        (["--format", "html,,atif"], "'' is none of html, atif, harbor"),
        (["--format", "atif", "-o", "suites/tiny/suite.toml"], "choose another folder with -o"),
        (["--format", "html,atif", "-o", "suites/tiny/suite.toml"], "no folder can be made there"),
        (["-o", "new/"], "new/: a folder; with --format html, -o names the file"),
        (["-o", "suites"], "suites: a folder; with --format html, -o names the file"),
    ],
)
def test_what_cannot_be_written_is_refused_in_one_line(
    recorded: Path, harness: Harness, arguments: list[str], expected: str
):
    done = harness("report", "first", *arguments)
    assert (done.code, done.out) == (2, "")
    assert expected in done.err
    assert done.err.count("\n") == 1


def test_what_was_exported_can_be_imported(recorded: Path, harness: Harness):
    assert harness("report", "first", "--format", "atif", "-o", "out").code == 0
    done = harness("import", "conversation", "out/atif/first/fruit__plain__0.json")
    assert done.code == 0
    assert "fruit-plain-0/0.jsonl: 2 turns and 1 tool result from" in done.out


def test_an_exported_job_is_imported_with_the_same_outcomes_and_tokens(
    recorded: Path, harness: Harness
):
    assert harness("report", "first", "--format", "harbor", "-o", "out").code == 0
    assert harness("import", "harbor", "out/harbor/first", "--out", "again").code == 0

    def facts(folder: str) -> list[tuple[object, ...]]:
        return sorted(
            (trial.task, trial.repeat, trial.outcome, trial.model_calls, trial.usage.output)
            for trial in RunLog(Path(folder)).trials()
        )

    assert facts("again") == facts("reports/first")
    assert {fact[2] for fact in facts("again")} == {"passed", "failed"}

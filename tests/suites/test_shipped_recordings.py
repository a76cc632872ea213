"""What is committed fits together: the suite, its cassettes, and its baseline."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

from harness.cassette.file.view import read
from harness.loader.suite import load_suite
from harness.redaction import Redactor
from harness.report.atif import atif_files
from harness.report.harbor_job import harbor_files
from harness.runner.log import RunLog
from harness.runner.plan import plan
from harness.runner.trial import cassette_file
from tests.report.exports import check_atif, check_harbor, needs_schemas

ROOT = Path(__file__).parents[2]
SUITE = ROOT / "suites" / "basics"
CASSETTES = ROOT / "cassettes"
CHANGING = ("duration_s", "finished_at")


def harness(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from harness.cli import main; main()", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)


def replay(out: Path, *options: str) -> list[dict[str, object]]:
    """The trials of a replay, sorted, without what may differ between two runs."""
    done = harness("run", "suites/basics", "--out", str(out), *options)
    assert done.returncode == 0, done.stderr
    trials = [trial.model_dump(mode="json") for trial in RunLog(out).trials()]
    return [{k: v for k, v in trial.items() if k not in CHANGING} for trial in trials]


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("shipped") / "run"
    replay(out)
    return out


@pytest.mark.parametrize(
    "chosen",
    [("--task", "contact-card"), pytest.param((), marks=pytest.mark.slow)],
    ids=["one task", "all tasks"],
)
def test_two_replays_give_the_same_trials_with_one_process_and_with_two(
    tmp_path: Path, chosen: tuple[str, ...]
) -> None:
    one = replay(tmp_path / "one", "--jobs", "1", *chosen)
    assert one
    assert one == replay(tmp_path / "two", "--jobs", "2", *chosen)


def test_the_unchanged_tree_holds_its_baseline(tmp_path: Path) -> None:
    done = harness("check", "suites/basics", "--out", str(tmp_path / "run"))
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_lower_limit_is_found_and_the_tasks_that_end_otherwise_are_named(
    run_folder: Path, tmp_path: Path
) -> None:
    longer = {t.task for t in RunLog(run_folder).trials() if t.iterations > 2}
    limited = ("--set", "loop.max_iterations=2", "--out", str(tmp_path / "run"))
    done = harness("check", "suites/basics", *limited)
    assert done.returncode == 1
    assert longer
    for task in longer:
        assert task in done.stdout
    assert "max_iterations" in done.stdout


def test_some_tasks_are_solved_and_some_are_not(run_folder: Path) -> None:
    outcomes = {(t.task, t.outcome) for t in RunLog(run_folder).trials()}
    assert sum(outcome == "passed" for _, outcome in outcomes) >= 5
    assert sum(outcome == "failed" for _, outcome in outcomes) >= 5


def test_both_sdks_recorded() -> None:
    endpoints = {
        interaction.endpoint
        for path in CASSETTES.rglob("*.jsonl")
        for interaction in read(path).interactions.values()
    }
    assert endpoints == {"openai-chat", "anthropic-messages"}


def test_every_cassette_belongs_to_a_cell_and_every_line_of_it_to_a_trial() -> None:
    cells = plan(load_suite(SUITE))
    assert {CASSETTES / cassette_file(cell) for cell in cells} == set(CASSETTES.rglob("*.jsonl"))
    for cell in cells:
        view = read(CASSETTES / cassette_file(cell))
        assert view.trials.keys() == {spec.variant.name for spec in cell.specs}
        for kind, there in (
            ("interactions", view.interactions.keys()),
            ("tools", {tool.id for tool in view.tools}),
            ("verdicts", {verdict.id for verdict in view.verdicts}),
        ):
            used = {name for trial in view.trials.values() for name in getattr(trial, kind)}
            assert used == set(there), (view.path, kind)


def test_no_recording_holds_what_looks_like_a_key_or_a_path_of_a_machine() -> None:
    for path in CASSETTES.rglob("*.jsonl"):
        text = path.read_text(encoding="utf-8")
        assert Redactor({}).text(text) == text, path
        assert not re.search(r"/(?:home|root|Users)/\w|/tmp/harness", text), path


class _Cells(HTMLParser):
    """The text of every table cell on the page."""

    def __init__(self) -> None:
        super().__init__()
        self.cells: list[str] = []
        self._inside = False

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag in ("td", "th"):
            self._inside = True
            self.cells.append("")

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th"):
            self._inside = False

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.cells[-1] += data


def _passed(run_folder: Path) -> Iterator[str]:
    lines = (run_folder / "trials.jsonl").read_text(encoding="utf-8").splitlines()
    trials = [json.loads(line) for line in lines]
    for task, variant in sorted({(t["task"], t["variant"]) for t in trials}):
        mine = [t["outcome"] for t in trials if (t["task"], t["variant"]) == (task, variant)]
        yield f"{mine.count('passed')}/{len(mine)}"


def test_the_reports_table_says_what_the_log_says(run_folder: Path) -> None:
    page = _Cells()
    page.feed((run_folder / "report.html").read_text(encoding="utf-8"))
    shown = [m[0] for cell in page.cells if (m := re.search(r"\b\d+/3\b", cell))]
    assert sorted(shown) == sorted(_passed(run_folder))


def test_every_trial_is_exported_with_its_reward_its_tokens_and_its_conversation(
    run_folder: Path,
) -> None:
    log = RunLog(run_folder)
    run, trials = log.run(), log.trials()
    stories = [json.loads(file.text) for file in atif_files(run, trials, log.trajectory)]
    assert len(stories) == len(trials) == 87
    for trial, story in zip(trials, stories, strict=True):
        agent = [step for step in story["steps"] if step["source"] == "agent"]
        told = [step["metrics"] for step in agent if "metrics" in step]
        assert sum(metrics["completion_tokens"] for metrics in told) == trial.usage.output
        assert sum(step.get("llm_call_count", 0) for step in agent) == trial.model_calls
        assert story["extra"]["termination_reason"] == trial.termination_reason
    files = {file.path: file.text for file in harbor_files(run, trials, log.trajectory)}
    results = [json.loads(text) for path, text in files.items() if path.endswith("/result.json")]
    rewards = [r["verifier_result"]["rewards"]["reward"] for r in results if "task_name" in r]
    assert sum(rewards) == sum(trial.outcome == "passed" for trial in trials)
    assert not [path for path, text in files.items() if str(ROOT) in text]
    assert not [path for path, text in files.items() if str(run_folder.parent) in text]


@needs_schemas
def test_every_export_is_as_its_schema_says(run_folder: Path) -> None:
    log = RunLog(run_folder)
    run, trials = log.run(), log.trials()
    for file in atif_files(run, trials, log.trajectory):
        check_atif(json.loads(file.text))
    held = check_harbor(harbor_files(run, trials, log.trajectory))
    assert held.count("TrialResult") == held.count("TrialConfig") == held.count("atif") == 87
    assert held.count("JobResult") == held.count("JobConfig") == 1

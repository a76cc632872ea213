"""The pytest plugin, through pytest inside this process, or in one of its own where that counts."""

from __future__ import annotations

import importlib
import shutil
from pathlib import Path

import pytest

from tests.cli.tiny import FRUIT, in_subprocess, model_server, record_tiny, write


@pytest.fixture(scope="session")
def recorded_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record_tiny(tmp_path_factory.mktemp("recorded"))


@pytest.fixture
def project(pytester: pytest.Pytester, recorded_once: Path) -> pytest.Pytester:
    """A user's project: suites/tiny with its cassettes and baseline, and a test of their own."""
    shutil.copytree(recorded_once, pytester.path, dirs_exist_ok=True)
    pytester.makepyprojecttoml("[tool.pytest]\ntestpaths = ['tests']\nfilterwarnings = ['error']")
    write(pytester.path / "tests" / "test_own.py", "def test_own():\n    pass\n")
    return pytester


ALONE = ("-p", "no:randomly", "-p", "no:cacheprovider")


def pytest_in(project: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    """In this process, which forgets what is imported in it for the first time."""
    for module in ("harness.pytest_plugin.trials", "harness.providers.openai_client"):
        importlib.import_module(module)
    return project.runpytest_inprocess(*ALONE, *arguments)


def own_process(project: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return project.runpytest_subprocess(*ALONE, *arguments)


ALL = [
    f"suites/tiny::{task}/{variant}/{repeat}"
    for repeat in (0, 1)
    for task in ("fruit", "lines")
    for variant in ("plain", "confirmed")
]


def test_without_the_option_nothing_changes(project):
    code = "import sys\ndef test_own():\n    assert 'pydantic' not in sys.modules\n"
    write(project.path / "tests" / "test_own.py", code)
    result = own_process(project)
    result.assert_outcomes(passed=1)


def test_each_trial_is_a_test_and_nothing_else_is_collected(project):
    result = pytest_in(project, "--harness", "suites/tiny", "--collect-only", "-q")
    assert result.outlines[: len(ALL)] == ALL
    assert "8 tests collected" in result.outlines[-1]


def test_unchanged_trials_pass(project):
    pytest_in(project, "--harness", "tiny").assert_outcomes(passed=8)


def test_trials_pass_on_two_workers(project):
    result = own_process(project, "--harness", "suites/tiny", "-n", "2")
    result.assert_outcomes(passed=8)


@pytest.mark.parametrize(
    "workers",
    [(), pytest.param(("-n", "2"), marks=pytest.mark.slow)],
    ids=["one process", "two workers"],
)
def test_one_trial_is_run_by_its_id(project, workers):
    result = own_process(project, "--harness", "suites/tiny", ALL[2], "-v", *workers)
    result.assert_outcomes(passed=1)


def test_other_tests_are_collected_where_they_are_named(project):
    result = pytest_in(project, "--harness", "suites/tiny", "tests", "-k", "own or fruit")
    result.assert_outcomes(passed=5, deselected=4)


def test_a_miss_fails_with_its_explanation_and_no_traceback(project):
    write(project.path / "suites/tiny/fruit/instruction.md", FRUIT.replace("apple", "pear"))
    result = pytest_in(project, "--harness", "suites/tiny")
    result.assert_outcomes(passed=4, failed=4)
    result.stdout.fnmatch_lines(
        [
            "replay_miss: */fruit/0.jsonl has no recording of this request*",
            "*-*Write the word apple into the file fruit.txt.",
            "*+*Write the word pear into the file fruit.txt.",
            "*harness run suites/tiny --task fruit --record-mode new_episodes --allow-live",
            "FAILED suites/tiny::fruit/plain/0 - replay_miss*",
        ]
    )
    result.stdout.no_fnmatch_line("*Error*")
    result.stdout.no_fnmatch_line("*trials.py*")


def test_a_difference_from_the_baseline_fails_and_is_named(project):
    options = ("--harness-set", "loop.max_iterations=2")
    result = pytest_in(project, "--harness", "suites/tiny", *options)
    result.assert_outcomes(passed=4, failed=4)
    result.stdout.fnmatch_lines(
        ["not as in the baseline: fruit * confirmed * termination_reason: expected completed, *"]
    )


def test_without_a_baseline_the_verifier_decides(project):
    (project.path / "reports/baselines/tiny.json").unlink()
    result = pytest_in(project, "--harness", "suites/tiny")
    result.assert_outcomes(passed=4, failed=4)
    result.stdout.fnmatch_lines(
        ["the verifier failed it: reward 0", "FAILED suites/tiny::lines/plain/0 - the verifier*"]
    )


def test_a_conversation_without_a_verdict_does_not_pass_for_solved(project):
    (project.path / "reports/baselines/tiny.json").unlink()
    write(project.path / "suites/tiny/fruit/tests/test.sh", "echo 1 > /logs/verifier/reward.txt\n")
    result = pytest_in(project, "--harness", "suites/tiny", "-k", "fruit")
    result.assert_outcomes(failed=4, deselected=4)
    result.stdout.fnmatch_lines(["no verdict is recorded for this conversation;*"])


def test_a_key_is_found_redacted_and_is_not_shown(project, monkeypatch):
    key = "planted-key-0123456789abcdef"
    monkeypatch.setenv("OPENAI_API_KEY", f"{key} ")
    (project.path / "reports/baselines/tiny.json").unlink()
    options = ("--harness", "suites/tiny", "--harness-set", "repeats=1", "-k", "fruit")
    with model_server() as server:
        write(project.path / "suites/tiny/fruit/instruction.md", f"{FRUIT} The key is {key}.")
        done = in_subprocess(
            *("run", "tiny", "--task", "fruit", "--repeats", "1", "--record-mode", "all"),
            *("--set", f"model.base_url=http://127.0.0.1:{server.port}/v1"),
            folder=project.path,
        )
        assert done.code == 0
    pytest_in(project, *options).assert_outcomes(passed=2, deselected=2)
    write(project.path / "suites/tiny/fruit/instruction.md", f"{FRUIT} The key was {key}.")
    missed = pytest_in(project, *options)
    missed.assert_outcomes(failed=2, deselected=2)
    missed.stdout.fnmatch_lines(["*+*The key was [[]redacted[]]."])
    missed.stdout.no_fnmatch_line(f"*{key}*")


def test_cassettes_may_be_elsewhere(project):
    (project.path / "cassettes").rename(project.path / "tapes")
    options = ("--harness-cassettes", "tapes")
    pytest_in(project, "--harness", "suites/tiny", *options).assert_outcomes(passed=8)


def test_a_damaged_cassette_fails_with_its_line(project):
    path = project.path / "cassettes/tiny/fruit/0.jsonl"
    path.write_bytes(path.read_bytes()[:-40])
    result = pytest_in(project, "--harness", "suites/tiny")
    result.assert_outcomes(passed=6, failed=2)
    result.stdout.fnmatch_lines(["*/tiny/fruit/0.jsonl:*: the last line is cut; *"])
    result.stdout.no_fnmatch_line("*trials.py*")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--harness", "tinny"), "did you mean 'tiny'?"),
        (("--harness", "tiny", "--harness-set", "loop.max_iteration=1"), "unknown key"),
    ],
)
def test_a_suite_that_cannot_be_used_is_a_usage_error(project, arguments, expected):
    result = pytest_in(project, *arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    errors = [line for line in result.errlines if line]
    assert len(errors) == 1
    assert errors[0].startswith("ERROR: ")
    assert expected in errors[0]


@pytest.mark.slow
def test_last_failed_runs_the_failed_trials_again(project):
    write(project.path / "suites/tiny/fruit/instruction.md", FRUIT.replace("apple", "pear"))
    write(project.path / "tests" / "test_own.py", "def test_own():\n    assert False\n")
    arguments = ("-p", "no:randomly", "--harness", "suites/tiny", "tests")
    project.runpytest_subprocess(*arguments).assert_outcomes(passed=4, failed=5)
    project.runpytest_subprocess(*arguments, "--lf").assert_outcomes(failed=5, deselected=4)


def test_scenarios_are_refused_with_the_command_that_runs_them(pytester: pytest.Pytester):
    folder = pytester.mkdir("small")
    (folder / "a.yaml").write_text("{id: A, turns: [], expect: {}}", encoding="utf-8")
    result = pytester.runpytest_subprocess("--harness", "small")
    assert result.ret is pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*small*: holds scenarios; run them with `harness run small`"])

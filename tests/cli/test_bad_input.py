"""What cannot be used is refused in one line that says where and what to do; nothing is written."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

CASSETTE = Path("cassettes/tiny/fruit/0.jsonl")
SUITE = Path("suites/tiny/suite.toml")
TASK = Path("suites/tiny/fruit/task.toml")


def put(path: Path, *, before: str = "", instead_of: str = "", text: str) -> None:
    old = path.read_text(encoding="utf-8")
    if before:
        assert before in old
        new = old.replace(before, text + before, 1)
    else:
        assert instead_of in old
        new = old.replace(instead_of, text, 1)
    path.write_text(new, encoding="utf-8")


def cut_in_a_line() -> None:
    CASSETTE.write_bytes(CASSETTE.read_bytes()[:-40])


def damage() -> None:
    data = CASSETTE.read_bytes()
    at = data.index(b"apple")
    CASSETTE.write_bytes(data[:at] + b"peach" + data[at + 5 :])


def other_format() -> None:
    first, rest = CASSETTE.read_bytes().split(b"\n", 1)
    head = json.loads(first) | {"format": 99}
    CASSETTE.write_bytes(json.dumps(head).encode() + b"\n" + rest)


def no_cassette_at_all() -> None:
    CASSETTE.write_bytes(b"")


def folder_for_a_cassette() -> None:
    CASSETTE.unlink()
    CASSETTE.mkdir()


def no_text() -> None:
    SUITE.write_bytes(b"\xff\xfe name")


Break = Callable[[], object]

FILES: dict[str, tuple[Break, tuple[str, ...]]] = {
    "unknown key in the suite": (
        lambda: put(SUITE, before="[model]", text="reapeats = 3\n"),
        ("suite.toml", "reapeats", "did you mean 'repeats'?"),
    ),
    "unknown key in the loop": (
        lambda: put(SUITE, instead_of="max_iterations", text="max_iteration"),
        ("suite.toml", "loop.max_iteration", "did you mean 'max_iterations'?"),
    ),
    "unknown key in a task": (
        lambda: TASK.write_text("[metadata.harness]\ntool = ['shell']\n"),
        ("fruit/task.toml", "metadata.harness.tool", "did you mean 'tools'?"),
    ),
    "wrong type": (
        lambda: put(SUITE, instead_of="repeats = 2", text='repeats = "two"'),
        ("suite.toml", "repeats", "'two'"),
    ),
    "wrong value": (
        lambda: put(SUITE, instead_of="temperature = 0.5", text="temperature = -1"),
        ("suite.toml", "model.temperature", "-1"),
    ),
    "no toml": (lambda: SUITE.write_text("name = \n"), ("suite.toml", "line 1")),
    "no text": (no_text, ("suite.toml", "not UTF-8")),
    "no suite file": (
        SUITE.unlink,
        ("suites/tiny: has no suite.toml that names a model", "--set model.name=NAME"),
    ),
    "no instruction": (
        Path("suites/tiny/fruit/instruction.md").unlink,
        ("fruit/instruction.md: no such file",),
    ),
    "no verifier": (
        Path("suites/tiny/fruit/tests/test.sh").unlink,
        ("fruit/tests/test.sh: no such file",),
    ),
    "unknown provider": (
        lambda: put(SUITE, instead_of='"openai"', text='"opneai"'),
        ("suite.toml", "model.provider", "did you mean 'openai'?"),
    ),
    "unknown tool": (
        lambda: TASK.write_text('[metadata.harness]\ntools = ["shel"]\n'),
        ("fruit/task.toml", "tools", "did you mean 'shell'?"),
    ),
    "reflection without a handler": (
        lambda: put(SUITE, before="[[variants]]", text="reflection = true\n"),
        ("suite.toml", "variant 'plain'", "task 'fruit'", "has no output"),
    ),
    "stop condition on a tool that no task has": (
        lambda: put(SUITE, before="[[variants]]", text="stop_when = [{tool_called = 'deploy'}]\n"),
        ("suite.toml: variant 'plain' on task 'fruit': loop.stop_when", "'deploy'"),
    ),
    "cassette cut in a line": (cut_in_a_line, ("fruit/0.jsonl:", "the last line is cut")),
    "cassette damaged": (damage, ("fruit/0.jsonl:", "the line is damaged")),
    "cassette of another format": (other_format, ("fruit/0.jsonl:1: format 99",)),
    "folder where a cassette should be": (
        folder_for_a_cassette,
        ("fruit/0.jsonl: a folder where a cassette should be; move it away",),
    ),
    "cassette without content": (no_cassette_at_all, ("fruit/0.jsonl:1: the file is empty",)),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_cannot_be_used(recorded, harness, name):
    breaks, expected = FILES[name]
    breaks()
    before = {path: path.read_bytes() for path in recorded.rglob("*") if path.is_file()}
    done = harness("run", "tiny")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: ")
    assert done.err.count("\n") == 1
    assert [part for part in expected if part not in done.err] == []
    assert {path: path.read_bytes() for path in recorded.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("name", ["cassette damaged", "cassette of another format"])
@pytest.mark.parametrize("mode", ["once", "new_episodes", "all"])
def test_recording_writes_nothing_over_a_cassette_that_cannot_be_used(
    recorded, harness, name, mode
):
    FILES[name][0]()
    before = CASSETTE.read_bytes()
    done = harness("run", "tiny", "--task", "fruit", "--record-mode", mode)
    assert done.code == 2
    assert "fruit/0.jsonl:" in done.err
    assert CASSETTE.read_bytes() == before


OPTIONS = {
    "unknown suite": (["run", "tinny"], "did you mean 'tiny'? known: tiny"),
    "unknown variant": (["run", "tiny", "--variants", "plan"], "no variant 'plan'"),
    "unknown task": (["run", "tiny", "--task", "veg*"], "no task matches 'veg*'"),
    "unknown setting": (
        ["run", "tiny", "--set", "loop.max_iteration=2"],
        "--set loop.max_iteration=2: loop.max_iteration: unknown key; did you mean 'max_it",
    ),
    "setting of the wrong type": (
        ["run", "tiny", "--set", "loop.max_iterations=many"],
        "--set loop.max_iterations=many: loop.max_iterations = 'many'",
    ),
    "setting without a value": (["run", "tiny", "--set", "repeats"], "must be written key=value"),
    "unknown record mode": (["run", "tiny", "--record-mode", "some"], "'some' is not one of"),
    "no repeats": (["run", "tiny", "--repeats", "0"], "1<=x<=1000"),
    "too many repeats": (["run", "tiny", "--repeats", "1001"], "1<=x<=1000"),
    "no variant": (["run", "tiny", "--variants", ""], "'' names no variant"),
    "only commas": (["check", "tiny", "--variants", ", ,"], "', ,' names no variant"),
    "no folder for the run": (["run", "tiny", "--out", ""], "'' names no folder"),
    "no folder of cassettes": (["run", "tiny", "--cassettes", ""], "'' names no folder"),
    "empty suite": (["run", ""], "'' names no suite"),
    "empty suite to check": (["check", ""], "'' names no suite"),
    "empty run": (["report", ""], "'' names no run"),
    "a file for the cassettes": (
        ["run", "tiny", "--cassettes", "suites/tiny/suite.toml"],
        "suites/tiny/suite.toml: not a folder; give the folder that holds the recordings",
    ),
    "unknown option": (["run", "tiny", "--verbos"], "No such option '--verbos'"),
    "no suite": (["run"], "Missing argument"),
    "unknown command": (["rum"], "No such command 'rum'"),
    "one folder for two runs": (["run", "tiny", "tiny", "--out", "x"], "run the suites one by one"),
    "folder in use": (["run", "tiny", "--out", "reports/first"], "this folder is there already"),
    "unknown run": (["show", "fisrt", "fruit/plain/0"], "did you mean 'first'? known: first"),
    "folder without a run": (["report", "suites"], "suites: no run is here"),
    "unknown trial": (["show", "last", "fruit/plan/0"], "there is fruit/plain/0"),
    "part of a trial's name": (["show", "last", "fruit/plain"], "fruit/plain/0, fruit/plain/1"),
    "unknown variant to compare": (
        ["compare", "last", "--candidate", "plan"],
        "variant 'plan' is not in the run: choose from confirmed, plain",
    ),
    "a variant and itself": (
        ["compare", "last", "--baseline", "plain", "--candidate", "plain"],
        "baseline and candidate are both 'plain'",
    ),
    "three runs": (["compare", "last", "last", "last"], "one run or two, not 3"),
    "unknown metric": (["compare", "last", "--metric", "speed"], "'speed' is not one of"),
    "no cost": (["compare", "last", "--metric", "cost_usd"], "is not known in these trials"),
    "unknown baseline": (["check", "tiny", "--baseline", "x.json"], "x.json: no such baseline"),
    "setting of a finished run": (
        ["check", "last", "--set", "repeats=1"],
        "--set, --preset, --out and --jobs are for suites",
    ),
    "no baseline of that name": (["baseline", "show", "huge"], "baselines/huge.json: no such"),
    "unknown cassette": (["cassette", "show", "x.jsonl"], "x.jsonl: no such file"),
    "no cassettes there": (["cassette", "ls", "x"], "x: no such folder or file"),
    "one file for two reports": (["report", "last", "last", "-o", "x"], "-o names one file"),
    "a report nowhere": (["report", "last", "-o", "x/y.html"], "x/y.html: cannot be written"),
}  # fmt: skip


@pytest.mark.parametrize("name", OPTIONS)
def test_an_option_or_name_that_cannot_be_used(recorded, harness, name):
    arguments, expected = OPTIONS[name]
    before = sorted(recorded.rglob("*"))
    done = harness(*arguments)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: ")
    assert done.err.count("\n") == 1
    assert expected in done.err
    assert sorted(recorded.rglob("*")) == before


def test_there_is_no_last_run_before_the_first(tmp_path, monkeypatch, harness):
    monkeypatch.chdir(tmp_path)
    done = harness("report", "last")
    assert done.code == 2
    assert "holds no run yet; make one with `harness run SUITE`" in done.err


@pytest.mark.parametrize("name", ["../../outside", "/tmp/outside", "a/b", "..", ""])
def test_a_run_of_a_suite_with_a_name_that_leads_elsewhere(recorded, harness, name):
    path = Path("reports/first/run.json")
    run = json.loads(path.read_text(encoding="utf-8")) | {"suite": name}
    path.write_text(json.dumps(run), encoding="utf-8")
    before = sorted(recorded.parent.rglob("*"))
    done = harness("baseline", "update", "reports/first")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"error: {path}: suite: ")
    assert f"(got {name!r})" in done.err
    assert sorted(recorded.parent.rglob("*")) == before


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{", "Invalid JSON"),
        ('{"format": 2, "suite": "tiny", "suite_version": 1, "trials": {}}', "format: "),
        ('{"suite": "tiny", "suite_version": 1, "trials": {}, "x": 1}', "x: Extra inputs"),
        ('{"suite": "../x", "suite_version": 1, "trials": {}}', "suite: "),
        ('{"suite": "tiny", "suite_version": 9, "trials": {}}', "holds 'tiny' version 9"),
        ('{"suite": "other", "suite_version": 1, "trials": {}}', "holds 'other' version 1"),
    ],
)
def test_a_baseline_that_cannot_be_used(recorded, harness, text, expected):
    Path("reports/baselines/tiny.json").write_text(text, encoding="utf-8")
    done = harness("check", "tiny")
    assert (done.code, done.out) == (2, "")
    assert done.err.count("\n") == 1
    assert "reports/baselines/tiny.json: " in done.err
    assert expected in done.err

"""`harness task check`: a table, exit codes, and what is said of a task that does not hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.tiny import write
from tests.sandbox.packing import wheel

TEST = """#!/bin/bash
if grep -q apple fruit.txt; then echo 1; else echo 0; fi > /logs/verifier/reward.txt
"""


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def make_task(
    name: str, *, solve: str = "echo apple > fruit.txt", test: str = TEST, config: str = ""
) -> None:
    folder = Path("tasks", name)
    write(folder / "task.toml", f'version = "1.0"\n{config}')
    write(folder / "instruction.md", "Write apple into fruit.txt.")
    write(folder / "environment" / "Dockerfile", "FROM debian:12\nEXPOSE 80\nWORKDIR /app\n")
    write(folder / "solution" / "solve.sh", f"#!/bin/bash\n{solve}\n")
    write(folder / "tests" / "test.sh", test)


def test_tasks_that_hold_are_told_in_a_table_and_as_json(harness):
    make_task("pears")
    make_task("apples")
    done = harness("task", "check", "tasks")
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[0].split() == ["task", "runnable", "oracle", "nop", "seconds", "reason"]
    assert [line.split()[:4] for line in lines[2:4]] == [
        ["apples", "yes", "1", "0"],
        ["pears", "yes", "1", "0"],
    ]
    assert lines[-1] == "2 of 2 tasks that can be run here hold."
    (found,) = harness("task", "check", "tasks", "--task", "app*", "--json").json
    assert found.pop("duration_s") > 0
    assert "EXPOSE" in found.pop("ignored")[0]
    assert found == {
        "task": "apples",
        "runnable": True,
        "oracle": 1,
        "nop": 0,
        "reason": None,
        "log": "",
        "note": None,
    }


def test_a_script_of_the_dockerfile_that_failed_is_told(harness):
    make_task("apples")
    folder = Path("tasks", "apples", "environment")
    write(folder / "get.sh", "#!/bin/sh\necho no network\nexit 7\n")
    write(folder / "Dockerfile", "FROM debian:12\nWORKDIR /app\nCOPY get.sh .\nRUN sh get.sh\n")
    done = harness("task", "check", "tasks", "-v")
    assert done.code == 0
    told = (
        "  not done here: environment/Dockerfile:4: 'sh get.sh' of the Dockerfile failed with exit"
        " code 7: no network\n"
    )
    assert done.out.count(told) == 1


def test_one_that_does_not_hold_is_exit_code_1_and_is_shown_in_detail(harness):
    make_task("apples")
    make_task("pears", solve="echo pear > fruit.txt", test="echo looking closely\n" + TEST)
    done = harness("task", "check", "tasks", "-v")
    assert done.code == 1
    assert "1/2 " in done.err
    assert "the reference solution gave 0, not 1" in done.out
    assert "  | looking closely" in done.out
    assert "not done here: " in done.out
    assert "EXPOSE" in done.out
    assert done.out.splitlines()[-1] == "1 of 2 tasks that can be run here holds."
    (found,) = harness("task", "check", "tasks", "--task", "pears", "--json").json
    assert found["log"] == "looking closely\n"
    short = harness("task", "check", "tasks", "--task", "pears").out.splitlines()
    assert short[-2:] == [
        "0 of 1 task that can be run here holds.",
        "-v shows what was written where a task does not hold.",
    ]


def test_a_solution_that_holds_and_is_ended_by_its_time_limit_is_told(harness):
    make_task(
        "slow", solve="echo apple > fruit.txt; sleep 100", config="[agent]\ntimeout_sec = 1\n"
    )
    done = harness("task", "check", "tasks")
    assert done.code == 0
    slow = "slow: the reference solution did not end within 1 s (agent.timeout_sec); "
    assert slow in done.out
    assert harness("task", "check", "tasks", "--json").json[0]["note"] in done.out


def test_what_cannot_be_run_here_is_no_failure_while_another_one_can(harness):
    make_task("big", config="[environment]\ngpus = 2\n")
    alone = harness("task", "check", "tasks")
    assert alone.code == 3
    assert "not runnable here: " in alone.out
    assert alone.out.splitlines()[-1] == "1 task not runnable here."
    make_task("apples")
    assert harness("task", "check", "tasks", "--jobs", "1").code == 0


def test_a_task_that_cannot_be_loaded_is_told_beside_the_others_and_is_exit_code_1(harness):
    make_task("fine")
    make_task("wrong", config='[environment]\nmemory = "much"')
    done = harness("task", "check", "tasks")
    assert done.code == 1
    assert "fine   yes            1    0" in done.out
    assert "wrong  no" in done.out
    assert "tasks/wrong/task.toml: environment.memory = 'much': write it like 512M" in done.out
    assert done.out.splitlines()[-2:] == [
        "1 of 1 task that can be run here holds.",
        "1 task cannot be loaded.",
    ]
    assert "2/2 fine: " in harness("task", "check", "tasks", "-v").err
    alone = harness("task", "check", "tasks", "--task", "wro*", "--json")
    assert (alone.code, [one["task"] for one in alone.json]) == (1, ["wrong"])
    assert harness("task", "check", "tasks", "--task", "fine").code == 0
    only = harness("task", "check", "tasks/wrong")
    assert (only.code, only.out) == (2, "")
    make_task("worse", config='[environment]\nmemory = "more"')
    run = harness("run", "tasks", "--set", "model.provider=openai", "--set", "model.name=a")
    assert run.code == 2
    assert run.err.splitlines()[0] == "error: 2 tasks cannot be loaded:"
    assert [line.partition(": ")[0] for line in run.err.splitlines()[1:]] == [
        "  tasks/worse/task.toml",
        "  tasks/wrong/task.toml",
    ]


def test_a_key_that_looks_mistyped_is_a_warning_of_check_and_run(harness):
    make_task("apples", config="[agent]\ntimeout_secs = 300\n")
    make_task("pears", config="[verifer]\n[environment]\nzzz = 1\n")
    told = [
        "warning: tasks/apples/task.toml: agent.timeout_secs: unknown key; did you mean"
        " 'timeout_sec'?",
        "warning: tasks/pears/task.toml: verifer: unknown key; did you mean 'verifier'?",
    ]
    checked = harness("task", "check", "tasks")
    assert (checked.code, checked.err.splitlines()) == (0, told)
    assert harness("task", "check", "tasks", "--task", "pears").err.splitlines() == told[1:]
    model = ("--set", "model.provider=openai", "--set", "model.name=a")
    planned = harness("run", "tasks", *model, "--dry-run")
    assert (planned.code, planned.err.splitlines()) == (0, told)
    assert harness("run", "tasks", *model).err.splitlines()[:2] == told


def test_packages_that_cannot_be_had_leave_it_undecided(harness, monkeypatch):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    make_task("apples", test="pip install no-such-package==1.0\n" + TEST)
    done = harness("task", "check", "tasks")
    assert done.code == 3
    [reason] = [line for line in done.out.splitlines() if line.startswith("apples: ")]
    assert "PIP_INDEX_URL or pip.conf name another package index" in reason
    assert ("No matching" in done.out, "-v shows why in full." in done.out) == (False, True)
    detailed = harness("task", "check", "tasks", "-v")
    assert "No matching distribution" in detailed.out
    assert ("No matching" in detailed.err, "1/1 apples: " in detailed.err) == (False, True)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere"], "'nowhere' is neither a suite's folder nor a name under suites/"),
        (["tasks", "--task", "x*"], "no task matches 'x*'"),
        (["played"], "holds scenarios"),
        (["tasks", "--repeat", "0"], "--repeat"),
        (["tasks", "--sandbox", "chroot"], "--sandbox"),
        (["tasks", "--timeout-multiplier", "0"], "--timeout-multiplier"),
        (["tasks", "--sandbox", "docker"], "--sandbox docker does not work here: "),
    ],
)
def test_bad_input_is_exit_code_2_and_one_line(harness, monkeypatch, arguments, said):
    make_task("apples")
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/engine.sock")
    write(Path("played", "a.yaml"), "- id: a\n  turns: [{text: hi}]\n  expect: {iterations: 1}\n")
    done = harness("task", "check", *arguments)
    assert (done.code, done.out) == (2, "")
    assert done.err.count("\n") == 1
    assert said in done.err


def test_packages_that_only_the_tests_or_the_solution_want_count(harness):
    make_task("apples", test=f"pip install pytest==8.4.1\n{TEST}")
    make_task("pears", solve="pip install pytest==8.4.1")
    make_task("plums")
    done = harness("task", "check", "tasks", "--sandbox", "directory", "--json")
    assert done.code == 0
    assert [one["runnable"] for one in done.json] == [False, False, True]
    assert all("pytest==8.4.1" in one["reason"] for one in done.json[:2])


def test_what_the_solution_installs_is_there_for_the_tests(harness, monkeypatch, project):
    index = project / "index"
    index.mkdir()
    for name in ("extra", "other"):
        wheel(index, name)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    judge = "pip install other\nif python3 -c 'import extra, other'; then echo 1; else echo 0; fi"
    make_task("apples", solve="pip install extra", test=f"{judge} > /logs/verifier/reward.txt\n")
    (found,) = harness("task", "check", "tasks", "--json").json
    assert (found["oracle"], found["nop"], found["reason"]) == (1, 0, None)


def test_a_sandbox_that_holds_nothing_back_says_so(harness):
    make_task("apples")
    done = harness("task", "check", "tasks", "--sandbox", "directory")
    assert done.code == 0, done.out
    assert done.err.startswith("warning: --sandbox directory: commands run on this host as this")
    assert done.err.count("\n") == 1


def test_a_secret_that_a_task_is_given_is_not_shown(harness, monkeypatch):
    monkeypatch.setenv("FRUIT_TOKEN", "sesame-opens-99")
    config = '[verifier.env]\nTOKEN = "${FRUIT_TOKEN}"\n'
    make_task("apples", test="echo given $TOKEN\necho 0 > /logs/verifier/reward.txt", config=config)
    done = harness("task", "check", "tasks", "-v", "--env", "FRUIT_TOKEN")
    assert "  | given " in done.out
    assert "sesame" not in done.out + done.err


def test_tests_that_a_dockerfile_copies_need_a_sandbox_that_mounts(harness):
    make_task(
        "own", config='artifacts = ["/app/fruit.txt"]\n[verifier]\nenvironment_mode = "separate"\n'
    )
    text = "FROM debian:12\nWORKDIR /app\nCOPY test.sh /tests/test.sh\n"
    write(Path("tasks/own/tests/Dockerfile"), text)
    done = harness("task", "check", "tasks", "--sandbox", "directory")
    assert done.code == 3
    assert "own: not runnable here: a verifier's machine that has its tests from" in done.out
    assert harness("task", "check", "tasks").code == 0


def test_a_line_of_a_dockerfile_that_fails_is_named(harness):
    make_task("apples")
    write(Path("tasks/apples/environment/Dockerfile"), "FROM debian:12\n\nRUN cp /nope /nada\n")
    done = harness("task", "check", "tasks")
    assert done.code == 3
    assert "apples: environment/Dockerfile:3: 'cp /nope /nada' of the Dockerfile failed" in done.out

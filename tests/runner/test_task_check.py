"""The self-check of tasks, in real sandboxes."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.runner.hosting import Hosting
from harness.runner.task_check import CheckJob, TaskCheck, check_task
from harness.schema.environment import (
    Artifact,
    Collect,
    Environment,
    Equipment,
    Healthcheck,
    Step,
)
from harness.schema.suite import Task
from tests.runner.made_tasks import FAIL, PASS, hosting_in, make_step, make_task, passes_if, write

SOLVE = "echo apple > fruit.txt"
TEST = passes_if("grep -q apple /app/fruit.txt")


@pytest.fixture
def hosting(tmp_path: Path) -> Hosting:
    return hosting_in(tmp_path)


def checked(task: Task, hosting: Hosting, repeats: int = 1) -> TaskCheck:
    (found,) = check_task(CheckJob(task, hosting, repeats))
    return found


def one_step(folder: Path, *, test: str = TEST, solve: str | None = SOLVE, **more: Any) -> Task:
    return make_task(folder, make_step(folder, test=test, solve=solve, **more))


def test_a_task_holds_whose_solution_passes_and_which_nothing_fails(tmp_path, hosting):
    found = checked(one_step(tmp_path / "fruit"), hosting, repeats=2)
    assert (found.holds, found.runnable, found.oracle, found.nop) == (True, True, 1, 0)
    assert (found.task, found.reason, found.log) == ("fruit", None, "")


@pytest.mark.parametrize(
    ("test", "solve", "rewards", "reason"),
    [
        (TEST, "echo pear > fruit.txt", (0, 0), "the reference solution gave 0, not 1"),
        (PASS, SOLVE, (1, 1), "doing nothing gave 1, not 0"),
        (
            'echo \'{"a": 1, "b": 0.5}\' > /logs/verifier/reward.json',
            SOLVE,
            (0.75, 0.75),
            "the reference solution gave 0.75, not 1",
        ),
        (
            "echo judging; exit 1",
            SOLVE,
            (None, None),
            "the reference solution gave no reward "
            "(the verifier wrote neither reward.json nor reward.txt; "
            "test.sh exited with 1: judging), not 1",
        ),
        (
            "true",
            SOLVE,
            (None, None),
            "the reference solution gave no reward "
            "(the verifier wrote neither reward.json nor reward.txt), not 1",
        ),
    ],
)
def test_a_task_that_does_not_hold_says_in_what(tmp_path, hosting, test, solve, rewards, reason):
    found = checked(one_step(tmp_path / "fruit", test=test, solve=solve), hosting)
    assert not found.holds
    assert ((found.oracle, found.nop), found.reason) == (rewards, reason)


@pytest.mark.parametrize("test", ["#!/not/there\necho 1\n", "#!/bin/bash\r\necho 1\r\n"])
def test_a_test_that_cannot_start_says_so(tmp_path, hosting, test):
    found = checked(one_step(tmp_path / "fruit", test=test), hosting)
    assert re.search(
        r"; test\.sh exited with 12\d: .*/tests/test\.sh: .+\), not 1", str(found.reason)
    )
    assert "test.sh: " in found.log


def test_what_was_written_shows_why_a_task_does_not_hold(tmp_path, hosting):
    task = one_step(tmp_path / "fruit", test=f"echo judged; {FAIL}", solve="echo tried; exit 7")
    assert checked(task, hosting).log == "tried\n\njudged\n"


def test_a_verifier_that_does_not_always_say_the_same_is_flaky(tmp_path, hosting):
    test = "date +0.%N > /logs/verifier/reward.txt"
    found = checked(one_step(tmp_path / "fruit", test=test), hosting, repeats=2)
    assert str(found.reason).startswith("flaky: the reference solution gave 0.")


def test_a_task_without_a_reference_solution_does_not_hold(tmp_path, hosting):
    found = checked(one_step(tmp_path / "fruit", solve=None), hosting)
    assert (found.runnable, found.oracle, found.nop) == (True, None, None)
    assert found.reason == f"{tmp_path / 'fruit'}: there is no reference solution"


@pytest.mark.parametrize(
    ("environment", "why"),
    [
        ({"needs": ("2 GPUs",)}, "2 GPUs"),
        ({"env": {"TOKEN": "${NOT_SET}"}, "engine": {"variables": ["TOKEN"]}}, "NOT_SET"),
    ],
)
def test_what_this_machine_cannot_give_is_told_and_nothing_is_run(
    tmp_path, hosting, environment, why
):
    step = make_step(tmp_path / "fruit", test=TEST, solve=SOLVE)
    found = checked(make_task(tmp_path / "fruit", step, environment=environment), hosting)
    assert (found.runnable, found.holds, found.oracle, found.nop) == (False, False, None, None)
    assert str(found.reason).startswith("not runnable here: ")
    assert why in str(found.reason)


def test_variables_reach_solution_and_verifier_alone(tmp_path, hosting):
    conditions = replace(hosting, variables={"HOST_WORD": "pear"})
    task = one_step(
        tmp_path / "fruit",
        solve='echo "$WORD $MACHINE" > fruit.txt',
        test=passes_if('[ "$(cat fruit.txt)-$WORD-$OTHER" = "pear all--default" ]'),
        solution={"env": {"WORD": "${HOST_WORD}"}},
        verifier={"env": {"OTHER": "${NOT_SET:-default}"}},
    )
    assert task.environment is not None
    environment = task.environment.model_copy(update={"env": {"MACHINE": "all"}})
    found = checked(task.model_copy(update={"environment": environment}), conditions)
    assert (found.oracle, found.nop, found.reason) == (1, 0, None)


def test_tests_and_solution_are_not_there_before_they_are_run(tmp_path, hosting):
    task = one_step(
        tmp_path / "fruit",
        solve="ls -d /tests > fruit.txt 2>&1; ls /solution >> fruit.txt",
        test=passes_if("grep -q 'No such file' fruit.txt && grep -q solve.sh fruit.txt"),
    )
    assert checked(task, hosting).reason is None


def steps(folder: Path, first: str, **more: Any) -> tuple[Step, Step]:
    """Two steps: the second one finds what the first one left, and files of its own."""
    setup = write(folder / "second" / "workdir" / "setup.sh", "mv seed.txt /data/seed.txt\n")
    write(folder / "second" / "workdir" / "seed.txt", "seed")
    one = make_step(folder / "first", name="first", test=TEST, solve=first, **more)
    two = make_step(
        folder / "second",
        name="second",
        test=passes_if("[ -e /tmp/second ]"),
        solve="cat fruit.txt /data/seed.txt && [ ! -e /tests/test.sh ] && touch /tmp/second",
        files=setup.parent,
    )
    return one, two


def test_steps_are_played_one_after_another_on_one_machine(tmp_path, hosting):
    made = steps(tmp_path, SOLVE)
    environment = {"build": ({"kind": "command", "command": "mkdir /data", "cwd": "/"},)}
    found = checked(make_task(tmp_path, *made, environment=environment), hosting)
    assert (found.oracle, found.nop, found.reason) == (1, 0, None)


def test_a_reward_below_the_least_ends_the_steps(tmp_path, hosting):
    made = steps(tmp_path, "true", min_reward={"reward": 1})
    found = checked(make_task(tmp_path, *made), hosting)
    # The second step's setup.sh would fail: there is no /data.
    assert (found.oracle, found.nop) == (0, 0)


def test_a_verifier_of_its_own_machine_sees_the_artifacts_alone(tmp_path, hosting):
    context = tmp_path / "judge"
    context.mkdir()
    judge = Environment(context=context, base="debian:12", workdir="/judge")
    task = one_step(
        tmp_path / "fruit",
        solve="mkdir out && touch out/keep out/drop.log secret",
        test=passes_if(
            "[ -e /app/out/keep ] && [ ! -e /app/out/drop.log ] && [ ! -e /app/secret ]"
            " && [ -e /logs/artifacts/collected ] && [ $(pwd) = /judge ]"
        ),
        verifier={
            "environment": judge,
            "collect": (Collect(command="touch /logs/artifacts/collected"),),
        },
        artifacts=(
            Artifact(source="/logs/artifacts"),
            Artifact(source="/app/out", exclude=("*.log",)),
            Artifact(source="/not/there"),
        ),
    )
    found = checked(task, hosting)
    assert (found.oracle, found.nop, found.reason) == (1, 0, None)


@pytest.mark.parametrize(
    ("command", "reason"),
    [("test -e /logs", None), ("false", "the healthcheck 'false' failed 2 times in a row")],
)
def test_the_healthcheck_comes_first(tmp_path, hosting, command, reason):
    check = Healthcheck(command=command, retries=2, interval_sec=0, start_period_sec=0)
    step = make_step(tmp_path / "fruit", test=TEST, solve=SOLVE)
    task = make_task(tmp_path / "fruit", step, environment={"healthcheck": check})
    found = checked(task, hosting)
    assert (found.reason is None) is (reason is None)
    assert str(found.reason).startswith(str(reason))
    assert found.undecided is (reason is not None)


def test_a_healthcheck_ends_with_the_time_for_building(tmp_path, hosting):
    check = Healthcheck(command="false", retries=10**9, interval_sec=1e300)
    step = make_step(tmp_path / "fruit", test=TEST, solve=SOLVE)
    machine = {"healthcheck": check, "build_timeout_s": 0.5}
    found = checked(make_task(tmp_path / "fruit", step, environment=machine), hosting)
    assert str(found.reason).startswith("the healthcheck 'false' did not succeed within 0.5 s")
    assert found.undecided


def test_failures_while_the_machine_starts_do_not_count(tmp_path, hosting):
    count = "echo . >> /tmp/tries; [ $(wc -l < /tmp/tries) = 4 ]"
    check = Healthcheck(command=count, retries=1, start_period_sec=1000, start_interval_sec=0)
    step = make_step(tmp_path / "fruit", test=TEST, solve=SOLVE)
    task = make_task(tmp_path / "fruit", step, environment={"healthcheck": check})
    assert checked(task, hosting).reason is None


def test_the_next_steps_solution_has_not_the_verifiers_equipment(tmp_path, hosting):
    judged = make_step(
        tmp_path / "1",
        name="one",
        test=passes_if("command -v uvx && [ -e /app/seen ]"),
        solve="touch /app/seen",
        verifier={"equipment": Equipment(stand_ins=True)},
    )
    look = make_step(
        tmp_path / "2",
        name="two",
        test=passes_if("grep -qx none /app/uvx"),
        solve="true",
        healthcheck=Healthcheck(command="(command -v uvx || echo none) > /app/uvx"),
    )
    found = checked(make_task(tmp_path / "task", judged, look), hosting)
    assert (found.oracle, found.nop) == (1, 0.5), found.log


def test_verifiers_get_their_time_and_no_more(tmp_path, hosting):
    quick = replace(hosting, verifier_timeout=0.0005)
    task = one_step(tmp_path / "fruit", test="sleep 100", verifier={"timeout_s": 1000})
    found = checked(task, quick)
    assert "the verifier did not end within 0.5 s" in str(found.reason)


@pytest.mark.parametrize(
    ("solve", "oracle", "reason"),
    [
        ("sleep 100; echo apple > fruit.txt", 0, "; it gave 0, not 1"),
        ("echo apple > fruit.txt; sleep 100", 1, None),
    ],
)
def test_a_solution_that_its_time_limit_ends_is_told(tmp_path, hosting, solve, oracle, reason):
    quick = replace(hosting, agent_timeout=0.001)
    task = one_step(tmp_path / "fruit", solve=solve, agent_timeout_s=1000.0)
    found = checked(task, quick)
    slow = (
        "the reference solution did not end within 1 s (agent.timeout_sec);"
        " --agent-timeout-multiplier X gives it more"
    )
    assert (found.oracle, found.nop) == (oracle, 0)
    told = (None, slow) if reason is None else (f"{slow}{reason}", None)
    assert (found.reason, found.note) == told

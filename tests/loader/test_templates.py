from __future__ import annotations

from pathlib import Path

from harness.loader.task.loading import load_task
from harness.loader.task.templates import (
    machine_variables,
    named_variables,
    resolved,
    unset_variables,
)
from tests.loader.test_harbor_task import harbor_task


def test_a_template_stands_for_a_variable_of_the_host_or_its_default():
    env = {
        "A": "${HOST_A}",
        "B": "${HOST_B:-none}",
        "C": "${HOST_C:-}",
        "D": "plain ${HOST_A}",
        "E": "${HOST_E}",
    }
    host = {"HOST_A": "1", "HOST_B": "2"}
    assert resolved(env, host) == {"A": "1", "B": "2", "C": "", "D": "plain ${HOST_A}"}


def test_the_variables_of_all_parts_of_a_task_are_told(tmp_path: Path):
    config = (
        "[environment.env]\nA = '${ONE}'\n[verifier.env]\nB = '${TWO:-x}'\n"
        "[verifier.environment.env]\nC = '${THREE}'\n[solution.env]\nD = '${FOUR}'\nE = 'five'\n"
    )
    task = load_task(harbor_task(tmp_path / "t", config))
    assert named_variables(task) == {"ONE", "TWO", "THREE", "FOUR"}
    assert unset_variables(task, {"ONE": "1"}) == ("FOUR", "THREE")
    assert unset_variables(task, {"ONE": "1", "THREE": "", "FOUR": "4"}) == ()


def test_what_a_dockerfile_sets_is_no_template(tmp_path: Path):
    dockerfile = "FROM ubuntu:24.04\nENV A='${ONE}' B='${ONE}'\n"
    task = load_task(harbor_task(tmp_path / "t", "[environment.env]\nB = '${TWO}'\n", dockerfile))
    assert task.environment is not None
    assert named_variables(task) == {"TWO"}
    host = {"ONE": "secret", "TWO": "2"}
    assert machine_variables(task.environment, host) == {"A": "${ONE}", "B": "2"}

"""Task folders as Harbor 0.25 has them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.errors import BadInputError
from harness.loader.task.loading import load_task
from harness.loader.task.templates import machine_variables, unset_variables
from harness.runner.hosting import Hosting, ignored_by
from harness.schema.environment import Artifact, Collect, CopyFiles, Environment, Step
from harness.schema.suite import Task
from tests.loader.suite_folders import write

UVX = """#!/bin/bash
apt-get update
apt-get install -y curl
curl -LsSf https://astral.sh/uv/0.9.7/install.sh | sh
source $HOME/.local/bin/env
uvx \\
  --with pytest==8.4.1 \\
  --with pytest-json-ctrf==0.3.5 \\
  pytest --ctrf /logs/verifier/ctrf.json /tests/test_outputs.py -rA -v
if [ $? -eq 0 ]; then
  echo 1 > /logs/verifier/reward.txt
else
  echo 0 > /logs/verifier/reward.txt
fi
"""
TOOL = ("pytest", "pytest-json-ctrf==0.3.5", "pytest==8.4.1")


def composed_task(folder: Path, settings: str, config: str = "") -> Path:
    """A task with a file for Compose that has these settings, on one line, for its machine."""
    harbor_task(folder, config)
    text = f"services:\n  main:\n    {settings}\n"
    write(folder / "environment" / "docker-compose.yaml", text)
    return folder


def harbor_task(folder: Path, config: str = "", dockerfile: str = "FROM ubuntu:24.04\n") -> Path:
    write(folder / "task.toml", config)
    write(folder / "instruction.md", "Do it.\n")
    write(folder / "environment" / "Dockerfile", dockerfile)
    write(folder / "tests" / "test.sh", "echo 1 > /logs/verifier/reward.txt\n")
    write(folder / "solution" / "solve.sh", "true\n")
    return folder


def machine(task: Task) -> Environment:
    assert task.environment is not None
    return task.environment


def only(task: Task) -> Step:
    (step,) = task.steps
    return step


def test_sizes_may_be_bare_numbers_of_megabytes(tmp_path: Path):
    config = "[environment]\nmemory = 4096\nstorage = 10240\n"
    environment = machine(load_task(harbor_task(tmp_path / "task", config)))
    assert (environment.memory_mb, environment.storage_mb) == (4096, 10240)


def test_a_task_of_skillsbench(tmp_path: Path):
    config = """
version = "1.0"
[metadata]
author_name = "A"
difficulty = "medium"
tags = ["csv"]
[verifier]
timeout_sec = 900.0
[agent]
timeout_sec = 900.0
[environment]
build_timeout_sec = 600.0
cpus = 1
memory = "4G"
storage = "10240M"
gpus = 0
allow_internet = true
skills_dir = "/root/.claude/skills"
env = {KEY = "${SOME_KEY:-none}"}
"""
    dockerfile = (
        "FROM python:3.12-slim\nWORKDIR /root\nENV A=1\nRUN pip install numpy==1.26.4\n"
        "COPY data.csv /root/\nCOPY skills /root/.claude/skills\n"
    )
    folder = harbor_task(tmp_path / "3d-scan-calc", config, dockerfile)
    write(folder / "environment" / "data.csv", "1")
    write(
        folder / "environment" / "skills" / "a" / "SKILL.md", "---\nname: a\ndescription: b\n---\nx"
    )
    write(folder / "tests" / "test.sh", UVX)
    write(folder / "solution" / "solve.sh", "pip install pandas && python3 /solution/s.py\n")
    task = load_task(folder)
    assert task.name == "3d-scan-calc"
    assert task.tools == ("shell", "read_file", "write_file", "list_dir")
    environment = machine(task)
    assert (environment.base, environment.workdir) == ("python:3.12-slim", "/root")
    assert environment.env == {"A": "1", "KEY": "${SOME_KEY:-none}"}
    assert (environment.memory_mb, environment.storage_mb) == (4096, 10240)
    assert environment.skills_dir == "/root/.claude/skills"
    assert environment.equipment.packages == ("numpy==1.26.4",)
    assert (environment.equipment.python, environment.equipment.stand_ins) == ("3.12", False)
    assert environment.needs == ()
    assert [skill.name for skill in task.skills] == ["a"]
    step = only(task)
    assert (step.agent_timeout_s, step.verifier.timeout_s) == (900, 900)
    assert step.verifier.equipment.tools == (TOOL,)
    assert step.verifier.equipment.packages == ("numpy==1.26.4",)
    assert step.verifier.equipment.stand_ins
    assert step.verifier.environment is None
    assert step.solution is not None
    assert step.solution.equipment.packages == ("numpy==1.26.4", "pandas")
    assert environment.ignored == (
        "environment.allow_internet = true: there is no network",
        "environment.cpus: processes take what the host has",
    )


def test_a_key_that_is_not_known_is_listed_with_what_may_have_been_meant(tmp_path: Path):
    config = (
        "sources = 'x'\n[agent]\ntimeout_secs = 3\n[environment]\nzzz = {a = 1}\n"
        "[environment.healthcheck]\ncommand = 'true'\ntimeout = 3\n[metadata]\nfree = 1\n"
        "[[steps]]\nname = 'one'\nrewards = 1\n"
    )
    folder = harbor_task(tmp_path / "t", config)
    write(folder / "steps" / "one" / "instruction.md", "Do it.")
    assert machine(load_task(folder)).ignored == (
        "task.toml: sources: unknown key; did you mean 'source'?",
        "task.toml: agent.timeout_secs: unknown key; did you mean 'timeout_sec'?",
        "task.toml: environment.zzz: unknown key",
        "task.toml: environment.healthcheck.timeout: unknown key; did you mean 'timeout_sec'?",
        "task.toml: steps.rewards: unknown key; did you mean 'min_reward'?",
    )


@pytest.mark.parametrize(
    ("config", "need"),
    [
        ("[environment]\ngpus = 1", "environment.gpus = 1: a GPU"),
        ("[environment.tpu]\ntype = 'v6e'\ntopology = '2x4'", "environment.tpu = 'v6e': a TPU"),
        ("[environment]\nos = 'Windows'", "environment.os = 'windows': another system than Linux"),
        (
            "[environment]\nnetwork_mode = 'allowlist'\nallowed_hosts = ['a.example', 'b.example']",
            "environment.allowed_hosts: a.example, b.example",
        ),
        ("[agent]\nallowed_hosts = ['a.example']", "agent.allowed_hosts: a.example"),
        ("[verifier]\nallowed_hosts = ['a.example']", "verifier.allowed_hosts: a.example"),
        (
            "[[environment.mcp_servers]]\nname = 'm'\ntransport = 'http'\nurl = 'http://m'",
            "environment.mcp_servers: m",
        ),
        (
            "artifacts = [{source = '/x', service = 'db'}]",
            "artifacts: /x of service 'db'",
        ),
        (
            "[[verifier.collect]]\ncommand = 'x'\nservice = 'db'",
            "verifier.collect: service 'db'",
        ),
        (
            "[environment]\nworkdir = '/usr/src/app'",
            "working directory /usr/src/app: the system is read-only here",
        ),
    ],
)
def test_what_only_a_container_engine_gives_makes_a_task_impossible(
    tmp_path: Path, config: str, need: str
):
    assert machine(load_task(harbor_task(tmp_path / "t", config))).needs == (need,)


def test_files_that_ask_for_more_than_one_machine_make_a_task_impossible(tmp_path: Path):
    folder = harbor_task(tmp_path / "t")
    write(folder / "environment" / "docker-compose.yaml", "services: {}")
    write(folder / "trajectory.json", "{}")
    expected = (
        "environment/docker-compose.yaml: services in containers of their own",
        "trajectory.json: begins in the middle of another conversation",
    )
    assert machine(load_task(folder)).needs == expected
    (folder / "environment" / "Dockerfile").unlink()
    assert machine(load_task(folder)).needs == expected


def test_a_compose_file_with_the_one_machine_alone_has_variables_for_it(tmp_path: Path):
    folder = harbor_task(tmp_path / "t", "[environment.env]\nGIVEN = 'by the task'")
    text = """\
services:
  main:
    build:
      context: ${CONTEXT_DIR}
    image: ${MAIN_IMAGE_NAME}
    command: ["sh", "-c", "sleep infinity"]
    network_mode: ${NETWORK_MODE:-bridge}
    environment:
      - TEST_DIR=${TEST_DIR}
      - TOKEN=${TOKEN}
      - REGION=${REGION:-here}
      - URL=http://$TOKEN/
      - PLACE=/data
      - HOME_OF_ANOTHER
      - GIVEN=by the file
    volumes:
      - ${HOST_VERIFIER_LOGS_PATH}:${ENV_VERIFIER_LOGS_PATH}
    tmpfs:
      - ${TEST_DIR}
      - /run
    privileged: true
"""
    write(folder / "environment" / "docker-compose.yaml", text)

    task = load_task(folder)
    environment = machine(task)

    assert environment.needs == environment.engine.needs == ()
    shown = "environment/docker-compose.yaml: main"
    listed = (
        f"{shown}.environment: HOME_OF_ANOTHER is empty without --env HOME_OF_ANOTHER",
        f"{shown}.environment: TOKEN is empty without --env TOKEN",
        f"{shown}.environment: URL=http://$TOKEN/",
        *(f"{shown}.privileged", f"{shown}.tmpfs"),
    )
    assert environment.ignored[-5:] == environment.engine.ignored == listed
    own = {"REGION": "here", "PLACE": "/data"}
    own["GIVEN"] = "by the task"
    assert machine_variables(environment, {}).items() >= own.items()
    assert machine_variables(environment, {"TOKEN": "secret"})["TOKEN"] == "secret"
    assert unset_variables(task, {}) == ()
    assert machine_variables(environment, {})["TOKEN"] == ""
    assert not {"TEST_DIR", "URL"} & environment.env.keys()


@pytest.mark.parametrize(
    "text",
    [
        "services: {main: {}, database: {}}",
        "services: {app: {}}",
        "services: &all {main: *all}",
        "services: [",
        "",
    ],
)
def test_a_compose_file_with_more_than_the_one_machine_makes_a_task_impossible(
    tmp_path: Path, text: str
):
    folder = harbor_task(tmp_path / "t")
    write(folder / "environment" / "docker-compose.yaml", text)
    need = ("environment/docker-compose.yaml: services in containers of their own",)
    assert machine(load_task(folder)).needs == machine(load_task(folder)).engine.needs == need


@pytest.mark.parametrize(
    "build",
    [
        "./app",
        "{context: ../other}",
        "{context: '${CONTEXT_DIR}/app'}",
        "{context: ., dockerfile: Other}",
        "{context: ., target: production}",
        "{context: ., args: {VERSION: 2}}",
        "[.]",
    ],
)
def test_a_compose_file_that_builds_another_image_makes_a_task_impossible(
    tmp_path: Path, build: str
):
    found = machine(load_task(composed_task(tmp_path / "t", f"build: {build}")))
    need = ("environment/docker-compose.yaml: main.build: more than the Dockerfile beside it",)
    assert found.needs == found.engine.needs == need


@pytest.mark.parametrize(
    "settings",
    [
        "image: another",
        "command: service-start",
        "command: [sh, -c, 'service-start && sleep infinity']",
        "entrypoint: [service-start]",
        "entrypoint: 'service-start \"'",
    ],
)
def test_what_a_compose_file_starts_is_told_of(tmp_path: Path, settings: str):
    found = machine(load_task(composed_task(tmp_path / "t", settings)))
    key = settings.partition(":")[0]
    assert found.ignored == (f"environment/docker-compose.yaml: main.{key}",)
    assert found.needs == ()


@pytest.mark.parametrize(
    "settings",
    [
        "build: .",
        "build: {context: ./, dockerfile: ./Dockerfile}",
        "build: {context: '${CONTEXT_DIR:-.}'}",
        "image: ${PREBUILT_IMAGE_NAME}",
        "command: sleep infinity",
        "command: tail -f /dev/null",
        "command: /bin/bash",
        "command: ",
        "entrypoint: [bash, -lc, exec sleep infinity]",
        "entrypoint: []",
        "{entrypoint: [sh, -c], command: [sleep infinity]}",
    ],
)
def test_a_compose_file_that_only_keeps_the_machine_there_asks_for_nothing(
    tmp_path: Path, settings: str
):
    found = machine(load_task(composed_task(tmp_path / "t", settings)))
    assert found.ignored == found.needs == ()


def test_what_compose_asks_for_is_told_where_an_engine_makes_the_machines(tmp_path: Path):
    folder = composed_task(tmp_path / "t", "{privileged: true, volumes: ['./a:/a'], ports: [80]}")
    write(folder / "tests" / "Dockerfile", "FROM ubuntu:24.04\n")
    write(folder / "tests" / "docker-compose.yaml", "services: {main: {tmpfs: /run}}")
    write(folder / "task.toml", "[verifier]\nenvironment_mode = 'separate'")
    keys = ("ports", "privileged", "volumes")
    told = (
        *(f"environment/docker-compose.yaml: main.{key}" for key in keys),
        "tests/docker-compose.yaml: main.tmpfs",
    )
    for kind in ("docker", "directory"):
        assert ignored_by(load_task(folder), Hosting(sandbox=kind)) == told


def test_a_compose_file_may_name_the_image_of_the_settings(tmp_path: Path):
    config = "[environment]\ndocker_image = 'debian:12'"
    folder = composed_task(tmp_path / "t", "image: debian:12", config)
    (folder / "environment" / "Dockerfile").unlink()
    assert machine(load_task(folder)).ignored == ()


def test_a_task_for_another_system_needs_no_script_of_this_one(tmp_path: Path):
    folder = harbor_task(tmp_path / "t", "[environment]\nos = 'windows'")
    (folder / "tests" / "test.sh").rename(folder / "tests" / "test.bat")
    assert machine(load_task(folder)).needs == (
        "environment.os = 'windows': another system than Linux",
    )


def test_files_that_harbor_would_leave_out_are_told_of(tmp_path: Path):
    folder = harbor_task(tmp_path / "t")
    write(folder / "tests" / ".harborignore", "*.md")
    assert machine(load_task(folder)).ignored == ("tests/.harborignore: all files are laid out",)


def test_a_wish_for_the_network_alone_makes_nothing_impossible(tmp_path: Path):
    config = (
        "[environment]\nnetwork_mode = 'public'\n[agent]\nnetwork_mode = 'public'\nuser = 1000\n"
    )
    environment = machine(load_task(harbor_task(tmp_path / "t", config)))
    assert environment.needs == ()
    assert environment.ignored == (
        "environment.network_mode = 'public': there is no network",
        "agent.user = '1000': all processes run as root",
        "agent.network_mode = 'public': there is no network",
    )


def test_an_image_takes_the_place_of_a_dockerfile_and_gets_the_folder(tmp_path: Path):
    config = "[environment]\ndocker_image = 'python:3.11'\nworkdir = '/app'"
    folder = harbor_task(tmp_path / "t", config)
    both = machine(load_task(folder))
    assert (both.base, both.docker_image) == ("ubuntu:24.04", "python:3.11")
    assert both.ignored == ("environment.docker_image: the Dockerfile is read instead",)
    (folder / "environment" / "Dockerfile").unlink()
    write(folder / "environment" / "data.txt", "1")
    image = machine(load_task(folder))
    assert (image.base, image.equipment.python, image.workdir) == ("python:3.11", "3.11", "/app")
    assert image.build == (CopyFiles(sources=(".",), target="/app/"),)
    write(folder / "task.toml", "[environment]\ndocker_image = 'team/solver:1'")
    assert "team/solver:1" in machine(load_task(folder)).needs[0]


def test_a_folder_that_says_nothing_of_a_machine_is_refused(tmp_path: Path):
    folder = harbor_task(tmp_path / "t")
    (folder / "environment" / "Dockerfile").unlink()
    with pytest.raises(BadInputError, match=r"environment/Dockerfile: no such file; add it, or"):
        load_task(folder)


def test_variables_of_the_settings_win_over_the_dockerfiles(tmp_path: Path):
    folder = harbor_task(
        tmp_path / "t", "[environment.env]\nA = 'two'", "FROM debian:12\nENV A=one B=one\n"
    )
    assert machine(load_task(folder)).env == {"A": "two", "B": "one"}


def test_the_workdir_of_the_settings_wins_over_the_dockerfiles(tmp_path: Path):
    dockerfile = "FROM debian:12\nWORKDIR /app\n"
    for value, expected in (("/srv", "/srv"), ("in/x", "/app/in/x"), ("..", "/")):
        folder = harbor_task(tmp_path / "t", f"[environment]\nworkdir = '{value}'", dockerfile)
        assert machine(load_task(folder)).workdir == expected


STEPS = """
multi_step_reward_strategy = "final"
artifacts = ["/app/all.txt"]
[agent]
timeout_sec = 100
[verifier]
env = {SHARED = "1", BOTH = "task"}
[[verifier.collect]]
command = "task hook"
[solution]
env = {S = "1"}
[[steps]]
name = "first"
min_reward = 0.5
artifacts = [{source = "/app/one", destination = "one", exclude = ["*.pyc"]}]
[steps.agent]
timeout_sec = 10
[steps.verifier]
timeout_sec = 20
env = {BOTH = "step"}
collect = [{command = "step hook", timeout_sec = 5}]
[steps.healthcheck]
command = "true"
retries = 7
[[steps]]
name = "second one"
min_reward = {quality = 1, reward = 0}
"""


def stepped(folder: Path) -> Path:
    harbor_task(folder, STEPS)
    for name in ("first", "second one"):
        write(folder / "steps" / name / "instruction.md", f"# canary GUID\n\nStep {name}.\n")
    write(folder / "steps" / "first" / "workdir" / "setup.sh", "true")
    write(folder / "steps" / "first" / "solution" / "solve.sh", "true")
    write(folder / "steps" / "first" / "tests" / "test.sh", "pip install attrs\n")
    write(folder / "steps" / "second one" / "tests" / "data.txt", "1")
    return folder


def test_steps_have_their_own_parts_and_share_the_tasks(tmp_path: Path):
    folder = stepped(tmp_path / "t")
    task = load_task(folder)
    first, second = task.steps
    assert (task.reward_strategy, task.instruction) == ("final", "Step first.")
    assert [step.name for step in task.steps] == ["first", "second one"]
    assert [step.instruction for step in task.steps] == ["Step first.", "Step second one."]
    assert [step.agent_timeout_s for step in task.steps] == [10, 100]
    assert [step.verifier.timeout_s for step in task.steps] == [20, 600]
    assert [step.min_reward for step in task.steps] == [
        {"reward": 0.5},
        {"quality": 1, "reward": 0},
    ]
    assert (first.files, second.files) == (folder / "steps" / "first" / "workdir", None)
    assert first.healthcheck is not None
    assert (first.healthcheck.command, first.healthcheck.retries) == ("true", 7)
    shared = folder / "tests"
    assert first.verifier.tests == (shared, folder / "steps" / "first" / "tests")
    assert second.verifier.tests == (shared, folder / "steps" / "second one" / "tests")
    assert first.verifier.equipment.packages == ("attrs",)
    assert second.verifier.equipment.packages == ()
    assert first.verifier.env == {"SHARED": "1", "BOTH": "step"}
    assert first.verifier.collect == (
        Collect(command="task hook"),
        Collect(command="step hook", timeout_s=5),
    )
    assert [step.solution and step.solution.folder for step in task.steps] == [
        folder / "steps" / "first" / "solution",
        folder / "solution",
    ]
    assert [step.solution and step.solution.env for step in task.steps] == [{"S": "1"}] * 2
    assert first.artifacts == (
        Artifact(source="/logs/artifacts"),
        Artifact(source="/app/all.txt"),
        Artifact(source="/app/one", exclude=("*.pyc",)),
    )
    assert [artifact.source for artifact in second.artifacts] == ["/logs/artifacts", "/app/all.txt"]
    assert task.environment is not None
    told = "artifacts: /app/one as 'one': logs keep no artifacts"
    assert told in task.environment.ignored


@pytest.mark.parametrize(
    ("part", "told"),
    [
        ("steps/first", "steps/first: no such folder"),
        ("steps/first/instruction.md", "steps/first/instruction.md: no such file"),
        ("tests", "steps/second one/tests/test.sh: no such file"),
    ],
)
def test_a_missing_part_of_a_step_is_named(tmp_path: Path, part: str, told: str):
    folder = stepped(tmp_path / "t")
    (folder / part).rename(tmp_path / "gone")
    with pytest.raises(BadInputError) as raised:
        load_task(folder)
    assert told in str(raised.value)


@pytest.mark.parametrize(
    ("file", "counts", "judges"),
    [
        ("steps/first/instruction.md", True, False),
        ("steps/first/workdir/setup.sh", True, False),
        ("steps/first/tests/test.sh", True, True),
        ("tests/test.sh", True, True),
        ("steps/first/solution/solve.sh", False, False),
    ],
)
def test_the_digest_follows_the_files_of_the_steps(
    tmp_path: Path, file: str, counts: bool, judges: bool
):
    folder = stepped(tmp_path / "t")
    before = load_task(folder)
    write(folder / file, f"{(folder / file).read_text()}\n# changed")
    after = load_task(folder)
    assert (after.digest != before.digest, after.tests_digest != before.tests_digest) == (
        counts,
        judges,
    )


def test_an_explicit_folder_of_artifacts_takes_the_place_of_the_implicit_one(tmp_path: Path):
    config = "artifacts = ['/x', {source = '/logs/artifacts/', exclude = ['a']}]"
    step = only(load_task(harbor_task(tmp_path / "t", config)))
    assert [artifact.source for artifact in step.artifacts] == ["/x", "/logs/artifacts/"]


def verifier_machine(folder: Path) -> Environment:
    environment = only(load_task(folder)).verifier.environment
    assert environment is not None
    return environment


def test_a_verifier_may_have_a_machine_like_the_agents(tmp_path: Path):
    dockerfile = "FROM python:3.12\nRUN pip install a\n"
    folder = harbor_task(tmp_path / "t", "[verifier]\nenvironment_mode = 'separate'", dockerfile)
    write(folder / "tests" / "test.sh", "pip install b\n")
    own = verifier_machine(folder)
    assert (own.base, own.equipment.packages) == ("python:3.12", ("a",))
    verifier = only(load_task(folder)).verifier
    assert verifier.equipment.packages == ("a", "b")
    assert verifier.tests == (folder / "tests",)


def test_a_verifiers_own_table_is_its_machine(tmp_path: Path):
    config = "[verifier.environment]\nmemory_mb = 64\nworkdir = '/v'\nenv = {X = '1'}\ngpus = 2"
    own = verifier_machine(harbor_task(tmp_path / "t", config))
    assert (own.memory_mb, own.workdir, own.env) == (64, "/v", {"X": "1"})
    assert own.needs == ("verifier.environment.gpus = 2: a GPU",)


def test_a_dockerfile_among_the_tests_makes_a_machine_that_has_them(tmp_path: Path):
    folder = harbor_task(tmp_path / "t", "[verifier]\nenvironment_mode = 'separate'")
    write(folder / "tests" / "Dockerfile", "FROM python:3.11\nRUN pip install c\nCOPY . /tests/\n")
    verifier = only(load_task(folder)).verifier
    assert verifier.environment is not None
    assert verifier.environment.context == folder / "tests"
    assert verifier.environment.base == "python:3.11"
    assert verifier.equipment.packages == ("c",)
    assert verifier.tests == ()


def test_a_dockerfile_among_the_tests_counts_for_a_separate_machine_alone(tmp_path: Path):
    folder = harbor_task(tmp_path / "t")
    write(folder / "tests" / "Dockerfile", "FROM python:3.11\n")
    assert only(load_task(folder)).verifier.environment is None


def test_a_step_decides_for_itself_whether_its_verifier_has_a_machine(tmp_path: Path):
    config = (
        "[verifier]\nenvironment_mode = 'separate'\n[[steps]]\nname = 'a'\n[[steps]]\nname = 'b'\n"
        "verifier = {environment_mode = 'shared'}\n[[steps]]\nname = 'c'\n"
        "verifier = {environment = {workdir = '/c'}}\n"
    )
    folder = harbor_task(tmp_path / "t", config)
    for name in "abc":
        write(folder / "steps" / name / "instruction.md", "x")
    write(folder / "steps" / "c" / "tests" / "Dockerfile", "FROM debian\n")
    a, b, c = (step.verifier.environment for step in load_task(folder).steps)
    assert a is not None
    assert a.base == "ubuntu:24.04"
    assert b is None
    assert c is not None
    assert (c.base, c.workdir) == ("debian", "/c")


# Every key of Harbor's, with a value that means something, by its place in the schema.
SAMPLES: dict[str, Any] = {
    "task": {"name": "o/t", "version": "1", "description": "d", "keywords": ["k"]},
    "task.authors": {"task": {"name": "o/t", "authors": [{"name": "A", "email": "a@b.example"}]}},
    "schema_version": "1.3",
    "source": "registry",
    "metadata": {"difficulty": "easy"},
    "multi_step_reward_strategy": "final",
    "artifacts": ["/x"],
    "artifacts.source": {"artifacts": [{"source": "/x"}]},
    "artifacts.destination": {"artifacts": [{"source": "/x", "destination": "y"}]},
    "artifacts.exclude": {"artifacts": [{"source": "/x", "exclude": ["y"]}]},
    "artifacts.service": {"artifacts": [{"source": "/x", "service": "db"}]},
    "agent.network_mode": "public",
    "agent.allowed_hosts": ["a.example"],
    "agent.timeout_sec": 5,
    "agent.user": "me",
    "verifier.network_mode": "public",
    "verifier.allowed_hosts": ["a.example"],
    "verifier.timeout_sec": 5,
    "verifier.env": {"A": "b"},
    "verifier.user": 7,
    "verifier.environment_mode": "separate",
    "verifier.environment": {"memory_mb": 5},
    "verifier.collect": [{"command": "c"}],
    "verifier.collect.command": [{"command": "c"}],
    "verifier.collect.service": [{"command": "c", "service": "db"}],
    "verifier.collect.timeout_sec": [{"command": "c", "timeout_sec": 5}],
    "verifier.collect.user": [{"command": "c", "user": "me"}],
    "environment.network_mode": "public",
    "environment.allowed_hosts": ["a.example"],
    "environment.build_timeout_sec": 5,
    "environment.docker_image": "python:3.12",
    "environment.os": "windows",
    "environment.cpus": 2,
    "environment.memory_mb": 5,
    "environment.storage_mb": 5,
    "environment.gpus": 1,
    "environment.gpu_types": ["T4"],
    "environment.tpu": {"type": "v4", "topology": "2x2"},
    "environment.mcp_servers": [{"name": "m", "command": "c", "transport": "stdio"}],
    "environment.env": {"A": "b"},
    "environment.skills_dir": "/skills",
    "environment.healthcheck": {"command": "c"},
    "environment.workdir": "/w",
    "environment.allow_internet": True,
    "solution.env": {"A": "b"},
    "steps": [{"name": "s"}],
    "steps.min_reward": [{"name": "s", "min_reward": 1}],
    "steps.healthcheck": [{"name": "s", "healthcheck": {"command": "c"}}],
    "steps.artifacts": [{"name": "s", "artifacts": ["/x"]}],
    "steps.agent": [{"name": "s", "agent": {"timeout_sec": 5}}],
    "steps.verifier": [{"name": "s", "verifier": {"timeout_sec": 5}}],
}
ONLY_DESCRIBE = ("task", "task.authors", "schema_version", "source", "metadata")
"""Keys that change nothing about a trial."""


def toml(value: Any) -> str:
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key} = {toml(one)}' for key, one in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(toml(one) for one in value)}]"
    return json.dumps(value)


def sample_config(key: str) -> str:
    value = SAMPLES[key]
    first, *rest = key.split(".")
    if isinstance(value, dict) and list(value) == [first]:
        value = value[first]
    elif rest and first not in ("steps", "artifacts", "task"):
        value = {rest[0]: value}
    return f"{first} = {toml(value)}\n"


def loaded_with(folder: Path, config: str) -> dict[str, Any]:
    harbor_task(folder, config)
    write(folder / "steps" / "s" / "instruction.md", "Do it.")
    excluded = {"digest", "tests_digest"}
    return load_task(folder).model_dump(exclude=excluded)


@pytest.mark.parametrize("key", SAMPLES)
def test_each_key_is_honoured_or_listed_or_makes_a_need(tmp_path: Path, key: str):
    before = loaded_with(tmp_path / "t", "")
    after = loaded_with(tmp_path / "t", sample_config(key))
    assert (after == before) == (key in ONLY_DESCRIBE)
    told = (*after["environment"]["ignored"], *after["environment"]["needs"])
    assert not [line for line in told if "unknown key" in line]


def schema_keys(schema: dict[str, Any], node: dict[str, Any], above: str) -> Iterator[str]:
    """The keys of a schema; what lies within a list or a choice is reached as well."""
    for key, inner in node.get("properties", {}).items():
        yield f"{above}{key}"
        for name in references(inner):
            if above.count(".") < 1:
                yield from schema_keys(schema, schema["$defs"][name], f"{above}{key}.")


def references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if "$ref" in node:
            yield node["$ref"].rpartition("/")[2]
        for inner in node.values():
            yield from references(inner)
    elif isinstance(node, list):
        for inner in node:
            yield from references(inner)


def test_every_key_of_harbors_schema_has_a_sample():
    data = os.environ.get("HARNESS_DATA")
    path = Path(data or "", "schemas", "harbor-0.25.0.task-config.schema.json")
    if not data or not path.is_file():
        pytest.skip("HARNESS_DATA names no folder with Harbor's schemas")
    schema = json.loads(path.read_text())
    keys = set(schema_keys(schema, schema, ""))
    assert len(keys) > 50
    missing = [
        key
        for key in keys
        if key not in SAMPLES
        # A sample of what is around it has it.
        and not any(
            key.startswith(f"{sample}.")
            for sample in ("task", "environment.tpu", "environment.mcp_servers", "steps")
        )
        and not any(sample.startswith(f"{key}.") for sample in SAMPLES)
        and not key.startswith(("environment.healthcheck.", "verifier.environment."))
    ]
    assert sorted(missing) == []

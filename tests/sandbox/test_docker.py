"""Containers of an engine: what they are made of, and what becomes of those nobody closes."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from harness.errors import SandboxError
from harness.loader.task.loading import load_task
from harness.loader.task.skills import without_skills
from harness.runner.hosting import Hosting, not_runnable
from harness.runner.task_check import CheckJob, check_task
from harness.sandbox import choose
from harness.sandbox.container import SandboxSettings
from harness.sandbox.docker import DockerContainer, DockerSandbox
from harness.sandbox.engine.api import engine_address
from harness.sandbox.engine.relay import Relay
from harness.sandbox.limits.keeper import Limits
from harness.schema.environment import CopyFiles, EngineSettings, Environment, Equipment
from harness.schema.suite import Task
from harness.tools.machine import Machine
from tests.loader.suite_folders import write
from tests.sandbox.box import runs_on_host
from tests.sandbox.docker_engine import Container, Engine

Open = Callable[..., DockerContainer]
DEADLINE_S = 60


@pytest.fixture
def context(tmp_path: Path) -> Path:
    folder = tmp_path / "context"
    folder.mkdir()
    (folder / "data.txt").write_text("data")
    # Unlike that of any other test: images last as long as the engine.
    (folder / "id").write_text(uuid.uuid4().hex)
    dockerfile(folder, "COPY data.txt id /app/")
    return folder


@pytest.fixture
def told() -> list[str]:
    """What was said to be built."""
    return []


@pytest.fixture
def sandbox(engine: Engine, tmp_path: Path, told: list[str]) -> DockerSandbox:
    settings = SandboxSettings(
        cache=tmp_path / "cache",
        engine=engine.address,
        limits=Limits(memory_mb=100, processes=20, storage_mb=30, open_files=40),
    )
    return DockerSandbox(settings, told.append)


@pytest.fixture
def opened(sandbox: DockerSandbox, context: Path) -> Iterator[Open]:
    containers = []

    def open_container(**update: Any) -> DockerContainer:
        environment = Environment(context=context, workdir="/app").model_copy(update=update)
        containers.append(sandbox.open(environment, environment.env))
        return containers[-1]

    yield open_container
    for container in containers:
        container.close()


def dockerfile(context: Path, *lines: str) -> None:
    text = "\n".join(["FROM debian:12", "WORKDIR /app", *lines])
    (context / "Dockerfile").write_text(f"{text}\n")


def bash(container: DockerContainer, script: str) -> str:
    return container.run(["bash", "-c", script], timeout_s=60).output


def newest(engine: Engine) -> Container:
    return list(engine.containers.values())[-1]


def test_what_holds_a_container_is_asked_of_the_engine(opened: Open, engine: Engine):
    opened(memory_mb=64, engine=EngineSettings(cpus=1.5))
    settings = newest(engine).settings
    host = settings["HostConfig"]
    assert (settings["Entrypoint"], settings["Cmd"]) == (["sleep"], ["86400"])
    assert (host["NetworkMode"], host["Init"]) == ("none", True)
    assert (host["Memory"], host["MemorySwap"], host["PidsLimit"]) == (64 << 20, 64 << 20, 20)
    assert host["CpuQuota"] / host["CpuPeriod"] == 1.5
    assert {one["Name"]: one["Hard"] for one in host["Ulimits"]} == {
        "nofile": 40,
        "fsize": 30 << 20,
        "core": 0,
    }
    assert host["CapDrop"] == ["ALL"]
    assert {"NET_RAW", "SYS_ADMIN", "MKNOD"}.isdisjoint(host["CapAdd"])
    assert host["SecurityOpt"] == ["no-new-privileges"]


def test_a_network_is_there_where_the_task_lets_it(opened: Open, engine: Engine):
    opened(engine=EngineSettings(network=True))
    assert newest(engine).settings["HostConfig"]["NetworkMode"] == "bridge"


def test_an_image_is_built_once_for_each_content(
    opened: Open, engine: Engine, context: Path, told: list[str]
):
    opened()
    one = opened()
    assert told == [f"building the image of {context}, once"]
    (context / "data.txt").write_text("other data")
    other = opened()
    assert len(told) == 2
    assert (one.read("data.txt", 100).data, other.read("data.txt", 100).data) == (
        b"data",
        b"other data",
    )
    (context / "data.txt").chmod(0o755)
    opened()
    assert len(told) == 3


def test_what_dockerignore_names_is_not_sent(opened: Open, context: Path):
    (context / "secret").write_text("secret")
    (context / ".dockerignore").write_text("secret\nDockerfile\n")
    dockerfile(context, "COPY . /app")
    copy = CopyFiles(sources=(".",), target="/app", exclude=("secret", "Dockerfile"))
    container = opened(build=(copy,))
    assert "secret" not in container.names(".")
    assert "data.txt" in container.names(".")


def test_a_build_that_fails_says_what_it_wrote_last(opened: Open, context: Path):
    dockerfile(context, "RUN echo why; exit 3")
    with pytest.raises(SandboxError) as caught:
        opened()
    said = str(caught.value)
    assert said.startswith(f"the image of {str(context)!r} cannot be built: ")
    assert " / why / The command '/bin/sh -c 'echo why; exit 3'' returned" in said.replace(
        "\"'", "'"
    )
    assert f"`docker build {context}`" in said


def test_an_image_that_is_ready_is_pulled_once_and_given_the_files(
    opened: Open, engine: Engine, context: Path, told: list[str]
):
    name = f"registry.test/{uuid.uuid4().hex}"
    engine.registry[f"{name}:latest"] = {"WorkingDir": "/srv"}
    (context / "Dockerfile").unlink()
    files = CopyFiles(sources=(".",), target="/")
    ready = {"docker_image": name, "workdir": "/", "build": (files,)}
    container = opened(**ready)
    opened(**ready)
    assert told == [f"pulling {name}, once"]
    assert container.workdir == "/srv"
    assert container.names("/srv") == ("data.txt", "id")
    with pytest.raises(SandboxError, match=r"manifest for .*:3 not found; `docker pull .*:3`"):
        opened(docker_image=f"{name}:3")


def test_the_image_has_its_own_variables_and_the_task_its_own(opened: Open, context: Path):
    dockerfile(context, "ENV FROM_IMAGE=image", "ENV BOTH=image")
    # The loader cannot know what an image has in PATH; only those of task.toml are set.
    container = opened(
        env={"FROM_IMAGE": "guessed", "BOTH": "task"}, engine=EngineSettings(variables=("BOTH",))
    )
    assert bash(container, "echo $FROM_IMAGE $BOTH") == "image task\n"


def test_skills_of_a_variant_are_put_in_their_place(
    sandbox: DockerSandbox, context: Path, tmp_path: Path
):
    write(tmp_path / "skills" / "tea" / "SKILL.md", "boil")
    environment = Environment(
        context=context, skills=tmp_path / "skills", skills_dir="/opt/skills", workdir="/app"
    )
    with closing(Machine(environment, lambda: sandbox)) as machine:
        assert machine.container.read("/opt/skills/tea/SKILL.md", 10).data == b"boil"


def test_a_machine_without_skills_has_none_of_those_its_dockerfile_copies(
    opened: Open, context: Path
):
    write(context / "skills" / "tea" / "SKILL.md", "boil")
    write(context / "skills" / "mint" / "SKILL.md", "pick")
    copies = [("skills", "/root/all/"), ("skills/tea", "/root/tea"), (".", "/app/")]
    dockerfile(context, *(f"COPY {source} {place}" for source, place in copies))
    build = tuple(CopyFiles(sources=(source,), target=place) for source, place in copies)
    search = "find /root /app -path '*tea*' -o -path '*mint*' -o -name data.txt"

    with_them = bash(opened(build=build), search).split()
    without = without_skills(Environment(context=context, build=build))
    left = bash(opened(build=without.build, engine=without.engine), search).split()

    assert "/root/all/mint/SKILL.md" in with_them
    assert set(left) == {"/root/tea", "/root/all/tea", "/app/data.txt", "/app/skills/tea"}


def test_an_image_that_is_ready_is_given_the_files_without_the_skills(
    opened: Open, engine: Engine, context: Path
):
    name = f"registry.test/{uuid.uuid4().hex}"
    engine.registry[f"{name}:latest"] = {"WorkingDir": "/srv"}
    (context / "Dockerfile").unlink()
    write(context / "skills" / "tea" / "SKILL.md", "boil")
    files = CopyFiles(sources=(".",), target="/")
    without = without_skills(Environment(context=context, build=(files,)))
    container = opened(docker_image=name, workdir="/", build=without.build)
    assert container.names("/srv") == ("data.txt", "id")


def test_what_is_otherwise_than_asked_for_is_noted(opened: Open, context: Path):
    dockerfile(context, "USER somebody", 'ENTRYPOINT ["/serve", "--now"]')
    assert opened(storage_mb=5).notes == (
        "storage_mb = 5: holds for each file alone",
        "USER somebody of the image: all processes run as root",
        "ENTRYPOINT /serve --now of the image: not run",
    )


def test_what_no_engine_gives_and_what_there_is_no_image_for_is_told_before(
    sandbox: DockerSandbox, context: Path
):
    needs = EngineSettings(needs=("a GPU",))
    environment = Environment(context=context, needs=("another image",), engine=needs)
    assert sandbox.lacks(environment) == ("a GPU",)
    (context / "Dockerfile").unlink()
    assert sandbox.lacks(environment)[1:] == ("a Dockerfile, or environment.docker_image",)
    ready = environment.model_copy(update={"docker_image": "debian"})
    assert sandbox.lacks(ready) == ("a GPU",)


def test_what_runs_beside_a_terminal_leaves_it_alone(opened: Open, engine: Engine):
    container = opened()
    marker = f"1000.{uuid.uuid4().int}"
    terminal = container.terminal()
    terminal.send(f"sleep {marker}\n")
    deadline = time.monotonic() + DEADLINE_S
    while not runs_on_host("sleep", marker):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert bash(container, "echo beside") == "beside\n"
    assert runs_on_host("sleep", marker)
    # What a verifier runs must not meet what an agent has left running.
    container.equip(Equipment(stand_ins=True))
    assert terminal.closed
    assert not runs_on_host("sleep", marker)
    assert bash(container, "type -p curl") != "/opt/stand-ins/bin/curl\n"


def test_nothing_is_started_again_where_nothing_is_left(opened: Open, engine: Engine):
    container = opened()
    bash(container, "true")
    assert newest(engine).starts == 1
    bash(container, "sleep 1000 &")
    assert newest(engine).starts == 2


def test_a_command_that_kills_all_it_can_reach_harms_itself(opened: Open):
    container = opened()
    bash(container, "echo kept > file; kill -9 -1")
    assert bash(container, "cat file") == "kept\n"
    terminal = container.terminal()
    terminal.send("kill -9 -1\n")
    assert terminal.wait(DEADLINE_S)
    terminal.send("ls\n")
    assert bash(container, "cat file") == "kept\n"


def test_a_flood_in_a_terminal_is_shown_to_its_end(opened: Open):
    terminal = opened().terminal()
    terminal.send("seq 1 200000; echo e''nd; exit\n")
    assert terminal.wait(DEADLINE_S)
    assert terminal.screen().endswith("\n200000\nend\nexit")


def test_what_comes_last_is_carried_before_the_end():
    own, shell = os.openpty()
    near, far = socket.socketpair()
    relay = Relay(shell, near)
    os.close(shell)
    # More than a terminal holds.
    far.sendall(b"x" * 200_000)
    far.close()
    came = 0
    with suppress(OSError):
        while data := os.read(own, 65_536):
            came += len(data)
    relay.end()
    os.close(own)
    assert came == 200_000


def task_in(folder: Path, config: str) -> Task:
    """A task as it is in Harbor's layout, on an image that nothing here could stand in for."""
    for name, text in {
        "task.toml": f'schema_version = "1.4"\n{config}',
        "instruction.md": "Serve tea.",
        "environment/Dockerfile": "FROM tea.test/house:1\nWORKDIR /app\nRUN echo hot > /usr-tea\n",
        "solution/solve.sh": "#!/bin/bash\ncp /usr-tea tea; echo $SUGAR >> tea\n",
        "tests/test.sh": "#!/bin/bash\ngrep -q hot tea && grep -q 2 tea && reward=1\n"
        "echo ${reward:-0} > /logs/verifier/reward.txt\n",
    }.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
    return load_task(folder)


def test_a_task_that_only_an_engine_can_run_holds(engine: Engine, tmp_path: Path):
    task = task_in(tmp_path / "tea", '[environment]\ncpus = 2\nenv = { SUGAR = "2" }\n')
    hosting = Hosting("docker", SandboxSettings(cache=tmp_path / "cache", engine=engine.address))
    (found,) = check_task(CheckJob(task, hosting, 1))
    assert (found.reason, found.oracle, found.nop) == (None, 1, 0)
    assert (found.holds, found.ignored) == (True, ())
    elsewhere = str(not_runnable(task, Hosting()))
    assert elsewhere.startswith("not runnable here: image 'tea.test/house:1': ")
    assert not_runnable(task, hosting) is None


@pytest.mark.parametrize(
    ("config", "network"),
    [
        ("", True),
        ("allow_internet = true", True),
        ("allow_internet = false", False),
        ('network_mode = "no-network"', False),
        ('network_mode = "public"', True),
        ('network_mode = "allowlist"\nallowed_hosts = ["tea.test"]', False),
    ],
)
def test_the_network_is_harbors(config: str, network: bool, tmp_path: Path):
    task = task_in(tmp_path / "tea", f"[environment]\n{config}\n")
    assert task.environment is not None
    assert task.environment.engine.network is network


def test_what_no_engine_gives_here_is_a_need_and_what_none_does_is_listed(tmp_path: Path):
    task = task_in(
        tmp_path / "tea",
        'colour = "green"\n[agent]\nuser = "cook"\nnetwork_mode = "public"\n'
        '[environment]\ngpus = 1\nallowed_hosts = ["tea.test"]\nnetwork_mode = "allowlist"\n',
    )
    assert task.environment is not None
    engine = task.environment.engine
    assert engine.needs == (
        "environment.allowed_hosts: tea.test",
        "environment.gpus = 1: a GPU",
    )
    assert [line.partition(":")[0] for line in engine.ignored] == [
        "agent.user = 'cook'",
        "agent.network_mode = 'public'",
        "task.toml",
    ]


def test_containers_of_a_harness_that_was_killed_are_removed(
    engine: Engine, context: Path, opened: Open, tmp_path: Path
):
    mine = opened()
    script = f"""
import os, signal
from pathlib import Path
from harness.sandbox.container import SandboxSettings
from harness.sandbox.docker import DockerSandbox
from harness.schema.environment import Environment
settings = SandboxSettings(cache=Path({str(tmp_path)!r}), engine={engine.address!r})
container = DockerSandbox(settings).open(Environment(context=Path({str(context)!r})), {{}})
print(container.run(["echo", "lived"], timeout_s=60).output, flush=True)
os.kill(0 or os.getpid(), signal.SIGKILL)
"""
    for _ in range(2):
        before = set(engine.containers)
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=False
        )
        assert (done.stdout, done.returncode) == ("lived\n\n", -9)
    # The second has removed what the first left, and nothing else.
    (left,) = set(engine.containers) - before
    assert len(engine.containers) == len(before)
    assert bash(mine, "echo lives") == "lives\n"
    engine.containers[left].end()


def test_where_no_engine_answers_it_is_said_what_to_do(tmp_path: Path):
    for address, said in (
        (
            f"unix://{tmp_path}/none.sock",
            "No such file or directory; start one, or set DOCKER_HOST",
        ),
        ("tcp://127.0.0.1:2375", "is not of the form unix:///path/of/a.sock; forward a remote"),
        ("unix://relative", "is not of the form"),
    ):
        assert said in str(choose.problem("docker", address))
        with pytest.raises(SandboxError, match="the sandbox 'docker' does not work here: "):
            choose.sandbox("docker", SandboxSettings(engine=address))


def test_the_engine_is_where_its_other_clients_find_it(tmp_path: Path):
    (tmp_path / "docker.sock").touch()
    assert engine_address({"DOCKER_HOST": "unix:///a", "XDG_RUNTIME_DIR": "/b"}) == "unix:///a"
    assert engine_address({}) == "unix:///var/run/docker.sock"
    if not Path("/var/run/docker.sock").exists():
        own = engine_address({"XDG_RUNTIME_DIR": str(tmp_path)})
        assert own == f"unix://{tmp_path}/docker.sock"

"""Containers: what they begin with, and the ways to their files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.errors import InfrastructureError, SandboxError
from harness.sandbox import view
from harness.sandbox.container import FolderContainer, FolderSandbox, SandboxSettings
from harness.sandbox.namespaces.runner import Runner
from harness.schema.environment import CopyFiles, Environment, Equipment, FileCommand
from harness.values import ProcessResult

Open = Callable[..., FolderContainer]


@pytest.fixture
def context(tmp_path: Path) -> Path:
    """A build context with a bit of everything."""
    folder = tmp_path / "context"
    (folder / "data" / "deep").mkdir(parents=True)
    (folder / "data" / "a.csv").write_text("a")
    (folder / "data" / ".hidden").write_text("hidden")
    (folder / "data" / "deep" / "b.csv").write_text("b")
    (folder / "data" / "link").symlink_to("a.csv")
    (folder / "data" / "dangling").symlink_to("/no/such/file")
    (folder / "run.sh").write_text("echo ran\n")
    (folder / "run.sh").chmod(0o750)
    return folder


@pytest.fixture
def opened(runner: Runner, context: Path, tmp_path: Path) -> Iterator[Open]:
    """Opens a container of the context; all are closed at the end."""
    containers = []

    def open_container(**update: object) -> FolderContainer:
        sandbox = FolderSandbox(runner, SandboxSettings(cache=tmp_path / "cache"))
        environment = Environment(context=context, workdir="/app").model_copy(update=update)
        containers.append(sandbox.open(environment, environment.env))
        return containers[-1]

    yield open_container
    for container in containers:
        container.close()


def copied(opened: Open, *sources: str, target: str, **more: object) -> FolderContainer:
    return opened(build=(CopyFiles(sources=sources, target=target, **more),))


def bash(container: FolderContainer, script: str) -> ProcessResult:
    return container.run(["bash", "-c", script], timeout_s=60)


def tree(container: FolderContainer, path: str) -> list[str]:
    output = bash(container, f"cd {path} && find . -mindepth 1 | sort").output
    return [line.removeprefix("./") for line in output.splitlines()]


DATA = [".hidden", "a.csv", "dangling", "deep", "deep/b.csv", "link"]


@pytest.mark.parametrize(
    ("sources", "target", "found"),
    [
        (("data",), "/app/data", [("/app/data", DATA)]),
        (("./data/",), "/app", [("/app", DATA)]),
        (("run.sh",), "/app/", [("/app", ["run.sh"])]),
        (("run.sh",), "/app", [("/app", ["run.sh"])]),
        (("run.sh",), "/srv/tool", [("/srv", ["tool"])]),
        (("run.sh", "data/a.csv"), "/new", [("/new", ["a.csv", "run.sh"])]),
        (("data/[a-z]*.csv",), "/csv/", [("/csv", ["a.csv"])]),
        (("data/*e*",), "/all/", [("/all", [".hidden", "b.csv"])]),
        (("run.[rs]h", "data/deep"), "/mixed/", [("/mixed", ["b.csv", "run.sh"])]),
        (("../../run.sh",), "/above/", [("/above", ["run.sh"])]),
    ],
)
def test_files_are_copied_as_docker_does(
    opened: Open, sources: tuple[str, ...], target: str, found: list[tuple[str, list[str]]]
):
    container = copied(opened, *sources, target=target)
    for folder, names in found:
        assert tree(container, folder) == names


def test_one_file_is_given_the_name_of_the_target(opened: Open):
    container = copied(opened, "data/*.csv", target="/new/name")
    assert container.read("/new/name", 100).data == b"a"


@pytest.mark.parametrize("source", ["none", "none/*", "data/dangling"])
def test_files_that_are_not_there_cannot_be_copied(opened: Open, source: str):
    with pytest.raises(SandboxError) as caught:
        copied(opened, source, target="/app/")
    assert str(caught.value).startswith(f"cannot copy {source} of ")
    assert str(caught.value).endswith("/context' to /app/: No such file or directory")


def test_modes_links_and_owner_are_kept(opened: Open):
    container = copied(opened, "run.sh", "data", target="/app/")
    script = "stat -c '%a %U %F' run.sh deep; readlink link dangling"
    assert bash(container, script).output.splitlines() == [
        "750 root regular file",
        "755 root directory",
        "a.csv",
        "/no/such/file",
    ]


def test_a_folder_is_laid_over_what_is_there(opened: Open):
    steps = (
        FileCommand(
            command="mkdir -p data && echo old > data/a.csv && echo kept > data/c", cwd="/"
        ),
        CopyFiles(sources=("data",), target="/data"),
    )
    container = opened(build=steps)
    assert container.read("/data/a.csv", 10).data == b"a"
    assert container.read("/data/c", 10).data == b"kept\n"


def test_what_is_excluded_is_left_out(opened: Open):
    container = copied(opened, ".", target="/app", exclude=("data/deep", "run.sh", "data/link"))
    assert tree(container, "/app") == ["data", "data/.hidden", "data/a.csv", "data/dangling"]


def test_links_of_a_context_lead_to_nothing_of_the_host(
    opened: Open, context: Path, tmp_path: Path
):
    (tmp_path / "secret").write_text("secret")
    (context / "out").symlink_to(tmp_path / "secret")
    (context / "up").symlink_to("..")
    for source in ("out", "up/secret", "../secret"):
        with pytest.raises(SandboxError, match="No such file"):
            copied(opened, source, target="/app/")


def test_links_that_a_build_makes_lead_to_nothing_of_the_host(opened: Open, tmp_path: Path):
    steps = (
        FileCommand(command=f"ln -s {tmp_path} /app/out", cwd="/"),
        CopyFiles(sources=("run.sh",), target="/app/out/"),
    )
    container = opened(build=steps)
    assert container.names(str(tmp_path)) == ("run.sh",)
    assert "run.sh" not in os.listdir(tmp_path)


def test_commands_of_a_build_run_in_order_and_in_their_folder(opened: Open):
    steps = (
        FileCommand(command="pwd > where; mkdir -p /output", cwd="/made/for/it"),
        CopyFiles(sources=("run.sh",), target="/made/for/it/"),
        FileCommand(
            command="mv run.sh /output/moved.sh && chmod 700 /output/moved.sh", cwd="/made/for/it"
        ),
    )
    container = opened(build=steps)
    assert container.read("/made/for/it/where", 100).data == b"/made/for/it\n"
    assert container.names("/output") == ("moved.sh",)


def test_a_command_of_a_build_that_fails_is_told(opened: Open):
    with pytest.raises(SandboxError) as caught:
        opened(build=(FileCommand(command="echo why >&2; exit 3", cwd="/"),))
    assert str(caught.value) == (
        "'echo why >&2; exit 3' of the Dockerfile failed with exit code 3: why"
    )


def test_a_command_of_a_build_that_may_fail_is_noted_and_the_next_runs(opened: Open):
    steps = (
        FileCommand(command="unzip gone.zip", cwd="/", needed=False),
        FileCommand(command="touch /after", cwd="/", needed=False),
    )
    container = opened(build=steps)
    assert container.read("/after", 1).data == b""
    (note,) = container.notes
    assert note.startswith("'unzip gone.zip' of the Dockerfile failed with exit code ")


def test_a_build_that_does_not_end_is_told(opened: Open):
    with pytest.raises(SandboxError, match="did not end in time"):
        opened(build=(FileCommand(command="sleep 60", cwd="/"),), build_timeout_s=0.1)


def test_commands_run_in_the_working_directory_with_the_environments_variables(opened: Open):
    env = {"GIVEN": "value", "PATH": "/app/bin:/usr/bin"}
    container = opened(env=env, workdir="/srv/app")
    script = "pwd; echo $HOME $GIVEN $OWN; echo $PATH"
    result = container.run(["/bin/sh", "-c", script], timeout_s=60, env={"OWN": "own"})
    path = f"/app/bin:/usr/bin:{view.PYTHON_FOLDER}"
    assert result.output == f"/srv/app\n/root value own\n{path}\n"
    assert container.run(["pwd"], timeout_s=60, cwd="/tmp").output == "/tmp\n"
    assert container.run(["pwd"], timeout_s=60, cwd="inner").output == "/srv/app/inner\n"


def test_equipment_takes_the_place_of_the_one_before(opened: Open):
    container = opened()
    assert "stand-ins" not in bash(container, "type curl; echo $PATH").output
    container.equip(Equipment(stand_ins=True))
    assert bash(container, "type -p curl").output == "/opt/stand-ins/bin/curl\n"
    assert "curl" in container.names("/opt/stand-ins/bin")
    container.equip(Equipment())
    assert "stand-ins" not in bash(container, "type curl; ls /opt/stand-ins; echo $PATH").output


def test_what_cannot_be_had_is_told_before(runner: Runner, context: Path):
    sandbox = FolderSandbox(runner)
    steps = (
        CopyFiles(sources=("run.sh",), target="/usr/local/bin/"),
        CopyFiles(sources=("run.sh",), target="/bin/run"),
        CopyFiles(sources=("run.sh",), target="/usrx/"),
    )
    environment = Environment(context=context, build=steps, workdir="/proc/x")
    read_only = "the system's folders are the host's and read-only"
    assert sandbox.lacks(environment) == tuple(
        f"files of its own in {place}: {read_only}"
        for place in ("/bin/run", "/proc/x", "/usr/local/bin/")
    )
    assert sandbox.lacks(Environment(context=context)) == ()


def test_a_closed_container_does_nothing_any_more(opened: Open):
    container = opened()
    folder = container.folder.parent
    container.close()
    assert not folder.exists()
    with pytest.raises(InfrastructureError, match="closed"):
        bash(container, "true")
    with pytest.raises(InfrastructureError, match="closed"):
        container.read("x", 1)


@pytest.mark.parametrize(
    "left",
    [
        "true",
        "touch file",
        "mkdir -p deep/er",
        "chmod 777 .",
        "cd / && rmdir /logs/place",
        "cd / && rmdir /logs/place && ln -s /app /logs/place",
        "cd / && rmdir /logs/place && touch /logs/place",
    ],
)
def test_a_cleared_place_is_an_empty_folder_whatever_stood_there(opened: Open, left: str):
    container = opened()
    container.clear("/logs/place")
    container.run(["bash", "-c", f"echo kept > /app/kept; cd /logs/place && {left}"], timeout_s=60)
    container.clear("/logs/place")
    look = ["bash", "-c", "stat -c '%F %a' /logs/place; ls -A /logs/place; cat /app/kept"]
    assert container.run(look, timeout_s=60).output == "directory 755\nkept\n"

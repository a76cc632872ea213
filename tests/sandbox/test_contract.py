"""What every kind of container does alike, whatever makes it."""

from __future__ import annotations

import shlex
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.containers import Container, Sandbox
from harness.errors import InfrastructureError
from harness.sandbox import choose
from harness.sandbox.container import FolderSandbox, SandboxSettings
from harness.sandbox.docker import DockerSandbox
from harness.schema.environment import CopyFiles, EngineSettings, Environment
from harness.values import ProcessResult
from tests.sandbox.box import RUNNERS, runs_on_host
from tests.sandbox.docker_engine import Engine

Open = Callable[..., Container]


@pytest.fixture(params=["bubblewrap", "docker", "unshare"])
def sandbox(request: pytest.FixtureRequest, tmp_path: Path) -> Sandbox:
    if request.param == "docker":
        engine: Engine = request.getfixturevalue("engine")
        return DockerSandbox(SandboxSettings(cache=tmp_path / "cache", engine=engine.address))
    if (reason := choose.problem(request.param)) is not None:
        pytest.skip(f"the {request.param} sandbox does not work on this host: {reason}")
    settings = SandboxSettings(cache=tmp_path / "cache")
    return FolderSandbox(RUNNERS[request.param](), settings)


@pytest.fixture
def context(tmp_path: Path) -> Path:
    """A build context with a bit of everything."""
    folder = tmp_path / "context"
    (folder / "data" / "deep").mkdir(parents=True)
    (folder / "data" / "a.csv").write_text("a")
    (folder / "data" / ".hidden").write_text("hidden")
    (folder / "data" / "deep" / "b.csv").write_text("b")
    (folder / "data" / "link").symlink_to("a.csv")
    (folder / "run.sh").write_text("echo ran\n")
    (folder / "run.sh").chmod(0o750)
    return folder


@pytest.fixture
def opened(sandbox: Sandbox, context: Path) -> Iterator[Open]:
    """Opens a container of the context; all are closed at the end."""
    containers = []

    def open_container(
        *steps: CopyFiles, env: dict[str, str] | None = None, workdir: str = "/app"
    ) -> Container:
        lines = [shlex.join(["COPY", *step.sources, step.target]) for step in steps]
        dockerfile = "\n".join(["FROM python:3.12-slim", f"WORKDIR {workdir}", *lines])
        (context / "Dockerfile").write_text(dockerfile)
        environment = Environment(
            context=context,
            workdir=workdir,
            env=env or {},
            build=steps,
            engine=EngineSettings(variables=tuple(env or ())),
        )
        containers.append(sandbox.open(environment, environment.env))
        return containers[-1]

    yield open_container
    for container in containers:
        container.close()


def copied(opened: Open, *sources: str, target: str) -> Container:
    return opened(CopyFiles(sources=sources, target=target))


def bash(container: Container, script: str, timeout_s: float = 60) -> ProcessResult:
    return container.run(["bash", "-c", script], timeout_s=timeout_s)


def test_the_kind_is_named(opened: Open, sandbox: Sandbox):
    assert sandbox.problem() is None
    assert opened().kind == sandbox.kind


def test_commands_run_in_the_working_directory_with_their_variables(opened: Open):
    container = opened(env={"GIVEN": "value", "BOTH": "1"}, workdir="/srv/app")
    script = "pwd; echo $HOME $GIVEN $OWN $BOTH; id -u"
    env = {"OWN": "own", "BOTH": "2"}
    result = container.run(["/bin/sh", "-c", script], timeout_s=60, env=env)
    assert result.output == "/srv/app\n/root value own 2\n0\n"
    assert container.run(["pwd"], timeout_s=60, cwd="/tmp").output == "/tmp\n"
    assert container.run(["pwd"], timeout_s=60, cwd="inner").output == "/srv/app/inner\n"


def test_output_and_errors_come_in_order_with_the_exit_code(opened: Open):
    result = bash(opened(), "echo 1; echo 2 >&2; echo 3; cat; exit 3")
    assert (result.exit_code, result.output) == (3, "1\n2\n3\n")


def test_a_program_that_is_not_there_is_told(opened: Open):
    result = opened().run(["no-such-program"], timeout_s=60)
    assert result.exit_code == 127
    assert "no-such-program" in result.output


def test_a_flood_is_cut_in_the_middle(opened: Open):
    result = bash(opened(), "seq 1 1000000; echo end")
    assert result.output.startswith("1\n2\n")
    assert "bytes cut]" in result.output
    assert result.output.endswith("\n1000000\nend\n")
    assert len(result.output) < 20_000


def test_a_command_that_does_not_end_is_killed_at_its_timeout(opened: Open):
    container = opened()
    marker = f"1000.{uuid.uuid4().int}"
    result = bash(container, f"echo begin; sleep {marker} & sleep {marker}", timeout_s=0.5)
    assert (result.exit_code, result.timed_out, result.output) == (None, True, "begin\n")
    assert not runs_on_host("sleep", marker)
    assert bash(container, "echo as before").output == "as before\n"


def test_folders_are_listed_with_what_is_hidden_and_odd(opened: Open):
    container = opened()
    bash(
        container, "mkdir d .h; touch -- f '-n' 'a b' $'new\\nline' '*'; ln -s d l; ln -s /no gone"
    )
    assert container.names(".") == (
        *("*", "-n", ".h/", "a b", "d/", "f", "gone", "l", "new\nline"),
    )
    assert container.names("d") == ()
    assert container.names("l") == ()
    with pytest.raises(NotADirectoryError):
        container.names("f")
    with pytest.raises(FileNotFoundError):
        container.names("none")


def test_files_are_read_in_part_and_written_where_links_lead(opened: Open):
    container = opened()
    container.write("new/folder/file", b"0123456789")
    found = container.read("new/folder/file", 4)
    assert (found.data, found.size) == (b"0123", 10)
    bash(container, "ln -s new/folder/file link; chmod 700 link; ln -s /app/new up; mkfifo pipe")
    container.write("link", b"changed")
    assert container.read("up/folder/file", 100).data == b"changed"
    assert bash(container, "readlink link; stat -Lc %a link").output == "new/folder/file\n700\n"
    with pytest.raises(IsADirectoryError):
        container.read("new", 1)
    with pytest.raises(IsADirectoryError):
        container.write("new", b"")
    with pytest.raises(NotADirectoryError):
        container.write("link/file", b"")
    with pytest.raises(OSError, match="not a file"):
        container.read("pipe", 1)
    bash(container, "ln -s loop loop")
    with pytest.raises(OSError, match="Too many levels"):
        container.read("loop", 1)


def test_files_last_wherever_they_are(opened: Open):
    container = opened()
    places = ["/app", "/root", "/tmp", "/var/tmp", "/etc", "/output/new", "/logs/artifacts"]
    for place in places:
        assert bash(container, f"mkdir -p {place} && echo {place} > {place}/f").exit_code == 0
    assert bash(container, f"cat {'/f '.join(places)}/f").output.split() == places
    assert container.read("/root/f", 100).data == b"/root\n"


def test_files_of_the_tasks_own_in_etc_are_there_beside_those_of_the_system(
    opened: Open, context: Path
):
    (context / "app.conf").write_text("of the task\n")
    container = copied(opened, "app.conf", target="/etc/app/app.conf")
    script = "cat /etc/app/app.conf; test -s /etc/passwd && echo system"
    assert bash(container, script).output == "of the task\nsystem\n"
    assert container.read("/etc/app/app.conf", 100).data == b"of the task\n"


def test_a_working_directory_that_is_gone_is_made_again_and_a_file_is_told(opened: Open):
    container = opened()
    bash(container, "rm -r /app")
    assert bash(container, "pwd; ls -A").output == "/app\n"
    bash(container, "rm -r /app; touch /app")
    result = bash(container, "pwd")
    assert (result.exit_code, result.output) == (126, "/app: Not a directory\n")


def test_a_terminal_runs_in_the_same_container(opened: Open):
    container = opened(env={"GIVEN": "value"})
    terminal = container.terminal(columns=100, rows=20)
    terminal.send("pwd > where; echo $GIVEN $TERM >> where; tty -s && id -u >> where; touch end\n")
    deadline = time.monotonic() + 60
    while "end" not in container.names("."):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert container.read("where", 100).data == b"/app\nvalue xterm-256color\n0\n"
    assert bash(container, "pgrep -c bash; cat where").exit_code == 0


def test_uploads_replace_or_merge(opened: Open, context: Path):
    container = opened()
    container.upload(context / "data", "/tests")
    container.upload(context / "data" / "deep", "/tests", merge=True)
    assert "b.csv" in container.names("/tests")
    assert "a.csv" in container.names("/tests")
    container.upload(context / "data" / "deep", "/tests")
    assert container.names("/tests") == ("b.csv",)
    container.upload(context / "run.sh", "/tests/new/test.sh")
    assert bash(container, "stat -c %a /tests/new/test.sh").output == "750\n"
    container.upload(context / "data" / "a.csv", "/tests")
    assert container.read("/tests", 10).data == b"a"


def test_downloads_have_files_and_folders_and_no_links(opened: Open, tmp_path: Path):
    container = copied(opened, "data", target="/app")
    bash(container, "mkfifo pipe; ln -s / root; chmod 0 deep/b.csv")
    container.download("/app", tmp_path / "taken", limit=100)
    taken = sorted(
        str(path.relative_to(tmp_path / "taken")) for path in (tmp_path / "taken").rglob("*")
    )
    assert taken == [".hidden", "a.csv", "deep", "deep/b.csv"]
    container.download("a.csv", tmp_path / "one", limit=1)
    assert (tmp_path / "one").read_text() == "a"


def test_downloads_are_limited(opened: Open, tmp_path: Path):
    container = opened()
    bash(container, "echo 12345 > a; echo 12345 > b; truncate -s 1G sparse; mkfifo pipe")
    with pytest.raises(OSError, match="File too large"):
        container.download("/app", tmp_path / "all", limit=1000)
    with pytest.raises(OSError, match="File too large"):
        container.download("sparse", tmp_path / "sparse", limit=1000)
    with pytest.raises(OSError, match="not a file"):
        container.download("pipe", tmp_path / "pipe", limit=1000)
    with pytest.raises(FileNotFoundError):
        container.download("none", tmp_path / "none", limit=1000)


def test_folders_too_deep_are_not_downloaded(opened: Open, tmp_path: Path):
    container = opened()
    bash(container, "mkdir -p $(printf 'd/%.0s' {1..200})")
    with pytest.raises(OSError, match="folders in one another"):
        container.download("/app", tmp_path / "deep", limit=1000)


@pytest.mark.parametrize("path", ["a\0b", "\ud800", "x" * 5000, "x/" * 3000])
def test_paths_that_no_kernel_takes_are_errors_like_others(opened: Open, path: str):
    container = opened()
    for use in (lambda: container.read(path, 1), lambda: container.write(path, b"")):
        with pytest.raises(OSError, match=r"Invalid argument|File name too long"):
            use()


def test_two_containers_are_apart(opened: Open):
    one, two = opened(), opened()
    bash(one, "echo 1 > file")
    assert two.names(".") == ()


@pytest.mark.parametrize(
    "script",
    [
        "setsid sleep {marker} & disown",
        "(setsid sh -c 'sleep {marker} & sleep {marker}' &) ; sleep 0.1",
        "nohup python3 -c 'import os, time; os.fork() or os.setsid(); os.fork(); "
        'os.execvp("sleep", ["sleep", "{marker}"])\' > /dev/null 2>&1 &',
    ],
)
def test_nothing_outlives_the_command(opened: Open, script: str):
    container = opened()
    marker = f"1000.{uuid.uuid4().int}"
    assert bash(container, script.format(marker=marker)).exit_code == 0
    assert not runs_on_host("sleep", marker)


def test_nothing_outlives_a_terminal(opened: Open):
    container = opened()
    marker = f"1000.{uuid.uuid4().int}"
    terminal = container.terminal()
    terminal.send(f"setsid sleep {marker} &\nsleep {marker}\n")
    deadline = time.monotonic() + 60
    while not runs_on_host("sleep", marker):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    container.close()
    assert not runs_on_host("sleep", marker)


def test_links_out_of_the_container_lead_into_it(opened: Open, tmp_path: Path):
    container = opened()
    secret = tmp_path / "secret"
    secret.write_text("secret")
    bash(container, f"ln -s {secret} file; ln -s {tmp_path} folder; ln -s / /up")
    for path in ("file", "folder/secret", f"/up{secret}", f"../../..{secret}"):
        with pytest.raises(OSError, match="No such file"):
            container.read(path, 100)
    container.write("folder/secret", b"changed")
    container.upload(secret, "/app/folder/uploaded")
    assert secret.read_text() == "secret"
    assert not (tmp_path / "uploaded").exists()


def test_a_closed_container_does_nothing_any_more(opened: Open):
    container = opened()
    container.terminal()
    container.close()
    container.close()
    with pytest.raises(InfrastructureError, match="closed"):
        bash(container, "true")
    with pytest.raises(InfrastructureError, match="closed"):
        container.read("x", 1)

"""Whatever an engine answers, it is an error in one line, and nothing of this host is touched."""

from __future__ import annotations

import base64
import io
import json
import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.containers import Container
from harness.errors import SandboxError
from harness.sandbox.container import SandboxSettings
from harness.sandbox.docker import DockerSandbox
from harness.schema.environment import Environment
from tests.sandbox.lying_engine import answer, lying, raw

UPGRADED = b"HTTP/1.1 101 UPGRADED\r\n\r\n"


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lies") / "context"
    folder.mkdir()
    (folder / "Dockerfile").write_text("FROM debian:12\n")
    return folder


def container_of(address: str, context: Path) -> Container:
    sandbox = DockerSandbox(SandboxSettings(cache=context.parent, engine=address))
    return sandbox.open(Environment(context=context), {})


def nothing(_: Container) -> None:
    """Opening it is enough."""


def caught(
    lies: dict[str, bytes], context: Path, use: Callable[[Container], object] = nothing
) -> str:
    with lying(lies) as address, pytest.raises(SandboxError) as error:
        use(container_of(address, context))
    said = str(error.value)
    assert "\n" not in said
    assert len(said) < 1000
    return said


def run(container: Container) -> object:
    return container.run(["true"], timeout_s=30)


OPENING = (
    "GET /version",
    "GET /containers/json",
    "GET /images/",
    "POST /containers/create",
    "POST /containers/1/start",
    "HEAD /containers/1/archive",
)
LIES = {
    "nothing": b"",
    "no HTTP": b"\x00\x01\x02 hello",
    "half a line": b"HTTP/1.1 2",
    "a failure": answer({"message": "server\n\nerror\n" + "x" * 9999}, 503),
    "a failure that is no JSON": raw(b"<html>\n502 Bad Gateway\n</html>", 502),
    "a failure that is cut": raw(b'{"mess', 500, length=999),
}


@pytest.mark.parametrize("request_line", OPENING)
@pytest.mark.parametrize("lie", LIES)
def test_no_answer_or_a_failure_is_told(request_line: str, lie: str, context: Path):
    said = caught({request_line: LIES[lie]}, context)
    if said != "the container's files cannot be made: [Errno 20] Not a directory":
        assert said.startswith("the engine")
        assert request_line.split()[1] in said.replace("/v1.47/", "/")


@pytest.mark.parametrize("request_line", OPENING[:4])
@pytest.mark.parametrize(
    "lie",
    [
        raw(b'{"Id": '),
        raw(b"[]\xff"),
        raw(b'{"Id": 5, "ApiVersion": null, "Config": 7}'),
        raw(b'{"Id": "../../version"}'),
        raw(b"[" * 100_000),
        raw(b'[{"Id": "../x", "Created": 0, "Labels": {}}]'),
        raw(b"{}", length=1000),
    ],
    ids=("half", "no text", "types", "path", "deep", "paths", "cut"),
)
def test_an_answer_of_another_form_is_told(request_line: str, lie: bytes, context: Path):
    if request_line == "GET /images/" and b"version" in lie:
        pytest.skip("an image may be called anything")
    said = caught({request_line: lie}, context)
    assert "cannot be read: " in said or "was cut: " in said


def test_an_answer_without_end_is_not_read_to_its_end(context: Path):
    endless = b"HTTP/1.1 200 OK\r\n\r\n" + b" " * (9 << 20)
    said = caught({"GET /version": endless}, context)
    assert said == "the engine's answer to GET /version is too long"


@pytest.mark.parametrize(
    ("version", "problem"),
    [
        ({"ApiVersion": "1.24", "Os": "linux"}, "the version 1.24, and 1.40 is needed; update it"),
        ({"ApiVersion": "new", "Os": "linux"}, "has the version 'new'"),
    ],
)
def test_an_engine_of_another_age_is_told(version: object, problem: str, context: Path):
    lies = {"GET /version": answer(version)}
    assert problem in caught(lies, context)


def test_an_engine_for_another_system_is_a_problem():
    version = answer({"ApiVersion": "1.47", "Os": "windows"})
    with lying({"GET /version": version}) as address:
        sandbox = DockerSandbox(SandboxSettings(engine=address))
        assert sandbox.problem() == (
            "the engine's containers are of windows; switch it to Linux containers"
        )


@pytest.mark.parametrize(
    ("built", "problem"),
    [
        (raw(b""), "the engine does not say why"),
        (raw(b'{"stream": "Step 1"}\n{"str'), "the engine says b"),
        (raw(b'{"stream": "Step 1"}\n', length=999), "the engine does not say why"),
        (raw(b'{"stream": 1}\n'), "the engine says b"),
        (raw(b'{"error": "parse error\\non line 1"}'), "be built: parse error on line 1; "),
        (raw(b"x" * (9 << 20)), "no end of line"),
    ],
    ids=("nothing", "half", "cut", "types", "refused", "endless"),
)
def test_a_build_that_goes_wrong_is_told(built: bytes, problem: str, context: Path):
    lies = {"GET /images/": answer({"message": "no such image"}, 404), "POST /build": built}
    assert problem in caught(lies, context)


@pytest.mark.parametrize(
    ("lies", "problem"),
    [
        ({"POST /exec/2/start": answer({"message": "gone"}, 404)}, "status 404: gone"),
        ({"POST /exec/2/start": b"HTTP/1.1 101"}, "none of HTTP"),
        ({"POST /exec/2/start": b"\0" * 99_999}, "none of HTTP"),
        ({"POST /exec/2/start": UPGRADED + b"\1\0\0\0\0\0\0\5abc"}, "command was cut"),
        ({"POST /exec/2/start": UPGRADED + b"\1\0\0"}, "command was cut"),
        ({"POST /exec/2/start": UPGRADED + b"plain output"}, "sends b'plain ou' for"),
        ({"GET /exec/2/json": answer({"Running": "yes"})}, "Running: "),
        ({"GET /exec/2/json": answer({"message": "no such exec"}, 404)}, "status 404: no such"),
        ({"GET /containers/1/top": answer({"Titles": "PID"})}, "Titles: "),
        (
            {
                "GET /containers/1/top": answer({"message": "not running"}, 409),
                "POST /containers/1/restart": answer({"message": "cannot\nrestart"}, 500),
            },
            "status 500: cannot restart",
        ),
    ],
)
def test_a_command_that_cannot_be_followed_is_told(
    lies: dict[str, bytes], problem: str, context: Path
):
    assert problem in caught(lies, context, run)


def test_a_path_that_the_engine_describes_oddly_is_told(context: Path):
    for told in (b"not base64", b"e30="):
        head = b"HTTP/1.1 200 OK\r\nX-Docker-Container-Path-Stat: " + told + b"\r\n\r\n"
        said = caught({"HEAD /containers/1/archive": head}, context)
        assert "cannot be read: " in said


def packed(*members: tarfile.TarInfo | tuple[str, bytes]) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                tar.addfile(member)
            else:
                plain = tarfile.TarInfo(member[0])
                plain.size = len(member[1])
                tar.addfile(plain, io.BytesIO(member[1]))
    return file.getvalue()


def member(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    found = tarfile.TarInfo(name)
    found.type, found.linkname, found.mode = kind, target, 0o777
    return found


FOLDER = member("x", tarfile.DIRTYPE)


Download = Callable[[bytes], Path]


@pytest.fixture
def download(context: Path, tmp_path: Path) -> Download:
    """Takes /x out of a container to a folder; gives where it is then."""

    def take(content: bytes) -> Path:
        target = tmp_path / "taken"
        with lying({"GET /containers/1/archive": raw(content)}) as address:
            container_of(address, context).download("/x", target, limit=1000)
        return target

    return take


@pytest.mark.parametrize(
    "name", ["../out", "/out", "x/../../out", "y/out", "x/./../../out", "..", "", "x/" + "../" * 9]
)
@pytest.mark.parametrize("kind", [tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE])
def test_a_member_that_lies_outside_is_refused(
    name: str, kind: bytes, download: Download, tmp_path: Path
):
    with pytest.raises(SandboxError, match=r"holds|damaged"):
        download(packed(FOLDER, member(name, kind, "/etc/passwd")))
    assert not Path("/out").exists()
    assert set(os.listdir(tmp_path)) <= {"taken"}
    assert set(os.listdir(tmp_path.parent)).isdisjoint({"out", "x"})


def test_links_devices_and_pipes_are_left_out(download: Download):
    odd = [
        member("x/link", tarfile.SYMTYPE, "/etc/passwd"),
        member("x/up", tarfile.SYMTYPE, ".."),
        member("x/disk", tarfile.BLKTYPE),
        member("x/null", tarfile.CHRTYPE),
        member("x/pipe", tarfile.FIFOTYPE),
    ]
    twice = member("x/b", tarfile.LNKTYPE, "x/a")
    taken = download(packed(FOLDER, *odd, ("x/a", b"a"), twice))
    assert {path.name: path.read_bytes() for path in taken.iterdir()} == {"a": b"a", "b": b"a"}


@pytest.mark.parametrize(
    "content",
    [
        packed(FOLDER, member("x/link", tarfile.SYMTYPE, "/"), ("x/link/out", b"")),
        packed(FOLDER, ("x/a", b"a"), ("x/a", b"b")),
        packed(FOLDER, member("x/b", tarfile.LNKTYPE, "x/none")),
        packed(FOLDER, ("x/a", b"a" * 600), ("x/b", b"b" * 600)),
        packed(FOLDER, ("x/a", b"a" * 600), member("x/b", tarfile.LNKTYPE, "x/a")),
        packed(FOLDER, *(member("x" + "/d" * deep, tarfile.DIRTYPE) for deep in range(1, 150))),
    ],
    ids=("through a link", "twice", "of nothing", "long", "long twice", "deep"),
)
def test_what_cannot_be_unpacked_is_an_error_of_files(content: bytes, download: Download):
    with pytest.raises(OSError, match=r"File|No such|folders in one another"):
        download(content)
    assert not Path("/out").exists()


def test_a_hard_link_out_of_the_folder_is_refused(download: Download):
    with pytest.raises(SandboxError, match="holds '/etc/passwd'"):
        download(packed(FOLDER, member("x/b", tarfile.LNKTYPE, "/etc/passwd")))


@pytest.mark.parametrize(
    "content",
    [b"", b"x" * 2000, packed(FOLDER, ("x/a", b"a" * 600))[:1200]],
    ids=("nothing", "no tar", "half"),
)
def test_a_damaged_archive_is_told(content: bytes, download: Download):
    with pytest.raises(SandboxError, match=r"the engine's archive is (damaged|empty)"):
        download(content)


def test_a_file_that_claims_to_be_endless_is_not_waited_for(download: Download):
    huge = member("x/a", tarfile.REGTYPE)
    huge.size = 1 << 60
    with pytest.raises(OSError, match="File too large"):
        download(huge.tobuf(tarfile.GNU_FORMAT))


def test_what_is_said_to_be_a_file_and_comes_as_a_link_is_not_read(context: Path):
    state = json.dumps({"name": "x", "size": 5, "mode": 0o644}).encode()
    header = b"X-Docker-Container-Path-Stat: "
    plain = b"HTTP/1.1 200 OK\r\n" + header + base64.b64encode(state) + b"\r\n\r\n"
    link = raw(packed(member("x", tarfile.SYMTYPE, "/etc/passwd")))
    with lying(
        {"GET /containers/1/archive": link, "HEAD /containers/1/archive?path=%2Fx": plain}
    ) as address:
        container = container_of(address, context)
        with pytest.raises(OSError, match="not a file"):
            container.read("/x", 100)

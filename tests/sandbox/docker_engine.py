"""An engine as Docker's documentation describes it (API 1.47), as much as the harness asks of one.

It speaks real HTTP on a unix socket, and what it is asked to run it really runs, in a sandbox of
this host. Keys and parameters that the documentation does not have are refused.
"""

from __future__ import annotations

import base64
import fcntl
import io
import json
import os
import posixpath
import re
import select
import shlex
import shutil
import socket
import socketserver
import stat
import struct
import tarfile
import tempfile
import termios
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, cast
from urllib.parse import parse_qs, unquote, urlsplit

from harness.errors import SandboxError
from harness.sandbox import view
from harness.sandbox.files.confined import open_inside
from harness.sandbox.files.copying import copy_folder
from harness.sandbox.files.root_folder import RootFolder
from harness.sandbox.files.tree import Tree
from harness.sandbox.namespaces.runner import Runner
from harness.schema.environment import CopyFiles
from tests.sandbox import docker_inside

Json = dict[str, Any]

CREATE = {
    *("Image", "Entrypoint", "Cmd", "User", "WorkingDir", "Env", "Labels", "Healthcheck"),
    *("HostConfig",),
}
HOST = {
    *("Init", "NetworkMode", "Memory", "MemorySwap", "PidsLimit", "ShmSize", "Ulimits", "CapDrop"),
    *("CapAdd", "SecurityOpt", "LogConfig", "CpuPeriod", "CpuQuota"),
}
EXEC = {
    *("AttachStdin", "AttachStdout", "AttachStderr", "ConsoleSize", "DetachKeys", "Tty", "Env"),
    *("Cmd", "Privileged", "User", "WorkingDir"),
}
START = {"Detach", "Tty", "ConsoleSize"}
QUERIES = {
    "build": {"t", "labels", "rm", "forcerm", "dockerfile"},
    "images/create": {"fromImage", "tag"},
    "archive": {"path", "noOverwriteDirNonDir", "copyUIDGID"},
    "top": {"ps_args"},
    "restart": {"t", "signal"},
    "resize": {"h", "w"},
    "containers/json": {"all", "filters", "limit", "size"},
    "delete": {"v", "force", "link"},
}


class Refused(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass
class Image:
    root: RootFolder
    config: Json = field(default_factory=lambda: {"User": "", "WorkingDir": "", "Env": []})
    id: str = field(default_factory=lambda: f"sha256:{uuid.uuid4().hex}")


@dataclass
class Exec:
    container: Container
    settings: Json
    running: bool = True
    exit_code: int | None = None
    terminal: int | None = None


class Container:
    def __init__(self, settings: Json, image: Image, runner: Runner) -> None:
        self.id = uuid.uuid4().hex
        self.settings = settings
        self.created = time.time()
        self.image = image
        self.root = RootFolder()
        copy_tree(image.root.path, self.root.path)
        self.starts = 0
        self._runner = runner
        self._thread: threading.Thread | None = None
        mounts = view.system_mounts()
        self.mounts = {mount.target: mount.source for mount in mounts}

    @property
    def runs(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> None:
        self.starts += 1
        place = self.root.path / "run/engine.sock"
        place.parent.mkdir(exist_ok=True)
        place.unlink(missing_ok=True)
        script = Path(docker_inside.__file__).read_text()
        command = [view.interpreter(), "-I", "-S", "-c", script, "/run/engine.sock"]

        def run() -> None:
            self._runner.run(command, mounts=(), cwd="/", timeout_s=600, root=self.root)

        self._thread = threading.Thread(target=run, daemon=True)
        self._thread.start()
        deadline = time.monotonic() + 60
        while self.runs and time.monotonic() < deadline:
            with suppress(Refused):
                self._connect().close()
                return
            time.sleep(0.002)
        raise Refused(500, "the container does not start")

    def end(self) -> None:
        if self.runs:
            with suppress(Refused, OSError):
                self.tell({"do": "end"}).close()
        if self._thread is not None:
            self._thread.join()

    def tell(self, told: Json, *fds: int) -> socket.socket:
        connection = self._connect()
        rights = struct.pack(f"{len(fds)}i", *fds)
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)] if fds else []
        connection.sendmsg([json.dumps(told).encode()], ancillary)
        return connection

    def processes(self) -> list[list[str]]:
        with self.tell({"do": "list"}) as connection:
            found = json.loads(connection.makefile().read() or "[]")
        return [["1", "Ss"], ["7", "S"], *([str(pid), state] for pid, state in found)]

    @contextmanager
    def opened(self, path: str, flags: int) -> Iterator[int]:
        with open_inside(self.root.path, path, flags, mounts=self.mounts) as fd:
            yield fd

    def _connect(self) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect(str(self.root.path / "run/engine.sock"))
        except OSError:
            connection.close()
            raise Refused(409, f"container {self.id} is not running") from None
        return connection


class Engine:
    """A running engine."""

    def __init__(self, runner: Runner) -> None:
        self.runner = runner
        self.folder = tempfile.mkdtemp(prefix="engine-")
        self.address = f"unix://{self.folder}/docker.sock"
        self.images: dict[str, Image] = {}
        self.registry: dict[str, Json] = {}
        """What can be pulled: `name:tag` -> settings of the image."""
        self.containers: dict[str, Container] = {}
        self.execs: dict[str, Exec] = {}
        self.requests: list[str] = []
        self._server = _Server(f"{self.folder}/docker.sock", _Handler)
        self._server.engine = self
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        for container in self.containers.values():
            container.end()
            container.root.close()
        for image in set(map(id, self.images.values())):
            next(one for one in self.images.values() if id(one) == image).root.close()
        shutil.rmtree(self.folder)


class _Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    engine: Engine


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Tell nobody."""

    def handle(self) -> None:
        with suppress(BrokenPipeError, ConnectionResetError):
            super().handle()

    def _serve(self) -> None:
        engine = cast(_Server, self.server).engine
        place = urlsplit(self.path)
        self.query = {name: values[0] for name, values in parse_qs(place.query).items()}
        path = re.sub(r"^/v1\.47/", "/", place.path)
        engine.requests.append(f"{self.command} {path}")
        self.close_connection = True
        try:
            for method, pattern, do in ROUTES:
                match = re.fullmatch(pattern, path)
                if match and method == self.command:
                    do(engine, self, *map(unquote, match.groups()))
                    return
            raise Refused(404, "page not found")
        except Refused as refused:
            self.json({"message": str(refused)}, refused.status)

    do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = _serve

    def json(self, content: object, status: int = 200, headers: Mapping[str, str] = {}) -> None:
        body = b"" if content is None else json.dumps(content).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def settings(self, keys: set[str]) -> Json:
        found = json.loads(self.body())
        return known(found, keys)

    def asked(self, kind: str) -> Mapping[str, str]:
        known(self.query, QUERIES[kind])
        return self.query


def known(found: Json, keys: set[str]) -> Json:
    if unknown := set(found) - keys:
        raise Refused(400, f"unknown: {unknown}")
    return found


class _Chunks(io.RawIOBase):
    """What is written while its length is not known."""

    def __init__(self, handler: _Handler, kind: str) -> None:
        self._handler = handler
        handler.send_response(200)
        handler.send_header("Content-Type", kind)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()

    def write(self, data: Any) -> int:
        if data:
            self._handler.wfile.write(b"%x\r\n%b\r\n" % (len(data), bytes(data)))
        return len(data)

    def end(self) -> None:
        self._handler.wfile.write(b"0\r\n\r\n")


def version(_: Engine, handler: _Handler) -> None:
    handler.json({"ApiVersion": "1.55", "MinAPIVersion": "1.40", "Os": "linux", "Arch": "amd64"})


def image(engine: Engine, handler: _Handler, name: str) -> None:
    is_tagged = ":" in name.rpartition("/")[2]
    found = engine.images.get(name if is_tagged else f"{name}:latest")
    if found is None:
        raise Refused(404, f"No such image: {name}")
    handler.json({"Id": found.id, "RepoTags": [name], "Config": found.config, "Size": 1})


def pull(engine: Engine, handler: _Handler) -> None:
    query = handler.asked("images/create")
    name = f"{query['fromImage']}:{query['tag']}"
    if name not in engine.registry:
        raise Refused(404, f"manifest for {name} not found")
    chunks = _Chunks(handler, "application/json")
    chunks.write(line({"status": f"Pulling from {query['fromImage']}", "id": query["tag"]}))
    engine.images[name] = Image(RootFolder())
    engine.images[name].config |= engine.registry[name]
    chunks.end()


def build(engine: Engine, handler: _Handler) -> None:
    query = handler.asked("build")
    body = handler.body()
    chunks = _Chunks(handler, "application/json")
    with tempfile.TemporaryDirectory() as context, ExitStack() as opened:
        with tarfile.open(fileobj=io.BytesIO(body)) as tar:
            tar.extractall(context, filter="tar")
        made = Image(RootFolder())
        try:
            for text in Path(context, "Dockerfile").read_text().splitlines():
                chunks.write(line({"stream": f"Step : {text}\n"}))
                build_line(engine, made, text, Path(context), chunks, opened)
        except (Refused, SandboxError) as error:
            made.root.close()
            chunks.write(line({"errorDetail": {"message": str(error)}, "error": str(error)}))
        else:
            made.config["Labels"] = json.loads(query["labels"])
            engine.images[query["t"]] = made
            chunks.write(line({"aux": {"ID": made.id}}))
    chunks.end()


def build_line(
    engine: Engine, made: Image, text: str, context: Path, chunks: _Chunks, opened: ExitStack
) -> None:
    name, _, rest = text.partition(" ")
    workdir = made.config["WorkingDir"] or "/"
    if name == "WORKDIR":
        made.config["WorkingDir"] = posixpath.join(workdir, rest)
        Tree(made.root, made.config["WorkingDir"])
    elif name == "COPY":
        *sources, target = shlex.split(rest)
        target = posixpath.join(workdir, target)
        Tree(made.root, workdir).copy(CopyFiles(sources=tuple(sources), target=target), context)
    elif name == "ENV":
        made.config["Env"].append(rest)
    elif name in ("USER", "ENTRYPOINT"):
        made.config[name.capitalize()] = json.loads(rest) if rest.startswith("[") else rest
    elif name == "RUN":
        command = ["/bin/sh", "-c", rest]
        result = engine.runner.run(command, mounts=(), cwd=workdir, timeout_s=60, root=made.root)
        chunks.write(line({"stream": result.output}))
        if result.exit_code != 0:
            raise Refused(
                500,
                f"The command '{shlex.join(command)}' returned a non-zero code: {result.exit_code}",
            )
    elif name != "FROM":
        raise Refused(400, f"dockerfile parse error: unknown instruction: {name}")


def create(engine: Engine, handler: _Handler) -> None:
    settings = handler.settings(CREATE)
    known(settings["HostConfig"], HOST)
    found = next((one for one in engine.images.values() if one.id == settings["Image"]), None)
    if found is None:
        raise Refused(404, f"No such image: {settings['Image']}")
    made = Container(settings, found, engine.runner)
    engine.containers[made.id] = made
    handler.json({"Id": made.id, "Warnings": []}, 201)


def list_containers(engine: Engine, handler: _Handler) -> None:
    query = handler.asked("containers/json")
    (label,) = json.loads(query["filters"])["label"]
    found = [one for one in engine.containers.values() if label in one.settings["Labels"]]
    handler.json(
        [
            {"Id": one.id, "Created": int(one.created), "Labels": one.settings["Labels"]}
            for one in found
        ]
    )


def start(engine: Engine, handler: _Handler, name: str) -> None:
    container(engine, name).start()
    handler.json(None, 204)


def restart(engine: Engine, handler: _Handler, name: str) -> None:
    handler.asked("restart")
    found = container(engine, name)
    found.end()
    found.start()
    handler.json(None, 204)


def remove(engine: Engine, handler: _Handler, name: str) -> None:
    query = handler.asked("delete")
    found = container(engine, name)
    if found.runs and query.get("force") != "1":
        raise Refused(409, "You cannot remove a running container")
    found.end()
    found.root.close()
    del engine.containers[name]
    handler.json(None, 204)


def top(engine: Engine, handler: _Handler, name: str) -> None:
    assert handler.asked("top") == {"ps_args": "-eo pid,stat"}
    found = container(engine, name)
    handler.json({"Titles": ["PID", "STAT"], "Processes": found.processes()})


def make_exec(engine: Engine, handler: _Handler, name: str) -> None:
    found = container(engine, name)
    settings = handler.settings(EXEC)
    found.processes()
    made = uuid.uuid4().hex
    engine.execs[made] = Exec(found, settings)
    handler.json({"Id": made}, 201)


def inspect_exec(engine: Engine, handler: _Handler, name: str) -> None:
    found = engine.execs[name]
    running = found.running and found.container.runs
    code = found.exit_code if found.running or found.exit_code is not None else 137
    handler.json({"ID": name, "Running": running, "ExitCode": code, "Pid": 42})


def resize_exec(engine: Engine, handler: _Handler, name: str) -> None:
    query = handler.asked("resize")
    terminal = engine.execs[name].terminal
    if terminal is None:
        raise Refused(409, "the exec is not started")
    rows, columns = int(query["h"]), int(query["w"])
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    handler.json(None)


def start_exec(engine: Engine, handler: _Handler, name: str) -> None:
    found = engine.execs[name]
    settings = handler.settings(START)
    assert settings["Tty"] == found.settings["Tty"]
    assert handler.headers["Upgrade"] == "tcp"
    multiplexed = "raw" if settings["Tty"] else "multiplexed"
    kind = f"application/vnd.docker.{multiplexed}-stream"
    handler.wfile.write(
        b"HTTP/1.1 101 UPGRADED\r\nContent-Type: %b\r\nConnection: Upgrade\r\n"
        b"Upgrade: tcp\r\n\r\n" % kind.encode()
    )
    (run_on_terminal if settings["Tty"] else run_with_pipes)(found, handler)


def variables(found: Exec) -> Json:
    all_of_them = (
        *("PATH=" + view.PATH, "HOME=/root", "HOSTNAME=container"),
        *found.container.image.config["Env"],
        *found.container.settings["Env"],
        *found.settings["Env"],
    )
    return dict(one.split("=", 1) for one in all_of_them)


def run_with_pipes(found: Exec, handler: _Handler) -> None:
    with ExitStack() as opened:
        ends = [os.pipe() for _ in range(2)]
        nothing = os.open("/dev/null", os.O_RDONLY)
        told = {"do": "run", "command": found.settings["Cmd"], "env": variables(found)}
        ended = opened.enter_context(found.container.tell(told, nothing, ends[0][1], ends[1][1]))
        for fd in (nothing, ends[0][1], ends[1][1]):
            os.close(fd)
        kinds = {}
        for kind, (end, _) in enumerate(ends, 1):
            opened.callback(os.close, end)
            kinds[end] = kind

        def add(fd: int, data: bytes) -> None:
            handler.wfile.write(struct.pack(">BxxxI", kinds[fd], len(data)) + data)

        found.exit_code = follow(ended, list(kinds), add)
        found.running = False


def run_on_terminal(found: Exec, handler: _Handler) -> None:
    own, shell = os.openpty()
    with ExitStack() as opened:
        opened.callback(os.close, own)
        found.terminal = own
        command = view.owning_terminal(found.settings["Cmd"], view.interpreter())
        told = {"do": "run", "command": command, "env": variables(found)}
        ended = opened.enter_context(found.container.tell(told, shell, shell, shell))
        os.close(shell)

        def type_in() -> None:
            with suppress(OSError):
                while data := handler.connection.recv(4096):
                    os.write(own, data)

        threading.Thread(target=type_in, daemon=True).start()

        def add(_: int, data: bytes) -> None:
            with suppress(BrokenPipeError, ConnectionResetError):
                handler.connection.sendall(data)

        found.exit_code = follow(ended, [own], add)
        found.running = False
        found.terminal = None
        with suppress(OSError):
            handler.connection.shutdown(socket.SHUT_RDWR)


def follow(ended: socket.socket, fds: list[int], add: Callable[[int, bytes], None]) -> int:
    """Pass on what is written until the command has ended, and what is there then."""
    while True:
        ready, _, _ = select.select([ended.fileno(), *fds], [], [])
        for fd in set(ready) & set(fds):
            try:
                data = os.read(fd, 1 << 16)
            except OSError:
                data = b""
            if data:
                add(fd, data)
            else:
                fds.remove(fd)
        if ready == [ended.fileno()]:
            # Nothing comes where the container was killed.
            return int(json.loads(ended.recv(100) or b"137"))


def stat_path(engine: Engine, handler: _Handler, name: str) -> None:
    path = posixpath.normpath(handler.asked("archive")["path"])
    found = container(engine, name)
    with reached(found, path) as (folder, last):
        state = os.stat(last, dir_fd=folder, follow_symlinks=False)
        mode, target = stat.S_IMODE(state.st_mode) & 0o777, ""
        bits = {stat.S_IFDIR: 31, stat.S_IFLNK: 27, stat.S_IFIFO: 25, stat.S_IFSOCK: 24}
        kind = stat.S_IFMT(state.st_mode)
        if kind == stat.S_IFCHR:
            mode |= 1 << 26 | 1 << 21
        elif kind in bits:
            mode |= 1 << bits[kind]
        if kind == stat.S_IFLNK:
            target = os.readlink(last, dir_fd=folder)
            target = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
    told = {"name": posixpath.basename(path), "size": state.st_size, "mode": mode}
    told |= {"mtime": "2026-01-01T00:00:00Z", "linkTarget": target}
    header = base64.b64encode(json.dumps(told).encode()).decode()
    handler.json(None, headers={"X-Docker-Container-Path-Stat": header})


def get_archive(engine: Engine, handler: _Handler, name: str) -> None:
    path = posixpath.normpath(handler.asked("archive")["path"])
    with reached(container(engine, name), path) as (folder, last):
        place = f"/proc/self/fd/{folder}/{last}"
        os.lstat(place)
        chunks = _Chunks(handler, "application/x-tar")
        with tarfile.open(fileobj=chunks, mode="w|", format=tarfile.PAX_FORMAT) as tar:
            tar.add(place, posixpath.basename(path))
        chunks.end()


def put_archive(engine: Engine, handler: _Handler, name: str) -> None:
    query = handler.asked("archive")
    content = io.BytesIO(handler.body())
    found = container(engine, name)
    with found.opened(query["path"], os.O_DIRECTORY) as fd, tarfile.open(fileobj=content) as tar:
        for member in tar:
            unpack(tar, member, Path(f"/proc/self/fd/{fd}", member.name))
    handler.json(None)


def unpack(tar: tarfile.TarFile, member: tarfile.TarInfo, place: Path) -> None:
    """Whatever is there gives way, but a folder to a folder."""
    if place.is_symlink() or place.exists():
        if place.is_dir() and not place.is_symlink():
            if not member.isdir():
                shutil.rmtree(place)
        else:
            place.unlink()
    if member.isdir():
        place.mkdir(exist_ok=True)
    elif member.issym():
        place.symlink_to(member.linkname)
        return
    else:
        place.write_bytes(cast(Any, tar.extractfile(member)).read())
    place.chmod(member.mode)


@contextmanager
def reached(found: Container, path: str) -> Iterator[tuple[int, str]]:
    """The open folder that a path ends in, and the last name; links before it are followed."""
    try:
        with found.opened(posixpath.dirname(path), os.O_DIRECTORY) as fd:
            yield fd, posixpath.basename(path) or "."
    except FileNotFoundError:
        raise Refused(404, f"Could not find the file {path} in container") from None
    except OSError as error:
        raise Refused(500, f"{path}: {error.strerror}") from None


def container(engine: Engine, name: str) -> Container:
    if name not in engine.containers:
        raise Refused(404, f"No such container: {name}")
    return engine.containers[name]


def copy_tree(source: Path, target: Path) -> None:
    with (
        open_inside(source, "/", os.O_DIRECTORY) as from_fd,
        open_inside(target, "/", os.O_DIRECTORY) as to_fd,
    ):
        copy_folder(from_fd, to_fd)


def line(content: Json) -> bytes:
    return json.dumps(content).encode() + b"\r\n"


ONE = r"/containers/([^/]+)"
ROUTES: tuple[tuple[str, str, Callable[..., None]], ...] = (
    ("GET", "/version", version),
    ("GET", r"/images/(.+)/json", image),
    ("POST", "/images/create", pull),
    ("POST", "/build", build),
    ("POST", "/containers/create", create),
    ("GET", "/containers/json", list_containers),
    ("POST", f"{ONE}/start", start),
    ("POST", f"{ONE}/restart", restart),
    ("DELETE", ONE, remove),
    ("GET", f"{ONE}/top", top),
    ("POST", f"{ONE}/exec", make_exec),
    ("GET", "/exec/([^/]+)/json", inspect_exec),
    ("POST", "/exec/([^/]+)/resize", resize_exec),
    ("POST", "/exec/([^/]+)/start", start_exec),
    ("HEAD", f"{ONE}/archive", stat_path),
    ("GET", f"{ONE}/archive", get_archive),
    ("PUT", f"{ONE}/archive", put_archive),
)

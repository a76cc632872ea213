"""Requests to a container engine: Docker's Engine API over a unix socket.

Nine calls of a documented HTTP API need no client library; and what holds a command to its timeout
is a socket of our own, which libraries keep to themselves.
"""

from __future__ import annotations

import errno
import http.client
import json
import os
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import BinaryIO, Final, TypeVar
from urllib.parse import urlencode

from pydantic import BaseModel, ValidationError

from harness.errors import SandboxError
from harness.sandbox.engine.answers import Refusal, Version
from harness.schema.record import JsonObject

DEFAULT_ADDRESS = "unix:///var/run/docker.sock"

_TIMEOUT_S = 60.0
"""For one answer, or the next part of a long one."""
_LONGEST_ANSWER = 8 << 20
_LONGEST_HEAD = 1 << 16
_LONGEST_ERROR = 300
_NEWEST: Final = (1, 47)
"""The version of the API that this is written for."""
_OLDEST: Final = (1, 40)

ToldT = TypeVar("ToldT", bound=BaseModel)
Query = Mapping[str, str]


def engine_address(variables: Mapping[str, str]) -> str:
    """Where this host's engine listens, as its clients find it.

    Args:
        variables: Those of the environment.
    """
    own = Path(variables.get("XDG_RUNTIME_DIR", "/run"), "docker.sock")
    of_all = Path(DEFAULT_ADDRESS.removeprefix("unix://"))
    by_default = f"unix://{own}" if own.exists() and not of_all.exists() else DEFAULT_ADDRESS
    return variables.get("DOCKER_HOST") or by_default


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer that was read to its end."""

    status: int
    headers: Mapping[str, str]
    """By lower-case name."""
    body: bytes


class Body:
    """A long answer, or one that goes on while something happens."""

    def __init__(self, response: http.client.HTTPResponse, what: str, deadline: float) -> None:
        """Read nothing yet.

        Args:
            response: What is read.
            what: The request, for errors.
            deadline: By the monotonic clock, for all of it.
        """
        self._response = response
        self._what = what
        self._deadline = deadline

    def read(self, size: int) -> bytes:
        """The next bytes, at most so many; none at the end.

        Raises:
            SandboxError: the answer was cut, or does not end in time.
        """
        if time.monotonic() > self._deadline:
            raise SandboxError(f"the engine's answer to {self._what} does not end in time")
        with _told_as_ours(self._what):
            return self._response.read(size)

    def lines(self) -> Iterator[bytes]:
        """Line by line.

        Raises:
            SandboxError: as `read`; also, a line is too long.
        """
        kept = b""
        while data := self._read_some():
            *lines, kept = (kept + data).split(b"\n")
            yield from lines
            if len(kept) > _LONGEST_ANSWER:
                raise SandboxError(f"the engine's answer to {self._what} has no end of line")
        if kept:
            yield kept

    def _read_some(self) -> bytes:
        if time.monotonic() > self._deadline:
            raise SandboxError(f"the engine's answer to {self._what} does not end in time")
        with _told_as_ours(self._what):
            return self._response.read1(1 << 16)


class Engine:
    """A container engine of this host."""

    def __init__(self, address: str = DEFAULT_ADDRESS) -> None:
        """Connect to nothing yet.

        Args:
            address: Where it listens: `unix://` and the path of a socket.

        Raises:
            SandboxError: it is another kind of address.
        """
        scheme, _, self._socket = address.partition("://")
        if scheme != "unix" or not self._socket.startswith("/"):
            raise SandboxError(
                f"the engine's address {address!r} is not of the form unix:///path/of/a.sock; "
                "forward a remote engine's socket with `ssh -L`, and set DOCKER_HOST to it"
            )

    def version(self) -> Version:
        """What the engine says of itself.

        Raises:
            SandboxError: it does not answer, or cannot be worked with.
        """
        answer = self._answer("GET", "/version", None, (200,))
        return told(Version, answer.body, "GET /version")

    def call(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] = {},
        *,
        content: JsonObject | BinaryIO | None = None,
        expect: tuple[int, ...] = (200, 201, 204),
        timeout_s: float = _TIMEOUT_S,
    ) -> Answer:
        """Ask for something and read the whole answer.

        Args:
            method: Of HTTP.
            path: Without a version.
            query: What stands behind the `?`.
            content: What is sent: JSON, or a tar file from its beginning.
            expect: The statuses that are no failure.
            timeout_s: For the answer.

        Raises:
            SandboxError: there is no answer, or one that is a failure.
        """
        place = self._place(path, query)
        return self._answer(method, place, content, expect, timeout_s)

    def ask(
        self,
        kind: type[ToldT],
        method: str,
        path: str,
        query: Mapping[str, str] = {},
        *,
        content: JsonObject | None = None,
    ) -> ToldT:
        """The same, for an answer of a known form.

        Raises:
            SandboxError: as `call`.
        """
        answer = self.call(method, path, query, content=content)
        return told(kind, answer.body, f"{method} {path}")

    @contextmanager
    def reading(
        self,
        method: str,
        path: str,
        query: Query,
        *,
        content: BinaryIO | None = None,
        timeout_s: float = _TIMEOUT_S,
        may_be_gone: bool = False,
    ) -> Iterator[Body]:
        """Ask for something and read the answer while it comes.

        Args:
            method: Of HTTP.
            path: Without a version.
            query: What stands behind the `?`.
            content: A tar file, from its beginning.
            timeout_s: For the whole answer.
            may_be_gone: Whether it is a file that a process may have removed.

        Raises:
            FileNotFoundError: it was.
            SandboxError: as `call`.
        """
        what = f"{method} {path}"
        deadline = time.monotonic() + timeout_s
        connection = self._connection(timeout_s)
        place = self._place(path, query)
        # Either may be what holds the socket.
        with closing(connection), _sent(connection, method, place, content, what) as response:
            if response.status == 404 and may_be_gone:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
            if response.status != 200:
                raise _refused(what, response.status, _whole(response, what))
            yield Body(response, what, deadline)

    def connected(self, path: str, content: JsonObject) -> socket.socket:
        """Start something, and take over the connection to it.

        Raises:
            SandboxError: it is not started.
        """
        what = f"POST {path}"
        body = json.dumps(content).encode()
        head = (
            f"POST {self._place(path, {})} HTTP/1.1\r\nHost: engine\r\n"
            "Content-Type: application/json\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        connection = _connect(self._socket, _TIMEOUT_S)
        try:
            with _told_as_ours(what):
                connection.sendall(head.encode() + body)
                status = _head(connection, what)
                if status not in (101, 200):
                    raise _refused(what, status, connection.recv(_LONGEST_HEAD))
        except BaseException:
            connection.close()
            raise
        return connection

    def _answer(
        self,
        method: str,
        place: str,
        content: JsonObject | BinaryIO | None,
        expect: tuple[int, ...],
        timeout_s: float = _TIMEOUT_S,
    ) -> Answer:
        what = f"{method} {place.partition('?')[0]}"
        connection = self._connection(timeout_s)
        with closing(connection), _sent(connection, method, place, content, what) as response:
            body = _whole(response, what)
        if response.status not in expect:
            raise _refused(what, response.status, body)
        headers = {name.lower(): value for name, value in response.getheaders()}
        return Answer(response.status, headers, body)

    def _connection(self, timeout_s: float) -> http.client.HTTPConnection:
        connection = http.client.HTTPConnection("engine", timeout=timeout_s)
        connection.sock = _connect(self._socket, timeout_s)
        return connection

    def _place(self, path: str, query: Query) -> str:
        return f"/v{self._version}{path}{'?' if query else ''}{urlencode(query)}"

    @cached_property
    def _version(self) -> str:
        """The version of the API that both sides know."""
        offered = self.version().api_version
        try:
            major, minor = (int(part) for part in offered.split("."))
        except ValueError:
            raise SandboxError(f"the engine's API has the version {offered!r}") from None
        if (major, minor) < _OLDEST:
            raise SandboxError(
                f"the engine's API has the version {offered}, and {_OLDEST[0]}.{_OLDEST[1]} is "
                "needed; update it"
            )
        return ".".join(map(str, min((major, minor), _NEWEST)))


def _connect(path: str, timeout_s: float) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(timeout_s)
    try:
        connection.connect(path)
    except OSError as error:
        connection.close()
        raise SandboxError(
            f"no container engine answers at {path}: {error.strerror or error}; start one, or set "
            "DOCKER_HOST to its socket"
        ) from error
    return connection


def _sent(
    connection: http.client.HTTPConnection,
    method: str,
    place: str,
    content: JsonObject | BinaryIO | None,
    what: str,
) -> http.client.HTTPResponse:
    with _told_as_ours(what):
        if content is None:
            connection.request(method, place)
        elif isinstance(content, Mapping):
            body = json.dumps(content).encode()
            connection.request(method, place, body, {"Content-Type": "application/json"})
        else:
            size = str(content.seek(0, os.SEEK_END))
            content.seek(0)
            headers = {"Content-Type": "application/x-tar", "Content-Length": size}
            connection.request(method, place, content, headers)
        return connection.getresponse()


def _whole(response: http.client.HTTPResponse, what: str) -> bytes:
    with _told_as_ours(what):
        body = response.read(_LONGEST_ANSWER + 1)
    if len(body) > _LONGEST_ANSWER:
        raise SandboxError(f"the engine's answer to {what} is too long")
    return body


def _head(connection: socket.socket, what: str) -> int:
    """The status of an answer, read up to where its content begins and no further."""
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        byte = connection.recv(1)
        if not byte or len(head) > _LONGEST_HEAD:
            raise SandboxError(f"the engine's answer to {what} is none of HTTP")
        head += byte
    _, _, rest = head.partition(b" ")
    if not head.startswith(b"HTTP/1.") or not rest[:3].isdigit():
        raise SandboxError(f"the engine's answer to {what} is none of HTTP")
    return int(rest[:3])


@contextmanager
def _told_as_ours(what: str) -> Iterator[None]:
    """Tell of whatever goes wrong with a connection in one line."""
    try:
        yield
    except TimeoutError as error:
        raise SandboxError(f"the engine does not answer {what} in time") from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = str(error) or type(error).__name__
        raise SandboxError(f"the engine's answer to {what} was cut: {reason}") from error


def _refused(what: str, status: int, body: bytes) -> SandboxError:
    text = body.decode(errors="replace")
    try:
        text = Refusal.model_validate_json(body).message
    except ValidationError:
        # As it is: a proxy may have answered, or nobody that speaks this API.
        text = text or "no reason given"
    reason = " ".join(text.split())[:_LONGEST_ERROR]
    return SandboxError(f"the engine refused {what} with status {status}: {reason}")


def told(kind: type[ToldT], body: bytes, what: str) -> ToldT:
    """An answer as what it should be.

    Raises:
        SandboxError: it is something else.
    """
    try:
        return kind.model_validate_json(body)
    except ValidationError as error:
        problem = error.errors()[0]
        where = ".".join(map(str, problem["loc"])) or "all of it"
        raise SandboxError(
            f"the engine's answer to {what} cannot be read: {where}: {problem['msg']}"
        ) from None

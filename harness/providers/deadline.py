"""The time that a model call may take: told with the request, kept at its connections.

A client's own timeouts begin anew with every byte and with every retry. Here every read, write and
connect of a call ends when the call's time is over. An answer that comes from a recording uses no
connection, so nothing is cut on replay.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from harness.errors import OutOfTimeError

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class _Limit:
    limit_s: float
    ends_at: float


_LIMIT: ContextVar[_Limit | None] = ContextVar("harness_call_limit", default=None)


class TimeIsUp(BaseException):
    """The call's time is over. No `Exception`: those the vendors' SDKs try again."""


@contextmanager
def limited(limit_s: float | None) -> Iterator[None]:
    """While one model call is made, which may take so long; None is without a limit.

    Raises:
        OutOfTimeError: its time was over first.
    """
    ends_at = time.monotonic() + (limit_s or 0)
    token = _LIMIT.set(None if limit_s is None else _Limit(limit_s, ends_at))
    try:
        yield
    except TimeIsUp as up:
        raise OutOfTimeError("the model call was cut: the run's time is used up") from up
    finally:
        _LIMIT.reset(token)


def limit_s() -> float | None:
    """What the model call that is being made here had when it began; None without a limit."""
    limit = _LIMIT.get()
    return None if limit is None else limit.limit_s


def keep_limits(client: Any) -> None:
    """Have the connections of a client of httpx or httpx2 end with the time of a call."""
    for transport in (client._transport, *client._mounts.values()):
        if transport is not None:
            pool = transport._pool
            pool._network_backend = _Backend(pool._network_backend)


def _within(act: Callable[..., Result], timeout: float | None) -> Result:
    """Do something that takes a timeout, in what is left."""
    limit = _LIMIT.get()
    if limit is None:
        return act(timeout=timeout)
    left = limit.ends_at - time.monotonic()
    if left <= 0:
        raise TimeIsUp
    try:
        return act(timeout=left if timeout is None else min(timeout, left))
    except Exception as error:
        if time.monotonic() >= limit.ends_at:
            raise TimeIsUp from error
        raise


@dataclass(frozen=True, slots=True)
class _Stream:
    """A connection; httpcore's `NetworkStream`."""

    inner: Any

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        read: Callable[..., bytes] = partial(self.inner.read, max_bytes)
        return _within(read, timeout)

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        _within(partial(self.inner.write, buffer), timeout)

    def close(self) -> None:
        self.inner.close()

    def start_tls(
        self, ssl_context: Any, server_hostname: str | None = None, timeout: float | None = None
    ) -> _Stream:
        start = partial(self.inner.start_tls, ssl_context, server_hostname)
        return _Stream(_within(start, timeout))

    def get_extra_info(self, info: str) -> Any:
        return self.inner.get_extra_info(info)


@dataclass(frozen=True, slots=True)
class _Backend:
    """What makes connections; httpcore's `NetworkBackend`."""

    inner: Any

    def connect_tcp(
        self, host: str, port: int, timeout: float | None = None, **more: Any
    ) -> _Stream:
        return _Stream(_within(partial(self.inner.connect_tcp, host, port, **more), timeout))

    def connect_unix_socket(self, path: str, timeout: float | None = None, **more: Any) -> _Stream:
        return _Stream(_within(partial(self.inner.connect_unix_socket, path, **more), timeout))

    def sleep(self, seconds: float) -> None:
        self.inner.sleep(seconds)

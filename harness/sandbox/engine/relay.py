"""A terminal of a container, as a pseudo-terminal of this host that is shown on a screen."""

from __future__ import annotations

import fcntl
import os
import select
import socket
import struct
import termios
import threading
import tty
from contextlib import suppress

_CHUNK = 1 << 16
_MOST_KEPT = 1 << 20
"""Bytes that may wait for the screen's side; until they are taken no more is read."""
_LOOK_EVERY_MS = 500
"""How often it is looked whether to end, while one side takes nothing."""


def size(terminal: int) -> tuple[int, int]:
    """Columns and rows of a pseudo-terminal."""
    found = fcntl.ioctl(terminal, termios.TIOCGWINSZ, bytes(8))
    rows, columns, _, _ = struct.unpack("HHHH", found)
    return columns, rows


class Relay:
    """Carries bytes between a pseudo-terminal and a connection until either ends.

    The terminal inside edits lines and sends signals; this one passes on all it is given.
    """

    def __init__(self, terminal: int, connection: socket.socket) -> None:
        """Begin.

        Args:
            terminal: The end that programs use; a copy of it is kept.
            connection: Closed at the end.
        """
        self._connection = connection
        self._fd = os.dup(terminal)
        tty.setraw(self._fd)
        os.set_blocking(self._fd, False)
        connection.setblocking(False)
        self._typed = b""
        self._written = b""
        self._told_to_end = False
        self._thread = threading.Thread(target=self._carry, name="relay", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Carry nothing more; when this returns, both are closed."""
        self._told_to_end = True
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        self._thread.join()

    def _carry(self) -> None:
        try:
            while not self._told_to_end and self._step():
                pass
            self._write_the_rest()
        except OSError:
            # One of the two has ended: the other is told by being closed.
            return
        finally:
            self._connection.close()
            os.close(self._fd)

    def _step(self) -> bool:
        """Carry what can be carried now; no more is read than the other side takes."""
        ready = self._ready()
        own, other = ready.get(self._fd, 0), ready.get(self._connection.fileno(), 0)
        if own & select.POLLIN:
            self._typed = os.read(self._fd, _CHUNK)
        if other & select.POLLOUT:
            self._typed = self._typed[self._connection.send(self._typed) :]
        if own & select.POLLOUT:
            self._written = self._written[os.write(self._fd, self._written) :]
        if other & (select.POLLIN | select.POLLHUP):
            data = self._connection.recv(_CHUNK)
            self._written += data
            return bool(data)
        return not own & select.POLLHUP

    def _write_the_rest(self) -> None:
        poll = select.poll()
        poll.register(self._fd, select.POLLOUT)
        while self._written and not self._told_to_end:
            if poll.poll(_LOOK_EVERY_MS):
                self._written = self._written[os.write(self._fd, self._written) :]

    def _ready(self) -> dict[int, int]:
        poll = select.poll()
        own = 0 if self._typed else select.POLLIN
        poll.register(self._fd, own | (select.POLLOUT if self._written else 0))
        if len(self._written) < _MOST_KEPT:
            poll.register(self._connection, select.POLLIN | (select.POLLOUT if self._typed else 0))
        return dict(poll.poll(_LOOK_EVERY_MS))

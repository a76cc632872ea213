"""A terminal with a shell in it, for what types instead of running commands."""

from __future__ import annotations

import codecs
import fcntl
import os
import select
import struct
import termios
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from harness.errors import SandboxError
from harness.sandbox.tty.escapes import Escapes
from harness.sandbox.tty.keys import key
from harness.sandbox.tty.screen import Screen

COMMAND = ("bash",)
"""The shell; not a login shell, which would forget the environment's PATH."""
ENV = {"TERM": "xterm-256color", "SHELL": "/bin/bash"}

_HEAD_BYTES = 32_768
_TAIL_BYTES = 98_304
_MOST_TYPED = 4_000_000
"""Bytes that may wait for a program to read them."""
_START_S = 10.0
"""How long to wait for the shell's first sign of life."""
_GAP = "\r\n[{} bytes of output were not kept]\r\n"

Stop = Callable[[], None]
"""Kills a shell and all it started."""


@dataclass(slots=True)
class _Unseen:
    """What was written since the screen was last brought up to date: its beginning and its end.

    A program writes faster than a screen is drawn, and most of it is never looked at.
    """

    head: bytearray = field(default_factory=bytearray)
    tail: deque[bytes] = field(default_factory=deque)
    tail_bytes: int = 0
    dropped: int = 0

    def add(self, data: bytes) -> None:
        room = 0 if self.tail else _HEAD_BYTES - len(self.head)
        self.head += data[:room]
        if len(data) > room:
            self.tail.append(data[room:])
            self.tail_bytes += len(data) - room
        while self.tail_bytes - len(self.tail[0] if self.tail else b"") > _TAIL_BYTES:
            oldest = self.tail.popleft()
            self.tail_bytes -= len(oldest)
            self.dropped += len(oldest)

    def parts(self) -> tuple[bytes, bytes]:
        """The beginning and the end; where something is missing, both are of whole lines."""
        head, tail = bytes(self.head), b"".join(self.tail)
        if not self.dropped:
            return head + tail, b""
        cut = head.rfind(b"\n") + 1
        start = tail.find(b"\n") + 1
        self.dropped += len(head) - cut + start
        return head[:cut], tail[start:]


class Terminal:
    """A shell on a pseudo-terminal of this host, and the screen it writes to.

    Nobody looks at the pseudo-terminal itself: the screen is a model of one, so that escape
    sequences reach nothing else, and whatever is written takes little memory and time.
    """

    def __init__(self, start: Callable[[int], Stop], *, columns: int = 160, rows: int = 40) -> None:
        """Start the shell.

        Args:
            start: Starts it with this file descriptor, which it may keep, as its input, output and
                controlling terminal; gives what kills it.
            columns: Width of the screen.
            rows: Height of the screen.

        Raises:
            SandboxError: there is no pseudo-terminal to be had, or the shell does not start.
        """
        self._screen = Screen(columns, rows)
        self._escapes = Escapes(self._screen)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._lock = threading.Lock()
        self._unseen = _Unseen()
        self._typed = bytearray()
        self._seen: _Seen | None = None
        self.closed = False
        self._began = threading.Event()
        self._ended = threading.Event()
        self._fd, shell_fd = _pseudo_terminal(columns, rows)
        try:
            self._stop = start(shell_fd)
        except BaseException:
            os.close(self._fd)
            raise
        finally:
            os.close(shell_fd)
        self._wake, self._waker = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._thread = threading.Thread(target=self._serve, name="terminal", daemon=True)
        self._thread.start()
        self._began.wait(_START_S)
        self.new_output()

    def send(self, keystrokes: str) -> None:
        """Type: text as it is, or one key by tmux's name for it."""
        with self._lock:
            self._catch_up()
            pressed = key(keystrokes, application=self._escapes.has_application_keys)
            if pressed is None:
                # A full-screen program waits for what the Enter key sends. In a shell that would
                # be no end of line to a program that is started only after it was typed.
                enter = "\r" if self._screen.is_alternate else "\n"
                pressed = keystrokes.replace("\r\n", "\n").replace("\n", enter)
            data = pressed.encode(errors="replace")
            if len(self._typed) + len(data) > _MOST_TYPED:
                raise ValueError("too much is typed and not read yet: wait, or send C-c")
            if not self.closed:
                self._typed += data
                self._wake_up()

    def wait(self, seconds: float) -> bool:
        """Wait so long, but no longer than the shell lives; says whether it has ended."""
        return self._ended.wait(seconds)

    def screen(self) -> str:
        """What stands on the screen now, without empty lines at its end."""
        with self._lock:
            self._catch_up()
            return "\n".join(self._screen.lines()).rstrip()

    def new_output(self) -> str | None:
        """What came since this was last asked, from the line that was the last one then.

        None the first time, when the screen was cleared or redrawn since, and while a full-screen
        program has it.
        """
        with self._lock:
            self._catch_up()
            before, self._seen = self._seen, _Seen.of(self._screen)
            found = None if before is None else before.what_follows(self._screen)
            self._screen.forget()
            return found

    def close(self) -> None:
        """Kill the shell and all it started."""
        with self._lock:
            was_closed, self.closed = self.closed, True
        if was_closed:
            return
        self._stop()
        self._wake_up()
        self._thread.join()
        for descriptor in (self._fd, self._wake, self._waker):
            os.close(descriptor)

    def _catch_up(self) -> None:
        """Bring the screen up to date."""
        unseen, self._unseen = self._unseen, _Unseen()
        head, tail = unseen.parts()
        self._escapes.feed(self._decoder.decode(head))
        if unseen.dropped:
            if not self._screen.is_alternate:
                self._escapes.feed(_GAP.format(unseen.dropped))
            self._escapes.feed(self._decoder.decode(tail))

    def _wake_up(self) -> None:
        os.write(self._waker, b"\0")

    def _serve(self) -> None:
        """Read what the shell writes and write what was typed, until it has ended."""
        poll = select.poll()
        poll.register(self._wake, select.POLLIN)
        while not self.closed:
            wanted = select.POLLIN | (select.POLLOUT if self._typed else 0)
            poll.register(self._fd, wanted)
            events = dict(poll.poll())
            if self._wake in events:
                os.read(self._wake, 4096)
            happened = events.get(self._fd, 0)
            if happened & select.POLLOUT:
                self._write()
            if happened & ~select.POLLOUT and not self._read():
                break
        self._ended.set()
        self._began.set()

    def _read(self) -> bool:
        try:
            data = os.read(self._fd, 65_536)
        except BlockingIOError:
            return True
        except OSError:
            # Nobody has the shell's side open any more.
            return False
        with self._lock:
            self._unseen.add(data)
        self._began.set()
        return bool(data)

    def _write(self) -> None:
        with self._lock:
            try:
                written = os.write(self._fd, self._typed[:4096])
            except BlockingIOError:
                return
            except OSError:
                written = len(self._typed)
            del self._typed[:written]


@dataclass(frozen=True, slots=True)
class _Seen:
    """The screen as it was shown, to be found again in a later one."""

    first: int
    """Lines that had left the screen before these."""
    lines: tuple[str, ...]
    """Without empty ones at the end."""

    @classmethod
    def of(cls, screen: Screen) -> _Seen | None:
        if screen.is_alternate:
            return None
        lines = screen.lines()
        while lines and not lines[-1]:
            lines.pop()
        return cls(screen.scrolled, tuple(lines))

    def what_follows(self, screen: Screen) -> str | None:
        """The text from the last of these lines on; None where they are no longer there."""
        if screen.is_alternate:
            return None
        kept = [*screen.history, *screen.lines()]
        first = screen.scrolled - len(screen.history)
        last = self.first + max(len(self.lines) - 1, 0)
        for place, line in enumerate(self.lines, self.first):
            if place < first:
                continue
            now = kept[place - first]
            if not (now.startswith(line) if place == last else now == line):
                return None
        return "\n".join(kept[max(last - first, 0) :]).rstrip()


def _pseudo_terminal(columns: int, rows: int) -> tuple[int, int]:
    try:
        own, shell = os.openpty()
    except OSError as error:
        raise SandboxError(f"no terminal is to be had: {error.strerror}") from error
    os.set_blocking(own, False)
    fcntl.ioctl(own, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    return own, shell

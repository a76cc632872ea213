"""What is kept of a process's output."""

from __future__ import annotations

OUTPUT_LIMIT = 10_000
"""Bytes of it, half from its beginning and half from its end."""


class Excerpt:
    """The beginning and the end of a stream of any length, in bounded memory."""

    def __init__(self, limit: int) -> None:
        self._half = limit // 2
        self._head = bytearray()
        self._tail = bytearray()
        self._cut = 0

    def add(self, data: bytes) -> None:
        """Take the next bytes."""
        room = self._half - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        surplus = len(self._tail) - self._half
        if surplus > 0:
            del self._tail[:surplus]
            self._cut += surplus

    def text(self) -> str:
        """What was kept, with a note where something was cut."""
        if not self._cut:
            return (self._head + self._tail).decode(errors="replace")
        head, tail = self._head.decode(errors="replace"), self._tail.decode(errors="replace")
        # A character that the cut goes through is dropped whole.
        broken = "\ufffd"
        return f"{head.rstrip(broken)}\n[{self._cut} bytes cut]\n{tail.lstrip(broken)}"

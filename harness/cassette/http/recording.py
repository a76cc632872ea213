"""Live answers: passed on as they come, and recorded before their end is."""

from __future__ import annotations

import threading
import time
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from harness.cassette.http.answer import Live
from harness.cassette.response.body import store_response, unpacker
from harness.cassette.response.events import EventReader, is_json_lines, is_server_sent
from harness.providers.deadline import TimeIsUp


class Recording:
    """One live answer on its way to the agent."""

    def __init__(self, live: Live, status: int, headers: Mapping[str, str]) -> None:
        """Begin when status and headers are there."""
        self._live = live
        self._status = status
        self._headers = headers
        self._body = bytearray()
        self._first_byte_s: float | None = None
        self._lock = threading.Lock()
        self._unpack = unpacker(headers.get("content-encoding", ""))
        content_type = headers.get("content-type", "")
        is_stream = is_server_sent(content_type) or is_json_lines(content_type)
        self._reader = EventReader(content_type, live.request.endpoint) if is_stream else None
        self._open = False  # as long as an exception may come before it is begun
        self._open = live.use.begins(self)

    @contextmanager
    def passed_on(self) -> Iterator[None]:
        """While the body is read: recorded at its end, not at all where the connection fails."""
        try:
            yield
        except GeneratorExit:  # the agent reads no further: it will say so
            raise
        except TimeIsUp:
            self.out_of_time()
            raise
        except BaseException:
            self.give_up()
            raise
        self.end()

    def take(self, piece: bytes) -> None:
        """Take what is passed on next: with the last event in it, the answer is on disk."""
        with self._lock:
            if not self._open:
                return
            self._body += piece
            if self._reader is None:
                return
            at_s = time.monotonic() - self._live.started
            if self._first_byte_s is None:
                self._first_byte_s = round(at_s, 3)
            self._reader.feed(self._plain(piece), at_s)
            if self._reader.ended:
                self._append(cut=False)

    def end(self) -> None:
        """The stream is over, and the agent is about to see that."""
        with self._lock:
            if self._open:
                self._append(cut=False)

    def leave(self) -> None:
        """The agent reads no further."""
        with self._lock:
            if self._open:
                self._append(cut=True)

    def give_up(self) -> None:
        """The connection failed: there is no answer to record."""
        with self._lock:
            self._close()

    def out_of_time(self) -> None:
        """The run's time was over before the answer was whole: it is recorded as none."""
        with self._lock:
            if self._open:
                self._close()
                self._live.out_of_time()

    def _append(self, *, cut: bool) -> None:
        self._close()
        session = self._live.use.session
        with session.remembering():
            response = store_response(
                self._status,
                self._headers,
                bytes(self._body),
                session.redactor,
                reader=self._reader,
                cut=cut,
            )
        self._live.record(response, self._first_byte_s)

    def _close(self) -> None:
        self._open = False
        self._live.use.ends(self)

    def _plain(self, piece: bytes) -> bytes:
        if self._unpack is None:
            return piece
        try:
            return self._unpack.decompress(piece)
        except zlib.error:
            return b""

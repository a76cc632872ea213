"""The events of a streamed answer: read as they come, and written again."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from pydantic_core import from_json, to_json

from harness.cassette.request.canonical import parse_body, shallow
from harness.providers.catalog import all_dialects
from harness.schema.record import Json, JsonObject

_FIELDS = ("event", "id", "retry")
_DONE = "[DONE]"
_LAST_EVENTS = {dialect.name: dialect.last_events for dialect in all_dialects()}
_MAYBE_LAST = re.compile(
    b"|".join(
        (
            rb'"done"\s*:\s*true',
            *(re.escape(f'"{one}"').encode() for some in _LAST_EVENTS.values() for one in some),
        )
    )
)


def is_server_sent(content_type: str) -> bool:
    """Whether the body is server-sent events."""
    return "event-stream" in content_type


def is_json_lines(content_type: str) -> bool:
    """Whether the body is one JSON object a line, as Ollama streams."""
    return "ndjson" in content_type


class EventReader:
    """Takes a streamed body in any pieces and says when its last event has come.

    Some clients stop reading at that event, so nothing may wait for the end of the stream.
    """

    def __init__(self, content_type: str, endpoint: str = "") -> None:
        """Start before the first byte of a body that is events or JSON lines.

        Args:
            content_type: Says which of the two.
            endpoint: The dialect, if it is known that a model answers: it has a last event.
        """
        self._endpoint = endpoint
        self.events: list[Json] = []
        self.ended = False
        """Whether the last event has come."""
        self._at_s: float | None = None
        self._json_lines = is_json_lines(content_type)
        self._rest = bytearray()
        self._event: JsonObject = {}
        self._data: list[str] = []
        self._odd = False

    def feed(self, data: bytes, at_s: float | None = None) -> None:
        """Take what came `at_s` seconds after the request."""
        self._at_s = at_s
        if b"\n" not in data and b"\r" not in data:
            self._rest += data
            return
        # A line end may be cut in half: whether a line feed follows is not known yet.
        text = bytes(self._rest + data)
        held = b"\r" if text.endswith(b"\r") else b""
        text = text.removesuffix(b"\r").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *lines, rest = text.split(b"\n")
        self._rest = bytearray(rest + held)
        for line in lines:
            self._line(line)

    def close(self, *, cut: bool) -> list[Json] | None:
        """The events; None where the body holds something that events would lose.

        Where a stream was cut, a line that is not whole reached no reader; but some read by lines.
        """
        if self._rest and not (cut or self.ended):
            rest, self._rest = bytes(self._rest), bytearray()
            self._line(rest.removesuffix(b"\r"))
        if self.ended or self._data == [_DONE]:
            self._dispatch()
        if self._event or self._data:
            return None
        return None if self._odd else self.events

    def all_read(self) -> list[Json]:
        """The events, the last one as far as it came, and JSON that breaks off as far as it goes.

        This is to be searched: it is not what came.
        """
        events = [*self.events, _with_data(self._event, self._data)]
        return [_as_far_as_it_goes(event) for event in events]

    def _line(self, raw: bytes) -> None:
        try:
            line = raw.decode()
        except UnicodeDecodeError:
            self._odd = True
            return
        if self._json_lines:
            self._json_line(line)
        elif not line:
            self._dispatch()
        else:
            self._field(line)
        self.ended = self.ended or _is_last(raw, self._endpoint)

    def _json_line(self, line: str) -> None:
        if line.strip():
            event = _with_data({}, [line])
            self._odd = self._odd or "data" not in event
            self.events.append(_at(event, self._at_s))

    def _field(self, line: str) -> None:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name in _FIELDS:
            self._event[name] = value
        elif name:
            self._odd = True

    def _dispatch(self) -> None:
        if self._event or self._data:
            self.events.append(_at(_with_data(self._event, self._data), self._at_s))
        self._event, self._data = {}, []


def event_pieces(events: Json, content_type: str) -> Iterator[tuple[float | None, bytes]]:
    """When each event of a kept answer came, and its bytes."""
    json_lines = is_json_lines(content_type)
    for event in events if isinstance(events, list) else ():
        if isinstance(event, dict):
            at_s = event.get("at_s")
            when = float(at_s) if isinstance(at_s, int | float) else None
            yield when, _line_bytes(event) if json_lines else _event_bytes(event)


def _is_last(line: bytes, endpoint: str) -> bool:
    if endpoint == "ollama-chat":
        return _object(line).get("done") is True
    if not line.startswith(b"data:"):
        return False
    line = line[5:].strip()
    last = _LAST_EVENTS.get(endpoint, frozenset())
    if line.startswith(_DONE.encode()):
        return _DONE in last
    return _object(line).get("type") in last


def _object(line: bytes) -> JsonObject:
    """What an event says, if it may be the last one."""
    if _MAYBE_LAST.search(line) is None:
        return {}
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _at(event: JsonObject, at_s: float | None) -> JsonObject:
    return event if at_s is None else {**event, "at_s": round(at_s, 3)}


def _with_data(event: JsonObject, data: list[str]) -> JsonObject:
    if not data:
        return event
    text = "\n".join(data)
    if text[:1] in ("{", "["):
        try:
            value = parse_body(text)
        except ValueError:
            value = None
        if value is not None:
            return {**event, "data": value}
    return {**event, "text": text}


def _as_far_as_it_goes(event: Json) -> Json:
    text = event.get("text") if isinstance(event, dict) else None
    if not isinstance(event, dict) or not isinstance(text, str):
        return event
    try:
        value = shallow(from_json(text, allow_partial="trailing-strings", allow_inf_nan=False))
    except ValueError:
        return event
    left = {key: item for key, item in event.items() if key != "text"}
    return {**left, "data": value} if isinstance(value, dict | list) else event


def _event_bytes(event: JsonObject) -> bytes:
    lines = [f"{name}: {event[name]}" for name in _FIELDS if name in event]
    if "data" in event:
        lines.append(f"data: {to_json(event['data']).decode()}")
    elif "text" in event:
        lines += [f"data: {line}" for line in str(event["text"]).split("\n")]
    return ("\n".join(lines) + "\n\n").encode()


def _line_bytes(event: JsonObject) -> bytes:
    if "data" not in event:  # such a line is kept only where the others held a secret
        return f"{event.get('text', '')}\n".encode()
    return to_json(event["data"]) + b"\n"

from __future__ import annotations

import gzip
import json
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.cassette.response.body import answering_model, response_bytes, store_response
from harness.cassette.response.events import EventReader
from harness.redaction import Redactor

PLAIN = Redactor({}, rules=False)
JSON_LINES = "application/x-ndjson"


@given(st.binary() | st.text().map(str.encode) | st.just(b"{"))
@pytest.mark.parametrize("kind", ["application/json", "text/plain", "application/octet-stream"])
def test_whatever_is_no_json_comes_back_byte_for_byte(kind: str, body: bytes):
    stored = store_response(200, {"content-type": kind}, body, PLAIN)
    if stored.type != "json":
        assert response_bytes(stored) == body


@pytest.mark.parametrize("body", ['{"b": [1.0, 1, 1e5, "\\u2028☃"], "a": null}', "[]", "{}"])
def test_json_comes_back_with_the_same_values_in_the_same_order(body: str):
    stored = store_response(200, {"Content-Type": "application/json"}, body.encode(), PLAIN)
    assert stored.type == "json"
    back = response_bytes(stored)
    assert json.dumps(json.loads(back)) == json.dumps(json.loads(body))


@pytest.mark.parametrize("body", ['{"x": NaN}', '{"x": "\\ud83d"}', '{"x": 1e999}', '{"a": 1'])
def test_what_json_cannot_hold_is_kept_as_text(body: str):
    stored = store_response(200, {"content-type": "application/json"}, body.encode(), PLAIN)
    assert (stored.type, response_bytes(stored)) == ("text", body.encode())


EVENTS = "text/event-stream; charset=utf-8"
CHAT, RESPONSES, MESSAGES, OLLAMA = (
    "openai-chat",
    "openai-responses",
    "anthropic-messages",
    "ollama-chat",
)


@pytest.mark.parametrize(
    "body",
    [
        'data: {"a":1}\n\ndata: [DONE]\n\n',
        'event: x\nid: 7\nretry: 10\ndata: {"a":"\u2028 [DONE]"}\n\n',
        "event: ping\n\n",
        "data: one\ndata: two\n\n",
        'data: {"delta":"\\ud83d"}\n\n',
        "data: \n\n",
    ],
)
def test_events_come_back_as_they_were(body: str):
    stored = store_response(200, {"content-type": EVENTS}, body.encode(), PLAIN)
    assert (stored.type, response_bytes(stored).decode()) == ("events", body)


def test_line_ends_and_spacing_are_unified_and_comments_dropped():
    body = b': still working\n\ndata:{"a": 1}\r\n\r\n\r\ndata: [DONE]'
    stored = store_response(200, {"content-type": EVENTS}, body, PLAIN)
    assert response_bytes(stored) == b'data: {"a":1}\n\ndata: [DONE]\n\n'


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_events_are_the_same_in_whatever_pieces_they_come(size: int, end: str):
    text = 'event: a\ndata: {"n": "☃"}\n\n: still there\n\ndata: one\ndata: two\n\ndata: [DONE]\n\n'
    body = text.replace("\n", end).encode()
    reader = EventReader(EVENTS, CHAT)
    ended = []
    for start in range(0, len(body), size):
        reader.feed(body[start : start + size], start / 1000)
        ended.append(reader.ended)
    events: Any = reader.close(cut=False)
    assert [{k: v for k, v in event.items() if k != "at_s"} for event in events] == [
        {"event": "a", "data": {"n": "☃"}},
        {"text": "one\ntwo"},
        {"text": "[DONE]"},
    ]
    assert [event["at_s"] for event in events] == sorted(event["at_s"] for event in events)
    assert ended[-1]
    assert not any(ended[:-3])


@pytest.mark.parametrize(
    ("content_type", "endpoint", "line", "last"),
    [
        (EVENTS, MESSAGES, 'data: {"type":"message_stop"}', True),
        (EVENTS, MESSAGES, 'data: {"type":"error","error":{}}', True),
        (EVENTS, MESSAGES, 'data: {"type":"response.completed"}', False),
        (EVENTS, MESSAGES, "data: [DONE]", False),
        (EVENTS, MESSAGES, 'data: {"delta":"say \\"message_stop\\"","type":"delta"}', False),
        (EVENTS, MESSAGES, 'data: {"x":{"type":"message_stop"}}', False),
        (EVENTS, MESSAGES, "event: message_stop", False),
        (EVENTS, RESPONSES, 'data: {"type":"response.completed","response":{}}', True),
        (EVENTS, RESPONSES, 'data: {"type":"response.failed","response":{}}', True),
        (EVENTS, RESPONSES, 'data: {"type":"response.incomplete","response":{}}', True),
        (EVENTS, RESPONSES, 'data: {"type":"error","message":"a failure follows"}', False),
        (EVENTS, CHAT, "data: [DONE]", True),
        (EVENTS, CHAT, 'data: {"text":"data: [DONE]"}', False),
        (EVENTS, CHAT, 'data: {"type":"message_stop"}', False),
        (JSON_LINES, OLLAMA, '{"message":{},"done": true}', True),
        (JSON_LINES, OLLAMA, '{"message":{},"done":false}', False),
        (JSON_LINES, OLLAMA, '{"message":{"done":true},"done":false}', False),
        (JSON_LINES, OLLAMA, "data: [DONE]", False),
        (EVENTS, "", 'data: {"type":"message_stop"}', False),
        (EVENTS, "", 'data: {"type":"error"}', False),
        (EVENTS, "", "data: [DONE]", False),
        (JSON_LINES, "", '{"done":true}', False),
    ],
)
def test_the_last_event_of_each_vendor_is_known_by_its_own_line(
    content_type: str, endpoint: str, line: str, last: bool
):
    reader = EventReader(content_type, endpoint)
    reader.feed(f"{line}\n".encode())
    assert reader.ended is last


def test_a_last_event_is_whole_without_its_empty_line():
    reader = EventReader(EVENTS, MESSAGES)
    reader.feed(b'data: {"type":"message_stop"}\n')
    assert reader.close(cut=False) == [{"data": {"type": "message_stop"}}]


def test_half_an_event_behind_the_last_one_is_none():
    reader = EventReader(EVENTS, RESPONSES)
    reader.feed(b'data: {"type":"response.completed"}\n\ndata: [DO')
    assert reader.close(cut=False) == [{"data": {"type": "response.completed"}}]


def test_an_event_that_was_cut_is_not_kept():
    headers = {"content-type": EVENTS}
    stored = store_response(200, headers, b'data: {"a":1}\n\ndata: {"b', PLAIN, cut=True)
    assert (stored.cut, stored.body) == (True, [{"data": {"a": 1}}])


def test_json_lines_are_kept_as_events():
    body = b'{"a":1,"done":false}\n{"a":"x","done":true}\n'
    stored = store_response(200, {"content-type": JSON_LINES}, body, PLAIN)
    assert stored.type == "events"
    assert response_bytes(stored) == body
    assert store_response(200, {"content-type": JSON_LINES}, b"no\n", PLAIN).type == "text"


@pytest.mark.parametrize("body", ['data: {"a":1}', "odd\n\n", "data: {\nevent: x"])
def test_a_cut_or_unusual_stream_is_kept_as_text(body: str):
    stored = store_response(200, {"content-type": EVENTS}, body.encode(), PLAIN)
    assert (stored.type, response_bytes(stored)) == ("text", body.encode())


@pytest.mark.parametrize(
    ("encoding", "compress"), [("gzip", gzip.compress), ("deflate", zlib.compress), ("", bytes)]
)
def test_compressed_bodies_are_kept_plain(encoding: str, compress):
    headers = {"content-type": "application/json", "content-encoding": encoding}
    stored = store_response(200, headers, compress(b'{"a":1}'), PLAIN)
    assert (stored.body, stored.headers) == ({"a": 1}, {"content-type": "application/json"})


@pytest.mark.parametrize("encoding", ["br", "gzip"])
def test_a_body_that_cannot_be_unpacked_keeps_its_encoding(encoding: str):
    stored = store_response(200, {"content-encoding": encoding}, b"\x8b\xff", PLAIN)
    assert stored.headers == {"content-encoding": encoding}
    assert response_bytes(stored) == b"\x8b\xff"


def test_the_model_is_known_wherever_the_answer_says_it():
    start = {"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 3}}}
    end = {"type": "message_delta", "usage": {"output_tokens": 2}}
    stream = "".join(f"data: {json.dumps(event)}\n\n" for event in (start, end))
    stored = store_response(200, {"content-type": EVENTS}, stream.encode(), PLAIN)
    assert answering_model(stored) == "m"
    body = b'{"modelVersion": "g", "usage": {"total_tokens": 1}}'
    stored = store_response(200, {"content-type": "application/json"}, body, PLAIN)
    assert answering_model(stored) == "g"
    assert answering_model(store_response(400, {}, b"no", PLAIN)) is None


KEY = "sk-proj-" + "Ab3dEf6hIj9kLm2nOp5qRs8t"
SAID = [
    json.dumps({"choices": [{"index": 0, "delta": {"content": p}}]}) for p in (KEY[:14], KEY[14:])
]


@pytest.mark.parametrize("said", [SAID, [KEY[:14], KEY[14:]]])
@pytest.mark.parametrize(
    "odd",
    [
        b'data: %s\n\ndata: %s\n\ndata: {"id": "x", "obj',
        b"data: %s\n\ndata: %s\n\nda",
        b"data: %s\n\ndata: %s\n\ndata: last",
        b"unknown: 1\ndata: %s\n\ndata: %s\n\ndata: [DONE]\n\n",
        b"data: %s\n\ndata: %s\n\ndata: \xc3",
    ],
)
def test_no_stream_is_too_odd_for_a_key_in_pieces_to_be_found(odd: bytes, said: list[str]):
    body = odd % tuple(map(str.encode, said))
    stored = store_response(200, {"content-type": EVENTS}, body, Redactor({}))
    assert KEY[14:].encode() not in response_bytes(stored)
    assert b"[redacted]" in response_bytes(stored)
    harmless = odd % (b"one", b"two")
    stored = store_response(200, {"content-type": EVENTS}, harmless, Redactor({}))
    assert response_bytes(stored) == harmless


def test_a_key_whose_end_is_in_the_event_that_broke_off_is_found():
    body = f"data: {SAID[0]}\n\ndata: {SAID[1][:-8]}".encode()
    assert KEY[14:-4] in body.decode()
    stored = store_response(200, {"content-type": EVENTS}, body, Redactor({}))
    assert KEY[14:20] not in response_bytes(stored).decode()


def test_a_key_in_pieces_is_found_in_lines_of_which_one_is_no_json():
    body = "\n".join([*SAID, "no JSON", ""]).encode()
    stored = store_response(200, {"content-type": JSON_LINES}, body, Redactor({}))
    assert KEY[14:].encode() not in response_bytes(stored)
    assert response_bytes(stored).endswith(b"\nno JSON\n")


def test_a_key_in_a_packed_file_is_removed_and_the_file_stays_packed():
    kind = {"content-type": "application/octet-stream"}
    for body, left in ((KEY, "[redacted]"), ("no key", "no key")):
        packed = gzip.compress(body.encode(), mtime=7)
        stored = store_response(200, kind, packed, Redactor({}))
        assert gzip.decompress(response_bytes(stored)) == left.encode()
    assert response_bytes(stored) == packed

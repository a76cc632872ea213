from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.cassette.file.view import read
from harness.cassette.format import StoredResponse
from harness.cassette.request.canonical import canonical_request
from harness.cassette.show.calls import spoken
from harness.cassette.show.conversations import conversations
from harness.cassette.show.transcript import Passage, answer, answered_turn, said, settings
from harness.schema.record import JsonObject
from tests.cassette.cells import open_store, request
from tests.cassette.recordings import call, record

ARGUMENTS: JsonObject = {"path": "a.txt", "text": "one\ntwo"}
SHOWN = "path: a.txt\ntext:\n  one\n  two"
PICTURE = "iVBORw0KGgo" * 40

CONVERSATIONS: dict[str, tuple[str, JsonObject]] = {
    "anthropic": (
        "/v1/messages",
        {
            "messages": [
                {"role": "user", "content": "hi"},
                {
                    "role": "assistant",
                    "content": [
                        {"type": "thinking", "thinking": "hm", "signature": "s"},
                        {"type": "text", "text": "I write"},
                        {"type": "tool_use", "id": "t1", "name": "write", "input": ARGUMENTS},
                    ],
                },
                {
                    "role": "user",
                    "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "done"}],
                },
            ]
        },
    ),
    "openai": (
        "/v1/chat/completions",
        {
            "messages": [
                {"role": "user", "content": "hi"},
                {
                    "role": "assistant",
                    "content": "I write",
                    "reasoning_content": "hm",
                    "tool_calls": [
                        {
                            "id": "t1",
                            "type": "function",
                            "function": {
                                "name": "write",
                                "arguments": '{"path": "a.txt", "text": "one\\ntwo"}',
                            },
                        }
                    ],
                },
                {"role": "tool", "tool_call_id": "t1", "content": "done"},
            ]
        },
    ),
    "responses": (
        "/v1/responses",
        {
            "input": [
                {"role": "user", "content": "hi"},
                {
                    "type": "reasoning",
                    "summary": [{"type": "summary_text", "text": "hm"}],
                },
                {
                    "type": "message",
                    "role": "assistant",
                    "content": [{"type": "output_text", "text": "I write"}],
                },
                {
                    "type": "function_call",
                    "call_id": "t1",
                    "name": "write",
                    "arguments": '{"path": "a.txt", "text": "one\\ntwo"}',
                },
                {"type": "function_call_output", "call_id": "t1", "output": "done"},
            ]
        },
    ),
    "ollama": (
        "/api/chat",
        {
            "messages": [
                {"role": "user", "content": "hi"},
                {
                    "role": "assistant",
                    "content": "I write",
                    "thinking": "hm",
                    "tool_calls": [{"function": {"name": "write", "arguments": ARGUMENTS}}],
                },
                {"role": "tool", "tool_name": "write", "content": "done"},
            ]
        },
    ),
    "google": (
        "/v1beta/models/m:generateContent",
        {
            "contents": [
                {"role": "user", "parts": [{"text": "hi"}]},
                {
                    "role": "model",
                    "parts": [
                        {"text": "hm", "thought": True},
                        {"text": "I write"},
                        {"functionCall": {"name": "write", "args": ARGUMENTS}},
                    ],
                },
                {
                    "role": "user",
                    "parts": [{"functionResponse": {"name": "write", "response": {"r": "done"}}}],
                },
            ]
        },
    ),
}


@pytest.mark.parametrize("vendor", CONVERSATIONS)
def test_a_conversation_reads_the_same_whichever_vendor_had_it(vendor: str):
    path, body = CONVERSATIONS[vendor]
    request = canonical_request(
        "POST", f"http://x{path}", json.dumps({"model": "m", **body}).encode()
    )
    names: dict[str, str] = {}
    passages = [passage for message in request.messages for passage in said(message, names)]
    titles = [passage.title for passage in passages]
    assert titles == ["User", titles[1], "Assistant", "Call write", "Result of write"]
    assert titles[1] in ("Thinking", "Reasoning")
    assert [passage.text for passage in passages][2:4] == ["I write", SHOWN]
    assert "done" in passages[4].text
    assert "hm" in passages[1].text


def test_a_picture_is_shown_by_its_size_and_digest():
    source: JsonObject = {"type": "base64", "media_type": "image/png", "data": PICTURE}
    message: JsonObject = {"role": "user", "content": [{"type": "image", "source": source}]}
    (one,) = said(message, {})
    assert one.title == "Image"
    assert PICTURE not in one.text
    assert "(440 characters, " in one.text
    other = said(
        {**message, "content": [{"type": "image", "source": {**source, "data": "A" * 440}}]}, {}
    )
    assert other != [one]


def test_settings_show_system_text_and_tools_in_a_line_each():
    body: JsonObject = {
        "model": "m",
        "max_tokens": 5,
        "system": [{"type": "text", "text": "Be brief."}],
        "tools": [
            {
                "name": "write",
                "description": "Write a file.\nAll of it.",
                "input_schema": {"type": "object", "properties": {"path": {}, "text": {}}},
            }
        ],
    }
    shown = settings("anthropic-messages", body, {})
    assert shown[:2] == [
        Passage("Settings of anthropic-messages", "model: m\nmax_tokens: 5"),
        Passage("System", "Be brief."),
    ]
    assert shown[2].title == "Tools"
    assert shown[2].text.startswith("write(path, text) [")
    assert shown[2].text.endswith("]: Write a file. …")


def test_an_error_and_an_answer_from_elsewhere_are_shown_as_they_are():
    refused = StoredResponse(status=400, type="json", body={"error": "no"})
    assert answer(answered_turn("openai-chat", refused), refused) == [
        Passage("Answer: status 400", '{"error": "no"}')
    ]
    page = StoredResponse(status=200, type="text", body="hello")
    assert answer(answered_turn("GET http://x/", page), page) == [Passage("Answer", "hello")]


def test_a_streamed_answer_is_shown_as_its_text():
    def event(delta: JsonObject) -> JsonObject:
        return {"data": {"choices": [{"index": 0, "delta": delta}]}, "at_s": 0.1}

    end: JsonObject = {"data": {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}}
    events = [event({"content": "Hel"}), event({"content": "lo"}), end, {"text": "[DONE]"}]
    streamed = StoredResponse(status=200, type="events", body=events)
    assert answer(answered_turn("openai-chat", streamed), streamed) == [Passage("Answer", "Hello")]


def test_each_call_stands_after_the_one_its_variant_made_before(tmp_path: Path):
    """In the file the second variant's first call continues the first variant's."""
    path = record(
        tmp_path / "0.jsonl",
        settings={"b": {"temperature": 1}},
        a=["go", "x", "on", "y"],
        b=["go", "other", "on", "z"],
        c=["go", "x", "up", "w"],
    )
    arranged = conversations(read(path))
    calls = list(arranged.calls.values())
    assert [(call.interaction.variants, call.number) for call in calls] == [
        (("a", "c"), 1),
        (("a",), 2),
        (("b",), 1),
        (("b",), 2),
        (("c",), 2),
    ]
    names = list(arranged.calls)
    assert [call.before for call in calls] == [None, names[0], None, names[2], names[0]]
    assert arranged.after == {
        None: (names[0], names[2]),
        names[0]: (names[1], names[4]),
        names[2]: (names[3],),
    }
    assert [message["content"] for message in calls[3].said] == ["other", "on"]
    assert [call.new_settings for call in calls] == [True, False, True, False, False]


def test_a_request_that_was_made_again_stands_beside_the_first(tmp_path: Path):
    path = tmp_path / "0.jsonl"
    with open_store(path, "new_episodes") as store:
        session = store.session("a")
        call(session, request("go"), "x")
        call(session, request("go"), "y")
        call(session, request("go", "y", "on"), "z")
        session.finish()
    view = read(path)
    arranged = conversations(view)
    first, again, last = arranged.calls.values()
    assert (first.before, again.before) == (None, None)
    assert [message["content"] for message in again.said] == ["go"]
    assert last.before == again.interaction.line.id
    assert [passage.text for passage in list(spoken(view, arranged).values())[2].asked] == ["on"]


def test_an_answer_that_comes_back_as_it_was_is_not_said_again(tmp_path: Path):
    path = record(tmp_path / "0.jsonl", a=["go", "x", "on", "y"])
    view = read(path)
    first, second = spoken(view, conversations(view)).values()
    assert [passage.title for passage in first.asked] == ["Settings of openai-chat", "User"]
    assert second.asked == (Passage("User", "on"),)
    assert second.answered == (Passage("Answer", "y"),)


def test_an_answer_that_comes_back_changed_is_shown(tmp_path: Path):
    path = tmp_path / "0.jsonl"
    with open_store(path, "new_episodes") as store:
        session = store.session("a")
        call(session, request("go"), "x and more")
        call(session, request("go", "x", "on"), "y")
        session.finish()
    view = read(path)
    _, second = spoken(view, conversations(view)).values()
    assert second.asked == (Passage("Assistant, sent back changed", "x"), Passage("User", "on"))

"""Secrets that a stream brings piece by piece."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.redaction import PLACEHOLDER, Redactor

SECRET = "sk-" + "a1B2" * 8


def openai_chunk(text: str, choice: int = 0) -> dict[str, Any]:
    choices = [{"index": choice, "delta": {"content": text}}]
    return {"data": {"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": choices}}


def arguments_chunk(text: str, call: int) -> dict[str, Any]:
    calls = [{"index": call, "function": {"arguments": text}}]
    return {"data": {"choices": [{"index": 0, "delta": {"tool_calls": calls}}]}}


def anthropic_event(text: str, block: int = 0) -> dict[str, Any]:
    delta = {"type": "input_json_delta", "partial_json": text}
    return {
        "event": "content_block_delta",
        "data": {"type": "content_block_delta", "index": block, "delta": delta},
    }


def responses_event(text: str, item: int = 0) -> dict[str, Any]:
    kind = "response.output_text.delta"
    return {"event": kind, "data": {"type": kind, "output_index": item, "delta": text}}


def google_event(text: str) -> dict[str, Any]:
    return {"data": {"candidates": [{"index": 0, "content": {"parts": [{"text": text}]}}]}}


def ollama_line(text: str) -> dict[str, Any]:
    return {"data": {"model": "m", "message": {"role": "assistant", "content": text}}}


MAKERS = [openai_chunk, anthropic_event, responses_event, google_event, ollama_line]


def pieces(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("size", [1, 5])
def test_a_key_over_many_events_is_removed(make: Any, size: int):
    events = [make(piece) for piece in pieces(f"it is {SECRET}!", size)]
    before = json.dumps(events)
    clean: Any = Redactor({}).events(events)
    assert json.dumps(events) == before
    written = json.dumps(clean)
    assert written.count(PLACEHOLDER) == 1
    assert [make("x").keys()] * len(events) == [event.keys() for event in clean]
    assert "a1B2" not in written
    assert "B2a1" not in "".join(find_texts(clean))
    assert "".join(find_texts(clean)).startswith(f"it is {PLACEHOLDER}!")


def find_texts(value: Any) -> list[str]:
    """The texts that `pieces` went into, in order."""
    if isinstance(value, list):
        return [text for item in value for text in find_texts(item)]
    if not isinstance(value, dict):
        return []
    return [
        text
        for key, item in value.items()
        for text in (
            [item]
            if key in ("content", "text", "delta", "partial_json", "arguments")
            and isinstance(item, str)
            else find_texts(item)
        )
    ]


def test_texts_that_come_in_turns_are_told_apart():
    first = pieces(f'{{"a": "{SECRET}"}}', 4)
    second = pieces("x" * len("".join(first)), 4)
    for make in (arguments_chunk, anthropic_event, openai_chunk):
        events: Any = [
            make(text, number)
            for both in zip(first, second, strict=True)
            for number, text in enumerate(both)
        ]
        clean: Any = Redactor({}).events(events)
        assert "".join(find_texts(clean[::2])) == f'{{"a": "{PLACEHOLDER}"}}'
        assert clean[1::2] == events[1::2]


def test_a_stream_without_secrets_is_itself():
    events: Any = [openai_chunk("hello "), openai_chunk("world"), {"text": "[DONE]"}]
    assert Redactor({"A_API_KEY": "swordfish"}).events(events) is events


@given(st.lists(st.text(max_size=4)), st.lists(st.text(max_size=4)))
def test_pieces_join_to_the_text_without_its_secrets(before: list[str], after: list[str]):
    redactor = Redactor({"A_API_KEY": "swordfish"}, rules=False)
    texts = [*before, "sword", "", "fish", *after]
    clean = redactor.joined(texts)
    assert len(clean) == len(texts)
    assert "".join(clean) == redactor.text("".join(texts))

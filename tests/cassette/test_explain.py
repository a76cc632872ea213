from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.cassette.canonical import CanonicalRequest
from harness.cassette.explain import Miss
from harness.errors import ReplayMissError
from tests.cassette.cells import HINT, answer, ask, open_store, request


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A conversation of two turns with a branch, and another conversation."""
    path = tmp_path / "0.jsonl"
    with open_store(path, "new_episodes") as store:
        session = store.session("a")
        for texts in (
            ("Count the files.\nSay how many.", ),
            ("Count the files.\nSay how many.", "ls", "two files"),
            ("Count the files.\nSay how many.", "ls", "three files"),
            ("Something else",),
        ):  # fmt: skip
            ask(session, *texts, live="x")
        session.finish()
    return path


def miss(path: Path, call: CanonicalRequest, variant: str = "a") -> Miss:
    with open_store(path) as store:
        session = store.session(variant)
        with pytest.raises(ReplayMissError) as caught:
            session.claim(call)
    assert [found.text for found in session.misses] == [str(caught.value)]
    return session.misses[0]


def test_one_changed_word_shows_as_a_diff(path: Path):
    found = miss(path, request("Count the folders.\nSay how many."))
    assert found.cause == "message 1 (user)"
    assert "-  Count the files.\n+  Count the folders.\n   Say how many." in found.text


def test_one_changed_word_of_a_long_paragraph_shows_only_its_sentence(tmp_path: Path):
    path = tmp_path / "0.jsonl"
    text = "First do this, which is long enough to be a sentence of its own. " * 3
    with open_store(path, "new_episodes") as store:
        ask(store.session("a"), text + "Then count the files.", live="x")
    found = miss(path, request(text + "Then count the folders."))
    assert "-  Then count the files.\n+  Then count the folders." in found.text


def test_the_nearest_recording_has_the_longest_common_beginning(path: Path):
    found = miss(path, request("Count the files.\nSay how many.", "ls", "four files"))
    assert "2 of 3 messages are equal" in found.text
    assert "First difference, in message 3 (user):" in found.text
    assert "+content: four files" in found.text


def test_it_is_found_where_the_longer_conversation_was_recorded_first(tmp_path: Path):
    path = tmp_path / "0.jsonl"
    with open_store(path, "new_episodes") as store:
        session = store.session("a")
        ask(session, "one", "two", "three", live="x")
        ask(session, "one", live="x")
    found = miss(path, request("one", "two", "four"))
    assert "2 of 3 messages are equal" in found.text
    assert "-content: three\n+content: four" in found.text


def test_a_conversation_that_goes_on_longer_than_recorded_says_what_is_new(path: Path):
    found = miss(path, request("Something else", "go on", "and on"))
    assert found.cause == "message 2 (assistant)"
    assert "+content: go on" in found.text
    assert "\n-" not in found.text.replace("\n--- recorded", "")


def test_a_changed_parameter_is_named_and_shown(path: Path):
    found = miss(path, request("Something else", temperature=0.5))
    assert found.cause == "parameter temperature"
    assert "+0.5" in found.text


def test_a_changed_tool_shows_what_changed_in_it(tmp_path: Path):
    def tools(description: str) -> dict[str, Any]:
        names = ("shell", "read")
        return {"tools": [{"name": name, "description": description + name} for name in names]}

    path = tmp_path / "0.jsonl"
    with open_store(path, "new_episodes") as store:
        call = request("hi", **tools("runs "))
        store.session("a").append(call, answer("x"), latency_s=0)
    found = miss(path, request("hi", **tools("starts ")))
    assert found.cause == "parameter tools"
    assert "-  description: runs shell\n+  description: starts shell" in found.text


def test_another_endpoint_is_the_first_difference(path: Path):
    call = CanonicalRequest.of("anthropic-messages", {}, [], is_model_call=True)
    found = miss(path, call)
    assert found.cause == "endpoint"
    assert "-openai-chat\n+anthropic-messages" in found.text


def test_a_repetition_says_so(path: Path):
    with open_store(path) as store:
        session = store.session("a")
        assert session.claim(request("Something else")) is not None
        with pytest.raises(ReplayMissError, match="more often than it was recorded"):
            session.claim(request("Something else"))
    assert session.misses[0].cause == "repetition"


def test_without_any_recording_it_names_file_and_way_to_record(tmp_path: Path):
    found = miss(tmp_path / "0.jsonl", request("hi"))
    assert found.cause == "nothing recorded"
    assert f"{tmp_path / '0.jsonl'} (no such file)" in found.text
    assert found.text.endswith(f"To record from here on: {HINT}")


def test_an_enormous_difference_is_cut(path: Path):
    found = miss(path, request("\n".join(str(number) for number in range(500))))
    assert len(found.text.splitlines()) < 80
    assert "more lines" in found.text

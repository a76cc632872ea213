from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.cassette.replay.explain import Miss
from harness.cassette.request.canonical import CanonicalRequest
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
    assert "-Count the files.\n+Count the folders.\n Say how many." in found.text
    assert found.difference in found.text


def test_one_changed_word_of_a_long_paragraph_shows_only_its_sentence(tmp_path: Path):
    path = tmp_path / "0.jsonl"
    text = "First do this, which is long enough to be a sentence of its own. " * 3
    with open_store(path, "new_episodes") as store:
        ask(store.session("a"), text + "Then count the files.", live="x")
    found = miss(path, request(text + "Then count the folders."))
    assert "-Then count the files.\n+Then count the folders." in found.text


def test_the_nearest_recording_has_the_longest_common_beginning(path: Path):
    found = miss(path, request("Count the files.\nSay how many.", "ls", "four files"))
    assert "2 of 3 messages are equal" in found.text
    assert "First difference, in message 3 (user):" in found.text
    assert "\n+four files" in found.text


def test_it_is_found_where_the_longer_conversation_was_recorded_first(tmp_path: Path):
    path = tmp_path / "0.jsonl"
    with open_store(path, "new_episodes") as store:
        session = store.session("a")
        ask(session, "one", "two", "three", live="x")
        ask(session, "one", live="x")
    found = miss(path, request("one", "two", "four"))
    assert "2 of 3 messages are equal" in found.text
    assert "-three\n+four" in found.text


def test_a_conversation_that_goes_on_longer_than_recorded_says_what_is_new(path: Path):
    found = miss(path, request("Something else", "go on", "and on"))
    assert found.cause == "message 2 (assistant)"
    assert "\n+go on" in found.text
    assert "\n-" not in found.text.replace("\n--- recorded", "")


def test_a_changed_parameter_is_named_and_shown(path: Path):
    found = miss(path, request("Something else", temperature=0.5))
    assert found.cause == "parameter temperature"
    assert "+temperature: 0.5" in found.text


def tools(**descriptions: str) -> dict[str, Any]:
    return {
        "tools": [
            {"type": "function", "function": {"name": name, "description": text}}
            for name, text in descriptions.items()
        ]
    }


@pytest.mark.parametrize(
    ("now", "said", "shown"),
    [
        (
            tools(shell="starts a command", read="reads a file"),
            "Tools: changed shell.",
            "-  description: runs a command\n+  description: starts a command",
        ),
        (
            tools(read="reads a file", shell="runs a command", write="writes"),
            "Tools: added write.",
            "+- write",
        ),
        (tools(read="reads a file"), "Tools: removed shell.", "-- shell"),
        (
            tools(read="reads a file", shell="runs a command"),
            "Tools: in another order.",
            "+- read\n - shell",
        ),
        (
            tools(read="reads", write="writes"),
            "Tools: added write; removed shell; changed read.",
            "-  description: reads a file\n+  description: reads",
        ),
        ({}, "Tools: removed shell, read.", "-- shell"),
    ],
    ids=["changed", "added", "removed", "order", "several", "all"],
)
def test_tools_are_compared_by_name(tmp_path: Path, now: dict[str, Any], said: str, shown: str):
    path = tmp_path / "0.jsonl"
    with open_store(path, "new_episodes") as store:
        call = request("hi", **tools(shell="runs a command", read="reads a file"))
        store.session("a").append(call, answer("x"), latency_s=0)
    found = miss(path, request("hi", **now))
    assert found.cause == "the tools"
    assert f"First difference, in the tools:\n{said}\n" in found.text
    assert shown in found.text
    assert found.text.count("description") == shown.count("description")


def test_tools_that_google_declares_together_are_compared_by_name(tmp_path: Path):
    def call(**described: str) -> CanonicalRequest:
        declared = [{"name": name, "description": text} for name, text in described.items()]
        given: dict[str, Any] = {"model": "m", "tools": [{"functionDeclarations": declared}]}
        said: list[Any] = [{"role": "user", "parts": [{"text": "hi"}]}]
        return CanonicalRequest.of("google-generate", given, said, is_model_call=True)

    path = tmp_path / "0.jsonl"
    with open_store(path, "new_episodes") as store:
        recorded = call(shell="runs a command", read="reads a file")
        store.session("a").append(recorded, answer("x"), latency_s=0)
    found = miss(path, call(shell="starts a command", read="reads a file", write="writes"))
    assert "in the tools:\nTools: added write; changed shell.\n" in found.text
    assert "reads a file" not in found.text


def test_settings_that_differ_are_shown_together(path: Path):
    found = miss(path, request("Something else", temperature=0.5, top_p=1))
    assert found.cause == "parameters temperature, top_p"
    assert "+temperature: 0.5\n+top_p: 1" in found.text


def test_what_else_differs_is_named(path: Path):
    found = miss(path, request("Something other", temperature=0.5, **tools(shell="runs")))
    assert found.cause == "message 1 (user)"
    assert "\nAlso different: the tools, parameter temperature.\n" in found.text


def test_system_prompts_are_named_alike_wherever_a_vendor_has_them(tmp_path: Path):
    for number, (now, before) in enumerate(
        [
            (with_system("Be brief."), with_system("Be quick.")),
            (request("hi", system="Be brief."), request("hi", system="Be quick.")),
        ]
    ):
        path = tmp_path / f"{number}.jsonl"
        with open_store(path, "new_episodes") as store:
            store.session("a").append(before, answer("x"), latency_s=0)
        found = miss(path, now)
        assert (found.cause, found.difference) == (
            "the system prompt",
            "--- recorded\n+++ now\n@@ -1 +1 @@\n-Be quick.\n+Be brief.",
        )


def with_system(text: str) -> CanonicalRequest:
    messages: list[Any] = [{"role": "system", "content": text}, {"role": "user", "content": "hi"}]
    return CanonicalRequest.of("openai-chat", {"model": "tiny"}, messages, is_model_call=True)


def test_among_recordings_that_begin_alike_the_one_that_differs_least_is_nearest(tmp_path: Path):
    path = tmp_path / "0.jsonl"
    with open_store(path, "new_episodes") as store:
        session = store.session("a")
        # More than are read whole.
        for number in range(200):
            ask(session, f"Sort these names.\nName {number}\nIn lower case.", live="x")
    found = miss(path, request("Sort these names.\nName 150\nIn upper case."))
    assert found.difference.splitlines()[3:] == [
        " Sort these names.", " Name 150", "-In lower case.", "+In upper case.",
    ]  # fmt: skip


def test_a_change_in_a_long_line_is_shown_with_little_around_it(tmp_path: Path):
    path = tmp_path / "0.jsonl"
    with open_store(path, "new_episodes") as store:
        ask(store.session("a"), "word " * 2000 + "then" + " word" * 2000, live="x")
    found = miss(path, request("word " * 2000 + "than" + " word" * 2000))
    before, now = found.difference.splitlines()[3:]
    assert "then word" in before
    assert "than word" in now
    assert max(len(line) for line in found.text.splitlines()) < 250


def test_an_explanation_does_nothing_to_a_terminal(path: Path):
    found = miss(path, request("Something \x1b[2Jelse", **{"\x1b[2J": "\x9b2J"}))
    assert "\x1b" not in found.text
    assert "\x9b" not in found.text
    assert "+Something \\x1b[2Jelse" in found.text


def test_no_mark_in_a_miss_turns_the_direction_of_what_is_read(path: Path):
    found = miss(path, request("pay \u202e001\u2066 now"))
    assert r"+pay \u202e001\u2066 now" in found.text


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

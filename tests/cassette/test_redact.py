from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import openai
import pytest

from harness.cassette.http import use
from harness.cassette.replay.tool_results import RecordedTools
from harness.cassette.secrets import secrets_in
from harness.redaction import PLACEHOLDER
from harness.schema.results import Verdict
from harness.values import ToolInvocation
from tests.cassette.cells import Tool, ask, open_store
from tests.cassette.loopback import ask_openai, upstream, user

SECRET = 'pl"än\\ted/key+1'
"""Written differently in JSON, in JSON within JSON, and in URLs."""

SHAPE = "sk-" + "a1B2" * 8


def test_secrets_are_the_values_of_key_variables_without_space_around_them():
    environ = {
        "X_API_KEY": " long enough\n",
        "x_api_key": "lower case",
        "SHORT_API_KEY": "  1234567  ",
        "PATH": "/usr/bin:/bin",
    }
    assert secrets_in(environ) == {"X_API_KEY": "long enough", "x_api_key": "lower case"}


def test_variables_that_tasks_are_given_are_secrets_by_their_names():
    named = ["DB_PASSWORD", "Gh_Token", "AWS_SECRET", "SSH_KEY", "TOKENS", "REGION", "MAPS_TOKEN"]
    environ = {name: f"value of {name}" for name in named[:-1]}
    found = secrets_in({**environ, "OTHER_TOKEN": "not a task's"}, handed_down=named)
    assert sorted(found) == ["AWS_SECRET", "DB_PASSWORD", "Gh_Token", "SSH_KEY"]


@pytest.mark.parametrize(
    "word",
    [
        "assistant", "completed", "complete", "tool_calls", "iterations", "anthropic", "function",
        "arguments", "new_episodes", "termination_reason", "input_schema", "my-suite",
    ],
)  # fmt: skip
def test_a_word_that_files_are_made_of_is_no_secret(caplog, word: str):
    assert secrets_in({"A_API_KEY": word}, names=["my-suite-1"]) == {}
    assert [record.getMessage() for record in caplog.records] == [
        "the value of A_API_KEY is a word that recordings and run logs are made of: it is not "
        "removed from them"
    ]


@pytest.mark.parametrize("key", ["swordfish", "completed!", "tool_calls1", "my-suite-12"])
def test_any_other_word_is_a_secret(caplog, key: str):
    assert secrets_in({"A_API_KEY": key}, names=["my-suite-1"]) == {"A_API_KEY": key}
    assert caplog.records == []


def ask_stream(port: int, *messages: dict[str, Any], **more: Any) -> None:
    with openai.OpenAI(api_key="k", base_url=f"http://127.0.0.1:{port}/v1") as client:
        arguments: Any = {"model": "tiny", "messages": list(messages), "stream": True, **more}
        assert list(client.chat.completions.create(**arguments))


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("secret", "known"),
    [(SECRET, True), (SHAPE, True), (SHAPE, False)],
    ids=["known value", "known value of known shape", "known shape"],
)
def test_a_planted_key_is_in_no_byte_of_the_file(
    tmp_path: Path, stream: bool, secret: str, known: bool
):
    path = tmp_path / "0.jsonl"
    secrets = {"A_API_KEY": secret} if known else {}
    spellings = {secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}
    function = {"name": "f", "description": secret, "parameters": {"type": "object"}}

    def turn(port: int) -> None:
        tools = [{"type": "function", "function": function}]
        arguments: dict[str, Any] = {"tools": tools, "user": secret}
        if not stream:
            ask_openai(port, user(f"use {secret}"), **arguments)
            return
        ask_stream(port, user(f"use {secret}"), **arguments)

    call = ToolInvocation("c1", "f", {"key": secret}, 0, 1)
    with upstream() as server, open_store(path, "new_episodes", secrets=secrets) as store:
        server.answers = [f"so-{json.dumps(secret)}-it-is"]
        server.headers = {"x-request-id": secret.encode("ascii", "replace").decode()}
        session = store.session(f"variant {secret}"[:7])
        with use(session):
            turn(server.port)
        outcome = RecordedTools(Tool("the key is {key}"), session, mode="live").invoke(call)
        session.record_verdict("t", "t", Verdict(rewards={"reward": 1}, log=f"saw {secret}"))
        session.finish()
    data = path.read_text()
    assert not [spelling for spelling in spellings if spelling in data]
    assert outcome.content == f"the key is {PLACEHOLDER}"
    # With the key known or not, what it replaced is found again.
    for again in ({"A_API_KEY": secret}, {}):
        if secret is SECRET and not again:
            continue
        with open_store(path, secrets=again) as store:
            session = store.session("variant")
            with use(session):
                turn(1)
            tools = RecordedTools(Tool("the key is {key}"), session, mode="replay")
            assert tools.invoke(call) == outcome
            assert session.misses == []


def test_a_miss_does_not_show_a_secret(tmp_path: Path):
    path = tmp_path / "0.jsonl"
    secrets = {"A_API_KEY": SECRET}
    with upstream() as server, open_store(path, "new_episodes", secrets=secrets) as store:
        session = store.session("a")
        with use(session):
            ask_openai(server.port, user("hello"))
    with open_store(path, secrets=secrets) as store:
        session = store.session("a")
        with use(session), pytest.raises(Exception, match=r"\[redacted\]"):
            ask_openai(1, user(f"hello {SECRET}"))
    assert SECRET not in session.misses[0].text


def test_a_value_that_became_a_key_after_recording_is_still_found(tmp_path: Path):
    path = tmp_path / "0.jsonl"
    with open_store(path, "new_episodes") as store:
        ask(store.session("a"), "the word is swordfish", live="x")
    with open_store(path, secrets={"A_API_KEY": "swordfish"}) as store:
        assert ask(store.session("a"), "the word is swordfish", live="never") == "x"

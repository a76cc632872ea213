from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.cassette.http import use
from harness.cassette.redact import PLACEHOLDER, Redactor, secrets_in
from harness.cassette.tool_results import RecordedTools
from harness.protocols import ToolInvocation, ToolOutcome
from harness.schema.messages import ToolSpec
from harness.schema.record import Json, JsonObject
from harness.schema.results import Verdict
from tests.cassette.cells import ask, open_store
from tests.cassette.loopback import DIALECTS, ask_openai, upstream, user

SECRET = 'pl"än\\ted/key+1'
"""Written differently in JSON, in JSON within JSON, and in URLs."""

SHAPES = [
    "sk-" + "a1B2" * 8,
    "sk-ant-api03-" + "Zz9_" * 8,
    "sk-proj-" + "Qw3-" * 8,
    "ghp_" + "a1B2" * 9,
    "github_pat_" + "a1B2" * 8,
    "AKIA" + "ABCD" * 4,
    "AIza" + "a1B2c" * 7,
    "xoxb-" + "1234567890-abc",
    "hf_" + "aBcD" * 8,
    "-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc\n-----END RSA PRIVATE KEY-----",
]


def test_secrets_are_the_values_of_key_variables_without_space_around_them():
    environ = {
        "X_API_KEY": " long enough\n",
        "x_api_key": "lower case",
        "SHORT_API_KEY": "  1234567  ",
        "PATH": "/usr/bin:/bin",
    }
    assert secrets_in(environ) == {"X_API_KEY": "long enough", "x_api_key": "lower case"}


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


@pytest.mark.parametrize("shape", SHAPES)
def test_a_credential_at_the_start_of_a_line_is_found(shape: str):
    redactor = Redactor({})
    value: Json = {"command": f"x\n{shape}\ty", "nested": json.dumps({"a": f"x\n{shape}"})}
    clean = {
        "command": f"x\n{PLACEHOLDER}\ty",
        "nested": json.dumps({"a": "x\n" + PLACEHOLDER}),
    }
    assert redactor.json(value) == clean
    assert redactor.text(f"x\n{shape}\ty") == clean["command"]
    assert redactor.text(f"\\u001b{shape}") == f"\\u001b{PLACEHOLDER}"


def test_a_record_without_secrets_is_itself():
    verdict = Verdict(rewards={"swordfish": 1}, log="the word is swordfish")
    assert Redactor({"A_API_KEY": "not there"}).record(verdict) is verdict
    assert Redactor({"A_API_KEY": "swordfish"}).record(verdict) == Verdict(
        rewards={PLACEHOLDER: 1}, log=f"the word is {PLACEHOLDER}"
    )


@pytest.mark.parametrize("shape", SHAPES)
def test_what_looks_like_a_credential_is_redacted(shape: str):
    redactor = Redactor({})
    value: Any = {"a": [f"key: {shape}."], f"k {shape}": json.dumps({"x": shape})}
    clean = json.dumps(redactor.json(value))
    assert clean.count(PLACEHOLDER) == 3
    assert json.dumps(shape)[1:-1] not in clean
    assert redactor.without_rules().json(value) is value


@pytest.mark.parametrize(
    "text",
    [
        "sk-learn is a library", "class sk-toggleable-content-wrapper-label", "bearer of good news",
        "AIza", "chatcmpl-9aB8c7D6e5F4g3H2", "toolu_01A09q90qw90lq917835lq9", "eyJ.a.b",
        "task-12345678901234567890", PLACEHOLDER, f"Bearer {PLACEHOLDER}",
    ],
)  # fmt: skip
def test_ordinary_text_stays(text: str):
    assert Redactor({}).text(text) == text


def test_a_bearer_token_goes_and_the_word_stays():
    assert Redactor({}).text("Authorization: Bearer abcdefghij0123456789==") == (
        f"Authorization: Bearer {PLACEHOLDER}"
    )


SECRETS = st.text(st.characters(codec="utf-8", exclude_characters="[]"), min_size=8, max_size=20)


def places(secret: str, at: str) -> Any:
    nested = json.dumps({"k": json.dumps([f"{at}{secret}"])})
    return {"plain": f"{at}{secret}", f"{at}{secret}": [nested, {"x": [secret]}], "n": 1.0}


@given(secret=SECRETS, at=st.text(max_size=5))
def test_a_known_value_is_in_no_spelling_left(secret: str, at: str):
    redactor = Redactor({"A_API_KEY": secret})
    clean = redactor.json(places(secret, at))
    written = json.dumps(clean, ensure_ascii=False)
    without = json.dumps(redactor.json(places("", at)), ensure_ascii=False)
    if secret not in without and secret not in PLACEHOLDER:
        assert secret not in written
    assert json.dumps(secret)[1:-1] not in written or secret in without
    assert redactor.json(clean) == clean


@given(st.text(), SECRETS)
def test_what_was_redacted_once_is_the_same_whether_the_key_is_known_or_not(text: str, secret: str):
    known = Redactor({"A_API_KEY": secret})
    clean = known.text(text + secret)
    assert Redactor({}).text(clean) == clean


class Tools:
    """One tool that gives the secret away."""

    def specs(self) -> tuple[ToolSpec, ...]:
        return ()

    def identity(self, name: str) -> str:
        return name

    def is_sequential(self, name: str) -> bool:
        return False

    def effects(self, name: str, arguments: JsonObject) -> None:
        return None

    def invoke(self, invocation: ToolInvocation) -> ToolOutcome:
        return ToolOutcome(f"the key is {invocation.arguments['key']}")


def ask_stream(port: int, *messages: dict[str, Any], **more: Any) -> None:
    with openai.OpenAI(api_key="k", base_url=f"http://127.0.0.1:{port}/v1") as client:
        arguments: Any = {"model": "tiny", "messages": list(messages), "stream": True, **more}
        assert list(client.chat.completions.create(**arguments))


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("secret", "known"),
    [(SECRET, True), (SHAPES[0], True), (SHAPES[0], False)],
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
        with use(session, DIALECTS):
            turn(server.port)
        outcome = RecordedTools(Tools(), session, mode="live").invoke(call)
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
            with use(session, DIALECTS):
                turn(1)
            tools = RecordedTools(Tools(), session, mode="replay")
            assert tools.invoke(call) == outcome
            assert session.misses == []


def test_a_miss_does_not_show_a_secret(tmp_path: Path):
    path = tmp_path / "0.jsonl"
    secrets = {"A_API_KEY": SECRET}
    with upstream() as server, open_store(path, "new_episodes", secrets=secrets) as store:
        session = store.session("a")
        with use(session, DIALECTS):
            ask_openai(server.port, user("hello"))
    with open_store(path, secrets=secrets) as store:
        session = store.session("a")
        with use(session, DIALECTS), pytest.raises(Exception, match=r"\[redacted\]"):
            ask_openai(1, user(f"hello {SECRET}"))
    assert SECRET not in session.misses[0].text


def test_a_value_that_became_a_key_after_recording_is_still_found(tmp_path: Path):
    path = tmp_path / "0.jsonl"
    with open_store(path, "new_episodes") as store:
        ask(store.session("a"), "the word is swordfish", live="x")
    with open_store(path, secrets={"A_API_KEY": "swordfish"}) as store:
        assert ask(store.session("a"), "the word is swordfish", live="never") == "x"


@pytest.mark.parametrize(
    "write", [quote, quote_plus, repr, json.dumps, lambda key: shlex.join(["--set", f"x={key}"])]
)
def test_a_key_is_found_as_others_write_it(write: Callable[[str], str]):
    key = "pl'an\"ted/key+0 1\\"
    text = Redactor({"A_API_KEY": key}, rules=False).text(write(key))
    assert PLACEHOLDER in text
    assert "ted" not in text.replace(PLACEHOLDER, "")


def test_a_key_deep_in_nested_json_is_found():
    value: Any = [json.dumps(json.dumps(SECRET))]
    clean = Redactor({"A_API_KEY": SECRET}, rules=False).json(value)
    assert clean == [json.dumps(json.dumps(PLACEHOLDER))]


def test_a_secret_that_is_part_of_the_placeholder_changes_nothing():
    assert Redactor({"A_API_KEY": "redacted"}).text("[redacted]") == "[redacted]"

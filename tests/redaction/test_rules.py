"""Every kind of credential that is known by its shape or by what stands around it."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest

from harness.redaction import PLACEHOLDER, Redactor
from harness.redaction.rules import RULES
from harness.schema.record import Json
from tests.redaction.planted import PLANTED

KINDS = pytest.mark.parametrize("kind", PLANTED)
REDACTOR = Redactor({})


def test_each_kind_has_one_planted():
    names = [rule.name for rule in RULES]
    assert sorted(names) == sorted(PLANTED)


@KINDS
def test_a_credential_is_found_by_its_own_rule(kind: str):
    text = f"see {PLANTED[kind].text} ok"
    (found,) = REDACTOR.find(text)
    assert found.rule == kind
    assert text[found.start : found.end] in PLANTED[kind].text
    assert PLANTED[kind].secret not in REDACTOR.text(text)


@KINDS
def test_a_credential_is_found_in_values_keys_and_json_within_json(kind: str):
    planted = PLANTED[kind]
    value: Json = {
        "a": [f"x\n{planted.text}\ty"],
        "n": json.dumps({"k": json.dumps(f"x\n{planted.text}")}),
        f"k\t{planted.text}": 1,
    }
    clean = REDACTOR.json(value)
    written = json.dumps(clean)
    assert written.count(PLACEHOLDER) == 3
    assert json.dumps(planted.secret)[1:-1] not in written
    assert REDACTOR.json(clean) == clean
    assert REDACTOR.find(written) == []


@KINDS
@pytest.mark.parametrize("size", [1, 3, 7])
def test_a_credential_that_comes_in_pieces_is_found(kind: str, size: int):
    text = f"see {PLANTED[kind].text} ok"
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    clean = REDACTOR.joined(pieces)
    assert len(clean) == len(pieces)
    assert "".join(clean) == REDACTOR.text(text)


@KINDS
def test_nothing_is_found_twice(kind: str):
    clean = REDACTOR.text(PLANTED[kind].text)
    assert REDACTOR.find(clean) == []


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("api_key", "q1w2e3r4t5y6u7i8"),
        ("X-Api-Key", "q1w2e3r4t5y6u7i8"),
        ("clientSecret", "q1w2e3r4t5y6u7i8"),
        ("db_password", "p@ss,w0rd;(1)"),
    ],
)
def test_a_value_with_a_telling_name_is_removed(key: str, value: str):
    assert REDACTOR.json({"a": {key: value, "b": value}}) == {"a": {key: PLACEHOLDER, "b": value}}
    written = json.dumps(json.dumps({key: value}))
    assert value not in REDACTOR.text(written)


@pytest.mark.parametrize(
    "text",
    [
        "sk-learn is a library", "class sk-toggleable-content-wrapper-label", "AIza", "eyJ.a.b",
        "bearer of good news", "Basic understanding of things", "basic: QmFzaWM6",
        "toolu_01A09q90qw90lq917835lq9", "chatcmpl-9aB8c7D6e5F4g3H2", "call_abc123DEF456ghi789jkl",
        "f81d4fae-7dec-11d0-a765-00a0c91e6bf6", "task-12345678901234567890",
        "2f1c9a0b3d4e5f60718293a4b5c6d7e82f1c9a0b3d4e5f60718293a4b5c6d7e8",
        "api_key=settings.openai_api_key2", "api_key = os.getenv('OPENAI_API_KEY_123')",
        "password = getpass.getpass2()", "token = tokenizer.eos_token_id", "api_key=my_key_v2_name",
        "os.environ['API_KEY_NUMBER_1']", "secret_key: process.env.SECRET_KEY_1",
        "session_token := newSessionToken64(ctx)", "auth_token=auth_token_from_header1)",
        "api_key=${OPENAI_API_KEY_01}", "password=$PASSWORD12", "client_secret: <your-secret-1>",
        "x-api-key: your-api-key-here", "password=********", "?token={token12345678901}",
        "password: str = 'x'", "password must have 8 characters or more",
        "self.password = password1", "max_tokens=1000000000000000",
        "next_page_token=CAEQAA1234567890abc", "key=value12&key=user1",
        "https://user@example.com:8080/x", "http://127.0.0.1:8000/v1?page=2",
        "git@github.com:a/b.git", "postgres://user:{password}@host/db",
        '"password": {"type": "string", "minLength": 8}',
        "https://user:pass@host:port/path", "mysql://root:root@localhost/db", "?a=1&sig=REDACTED",
        'M = ("-----BEGIN RSA PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----")',
        '{"name": "password", "in": "query"}', PLACEHOLDER, f"Bearer {PLACEHOLDER}",
    ],
)  # fmt: skip
def test_ordinary_text_stays(text: str):
    assert REDACTOR.text(text) == text
    value: Json = {"a": [text, json.dumps({"k": text})]}
    assert REDACTOR.json(value) is value


def test_a_private_key_whose_end_is_cut_away_is_found():
    line = "a1B2c3D4" * 8
    text = f"see\n-----BEGIN PRIVATE KEY-----\n{line}\n{line}\n{line[:20]}"
    assert REDACTOR.text(text) == f"see\n{PLACEHOLDER}"
    assert REDACTOR.text(json.dumps(text)) == json.dumps(f"see\n{PLACEHOLDER}")


@pytest.mark.parametrize(
    "text",
    [
        "sk-" * 20_000, "-----BEGIN PRIVATE KEY-----" * 3_000, "://a:" * 20_000,
        "password=" * 9_000, f"basic {'A' * 90_000}", f"api_key={' ' * 90_000}",
        f"password={chr(92) * 90_000}", f"?{'a-' * 40_000}password=1", f"{'1' * 90_000}:AA",
        f"{'a' * 90_000}JQQJ99",
    ],
)  # fmt: skip
def test_no_text_takes_long(text: str):
    """Or this test would: a search that begins anew at each place goes on for minutes."""
    assert REDACTOR.text(text[:-1] + " sk-" + "a1B2" * 8).endswith(PLACEHOLDER)


def test_a_suites_own_pattern_is_a_rule_like_the_others():
    redactor = Redactor({}, extra=[r"INT-\d{4}"])
    (found,) = redactor.find("case INT-1234")
    assert (found.rule, found.start) == (r"INT-\d{4}", 5)
    assert redactor.json({"a": "INT-1234"}) == {"a": PLACEHOLDER}
    assert redactor.without_rules().text("INT-1234") == "INT-1234"


def test_a_url_keeps_all_but_its_credentials():
    password = quote("p@ss/w0rd", safe="")
    url = f"GET https://bob:{password}@example.com/x?page=2&access_token=abcdefgh&b=1"
    assert REDACTOR.text(url) == (
        f"GET https://bob:{PLACEHOLDER}@example.com/x?page=2&access_token={PLACEHOLDER}&b=1"
    )

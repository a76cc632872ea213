"""What is found of secrets in texts and values."""

from __future__ import annotations

import base64
import gzip
import html
import json
import re
import shlex
from collections.abc import Callable
from functools import reduce
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.redaction import PLACEHOLDER, Redactor
from harness.schema.record import Json
from harness.schema.results import Verdict

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


def lower_escapes(text: str) -> str:
    return re.sub("%[0-9A-F]{2}", lambda found: found.group().lower(), quote(text, safe=""))


def by_go(text: str) -> str:
    return json.dumps(text).replace("&", r"\u0026").replace("<", r"\u003c").replace(">", r"\u003e")


def in_lines(text: str) -> str:
    return base64.encodebytes(f"{'x' * 45}{text}{'y' * 30}".encode()).decode()


WAYS: dict[str, Callable[[str], str]] = {
    "URL": quote,
    "query": quote_plus,
    "URL in lower case": lower_escapes,
    "URL in a URL": lambda key: quote(quote(key, safe=""), safe=""),
    "Python": repr,
    "Python in ASCII": ascii,
    "Python's bytes": lambda key: repr(key.encode()),
    "JSON": json.dumps,
    "JSON in upper case": lambda key: json.dumps(key).replace("00e9", "00E9"),
    "JSON five times": lambda key: reduce(lambda text, _: json.dumps(text), range(5), key),
    "Go's JSON": by_go,
    "HTML": html.escape,
    "HTML in JSON by Go": lambda key: by_go(html.escape(key)),
    "HTML by numbers": lambda key: "".join(c if c.isalnum() else f"&#{ord(c)};" for c in key),
    "XML": lambda key: key.replace("&", "&amp;").replace("<", "&lt;").replace("'", "&apos;"),
    "shell": lambda key: shlex.join(["--set", f"x={key}"]),
    "shell by backslashes": lambda key: re.sub(r"(\W)", r"\\\1", key),
    "hex": lambda key: key.encode().hex(),
    "hex in upper case": lambda key: key.encode().hex().upper(),
    "base64 in lines": in_lines,
    "base64 in lines in JSON": lambda key: json.dumps(json.dumps({"a": in_lines(key)})),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_key_is_found_as_others_write_it(way: str):
    key = "pl'an\"ted/key&<+0 1\u00e9\\"
    written = WAYS[way](key)
    assert Redactor({}).text(written) == written
    redactor = Redactor({"A_API_KEY": key}, rules=False)
    clean = redactor.text(written)
    assert PLACEHOLDER in clean
    for part in re.findall("[A-Za-z0-9+/]{8,}", written.replace("xxxx", "")):
        assert part not in clean
    assert "ted" not in clean.replace(PLACEHOLDER, "")
    assert redactor.json({"a": [written]}) == {"a": [clean]}


@pytest.mark.parametrize("write", [json.dumps, lambda key: json.dumps(json.dumps(key))])
@pytest.mark.parametrize(
    "key", ['"quoted-key"', "/slashes/key/", "\\back\\key\\", "\u00e9-key-\u00e9"]
)
def test_a_key_takes_no_json_around_it_apart(write: Callable[[str], str], key: str):
    assert Redactor({"A_API_KEY": key}, rules=False).text(write(f'a {key}"b')) == write(
        f'a {PLACEHOLDER}"b'
    )


@pytest.mark.parametrize("pack", [bytes, gzip.compress, lambda x: gzip.compress(gzip.compress(x))])
def test_a_key_in_bytes_is_found_also_in_packed_ones(pack: Callable[[bytes], bytes]):
    key = "sk-" + "a1B2" * 8
    data = pack(b"\xff\xfe " + key.encode())
    clean = Redactor({}).data(data)
    plain = clean
    while plain.startswith(b"\x1f\x8b"):
        plain = gzip.decompress(plain)
    assert plain == b"\xff\xfe [redacted]"
    assert clean[:2] == data[:2]
    assert [found.rule for found in Redactor({}).find_in(data)] != []
    assert Redactor({}).find_in(clean) == []
    assert Redactor({}).data(clean) is clean


def test_a_key_deep_in_nested_json_is_found():
    value: Any = [json.dumps(json.dumps(SECRET))]
    clean = Redactor({"A_API_KEY": SECRET}, rules=False).json(value)
    assert clean == [json.dumps(json.dumps(PLACEHOLDER))]


def test_a_secret_that_is_part_of_the_placeholder_changes_nothing():
    assert Redactor({"A_API_KEY": "redacted"}).text("[redacted]") == "[redacted]"


@pytest.mark.parametrize("before", ["", "u", "us", "user:"])
@pytest.mark.parametrize("after", ["", "!", "!!"])
def test_a_key_in_base64_is_found_wherever_it_begins(before: str, after: str):
    key = "swordfish?~swordfish"
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        encoded = encode(f"{before}{key}{after}".encode()).decode()
        text = Redactor({"A_API_KEY": key}, rules=False).text(f"a {encoded} b")
        assert text == f"a {PLACEHOLDER} b"


def test_a_key_in_base64_takes_no_escape_apart():
    key = "swordfish?~swordfish"
    value: Any = json.dumps({"a": f"x\n{base64.b64encode(key.encode()).decode()}"})
    clean: Any = Redactor({"A_API_KEY": key}, rules=False).json(value)
    assert json.loads(clean) == {"a": f"x\n{PLACEHOLDER}"}


def test_a_key_that_is_part_of_a_longer_one_takes_it_along():
    key = "a1B2" * 6
    assert Redactor({"A_API_KEY": key}).text(f"sk-{key}zz") == PLACEHOLDER


def test_overlapping_secrets_leave_one_placeholder():
    redactor = Redactor({"A_API_KEY": "abcdefgh", "B_API_KEY": "efghijkl"}, rules=False)
    assert redactor.text("abcdefghijkl abcdefgh") == f"{PLACEHOLDER} {PLACEHOLDER}"
    assert [found.rule for found in redactor.find("abcdefghijkl")] == ["A_API_KEY"]

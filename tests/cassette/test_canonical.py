from __future__ import annotations

import gzip
import hashlib
import json
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.cassette.request.canonical import (
    CanonicalRequest,
    canonical_json,
    canonical_request,
    digest,
    model_request,
    parse_json,
    writable,
)
from harness.providers.catalog import all_dialects
from harness.schema.record import JsonObject

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
VALUES = st.recursive(
    SCALARS.filter(lambda value: value not in (float("inf"), float("-inf"))),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def shuffled(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: shuffled(value[key]) for key in reversed(value)}
    return [shuffled(item) for item in value] if isinstance(value, list) else value


@given(VALUES)
def test_the_canonical_form_does_not_depend_on_key_order_or_spelling(value: Any):
    form = canonical_json(value)
    assert canonical_json(shuffled(value)) == form
    assert canonical_json(parse_json(json.dumps(value, indent=2))) == form
    assert canonical_json(parse_json(form)) == form


@given(VALUES | st.floats(1e-7, 1e-2) | st.floats(1e13, 1e19))
def test_the_canonical_form_is_sorted_json(value: Any):
    separators = (",", ":")
    written = json.dumps(value, sort_keys=True, separators=separators, ensure_ascii=False)
    assert canonical_json(value) == written.encode()


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "\ud83d", {"\ud83d": 1}])
def test_what_no_json_can_hold_has_no_canonical_form(value: Any):
    with pytest.raises(ValueError, match=r"."):
        canonical_json({"a": [value]})


@pytest.mark.parametrize(("one", "other"), [(0, 0.0), (1, True), (0, False), ("1", 1), ("", None)])
def test_values_that_python_takes_for_equal_stay_different(one: Any, other: Any):
    assert digest({"x": one}) != digest({"x": other})


@given(st.lists(VALUES.map(lambda value: {"content": value}), max_size=6))
def test_a_longer_conversation_begins_with_the_digests_of_a_shorter_one(messages: list[Any]):
    whole = CanonicalRequest.of("e", {"a": 1}, messages, is_model_call=True)
    part = CanonicalRequest.of("e", {"b": 1}, messages[:3], is_model_call=True)
    assert whole.chain[:3] == part.chain
    assert len(set(whole.chain)) == len(messages)


def test_endpoint_parameters_and_messages_all_count():
    message: Any = {"role": "user", "content": "hi"}
    digests = {
        CanonicalRequest.of(endpoint, parameters, messages, is_model_call=True).digest
        for endpoint in ("one", "two")
        for parameters in cast(list[JsonObject], [{}, {"model": "a"}])
        for messages in ([], [message], [message, message])
    }
    assert len(digests) == 12


def test_at_a_model_endpoint_host_and_key_order_do_not_count():
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    backwards = dict(reversed(body.items()))
    requests = [
        canonical_request("POST", url, json.dumps(content).encode())
        for url, content in (
            ("https://api.openai.com/v1/chat/completions", body),
            ("http://127.0.0.1:8080/chat/completions?key=1", backwards),
        )
    ]
    assert requests[0] == requests[1]
    assert requests[0].is_model_call


def test_where_the_path_names_the_model_it_counts():
    body = b'{"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}'

    def request(url: str) -> CanonicalRequest:
        return canonical_request("POST", url, body)

    one = request("https://a/v1beta/models/one:generateContent")
    assert one.is_model_call
    assert one.endpoint == "google-generate"
    assert one.parameters == {"model": "one"}
    assert one == request("http://b:8080/v1/models/one:generateContent?key=1")
    others = [
        request("https://a/v1/models/two:generateContent"),
        request("https://a/v1/tunedModels/one:generateContent"),
        request("https://a/v1/models/one:streamGenerateContent?alt=sse"),
        request("https://a/v1/models/one:countTokens"),
        request("https://a/v1/models/one"),
    ]
    assert len({one.digest, *(other.digest for other in others)}) == 6
    assert [other.is_model_call for other in others] == [True, True, True, False, False]


def test_elsewhere_method_url_and_body_count():
    def identity(method: str, url: str, body: bytes) -> str:
        return canonical_request(method, url, body).digest

    same = identity("POST", "http://a/x", b'{"a": 1, "b": 2}')
    assert same == identity("post", "http://a/x", b'{"b":2,"a":1}')
    others = {
        identity("PUT", "http://a/x", b'{"a":1,"b":2}'),
        identity("POST", "http://a:8/x", b'{"a":1,"b":2}'),
        identity("POST", "http://a/x", b'{"a":1,"b":2.0}'),
        identity("POST", "http://a/x", b""),
        identity("POST", "http://a/x", b"null!"),
        identity("POST", "http://a/x", b"\xff\xfe"),
        identity("POST", "http://a/v1/messages", b"not JSON"),
    }
    assert len(others - {same}) == 7


CALLS: dict[str, tuple[str, Any]] = {
    "anthropic-messages": ("/v1/messages", {"model": "m", "messages": []}),
    "google-generate": ("/v1/models/m:generateContent", {"contents": []}),
    "ollama-chat": ("/api/chat", {"model": "m", "messages": []}),
    "openai-chat": ("/v1/chat/completions", {"model": "m", "messages": []}),
    "openai-responses": ("/v1/responses", {"model": "m", "input": "hi"}),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_model_call_is_known_by_its_method_its_path_and_its_body(name: str):
    path, body = CALLS[name]

    def is_call(body: Any, method: str = "POST") -> bool:
        request = canonical_request(method, f"http://a{path}", json.dumps(body).encode())
        assert request.endpoint == (name if request.is_model_call else f"{method} http://a{path}")
        return request.is_model_call

    assert is_call(body)
    assert not is_call(body, "PUT")
    assert not is_call({"content": "for another person"})
    for key in body:
        for other in ({}, {key: 1}, {key: [1]}):
            assert not is_call({k: v for k, v in body.items() if k != key} | other)


def test_azures_deployment_is_part_of_the_request():
    def request(path: str, **body: Any) -> CanonicalRequest:
        body = {"messages": [{"role": "user", "content": "hi"}], **body}
        url = f"https://a/openai{path}/chat/completions?api-version=1"
        return canonical_request("POST", url, json.dumps(body).encode())

    one = request("/deployments/one", model="m")
    assert one.parameters == {"model": "m", "deployment": "one"}
    others = [request("/deployments/two", model="m"), request("/v1", model="m")]
    assert len({one.digest, *(other.digest for other in others)}) == 3
    assert request("/deployments/one").is_model_call
    assert not request("/v1").is_model_call


def test_a_body_that_is_no_json_is_none_that_is():
    def identity(body: bytes) -> str:
        return canonical_request("POST", "http://a/x", body).digest

    bodies = [b"x", b'"x"', b'{"text": "x"}', b"\xff", b'{"base64": "/w=="}']
    assert len(set(map(identity, bodies))) == len(bodies)


def test_a_packed_body_is_what_is_in_it():
    body = json.dumps({"model": "m", "messages": []}).encode()
    for url in ("http://a/v1/messages", "http://a/x"):
        plain = canonical_request("POST", url, body)
        assert canonical_request("POST", url, gzip.compress(body, mtime=7)) == plain
    broken = gzip.compress(body)[:-3]
    assert "base64" in canonical_request("POST", "http://a/x", broken).parameters


@pytest.mark.parametrize("text", ["NaN", "[1e999]", '{"a": -Infinity}', '"\\ud83d"', "{", ""])
def test_what_could_not_be_written_again_is_not_json(text: str):
    with pytest.raises(ValueError, match=r"."):
        parse_json(text)


def test_a_request_with_half_a_surrogate_pair_has_an_identity():
    body = b'{"model": "m", "messages": [{"role": "user", "content": "\\ud83d"}], "x": NaN}'
    request = canonical_request("POST", "http://a/v1/messages", body)
    assert not request.is_model_call
    whole = canonical_request("POST", "http://a/v1/messages", body.replace(b', "x": NaN', b""))
    assert whole.is_model_call
    assert whole.messages[0]["content"] == [{"type": "text", "text": "?"}]


def test_tool_arguments_that_no_json_holds_can_be_written():
    value: Any = {"a\ud83d": [float("nan"), "x\ud83d", 1]}
    assert json.loads(canonical_json(writable(value))) == {"a?": ["nan", "x?", 1]}
    plain: Any = {"a": [1, "x"]}
    assert writable(plain) is plain


PIECES = st.sampled_from(
    [
        *'[]{},:"0123456789eE.+-', " ", "\n", "\t", "\\", "\\u", "d83d", "de00", "null",
        "true", "false", "NaN", "Infinity", '"a"', '"b":', "1e5", "1e999", "-0",
        "0.5", "é", "\x00", "\ufeff",
    ]
)  # fmt: skip
TEXTS = st.lists(PIECES, max_size=12).map("".join) | VALUES.map(json.dumps)


def plain(value: Any) -> bytes:
    """As the reader in docs/cassette-format.md writes it."""
    text = json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )
    return text.encode(errors="replace")


def plain_digest(value: Any) -> str:
    return hashlib.sha256(plain(value)).hexdigest()[:24]


def as_plain_json_reads_it(text: str) -> Any:
    try:
        return {"body": json.loads(plain(json.loads(text.encode())))}
    except ValueError:
        return {"text": text} if text else {"body": None}


@given(TEXTS)
def test_any_body_has_the_identity_that_plain_json_gives_it(text: str):
    request = canonical_request("GET", "http://a/x", text.encode())
    about = plain_digest(["GET http://a/x", as_plain_json_reads_it(text)])
    nothing_said = hashlib.sha256(b"").hexdigest()[:24]
    assert request.digest == plain_digest([about, nothing_said])


@pytest.mark.parametrize(
    "body",
    [b"[" * 300 + b"]" * 300, b"[" * 100_000, b"1" * 5000, b'"\xff"', '"a"'.encode("utf-16")],
)
def test_odd_bodies_have_an_identity(body: bytes):
    request = canonical_request("POST", "http://a/v1/messages", body)
    assert request == canonical_request("POST", "http://a/v1/messages", body)
    assert not request.is_model_call


@pytest.mark.parametrize("dialect", all_dialects(), ids=lambda dialect: dialect.name)
def test_fields_that_do_not_change_the_answer_do_not_count(dialect: Any):
    message: JsonObject = {"role": "user", "content": "hi"}
    body: JsonObject = {
        "model": "m", "messages": [message], "input": [message],
        "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
    }  # fmt: skip
    plain = model_request(dialect, body)
    assert dialect.uncounted
    for field in dialect.uncounted:
        assert model_request(dialect, {**body, field: "another"}) == plain
    assert model_request(dialect, {**body, "another": 1}).digest != plain.digest


@pytest.mark.parametrize(
    ("path", "mark"),
    [
        ("messages", {"cache_control": {"type": "ephemeral"}}),
        ("chat/completions", {"prompt_cache_breakpoint": {"mode": "explicit"}}),
        ("responses", {"prompt_cache_breakpoint": {"mode": "explicit"}}),
    ],
)
def test_marks_for_the_vendors_cache_do_not_count(path: str, mark: JsonObject):
    def identity(mark: JsonObject) -> str:
        kind = "input_text" if path == "responses" else "text"
        message = {"role": "user", "content": [{"type": kind, "text": "hi", **mark}]}
        body = {"model": "m", "input" if path == "responses" else "messages": [message]}
        request = canonical_request("POST", f"http://a/v1/{path}", json.dumps(body).encode())
        assert request.is_model_call
        return request.digest

    assert identity(mark) == identity({})
    assert identity({"another": 1}) != identity({})


def test_every_kind_of_identity_stays_what_it_was():
    body = {"model": "m", "temperature": 0.6, "messages": [{"role": "user", "content": "é\u2028/"}]}
    request = canonical_request("POST", "http://a/v1/chat/completions", json.dumps(body).encode())
    assert request.digest == "5a07058c7574af316977dda9"
    other = canonical_request("PUT", "http://a/x?b=1", b'{"b": [1e-7, 10.0], "a": null}')
    assert other.digest == "154d706beb28a35c0f839bcb"


def test_a_redaction_sees_the_whole_request_at_once():
    seen: list[Any] = []

    def redact(value: Any) -> Any:
        seen.append(value)
        return json.loads(json.dumps(value).replace("hi", "[x]")) if "hi" in str(value) else value

    message: JsonObject = {"role": "user", "content": "hi"}
    request = CanonicalRequest.of("e", {"a": 1}, [message], is_model_call=True)
    clean = request.redacted(redact)
    assert clean.messages == ({"role": "user", "content": "[x]"},)
    assert clean.parameters_digest == request.parameters_digest
    assert clean.digest != request.digest
    assert clean.redacted(redact) is clean
    assert len(seen) == 2

from __future__ import annotations

import json
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.cassette.canonical import (
    CanonicalRequest,
    canonical_json,
    canonical_request,
    digest,
    parse_json,
    writable,
)
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


@pytest.mark.parametrize("text", ["NaN", "[1e999]", '{"a": -Infinity}', '"\\ud83d"', "{", ""])
def test_what_could_not_be_written_again_is_not_json(text: str):
    with pytest.raises(ValueError, match=r"."):
        parse_json(text)


def test_a_request_with_half_a_surrogate_pair_has_an_identity():
    body = b'{"messages": [{"role": "user", "content": "\\ud83d"}], "x": NaN}'
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

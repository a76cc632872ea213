"""A request's identity is the same computed from the one before as computed as a whole."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from harness.cassette.request.canonical import CanonicalRequest
from harness.cassette.request.growing import Growing
from harness.schema.record import JsonObject

values: st.SearchStrategy[Any] = st.sampled_from(
    [1, 1.0, True, 0, -0.0, False, None, "1", "é", "half \ud800", [], {}]
)
messages = st.lists(
    st.dictionaries(st.sampled_from("abc"), values | st.lists(values, max_size=2), max_size=3),
    max_size=4,
)
parameters = st.dictionaries(st.sampled_from("abc"), values, max_size=2)


def outcome(make: Any, *given: Any) -> Any:
    try:
        return make("openai-chat", *given, is_model_call=True)
    except ValueError as error:
        return str(error)


@given(st.lists(st.tuples(parameters, messages, st.booleans()), max_size=6))
def test_whatever_was_asked_before(asked: list[tuple[Any, Any, bool]]) -> None:
    growing = Growing()
    said: list[Any] = []
    for about, more, goes_on in asked:
        said = [*said, *more] if goes_on else more
        expected = outcome(CanonicalRequest.of, about, said)
        assert outcome(growing.request, about, said) == expected


def test_a_message_that_only_begins_like_another_is_another() -> None:
    growing = Growing()
    conversations: list[list[JsonObject]] = [
        [{"a": 1}],
        [{"a": 12}],
        [{"a": 1}, {"b": 2}],
        [{"a": 1, "b": 2}],
        [],
    ]
    for said in conversations:
        made = growing.request("openai-chat", {}, said, is_model_call=True)
        assert made == CanonicalRequest.of("openai-chat", {}, said, is_model_call=True)


def test_keys_in_another_order_are_the_same_request() -> None:
    growing = Growing()
    one: JsonObject = {"a": 1, "b": 2}
    other: JsonObject = {"b": 2, "a": 1}
    first = growing.request("openai-chat", one, [one], is_model_call=True)
    second = growing.request("openai-chat", other, [other], is_model_call=True)
    assert first.digest == second.digest

"""What does not count when requests are compared."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.cassette.replay.tool_results import RecordedTools
from harness.cassette.request.canonical import CanonicalRequest, canonical_request
from harness.cassette.request.each_message_once import EachMessageOnce
from harness.cassette.request.rules import Rules
from harness.redaction import PLACEHOLDER
from harness.schema.recording import RecordingRules
from harness.values import ToolInvocation
from tests.cassette.cells import Tool, answer, open_store


def rules(**given: Any) -> Rules:
    return Rules(RecordingRules.model_validate(given))


def asked(*texts: str, **parameters: Any) -> CanonicalRequest:
    messages: Any = [{"role": "user", "name": f"n{i}", "content": t} for i, t in enumerate(texts)]
    return CanonicalRequest.of(
        "openai-chat", {"model": "m", **parameters}, messages, is_model_call=True
    )


def test_without_rules_a_request_is_itself():
    request = asked("today is 2026-11-22", seed=1)
    assert Rules().request(request) is request
    assert Rules().text("today is 2026-11-22") == "today is 2026-11-22"


def test_a_request_that_no_rule_changes_is_itself():
    request = asked("hello", top_p=1)
    some = rules(ignore=["seed", "messages.*.other"], normalise=["dates"])
    assert some.request(request) is request


@pytest.mark.parametrize(
    ("path", "one", "other"),
    [
        ("seed", {"seed": 1}, {"seed": 2}),
        ("seed", {"seed": 1}, {}),
        ("extra.user_id", {"extra": {"user_id": 1, "a": 1}}, {"extra": {"a": 1}}),
        ("tools.*.description", {"tools": [{"description": "a"}]}, {"tools": [{}]}),
    ],
)
def test_an_ignored_field_does_not_count(path: str, one: Any, other: Any):
    some = rules(ignore=[path])
    assert asked("hi", **one).digest != asked("hi", **other).digest
    assert some.request(asked("hi", **one)).digest == some.request(asked("hi", **other)).digest
    assert some.request(asked("hi", **one)).digest != some.request(asked("hi", top_p=1)).digest


def test_an_ignored_field_of_messages_does_not_count():
    one = asked("hi")
    other = CanonicalRequest.of(
        one.endpoint, one.parameters, [{"role": "user", "content": "hi"}], is_model_call=True
    )
    some = rules(ignore=["messages.*.name"])
    assert some.request(one) == other


def test_at_other_endpoints_the_fields_are_those_of_the_body():
    some = rules(ignore=["at"], normalise=["ids"])
    requests = [
        canonical_request("POST", f"http://a/{run}", json.dumps({"q": 1, "at": run}).encode())
        for run in ("0123456789abcdef", "fedcba9876543210")
    ]
    assert requests[0].digest != requests[1].digest
    assert some.request(requests[0]) == some.request(requests[1])
    assert some.request(requests[0]).endpoint == "POST http://a/<id>"
    assert some.request(requests[0]).parameters == {"body": {"q": 1}}


@pytest.mark.parametrize(
    "date",
    [
        "2026-11-22", "2026-11-22T04:42:42Z", "2026-11-22T04:42:42.123456+00:00",
        "2026-11-22 04:42", "2026-11-22 04:42:42 UTC", "20261122T044242Z",
        "Sun, 22 Nov 2026 04:42:42 GMT", "22 November 2026", "Sunday, November 22, 2026",
        "Nov 22, 2026 at 4:42 PM", "Sun Nov 22 04:42:42 UTC 2026", "Sun Nov  2 04:42:42 2026",
        "Nov 22 04:42", "22/11/2026", "22.11.2026", "2026/11/22", "04:42:42", "4:42:42 pm",
    ],
)  # fmt: skip
def test_dates_are_normalised(date: str):
    some = rules(normalise=["dates"])
    assert some.text(f"It is {date}.") == "It is <date>."
    assert some.text(f"({date})\n{date}") == "(<date>)\n<date>"


@pytest.mark.parametrize(
    "text",
    [
        "version 1.2.2024", "10/12", "192.168.2.1", "3:2", "in May 3 of 5", "0.2026-11", "March on",
        "sk 2026-13-01", "1234567890", "12345-11-22",
    ],
)  # fmt: skip
def test_what_is_no_date_stays(text: str):
    assert rules(normalise=["dates"]).text(text) == text


def test_ids_are_normalised():
    some = rules(normalise=["ids"])
    text = "f81d4fae-7dec-11d0-a765-00a0c91e6bf6 run_0123456789abcdef 0123456789ABCDEF01"
    assert some.text(text) == "<id> run_<id> <id>"
    same = "1234567890123456 deadbeefdeadbeef abc123 0123456789abcdefg"
    assert some.text(same) == same


def test_temporary_paths_are_normalised():
    some = rules(normalise=["temporary-paths"])
    text = (
        "/tmp/tmpabcdefgh/out.txt /tmp/xyz123, '/var/tmp/a1' /private/tmp/T9/x"
        " /var/folders/ab/c_d1/T/tmpx_y/z C:\\Users\\me\\AppData\\Local\\Temp\\tmp12\\f"
    )
    assert some.text(text) == "<tmp>/out.txt <tmp>, '<tmp>' <tmp>/x <tmp>/z <tmp>\\f"
    same = "/tmp /tmp/ /tmp/notes.txt /home/tmp/a1 a/tmp/x1"
    assert some.text(same) == same


def test_own_patterns_are_applied_in_order_and_with_groups():
    some = rules(
        normalise=[
            {"pattern": r"run (\d+) of (\d+)", "replace": r"run N of \2"},
            {"pattern": "N of", "replace": "some of"},
        ]
    )
    assert some.text("run 3 of 7") == "run some of 7"


def test_what_holds_a_conversation_together_is_left_alone():
    call = {"id": "call_0123456789abcdef", "function": {"arguments": '{"at": "2026-11-22"}'}}
    messages: Any = [
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call["id"], "content": "made 0123456789abcdef"},
    ]
    request = CanonicalRequest.of(
        "openai-chat", {"model": "m-2026-11-22"}, messages, is_model_call=True
    )
    clean = rules(normalise=["ids", "dates"]).request(request)
    first, second = cast(Any, clean.messages)
    assert clean.parameters == request.parameters
    assert first["tool_calls"][0]["id"] == second["tool_call_id"] == call["id"]
    assert first["tool_calls"][0]["function"]["arguments"] == '{"at": "<date>"}'
    assert second["content"] == "made <id>"
    own = rules(normalise=[{"pattern": "call_.*", "replace": "call"}]).request(request)
    assert cast(Any, own.messages)[1]["tool_call_id"] == "call"


@given(st.lists(st.sampled_from(["hello", "2026-11-22", "at 04:42:42", "x"]), max_size=6))
def test_a_normalised_conversation_is_its_beginning_and_what_it_adds(texts: list[str]):
    some = rules(normalise=["dates"])
    whole = some.request(asked(*texts))
    for count in range(len(texts) + 1):
        part = some.request(asked(*texts[:count]))
        assert whole.chain[:count] == part.chain
        assert part == rules(normalise=["dates"]).request(asked(*texts[:count]))


def test_each_message_is_looked_at_once():
    seen: list[Any] = []

    def change(message: Any) -> Any:
        seen.append(message["content"])
        return {**message, "content": message["content"].upper()}

    once = EachMessageOnce(lambda request: (request.endpoint, request.parameters), change)
    texts = ["a", "B", "c", "a"]
    requests = [once(asked(*texts[:count])) for count in range(1, 5)]
    assert seen == texts
    assert [m["content"] for m in requests[-1].messages] == ["A", "B", "C", "A"]


def test_a_recording_is_found_again_whatever_was_normalised(tmp_path: Path):
    path = tmp_path / "0.jsonl"
    given = rules(ignore=["seed"], normalise=["dates", "temporary-paths"])
    with open_store(path, "new_episodes", rules=given) as store:
        session = store.session("a")
        request = asked("it is 2026-11-22 in /tmp/tmp1234", seed=1)
        assert session.claim(request) is None
        session.append(request, answer("x"), latency_s=0)
        session.finish()
    assert "2026-11-22 in" not in path.read_text()
    assert "it is <date> in <tmp>" in path.read_text()
    with open_store(path, rules=given) as store:
        line = store.session("a").claim(asked("it is 2027-01-02 in /tmp/tmp9", seed=2))
    assert line is not None


def test_a_key_is_removed_before_a_rule_can_cut_into_it(tmp_path: Path):
    path = tmp_path / "0.jsonl"
    key = "plover-2026-11-22-xyzzy"
    given = rules(normalise=["dates"])
    with open_store(path, "new_episodes", rules=given, secrets={"A_API_KEY": key}) as store:
        session = store.session("a")
        request = asked(f"the key is {key}")
        assert session.claim(request) is None
        session.append(request, answer("x"), latency_s=0)
        session.finish()
    assert "plover" not in path.read_text()
    assert f"the key is {PLACEHOLDER}" in path.read_text()
    for secrets in ({"A_API_KEY": key}, {}):
        with open_store(path, rules=given, secrets=secrets) as store:
            call = asked(f"the key is {key if secrets else PLACEHOLDER}")
            assert store.session("a").claim(call) is not None


@pytest.mark.parametrize(("later", "differs"), [("it is 05:00:01", False), ("late", True)])
def test_tool_results_that_a_rule_makes_equal_do_not_differ(
    tmp_path: Path, later: str, differs: bool
):
    path = tmp_path / "0.jsonl"
    given = rules(normalise=["dates"])
    call = ToolInvocation("c", "clock", {}, 0, 1)
    with open_store(path, "new_episodes", rules=given) as store:
        session = store.session("a")
        tools = RecordedTools(Tool("it is 04:42:42"), session, mode="live")
        assert tools.invoke(call).content == "it is 04:42:42"
        session.finish()
    with open_store(path, rules=given) as store:
        tools = RecordedTools(Tool(later), store.session("a"), mode="live")
        assert tools.invoke(call).content == "it is 04:42:42"
    assert bool(tools.differences) == differs

"""The direct front finds and gives what the vendor's SDK finds and gives over HTTP."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.cassette.direct import DirectProvider
from harness.cassette.http import use
from harness.cassette.replay.session import Session
from harness.errors import ConfigurationError, HarnessError, InfrastructureError, ReplayMissError
from harness.protocols import Provider
from harness.providers.catalog import dialect_of, live_client
from harness.schema.messages import Message, Text, ToolCall, ToolResult, ToolSpec, VendorBlock
from harness.schema.suite import ModelConfig
from harness.values import ModelDelta, ModelRequest
from tests.cassette.cells import open_store
from tests.providers import random_transcripts
from tests.providers.lookalikes import anthropic, google, ollama, openai_chat, openai_responses
from tests.providers.lookalikes.server import Answer, Lookalike, serving, stream

KEY = "key-that-must-reach-no-file"


@dataclass(frozen=True)
class Vendor:
    model: ModelConfig
    path: str
    answer: dict[str, Any]
    """One that calls a tool."""
    streamed: Callable[[dict[str, Any]], Answer]
    blocks: tuple[dict[str, Any], ...]
    """What only this vendor understands, in a turn of the model's."""

    def at(self, url: str) -> ModelConfig:
        return self.model.model_copy(update={"base_url": url + self.path})


def openai_model(**more: Any) -> ModelConfig:
    return ModelConfig(provider="openai", name="m", **more)


CHAT_MESSAGE = {
    "role": "assistant",
    "content": "I look ☃.",
    "tool_calls": [
        {"id": "a", "type": "function", "function": {"name": "shell", "arguments": '{"x": 1}'}}
    ],
}
VENDORS = {
    "anthropic": Vendor(
        ModelConfig(provider="anthropic", name="m"),
        "",
        anthropic.ANSWER
        | {
            "content": [
                {"type": "text", "text": "I look ☃."},
                {"type": "tool_use", "id": "a", "name": "shell", "input": {"x": 1.0}},
            ],
            "stop_reason": "tool_use",
        },
        lambda answer: stream(*anthropic.events(answer), names=True),
        (
            anthropic.thinking("hm"),
            {"next_block": {"citations": [{"type": "page_location"}]}},
        ),
    ),
    "openai": Vendor(
        openai_model(),
        "/v1",
        openai_chat.ANSWER
        | {"choices": [{"index": 0, "message": CHAT_MESSAGE, "finish_reason": "tool_calls"}]},
        openai_chat.streamed,
        ({"reasoning_content": "hm"}, {"next_call": {"extra_content": {"n": 1}}}),
    ),
    "openai-responses": Vendor(
        openai_model(api="responses"),
        "/v1",
        openai_responses.ANSWER
        | {
            "output": [
                *openai_responses.ANSWER["output"],
                {
                    "type": "function_call",
                    "id": "fc_1",
                    "status": "completed",
                    "call_id": "a",
                    "name": "shell",
                    "arguments": '{"x": 1}',
                },
            ]
        },
        openai_responses.streamed,
        ({"type": "reasoning", "id": "r", "summary": [], "encrypted_content": "x"},),
    ),
    "ollama": Vendor(
        ModelConfig(provider="ollama", name="m"),
        "",
        ollama.ANSWER
        | {
            "message": {
                "role": "assistant",
                "content": "I look \x85 ☃.",
                "tool_calls": [{"function": {"name": "shell", "arguments": {"x": 1.0}}}],
            }
        },
        lambda answer: ollama.streamed(ollama.lines(answer)),
        ({"thinking": "hm"},),
    ),
    "google": Vendor(
        ModelConfig(provider="google", name="gemini-3-m"),
        "",
        google.ANSWER
        | {
            "candidates": [
                {
                    "content": {
                        "role": "model",
                        "parts": [
                            {"text": "I look ☃."},
                            {"functionCall": {"name": "shell", "args": {"x": 1}}},
                        ],
                    },
                    "finishReason": "STOP",
                }
            ]
        },
        google.streamed,
        ({"thought": True, "text": "hm"}, {"next_part": {"thoughtSignature": "c2ln"}}),
    ),
}
vendors = pytest.mark.parametrize("vendor", VENDORS.values(), ids=VENDORS)
both_ways = pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])

REQUEST = ModelRequest(
    model="m",
    system="Be brief.",
    messages=(Message(role="user", content=(Text(text="List ☃ files."),)),),
    tools=(ToolSpec(name="shell", description="Run.", parameters={"type": "object"}),),
    temperature=0.0,
)


@pytest.fixture(scope="module")
def server() -> Iterator[Lookalike]:
    with serving() as look:
        yield look


def ask(provider: Provider, request: ModelRequest, *, streamed: bool) -> Any:
    """What comes of a request: the turn or the failure, and the pieces."""
    shown: list[ModelDelta] = []
    try:
        turn = provider.complete(request, shown.append if streamed else None)
    except HarnessError as error:
        return type(error), str(error), shown
    return turn, shown


def direct(model: ModelConfig, session: Session) -> DirectProvider:
    return DirectProvider(dialect_of(model), session, lambda: live_client(model, KEY))


Run = Callable[[Provider], Any]


def record(path: Path, model: ModelConfig, run: Run) -> Any:
    with open_store(path, "new_episodes") as store:
        session = store.session("baseline")
        with use(session):
            outcome = run(live_client(model, KEY))
        session.finish()
    return outcome


def replay(path: Path, model: ModelConfig, run: Run, *, front: str) -> tuple[Any, Session]:
    with open_store(path) as store:
        session = store.session("baseline")
        if front == "direct":
            return run(direct(model, session)), session
        with use(session):
            return run(live_client(model, "another")), session


def assert_alike(path: Path, model: ModelConfig, run: Run) -> Session:
    """Both fronts give the same and leave the session alike."""
    over_http, of_http = replay(path, model, run, front="http")
    given, session = replay(path, model, run, front="direct")
    assert given == over_http
    for what in ("served", "last", "elapsed_s", "unanswered", "misses", "recorded"):
        assert getattr(session, what) == getattr(of_http, what), what
    return session


numbers = count()


@vendors
@both_ways
def test_both_fronts_compute_the_same_digest_for_every_request(
    vendor: Vendor, streamed: bool, server: Lookalike, tmp_path: Path
) -> None:
    model = vendor.at(server.url)
    own = st.sampled_from(vendor.blocks).map(
        lambda data: VendorBlock(dialect=dialect_of(model).name, data=data)
    )
    messages = random_transcripts.transcripts(st.lists(own, max_size=2), st.just([]))
    answer = vendor.streamed(vendor.answer) if streamed else Answer(200, vendor.answer)

    @settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck))
    @given(random_transcripts.requests(messages))
    def check(request: ModelRequest) -> None:
        request = replace(request, model=model.name)
        path = tmp_path / f"{next(numbers)}.jsonl"
        server.answers = [answer]

        def run(provider: Provider) -> Any:
            return ask(provider, request, streamed=streamed)

        live = record(path, model, run)
        given_again, session = replay(path, model, run, front="direct")
        assert session.misses == []
        assert session.served == 1
        assert given_again == live

    check()


@pytest.mark.parametrize("name", ["models/m", "tunedModels/m", "models/tunedModels/m", "lab/m"])
@both_ways
def test_a_model_that_the_url_names_is_the_same_one(
    name: str, streamed: bool, server: Lookalike, tmp_path: Path
) -> None:
    vendor = VENDORS["google"]
    server.answers = [vendor.streamed(vendor.answer) if streamed else Answer(200, vendor.answer)]

    def run(provider: Provider) -> Any:
        return ask(provider, replace(REQUEST, model=name), streamed=streamed)

    model = vendor.at(server.url)
    record(tmp_path / "0.jsonl", model, run)
    assert assert_alike(tmp_path / "0.jsonl", model, run).served == 1


def converse(provider: Provider, *, streamed: bool) -> list[Any]:
    """A call, its result, and an answer."""
    turn, shown = ask(provider, REQUEST, streamed=streamed)
    calls = [block for block in turn.content if isinstance(block, ToolCall)]
    results = tuple(ToolResult(call_id=c.id, name=c.name, content="a.txt") for c in calls)
    assert len(results) == 1
    more = (
        Message(role="assistant", content=turn.content),
        Message(role="user", content=results),
    )
    longer = replace(REQUEST, messages=(*REQUEST.messages, *more))
    return [turn, shown, *ask(provider, longer, streamed=streamed)]


@vendors
@both_ways
def test_a_conversation_goes_the_same_way_through_both_fronts(
    vendor: Vendor, streamed: bool, server: Lookalike, tmp_path: Path
) -> None:
    model = vendor.at(server.url)
    last = vendor.streamed(vendor.answer) if streamed else Answer(200, vendor.answer)
    server.answers = [last, last]

    def run(provider: Provider) -> Any:
        return converse(provider, streamed=streamed)

    live = record(tmp_path / "0.jsonl", model, run)
    session = assert_alike(tmp_path / "0.jsonl", model, run)
    assert replay(tmp_path / "0.jsonl", model, run, front="direct")[0] == live
    assert session.served == 2


FILTERED = {"error": {"code": "content_filter", "message": "no", "type": "content_filter"}}
REFUSED = {"error": {"message": "bad tool", "type": "invalid_request_error", "code": 400}}
ODD = {
    "bad request": Answer(400, REFUSED),
    "content policy": Answer(400, FILTERED),
    "too long": Answer(413, "<html>too\nlong</html>"),
    "error within success": Answer(200, REFUSED),
    "refusal within success": Answer(200, FILTERED),
    "no JSON": Answer(200, "<html></html>"),
    "a list": Answer(200, "[]"),
    "nothing": Answer(200, ""),
    "an object of another kind": Answer(200, {"hello": 1}),
    "error event": stream("event: error\n" + 'data: {"type":"error","error":{"type":"x"}}\n\n'),
    "event without data": stream("event: message_stop\n\n", "data: [DONE]\n\n"),
    "event that is no object": stream("event: message_start\ndata: 1\n\n"),
    "event that is no JSON": stream("event: message_start\ndata: {no\n\n"),
    "no events": stream("data: [DONE]\n\n"),
}


@vendors
@both_ways
def test_an_answer_that_is_no_plain_success_is_read_by_the_sdk(
    vendor: Vendor, streamed: bool, server: Lookalike, tmp_path: Path
) -> None:
    model = vendor.at(server.url)
    other_form = Answer(200, vendor.answer) if streamed else vendor.streamed(vendor.answer)
    another_success = vendor.streamed(vendor.answer) if streamed else Answer(200, vendor.answer)
    another_success = replace(another_success, status=202)
    marked = vendor.streamed(vendor.answer)
    marked = replace(marked, body=f"{marked.body}data: [DONE]\n\n")
    odd = {
        **ODD,
        "in the other form": other_form,
        "another success": another_success,
        "marked as done": marked,
    }

    def run(provider: Provider) -> Any:
        outcomes = {}
        for what, answer in odd.items():
            server.answers = [answer]
            request = replace(REQUEST, system=what)
            outcomes[what] = ask(provider, request, streamed=streamed)
        return outcomes

    path = tmp_path / "0.jsonl"
    record(path, model, run)
    assert assert_alike(path, model, run).served == len(odd)


@pytest.mark.parametrize("name", [None, "ping", "error"])
def test_what_the_sdk_makes_of_an_events_name_is_made_of_it(
    name: str | None, server: Lookalike, tmp_path: Path
) -> None:
    vendor = VENDORS["anthropic"]
    model = vendor.at(server.url)
    named = stream(*anthropic.events(vendor.answer), names=True)
    line = "" if name is None else f"event: {name}\n"
    body = named.body.replace("event: content_block_start\n", line)
    server.answers = [replace(named, body=body)]

    def run(provider: Provider) -> Any:
        return ask(provider, REQUEST, streamed=True)

    record(tmp_path / "0.jsonl", model, run)
    assert_alike(tmp_path / "0.jsonl", model, run)


def test_the_sdks_own_retries_are_given_the_next_answers(server: Lookalike, tmp_path: Path) -> None:
    vendor = VENDORS["openai"]
    model = vendor.at(server.url)
    again = {"x-should-retry": "true", "retry-after-ms": "1"}
    server.answers = [Answer(400, REFUSED, again), Answer(200, vendor.answer)]

    def run(provider: Provider) -> Any:
        return ask(provider, REQUEST, streamed=False)

    record(tmp_path / "0.jsonl", model, run)
    assert assert_alike(tmp_path / "0.jsonl", model, run).served == 2


@vendors
@both_ways
def test_a_miss_is_the_same_miss(
    vendor: Vendor, streamed: bool, server: Lookalike, tmp_path: Path
) -> None:
    model = vendor.at(server.url)
    server.answers = [vendor.streamed(vendor.answer) if streamed else Answer(200, vendor.answer)]
    path = tmp_path / "0.jsonl"
    record(path, model, lambda provider: ask(provider, REQUEST, streamed=streamed))

    def other(provider: Provider) -> Any:
        changed = replace(REQUEST, system="Be long.")
        first = ask(provider, changed, streamed=streamed)
        return [first, ask(provider, REQUEST, streamed=streamed)]

    session = assert_alike(path, model, other)
    assert len(session.misses) == 2
    first, then = replay(path, model, other, front="direct")[0]
    assert first[0] is then[0] is ReplayMissError


def test_what_goes_on_the_wire_is_shown_once(server: Lookalike, tmp_path: Path) -> None:
    vendor = VENDORS["openai"]
    model = vendor.at(server.url)
    server.answers = [Answer(400, REFUSED)]
    path = tmp_path / "0.jsonl"
    record(path, model, lambda provider: ask(provider, REQUEST, streamed=False))
    shown: list[Any] = []
    request = replace(REQUEST, on_wire=shown.append)
    replay(path, model, lambda p: ask(p, request, streamed=False), front="direct")
    assert shown == [dialect_of(model).to_request(REQUEST)]


def test_without_the_sdk_only_what_it_must_read_fails(server: Lookalike, tmp_path: Path) -> None:
    vendor = VENDORS["google"]
    model = vendor.at(server.url)
    server.answers = [Answer(200, vendor.answer), Answer(400, REFUSED)]
    path = tmp_path / "0.jsonl"
    other = replace(REQUEST, system=None)

    def run(provider: Provider) -> Any:
        return [ask(provider, request, streamed=False) for request in (REQUEST, other)]

    live = record(path, model, run)

    def absent() -> Provider:
        raise ConfigurationError("the package 'google' is not installed")

    with open_store(path) as store:
        session = store.session("baseline")
        given_again = run(DirectProvider(dialect_of(model), session, absent))
    assert given_again[0] == live[0]
    assert given_again[1][:2] == (InfrastructureError, "the package 'google' is not installed")


def test_the_direct_front_never_records(tmp_path: Path) -> None:
    model = VENDORS["openai"].at("http://127.0.0.1:1")
    with open_store(tmp_path / "0.jsonl", "new_episodes") as store:
        session = store.session("baseline")
        with pytest.raises(ConfigurationError, match="cannot record"):
            direct(model, session).complete(REQUEST)

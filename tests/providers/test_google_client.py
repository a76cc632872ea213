"""The live client through Google's SDK, over real HTTP."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from harness.errors import (
    AuthenticationError,
    ContextExceededError,
    MalformedAnswerError,
    ModelCallError,
    OverloadedError,
    RateLimitedError,
    ReplayMissError,
)
from harness.providers.google_client import client
from harness.providers.google_generate import GoogleGenerate
from harness.providers.sdk_client import SdkClient
from harness.schema.messages import (
    Message,
    StopReason,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
    Usage,
    VendorBlock,
)
from harness.values import ModelDelta, ModelRequest
from tests.providers.lookalikes.google import BAD_KEY, GOOGLE, failure, streamed
from tests.providers.lookalikes.server import Answer, Lookalike, serving

KEY = "key-of-this-test"

SHELL = ToolSpec(
    name="shell",
    description="Run a command.",
    parameters={"type": "object", "properties": {"command": {"default": None}}},
)
REQUEST = ModelRequest(
    model="gemini-test",
    system="Be brief.",
    messages=(
        Message(role="user", content=(Text(text="List ☃ files."),)),
        Message(
            role="assistant",
            content=(
                VendorBlock(
                    dialect="google-generate", data={"next_part": {"thoughtSignature": "c2ln"}}
                ),
                ToolCall(id="a", name="shell", arguments='{"command":  "ls", "n": null}'),
                ToolCall(id="b", name="shell", arguments='{"command": "l'),
            ),
        ),
        Message(
            role="user",
            content=(
                ToolResult(call_id="a", name="shell", content="a.txt\n"),
                ToolResult(call_id="b", name="shell", content="malformed", is_error=True),
                Text(text="Go on."),
            ),
        ),
    ),
    tools=(SHELL,),
    tool_choice="shell",
    max_output_tokens=50,
    temperature=0.0,
)
HELLO = ModelRequest(
    model="gemini-test", system=None, messages=(Message(role="user", content=(Text(text="Hi"),)),)
)
RICH_ANSWER: dict[str, Any] = {
    "candidates": [
        {
            "content": {
                "role": "model",
                "parts": [
                    {"text": "I should look at the files.", "thought": True},
                    {"text": "I look at the ☃ files."},
                    {
                        "functionCall": {"name": "shell", "args": {"command": "ls ☃"}},
                        "thoughtSignature": "c2ln",
                    },
                    {"functionCall": {"id": "given", "name": "shell", "args": {}}},
                    {"text": "", "thoughtSignature": "ZW5k"},
                ],
            },
            "finishReason": "STOP",
            "index": 0,
        }
    ],
    "usageMetadata": {
        "promptTokenCount": 10,
        "cachedContentTokenCount": 4,
        "candidatesTokenCount": 3,
        "thoughtsTokenCount": 5,
    },
    "modelVersion": "gemini-test-2026",
    "responseId": "response-2",
    "somethingNew": {"that": "no SDK knows"},
}


@pytest.fixture
def server() -> Iterator[Lookalike]:
    with serving(GOOGLE) as look:
        yield look


def made(server: Lookalike) -> SdkClient:
    return client(base_url=server.url, api_key=KEY)


def ignored(_: ModelDelta) -> None:
    """A reader who does not care, but whose presence makes the answer a streamed one."""


both_ways = pytest.mark.parametrize("on_delta", [None, ignored], ids=["whole", "streamed"])


@both_ways
def test_the_body_that_arrives_is_the_dialects_and_the_url_names_the_model(
    on_delta: Any, server: Lookalike
) -> None:
    turn = made(server).complete(REQUEST, on_delta)
    sent = GoogleGenerate().to_request(REQUEST)
    del sent["model"]
    assert server.bodies == [sent]
    method = "streamGenerateContent?alt=sse" if on_delta else "generateContent"
    assert server.paths == [f"/v1/models/gemini-test:{method}"]
    assert turn.content == (Text(text="Hi ☃, how are you?"),)
    assert turn.stop is StopReason.END_TURN
    assert turn.usage == Usage(input=7, output=2)
    assert turn.model == "gemini-test-2026"


@both_ways
def test_a_base_url_may_choose_the_version(on_delta: Any, server: Lookalike) -> None:
    client(base_url=f"{server.url}/v1beta/", api_key=KEY).complete(HELLO, on_delta)
    assert server.paths[0].startswith("/v1beta/models/gemini-test:")


@both_ways
def test_the_key_travels_in_one_header_only(on_delta: Any, server: Lookalike) -> None:
    made(server).complete(HELLO, on_delta)
    carriers = {name for name, value in server.headers[0].items() if KEY in value}
    assert carriers == {"x-goog-api-key"}
    assert KEY not in server.paths[0]


def test_a_streamed_answer_is_the_same_turn_and_shows_its_pieces(server: Lookalike) -> None:
    server.answers = [Answer(200, RICH_ANSWER), streamed(RICH_ANSWER)]
    whole = made(server).complete(REQUEST)
    deltas: list[ModelDelta] = []
    assert made(server).complete(REQUEST, deltas.append) == whole
    texts = [delta.text for delta in deltas if delta.kind == "text"]
    assert "".join(texts) == "I look at the ☃ files."
    assert len(texts) > 1
    calls = [block for block in whole.content if isinstance(block, ToolCall)]
    rest = [delta for delta in deltas if delta.kind != "text"]
    assert rest == [
        delta
        for call in calls
        for delta in (
            ModelDelta("call_start", call.name, call.id),
            ModelDelta("call_arguments", call.arguments, call.id),
            ModelDelta("call_done", call_id=call.id),
        )
    ]


@both_ways
def test_an_answer_goes_back_as_it_came(on_delta: Any, server: Lookalike) -> None:
    server.answers = [streamed(RICH_ANSWER) if on_delta else Answer(200, RICH_ANSWER)]
    turn = made(server).complete(HELLO, on_delta)
    calls = [block for block in turn.content if isinstance(block, ToolCall)]
    assert len({call.id for call in calls}) == 2
    results = tuple(ToolResult(call_id=c.id, name=c.name, content="done") for c in calls)
    messages = (
        *HELLO.messages,
        Message(role="assistant", content=turn.content),
        Message(role="user", content=results),
    )
    made(server).complete(replace(HELLO, messages=messages, tools=(SHELL,)), on_delta)
    parts = server.bodies[-1]["contents"][1]["parts"]
    came = json.loads(json.dumps(RICH_ANSWER["candidates"][0]["content"]["parts"]))
    came[2]["functionCall"]["id"] = calls[0].id
    assert parts == came


@both_ways
def test_what_the_vendor_rejects_is_a_failed_call(on_delta: Any, server: Lookalike) -> None:
    unanswered = replace(REQUEST, messages=REQUEST.messages[:2])
    with pytest.raises(ModelCallError, match=r"HTTP 400: .*function response"):
        made(server).complete(unanswered, on_delta)


@both_ways
def test_a_wrong_key_is_known_although_it_comes_as_a_bad_request(
    on_delta: Any, server: Lookalike
) -> None:
    server.answers = [Answer(400, BAD_KEY)]
    with pytest.raises(AuthenticationError, match=r"API key not valid.*check the API key"):
        made(server).complete(HELLO, on_delta)


TOO_LONG = "The input token count (1048577) exceeds the maximum number of tokens allowed (1048576)."


@both_ways
@pytest.mark.parametrize(
    ("status", "body", "expected", "says"),
    [
        (400, failure(400, "because", "INVALID_ARGUMENT"), ModelCallError, "HTTP 400: because"),
        (400, failure(400, TOO_LONG, "INVALID_ARGUMENT"), ContextExceededError, "1048577"),
        (401, failure(401, "because", "UNAUTHENTICATED"), AuthenticationError, "check the API key"),
        (403, failure(403, "because", "PERMISSION_DENIED"), AuthenticationError, "because"),
        (404, failure(404, "because", "NOT_FOUND"), ModelCallError, "because"),
        (400, [failure(400, "because", "INVALID_ARGUMENT")], ModelCallError, "because"),
        (400, "", ModelCallError, "HTTP 400"),
        (501, failure(501, "because", "UNIMPLEMENTED"), OverloadedError, "because"),
    ],
)
def test_failures_are_told_apart(
    status: int,
    body: Any,
    expected: type[ModelCallError],
    says: str,
    on_delta: Any,
    server: Lookalike,
) -> None:
    server.answers = [Answer(status, body)]
    with pytest.raises(ModelCallError) as caught:
        made(server).complete(HELLO, on_delta)
    assert type(caught.value) is expected
    assert says in str(caught.value)
    assert server.url in str(caught.value)
    assert len(server.bodies) == 1


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (429, failure(429, "because", "RESOURCE_EXHAUSTED"), RateLimitedError),
        (503, "<html>\n<body>because</body>\n</html>", OverloadedError),
    ],
)
def test_passing_failures_are_tried_three_times(
    status: int, body: Any, expected: type[ModelCallError], server: Lookalike
) -> None:
    server.answers = [Answer(status, body) for _ in range(3)]
    with pytest.raises(ModelCallError) as caught:
        made(server).complete(HELLO)
    assert type(caught.value) is expected
    assert "because" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(server.bodies) == 3


@both_ways
def test_a_replay_miss_arrives_at_once_with_its_text_unchanged(
    on_delta: Any, server: Lookalike
) -> None:
    text = "not recorded:\n- old\n+ new"
    detail = {"type": "replay_miss", "code": "replay_miss", "message": text}
    server.answers = [Answer(400, {"type": "error", "error": detail})]
    with pytest.raises(ReplayMissError) as caught:
        made(server).complete(HELLO, on_delta)
    assert str(caught.value) == text
    assert len(server.bodies) == 1


@both_ways
@pytest.mark.parametrize(
    "body", ["<html>hello</html>", "[]", "", '{"object": "list"}', 'data: {"candidates": 3}\n\n']
)
def test_an_answer_in_another_format_is_malformed(
    body: str, on_delta: Any, server: Lookalike
) -> None:
    server.answers = [Answer(200, body)]
    with pytest.raises(MalformedAnswerError):
        made(server).complete(HELLO, on_delta)


def test_a_stream_that_ends_before_the_answer_does_is_malformed(server: Lookalike) -> None:
    piece = {"candidates": [{"content": {"parts": [{"text": "half"}]}}]}
    server.answers = [Answer(200, f"data: {json.dumps(piece)}\n\n")]
    with pytest.raises(MalformedAnswerError, match="finishReason"):
        made(server).complete(HELLO, ignored)


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (failure(503, "The model is overloaded.", "UNAVAILABLE"), OverloadedError),
        ({"error": {"message": "no code"}}, ModelCallError),
        ({"error": "no object"}, ModelCallError),
    ],
)
def test_an_error_within_a_stream_is_a_failed_call(
    event: Any, expected: type[ModelCallError], server: Lookalike
) -> None:
    server.answers = [Answer(200, f"data: {json.dumps(event)}\n\n")]
    with pytest.raises(expected):
        made(server).complete(HELLO, ignored)


def test_a_reader_who_stops_reading_closes_the_connection(server: Lookalike) -> None:
    long = json.loads(json.dumps(RICH_ANSWER))
    long["candidates"][0]["content"]["parts"] = [{"text": "x" * 100_000}]
    server.answers = [streamed(long)]

    def stop(_: ModelDelta) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        made(server).complete(HELLO, stop)
    assert server.hung_up.wait(10)


@both_ways
def test_an_endpoint_where_nothing_listens_is_named(on_delta: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(OverloadedError, match=f"cannot reach {url}.*refused"):
        client(base_url=url, api_key=KEY).complete(HELLO, on_delta)


@both_ways
@pytest.mark.parametrize("model", ["", "a?b", "a/../b"])
def test_a_name_that_cannot_be_a_models_is_a_failed_call(
    model: str, on_delta: Any, server: Lookalike
) -> None:
    with pytest.raises(ModelCallError):
        made(server).complete(replace(HELLO, model=model), on_delta)

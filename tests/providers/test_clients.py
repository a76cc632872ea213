"""The live clients, through the vendors' SDKs, over real HTTP."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import vcr  # type: ignore[import-untyped]

from harness.errors import (
    AuthenticationError,
    CassetteError,
    ConfigurationError,
    ContextExceededError,
    MalformedAnswerError,
    ModelCallError,
    OverloadedError,
    RateLimitedError,
    ReplayMissError,
)
from harness.protocols import Provider
from harness.providers.catalog import client_module, dialect_of, live_client
from harness.schema.messages import (
    Message,
    StopReason,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
)
from harness.schema.suite import ModelConfig
from harness.values import ModelRequest
from tests.providers.lookalikes.anthropic import ENDPOINT as MESSAGES
from tests.providers.lookalikes.openai_chat import CHAT
from tests.providers.lookalikes.openai_responses import RESPONSES
from tests.providers.lookalikes.server import Answer, Lookalike, serving

REQUEST = ModelRequest(
    model="model-1",
    system="Be brief.",
    messages=(
        Message(role="user", content=(Text(text="List ☃ files."),)),
        Message(
            role="assistant",
            content=(
                Text(text="I look."),
                ToolCall(id="a", name="shell", arguments='{"command":  "ls", "n": null, "f": 1.0}'),
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
    tools=(
        ToolSpec(
            name="shell",
            description="Run a command.",
            parameters={"type": "object", "properties": {"command": {"default": None}}},
        ),
    ),
    max_output_tokens=50,
    temperature=0.0,
)
UNANSWERED = ModelRequest(model="model-1", system=None, messages=REQUEST.messages[:2])

MODELS = {
    "openai": ModelConfig(provider="openai", name="model-1"),
    "openai-responses": ModelConfig(provider="openai", name="model-1", api="responses"),
    "anthropic": ModelConfig(provider="anthropic", name="model-1"),
}
vendors = pytest.mark.parametrize("vendor", MODELS)


@pytest.fixture
def server() -> Iterator[Lookalike]:
    with serving(CHAT, RESPONSES, MESSAGES) as look:
        yield look


def client(vendor: str, url: str, key: str = "key-1") -> Provider:
    base_url = url if vendor == "anthropic" else f"{url}/v1"
    return live_client(MODELS[vendor].model_copy(update={"base_url": base_url}), key)


@vendors
def test_the_body_that_arrives_is_the_one_the_dialect_made(vendor: str, server: Lookalike) -> None:
    turn = client(vendor, server.url).complete(REQUEST)
    dialect = dialect_of(MODELS[vendor])
    assert server.bodies == [dialect.to_request(REQUEST)]
    assert dialect.split(server.bodies[0]) == dialect.split(dialect.to_request(REQUEST))
    assert turn.content == (Text(text="Hi ☃"),)
    assert turn.stop is StopReason.END_TURN
    assert turn.usage is not None
    assert (turn.usage.input, turn.usage.output) == (7, 2)
    assert turn.model in ("gpt-test-2026", "claude-test-2026")


@vendors
def test_the_key_travels_in_one_header_only(vendor: str, server: Lookalike) -> None:
    client(vendor, server.url, key="key-of-this-test").complete(REQUEST)
    carriers = {k: v for k, v in server.headers[0].items() if "key-of-this-test" in v}
    assert carriers == {"authorization": "Bearer key-of-this-test"}


@vendors
def test_what_the_vendor_rejects_is_a_failed_call(vendor: str, server: Lookalike) -> None:
    with pytest.raises(ModelCallError, match="HTTP 400"):
        client(vendor, server.url).complete(UNANSWERED)


def error(kind: str, message: str = "because", **more: Any) -> dict[str, Any]:
    return {"error": {"type": kind, "message": message, **more}}


TOO_LONG = [
    error("invalid_request_error", "too long", code="context_length_exceeded"),
    error("invalid_request_error", "This model's maximum context length is 8192 tokens."),
    error("invalid_request_error", "prompt is too long: 208310 tokens > 200000 maximum"),
    error("exceed_context_size_error", "request (9030 tokens) is too large", code=400),
    error("x", "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000"),
    error("x", "The decoder prompt (9 tokens) is longer than the maximum model length of 8."),
    error("x", "The input (9 tokens) is longer than the model's context length (8 tokens)."),
    [error("x", "Input exceeds the context window.")],
]


@vendors
@pytest.mark.parametrize(
    ("status", "body", "expected", "says"),
    [
        (400, error("invalid_request_error"), ModelCallError, "HTTP 400: because"),
        (401, error("authentication_error"), AuthenticationError, "check the API key"),
        (403, error("permission_error"), AuthenticationError, "because"),
        (404, error("not_found_error"), ModelCallError, "because"),
        (422, '{"detail": "no"}', ModelCallError, "no"),
        (400, "", ModelCallError, "no explanation"),
        *[(400, body, ContextExceededError, "HTTP 400") for body in TOO_LONG],
        (
            413,
            error("request_too_large", "Request exceeds the maximum size"),
            ContextExceededError,
            "413",
        ),
    ],
)
def test_refusals_are_told_apart(
    vendor: str,
    status: int,
    body: Any,
    expected: type[ModelCallError],
    says: str,
    server: Lookalike,
) -> None:
    server.answers = [Answer(status, body)]
    with pytest.raises(ModelCallError) as caught:
        client(vendor, server.url).complete(REQUEST)
    assert type(caught.value) is expected
    assert says in str(caught.value)
    assert server.url in str(caught.value)
    assert len(server.bodies) == 1


@vendors
@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (429, error("rate_limit_error"), RateLimitedError),
        (500, error("api_error"), OverloadedError),
        (529, error("overloaded_error"), OverloadedError),
        (502, "<html>\n<body>because</body>\n</html>", OverloadedError),
        (408, error("timeout"), OverloadedError),
    ],
)
def test_passing_failures_are_tried_three_times(
    vendor: str, status: int, body: Any, expected: type[ModelCallError], server: Lookalike
) -> None:
    server.answers = [Answer(status, body, {"retry-after-ms": "1"}) for _ in range(3)]
    with pytest.raises(ModelCallError) as caught:
        client(vendor, server.url).complete(REQUEST)
    assert type(caught.value) is expected
    assert "because" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(server.bodies) == 3


@vendors
def test_a_passing_failure_is_not_seen_when_a_retry_succeeds(
    vendor: str, server: Lookalike
) -> None:
    server.answers = [Answer(429, error("rate_limit_error"), {"retry-after-ms": "1"})]
    assert client(vendor, server.url).complete(REQUEST).content == (Text(text="Hi ☃"),)


@vendors
@pytest.mark.parametrize("key", ["type", "code"])
def test_a_replay_miss_arrives_at_once_with_its_text_unchanged(
    vendor: str, key: str, server: Lookalike
) -> None:
    text = "not recorded:\n- old\n+ new\n\nrun: harness run --record-mode new_episodes"
    detail = {"type": "x", "code": None, "message": text, key: "replay_miss"}
    server.answers = [Answer(400, {"type": "error", "error": detail})]
    with pytest.raises(ReplayMissError) as caught:
        client(vendor, server.url).complete(REQUEST)
    assert str(caught.value) == text
    assert len(server.bodies) == 1


@vendors
@pytest.mark.parametrize("body", ["<html>hello</html>", "[]", "", '{"object": "list"}'])
def test_an_answer_in_another_format_is_malformed(
    vendor: str, body: str, server: Lookalike
) -> None:
    server.answers = [Answer(200, body)]
    with pytest.raises(MalformedAnswerError, match="check that"):
        client(vendor, server.url).complete(REQUEST)


@vendors
def test_an_endpoint_where_nothing_listens_is_named(vendor: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(OverloadedError, match=f"cannot reach http://127.0.0.1:{port}.*refused"):
        client(vendor, f"http://127.0.0.1:{port}").complete(REQUEST)


@vendors
def test_an_error_of_ours_below_the_sdk_comes_out_as_itself(
    vendor: str, server: Lookalike, tmp_path: Path
) -> None:
    def refuse(_: object) -> None:
        raise CassetteError("line 3 is damaged")

    recorder = vcr.VCR(before_record_request=refuse)
    with (
        recorder.use_cassette(str(tmp_path / "c.yaml")),
        pytest.raises(CassetteError, match="line 3 is damaged"),
    ):
        client(vendor, server.url).complete(REQUEST)
    assert server.bodies == []


def test_the_dialects_and_the_catalog_import_no_vendor_sdk() -> None:
    code = (
        "import sys, harness.providers.catalog, harness.providers.scripted;"
        "sdks = ('openai', 'anthropic', 'ollama', 'google.genai', 'httpx2', 'httpx');"
        "print([name for name in sdks if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_vendor_whose_sdk_is_missing_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "client_without_sdk.py").write_text("import no_such_sdk.client")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ConfigurationError, match=r"'no_such_sdk'.*pip install 'loop-harness\[x\]'"):
        client_module("client_without_sdk", "x")


def test_a_module_of_ours_that_is_missing_is_a_bug_not_a_missing_sdk() -> None:
    with pytest.raises(ModuleNotFoundError):
        client_module("harness.providers.no_such_client", "x")


@vendors
@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    "body",
    [
        error("invalid_request_error", "We will not.", code="content_policy_violation"),
        error("invalid_request_error", "We will not.", code="content_filter"),
        error("x", "Invalid prompt: it was flagged as potentially violating our usage policy."),
        error("invalid_request_error", "Output blocked by content filtering policy"),
    ],
)
def test_a_request_that_the_content_policy_turns_down_is_a_refusal(
    vendor: str, streamed: bool, body: Any, server: Lookalike
) -> None:
    server.answers = [Answer(400, body)]
    turn = client(vendor, server.url).complete(REQUEST, print if streamed else None)
    assert turn.stop is StopReason.REFUSAL
    assert turn.content == (Text(text=body["error"]["message"]),)


@vendors
def test_a_moderation_that_a_gateway_forbids_with_is_a_refusal(
    vendor: str, server: Lookalike
) -> None:
    body = error("x", "The model requires moderation. Your input was flagged.", code=403)
    server.answers = [Answer(403, body)]
    assert client(vendor, server.url).complete(REQUEST).stop is StopReason.REFUSAL

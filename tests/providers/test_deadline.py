"""A live call ends when its time is over: real SDKs, and a server that takes longer."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from harness.errors import OutOfTimeError
from harness.protocols import Provider
from harness.providers.catalog import live_client
from harness.schema.messages import Message, Text
from harness.schema.suite import ModelConfig
from harness.values import ModelRequest
from tests.providers.lookalikes.slow import PATIENCE_S, Slow, slow_server

LIMIT_S = 0.3
MODELS = {
    "openai": ModelConfig(provider="openai", name="model-1"),
    "openai-responses": ModelConfig(provider="openai", name="model-1", api="responses"),
    "anthropic": ModelConfig(provider="anthropic", name="model-1"),
    "google": ModelConfig(provider="google", name="model-1"),
    "ollama": ModelConfig(provider="ollama", name="model-1"),
}
QUESTION = Message(role="user", content=(Text(text="Well?"),))


def request(limit_s: float | None = LIMIT_S) -> ModelRequest:
    return ModelRequest(model="model-1", system=None, messages=(QUESTION,), limit_s=limit_s)


@pytest.fixture(params=MODELS)
def vendor(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def slow() -> Iterator[Slow]:
    with slow_server() as server:
        yield server


def client(vendor: str, url: str) -> Provider:
    base_url = f"{url}/v1" if vendor.startswith("openai") else url
    return live_client(MODELS[vendor].model_copy(update={"base_url": base_url}), "key-1")


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_a_call_is_cut_when_its_time_is_over_and_not_tried_again(
    vendor: str, streamed: bool, slow: Slow
) -> None:
    slow.ways = ["hang"]
    with pytest.raises(OutOfTimeError, match="the run's time is used up"):
        client(vendor, slow.url).complete(request(), (lambda _: None) if streamed else None)
    assert slow.asked == 1


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_an_answer_that_trickles_in_is_cut_as_well(vendor: str, streamed: bool, slow: Slow) -> None:
    slow.ways = ["trickle"]
    with pytest.raises(OutOfTimeError):
        client(vendor, slow.url).complete(request(), (lambda _: None) if streamed else None)
    assert slow.hung_up.wait(PATIENCE_S)


@pytest.mark.parametrize("vendor", [name for name in MODELS if name != "ollama"], indirect=True)
def test_no_retry_begins_when_the_time_is_over(vendor: str, slow: Slow) -> None:
    slow.ways = ["fail"]
    with pytest.raises(OutOfTimeError):
        client(vendor, slow.url).complete(request())


def test_a_client_goes_on_after_a_call_that_was_cut(vendor: str, slow: Slow) -> None:
    slow.ways = ["keep", "hang"]
    provider = client(vendor, slow.url)
    assert provider.complete(request(None)).content == (Text(text="Hi"),)
    with pytest.raises(OutOfTimeError):
        provider.complete(request())
    assert provider.complete(request(PATIENCE_S)).content == (Text(text="Hi"),)
    assert provider.complete(request(None)).content == (Text(text="Hi"),)


def test_a_call_without_any_time_is_not_made(vendor: str, slow: Slow) -> None:
    with pytest.raises(OutOfTimeError):
        client(vendor, slow.url).complete(request(0.0))
    assert slow.asked == 0

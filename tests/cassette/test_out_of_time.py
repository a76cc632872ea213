"""A call that was cut when the run's time was over is recorded, and replays to the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.cassette.direct import DirectProvider
from harness.cassette.http import use
from harness.cassette.playback import Playback
from harness.cassette.replay.session import Session
from harness.errors import OutOfTimeError, ReplayMissError
from harness.protocols import Provider
from harness.providers.catalog import dialect_of, live_client
from harness.schema.messages import Message, ModelTurn, Text
from harness.schema.suite import ModelConfig
from harness.values import ModelRequest
from tests.cassette.cells import open_store
from tests.cassette.recordings import lines
from tests.providers.lookalikes.slow import PATIENCE_S, Slow, slow_server

QUESTION = Message(role="user", content=(Text(text="Well?"),))
HI = (Text(text="Hi"),)
LIMIT_S = 0.3


@pytest.fixture
def slow() -> Iterator[Slow]:
    with slow_server() as server:
        yield server


def model(slow: Slow) -> ModelConfig:
    return ModelConfig(provider="openai", name="m", base_url=f"{slow.url}/v1")


def ask(provider: Provider, limit_s: float | None, *, streamed: bool = False) -> ModelTurn:
    request = ModelRequest(model="m", system=None, messages=(QUESTION,), limit_s=limit_s)
    return provider.complete(request, (lambda _: None) if streamed else None)


def record_cut(path: Path, slow: Slow, way: str, *, streamed: bool = False) -> None:
    slow.ways = [way]
    with open_store(path, "new_episodes") as store:
        session = store.session("a")
        with use(session), pytest.raises(OutOfTimeError):
            ask(live_client(model(slow), "key-1"), LIMIT_S, streamed=streamed)
        assert session.elapsed_s > LIMIT_S
        session.finish()


def front(name: str, slow: Slow, session: Session) -> Provider:
    client = live_client(model(slow), "key-1")
    return (
        client
        if name == "http"
        else DirectProvider(dialect_of(model(slow)), session, lambda: client)
    )


@pytest.mark.parametrize("name", ["http", "direct"])
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("way", ["hang", "trickle"])
def test_a_call_that_was_cut_replays_as_cut(
    way: str, streamed: bool, name: str, slow: Slow, tmp_path: Path
) -> None:
    path = tmp_path / "0.jsonl"
    record_cut(path, slow, way, streamed=streamed)
    with open_store(path, "none") as store:
        session = store.session("a")
        with use(session, Playback("recorded")), pytest.raises(OutOfTimeError):
            ask(front(name, slow, session), LIMIT_S, streamed=streamed)
        session.finish()
    assert session.misses == []
    assert session.elapsed_s > LIMIT_S
    assert slow.asked == 1


@pytest.mark.parametrize("limit_s", [PATIENCE_S, None], ids=["more", "no limit"])
@pytest.mark.parametrize("name", ["http", "direct"])
def test_with_more_time_it_is_missed(
    name: str, limit_s: float | None, slow: Slow, tmp_path: Path
) -> None:
    path = tmp_path / "0.jsonl"
    record_cut(path, slow, "hang")
    with open_store(path, "none") as store:
        session = store.session("a")
        with use(session), pytest.raises(ReplayMissError, match=r"cut after 0\.3001 s"):
            ask(front(name, slow, session), limit_s)
    assert slow.asked == 1
    assert [miss.cause for miss in session.misses] == ["the run's time"]


def test_with_more_time_it_is_asked_for_again(slow: Slow, tmp_path: Path) -> None:
    path = tmp_path / "0.jsonl"
    record_cut(path, slow, "hang")
    for mode in ("new_episodes", "none"):
        with open_store(path, mode) as store:
            session = store.session("a")
            with use(session):
                assert ask(live_client(model(slow), "key-1"), PATIENCE_S).content == HI
            session.finish()
    assert slow.asked == 2
    assert [line["response"]["status"] for line in lines(path) if "response" in line] == [0, 200]


def test_another_variant_with_the_same_time_is_not_asked_for_again(
    slow: Slow, tmp_path: Path
) -> None:
    path = tmp_path / "0.jsonl"
    record_cut(path, slow, "hang")
    with open_store(path, "new_episodes") as store:
        session = store.session("b")
        with use(session), pytest.raises(OutOfTimeError):
            ask(live_client(model(slow), "key-1"), LIMIT_S)
        session.finish()
    assert slow.asked == 1

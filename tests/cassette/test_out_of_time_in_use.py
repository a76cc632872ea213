"""A run outside a trial that was cut replays to the same ending, by its own clock."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import harness.cassette
from harness.errors import ReplayMissError
from harness.loop.engine import Loop
from harness.providers.catalog import live_client
from harness.schema.loop_config import Budget, Confirm, LoopConfig
from harness.schema.loop_config import TerminationReason as Reason
from harness.schema.results import RecordMode
from harness.schema.suite import ModelConfig
from tests.providers.lookalikes.slow import PATIENCE_S, Slow, slow_server

LIMIT_S = 2.0


@pytest.fixture
def recorded(tmp_path: Path) -> Iterator[tuple[Path, Slow]]:
    """A run of two calls: the first took its time, and the second was cut."""
    with slow_server() as slow:
        path = tmp_path / "spider.jsonl"
        slow.ways = ["late", "hang"]
        assert run(path, slow, "once", LIMIT_S) == (Reason.DURATION_EXCEEDED, 2)
        assert slow.asked == 2
        yield path, slow


def run(path: Path, slow: Slow, mode: RecordMode, limit_s: float | None) -> tuple[Reason, int]:
    """How a loop with the clock that everybody has ends, and how many calls it made."""
    model = ModelConfig(provider="openai", name="m", base_url=f"{slow.url}/v1")
    config = LoopConfig(
        budget=Budget(max_duration_s=limit_s), confirm=Confirm(enabled=True, mode="second_text")
    )
    with harness.cassette.use(path, mode) as session:
        trajectory = Loop(live_client(model, "key-1"), model="m", config=config).run("Well?")
    return trajectory.termination_reason, session.served + session.recorded


@pytest.mark.parametrize("mode", ["none", "once"])
def test_a_loop_that_was_cut_is_cut_again(recorded: tuple[Path, Slow], mode: RecordMode) -> None:
    path, slow = recorded
    before = path.read_bytes()
    assert run(path, slow, mode, LIMIT_S) == (Reason.DURATION_EXCEEDED, 2)
    assert (slow.asked, path.read_bytes()) == (2, before)


def test_without_a_limit_it_is_missed(recorded: tuple[Path, Slow]) -> None:
    path, slow = recorded
    with pytest.raises(ReplayMissError, match="Now there is more time"):
        run(path, slow, "none", None)
    assert slow.asked == 2


def test_with_more_time_it_is_asked_for_again_while_recording(
    recorded: tuple[Path, Slow],
) -> None:
    path, slow = recorded
    modes: tuple[RecordMode, ...] = ("new_episodes", "none")
    for mode in modes:
        assert run(path, slow, mode, PATIENCE_S) == (Reason.COMPLETED, 2)
    assert slow.asked == 3

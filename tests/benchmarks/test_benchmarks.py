from __future__ import annotations

import json
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import pytest

from benchmarks import corpus, engine, many, ours, picture, recording, replay, tables, trials
from benchmarks.demands import Demand, demands
from benchmarks.peers import __main__ as peers
from benchmarks.replay import Plan, Results, Workers
from benchmarks.timing import Effort, Row
from benchmarks.workers import WorkerFailed, fresh

TINY = Effort(first_pass=6, rounds=1, round_calls=3, limit_calls=2)
PLAN = Plan(
    sizes=(3, 6),
    peer_sizes=(3,),
    sample=6,
    effort=TINY,
    peer_effort=replace(TINY, rounds=0),
    many=2,
    recorded=(0, 6),
    conversations=1,
    trials=1,
    starts=1,
    at_once=1,  # in one process, vcrpy's cassettes get in each other's way
)


def installed_peers(action: str, peer: str, *rest: Any, **effort: Any) -> dict[str, Any]:
    """The developers' environment holds one of the other recorders."""
    if not peer.startswith("vcrpy"):
        raise WorkerFailed("not installed here")
    return peers.main(action, peer, *rest, **effort)


def workers(others: bool) -> Workers:
    return Workers(
        ours.main, recording.main, many.main, trials.main, installed_peers if others else None
    )


@pytest.mark.slow
def test_everything_is_measured_and_answered_right():
    results = replay.run(PLAN, workers(others=True))
    measured = {(row.name, row.vendor, row.calls, row.wrong) for row in results.rows}
    ours_ = {(f, v, n, 0) for f in replay.FRONTS for v in corpus.VENDORS for n in PLAN.sizes}
    theirs = {(f"vcrpy {f}", v, 3, 0) for f in ("YAML", "JSON") for v in corpus.VENDORS}
    assert measured == ours_ | theirs
    assert [found["calls"] for found in results.recording] == [10, 10, 10, 10]
    assert results.many["wrong"] == results.trials["wrong"] == 0
    assert results.trials["trials"] == 1
    assert any("llm-cassette" in note for note in results.notes)
    assert "\n".join(tables.lines(results)).count("ours, direct front") == 4
    ElementTree.fromstring(picture.svg(results))


def row(name: str, vendor: str, calls: int, ratio: float) -> Row:
    return Row(name, vendor, calls, 400 * ratio, 400, ratio, 10, 5, calls * 4_000, calls, 0)


def results_with(ratio: float, rival: float | None) -> Results:
    results = Results(
        rows=[
            row(front, vendor, calls, ratio * (10 if front == "direct" else 1))
            for front in replay.FRONTS
            for vendor in corpus.VENDORS
            for calls in (100, 5_000)
        ],
        recording=[{"recorded": 0, "vendor": "openai", "overhead_ms": 1.0}],
        many={"count": 5_000, "open_close_ms": 1.0, "with_a_call_ms": 1.1, "wrong": 0},
        trials={"rate": 25.0, "start_ms": 18.0, "plain_ms": 1.0, "wrong": 0},
    )
    if rival is not None:
        results.rows += [row(replay.RIVAL, vendor, 100, rival) for vendor in corpus.VENDORS]
    return results


def not_holding(found: list[Demand]) -> list[str]:
    return [demand.text for demand in found if demand.holds is False]


def test_requirements_hold_or_do_not():
    assert not_holding(list(demands(results_with(0.92, rival=3.0)))) == []
    slow = not_holding(list(demands(results_with(0.8, rival=3.0))))
    assert len(slow) == 3
    assert slow[0].startswith("HTTP front, openai")


def test_what_was_not_measured_is_said_and_is_no_failure():
    found = list(demands(results_with(0.92, rival=None)))
    assert not_holding(found) == []
    assert "not measured" in "\n".join(tables.verdicts(found))


def test_a_size_that_is_slower_than_another_is_seen():
    results = results_with(0.95, rival=3.0)
    results.rows[1] = replace(results.rows[1], ratio=results.rows[0].ratio * 0.89)
    assert any("slowest size" in text for text in not_holding(list(demands(results))))


def test_a_measurement_that_breaks_says_why():
    with pytest.raises(WorkerFailed, match="No module named"):
        fresh("benchmarks.nothing")("record", "openai", 1)


@pytest.mark.parametrize("vendor", corpus.VENDORS.values(), ids=lambda vendor: vendor.name)
def test_the_corpus_is_as_large_as_it_says(vendor: corpus.Vendor):
    assert 2_400 < len(vendor.request_bytes(0)) < 2_800
    assert 18_500 < len(vendor.request_bytes(9)) < 20_000
    assert 900 < len(vendor.answer_bytes(5)) < 1_300
    assert corpus.number_of(json.loads(vendor.request_bytes(57))) == 57


def test_the_engine_is_measured(capsys: pytest.CaptureFixture[str]):
    engine.main(iterations=5, rounds=1)
    assert "engine, an iteration" in capsys.readouterr().out
